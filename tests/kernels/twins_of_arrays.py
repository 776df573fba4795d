"""Making arrays: kernels, twins and what to draw for them."""

import numpy as np
from hypothesis import strategies as st
from naive.twins import Twin
from numba import njit

from tailwise.kernels import arrays


@njit
def made_empty(n, m):
    line, plane = arrays.empty(n, np.int32), arrays.empty((n, m), np.float32)
    for a in range(n):
        line[a] = a
        for b in range(m):
            plane[a, b] = a * b
    return line, plane, arrays.empty(n, plane.dtype).itemsize


@njit
def made_zeros(n, m):
    # What was there before must not show.
    used = arrays.empty((n, m), np.float64)
    for a in range(n):
        for b in range(m):
            used[a, b] = np.nan
    used = arrays.empty((0, m), np.float64)
    return arrays.zeros((n, m), np.float64), arrays.zeros(n * m, np.bool_), arrays.zeros((n, m, 2), np.uint16), used


def plain_empty(n, m):
    return np.arange(n, dtype=np.int32), np.outer(np.arange(n), np.arange(m)).astype(np.float32), 4


def plain_zeros(n, m):
    return np.zeros((n, m)), np.zeros(n * m, bool), np.zeros((n, m, 2), np.uint16), np.empty((0, m))


SIZES = st.tuples(st.integers(0, 70), st.integers(0, 9))

TWINS = {
    arrays.empty: Twin(plain_empty, SIZES, call=made_empty),
    arrays.zeros: Twin(plain_zeros, SIZES, call=made_zeros),
}
