"""Rows of unit length."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.compilation import njit


@njit(nogil=True, cache=True, boundscheck=False)
def unit_values(indptr, data):
    """The values of CSR rows scaled to unit length, a new float32 array; a row of zeros stays one.

    Inputs may be read-only, indptr int32 or int64.
    """
    scaled = np.empty(data.shape[0], np.float32)
    for i in range(indptr.shape[0] - 1):
        square = 0.0
        for a in range(indptr[i], indptr[i + 1]):
            square += np.float64(data[a]) * np.float64(data[a])
        scale = 1.0 / np.sqrt(square) if square > 0 else 1.0
        for a in range(indptr[i], indptr[i + 1]):
            scaled[a] = np.float64(data[a]) * scale
    return scaled
