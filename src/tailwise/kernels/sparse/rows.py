"""Looks at sparse rows: whether they can be followed, and their length."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.compilation import njit

BROKEN, UNSORTED, CANONICAL = 0, 1, 2
"""What :func:`row_order` finds: indices that lead outside; rows with unsorted or repeated ones; neither."""


@njit(nogil=True, cache=True, boundscheck=False)
def row_order(indptr, indices, width):
    """Whether compressed rows can be followed and are in order, whatever the arrays hold: the first look at them.

    ``indices`` are integers and ``indptr`` is int64, with at least one entry; both may be read-only. Reads nothing
    outside of either.
    """
    last = indptr.shape[0] - 1
    if indptr[0] != 0 or indptr[last] != indices.shape[0]:
        return BROKEN
    for i in range(last):
        if indptr[i + 1] < indptr[i] or indptr[i + 1] > indices.shape[0]:
            return BROKEN
    order = CANONICAL
    for i in range(last):
        previous = -1
        for a in range(indptr[i], indptr[i + 1]):
            index = indices[a]
            if index < 0 or index >= width:
                return BROKEN
            if index <= previous:
                order = UNSORTED
            previous = index
    return order


@njit(nogil=True, cache=True, boundscheck=False)
def unit_values(indptr, data, scaled):
    """The values of CSR rows scaled to unit length, into the float32 array ``scaled``; a row of zeros stays one.

    Inputs may be read-only; ``indptr`` is int64.
    """
    for i in range(indptr.shape[0] - 1):
        square = 0.0
        for a in range(indptr[i], indptr[i + 1]):
            square += np.float64(data[a]) * np.float64(data[a])
        scale = 1.0 / np.sqrt(square) if square > 0 else 1.0
        for a in range(indptr[i], indptr[i + 1]):
            scaled[a] = np.float64(data[a]) * scale
    return scaled
