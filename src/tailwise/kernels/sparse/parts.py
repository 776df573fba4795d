"""Copying parts of an array to where others want them."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.compilation import njit


@njit(nogil=True, cache=True, boundscheck=False)
def copy_parts(array, begin, count, into, place):
    """``into[place[n] : place[n] + count[n]] = array[begin[n] : begin[n] + count[n]]`` for each n.

    Both arrays are 1-D, contiguous and of one type; the rest are int64. All but ``into`` may be read-only.
    """
    for n in range(count.shape[0]):
        first, to = np.uint64(begin[n]), np.uint64(place[n])
        for a in range(np.uint64(count[n])):
            into[to + a] = array[first + a]
