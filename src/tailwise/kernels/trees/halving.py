"""Balanced spherical 2-means over label vectors, all rounds in one call."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.trees.nodes import copy_rows

_SIGN, _HALF = np.uint32(1 << 31), np.uint64(32)


@njit(nogil=True, cache=True, boundscheck=False)
def halve_rows(X, rows, n_features, starts, max_rounds, least_gain):
    """The side of each of ``rows`` of X, (n,) int32 zeros and ones: the upper half has one more where n is odd.

    Each round gives those of the greatest ``x·(c₁ - c₀)`` to c₁ (ties: the later row), and c₀ and c₁ become the
    unit-length sums of their sides; the first ones are the rows at the two places ``starts``. Ends after ``max_rounds``
    or when a round lifts the mean of ``x·c``, x having unit length, by less than ``least_gain``. ``X`` is a
    :class:`Csr`; inputs may be read-only. Time: rounds times the entries of the rows.
    """
    n = rows.shape[0]
    indptr = zeros(n + 1, np.int64)
    for i in range(n):
        indptr[i + 1] = indptr[i] + X.indptr[rows[i] + 1] - X.indptr[rows[i]]
    indices, data = empty(indptr[n], np.int32), empty(indptr[n], np.float32)
    # Numbered as they come, so that frequent features lie together.
    squares, features = empty(n, np.float32), empty(min(indptr[n], n_features + 1), np.int32)
    n_local = copy_rows(X, rows, np.full(n_features, -1, np.int32), indptr, indices, data, squares, features)
    sides = np.full(n, -1, np.int32)
    sides[starts[0]], sides[starts[1]] = 0, 1
    sums, direction = empty(2 * n_local, np.float32), empty(n_local, np.float32)
    keys, order = empty(n, np.uint64), empty(n, np.uint64)
    _sum_sides(indptr, indices, data, sides, sums, direction)
    best = -np.inf
    for _ in range(max_rounds):
        _rank_rows(indptr, indices, data, direction, keys)
        order[:] = keys
        middle = _select(order, n // 2)
        for i in range(n):
            sides[i] = keys[i] >= middle
        mean = _sum_sides(indptr, indices, data, sides, sums, direction) / n
        if mean < best + least_gain:
            break
        best = mean
    return sides


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def _sum_sides(indptr, indices, data, sides, sums, direction):
    """Write the sums of both sides, side by side, and ``c₁ - c₀``; returns ``Σ x·c`` of the rows with their own."""
    sums[:] = 0
    for i in range(sides.shape[0]):
        if sides[i] >= 0:
            for a in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                sums[np.uint64(2 * indices[a] + sides[i])] += data[a]
    low = high = 0.0
    for feature in range(direction.shape[0]):
        low += np.float64(sums[np.uint64(2 * feature)]) ** 2
        high += np.float64(sums[np.uint64(2 * feature + 1)]) ** 2
    low, high = np.sqrt(low), np.sqrt(high)
    low_scale, high_scale = np.float32(1 / low if low > 0 else 0), np.float32(1 / high if high > 0 else 0)
    for feature in range(direction.shape[0]):
        direction[feature] = sums[np.uint64(2 * feature + 1)] * high_scale - sums[np.uint64(2 * feature)] * low_scale
    return low + high


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def _rank_rows(indptr, indices, data, direction, keys):
    """Write numbers that ascend as ``x·direction`` does, and where that is the same with the rows."""
    one = empty(1, np.float32)
    bits = one.view(np.uint32)
    for i in range(keys.shape[0]):
        total = np.float32(0)
        for a in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += data[a] * direction[np.uint64(indices[a])]
        one[0] = total
        key = ~bits[0] if total < 0 else bits[0] | _SIGN
        keys[i] = np.uint64(key) << _HALF | np.uint64(i)


@njit(nogil=True, cache=True, boundscheck=False)
def _select(keys, k):
    """The k-th smallest of different ``keys``, which change places."""
    low, high = 0, keys.shape[0] - 1
    while low < high:
        pivot = keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return keys[k]
