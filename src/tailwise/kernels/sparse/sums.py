"""Sums of the sparse rows of a group, such as those that carry a label."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, part, prefetch_row, zeros
from tailwise.kernels.compilation import njit

_AHEAD = 8
"""A row is asked for so many rows before its turn."""


@njit(nogil=True, cache=True, boundscheck=False)
def _floor_of(total, touched, keep):
    """A value that at most ``keep`` magnitudes exceed, found by bisection."""
    sizes = empty(touched.shape[0], np.float32)
    low, high = np.float32(0), np.float32(0)
    for j in range(touched.shape[0]):
        size = abs(total[np.uint64(touched[j])])
        sizes[j] = size
        if size > high:
            high = size
    for _ in range(24):
        middle = (low + high) / np.float32(2)
        above = 0
        for size in sizes:
            above += size > middle
        if above > keep:
            low = middle
        else:
            high = middle
    return high


@njit(nogil=True, cache=True, boundscheck=False, borrows=True, fastmath={"contract", "nsz"})
def _add_row(X, row, total, seen, touched, n):
    """Add a row of X to ``total``; returns how many features were touched, the new ones noted in ``touched``.

    ``touched`` (n_features + 1,) is written without a branch, that nobody could foresee.
    """
    for b in range(np.uint64(X.indptr[row]), np.uint64(X.indptr[row + np.uint64(1)])):
        feature = np.uint64(X.indices[b])
        touched[n] = feature
        n += not seen[feature]
        seen[feature] = True
        total[feature] += X.data[b]
    return n


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def _take_sum(total, seen, touched, keep, features, values, at):
    """Write the ``keep`` largest entries of a sum from ``at`` on, at unit length, and clear it; returns their end."""
    floor = np.float32(0)
    if touched.shape[0] > keep:
        floor = _floor_of(total, touched, keep)
    first = at
    norm = 0.0
    for j in range(touched.shape[0]):
        feature = np.uint64(touched[j])
        value = total[feature]
        total[feature] = 0
        seen[feature] = False
        if abs(value) <= floor:
            continue
        features[at] = touched[j]
        values[at] = value
        norm += np.float64(value) * np.float64(value)
        at += 1
    if norm > 0:
        scale = np.float32(1 / np.sqrt(norm))
        for b in range(first, at):
            values[b] *= scale
    return at


@njit(nogil=True, cache=True, boundscheck=False)
def sum_groups(groups, block, X, n_features, keep):
    """Unit-length sums of the rows of X in each group ``block[0]:block[1]``, each cut to its ``keep`` largest entries.

    ``groups`` is a :class:`Csr` of row numbers, each any number of times, its data not read; X is one too. Both may be
    read-only. Returns ``(counts, features, values)``: the entries of each group, in the order in which the features
    were first met. Groups without entries are empty. Sums run in the order of the input: the same bits whoever calls.
    """
    start, stop = block
    room, most = 0, keep if keep < n_features else n_features
    for group in range(start, stop):
        size = 0
        for a in range(groups.indptr[group], groups.indptr[group + 1]):
            row = np.uint64(groups.indices[a])
            size += X.indptr[row + np.uint64(1)] - X.indptr[row]
        room += size if size < most else most
    counts = empty(stop - start, np.int64)
    features = empty(room, np.int32)
    values = empty(room, np.float32)
    total = zeros(n_features, np.float32)
    seen = zeros(n_features, np.bool_)
    touched = empty(n_features + 1, np.int32)
    at, last = 0, groups.indptr[stop] - 1
    for group in range(start, stop):
        n = 0
        for a in range(groups.indptr[group], groups.indptr[group + 1]):
            ahead = np.uint64(groups.indices[min(a + _AHEAD, last)])
            prefetch_row(X.indices, X.data, X.indptr[ahead], X.indptr[ahead + np.uint64(1)])
            n = _add_row(X, np.uint64(groups.indices[a]), total, seen, touched, n)
        first = at
        at = _take_sum(total, seen, part(touched, 0, n), keep, features, values, at)
        counts[group - start] = at - first
    return counts, part(features, 0, at), part(values, 0, at)


@njit(nogil=True, cache=True, boundscheck=False)
def sum_groups_in_a_pass(carried, n_groups, X, n_features, keep):
    """What :func:`sum_groups` gives of groups whose rows ascend, from one pass over X: for rows that lie on disk.

    ``carried`` is a :class:`Csr` of the groups, below ``n_groups``, that each row of X belongs to, its data not read.
    Memory: 9 bytes a group and feature.
    """
    total = zeros((n_groups, n_features), np.float32)
    seen = zeros((n_groups, n_features), np.bool_)
    touched = empty((n_groups, n_features + 1), np.int32)
    sizes = zeros(n_groups, np.int64)
    for row in range(carried.indptr.shape[0] - 1):
        for a in range(carried.indptr[row], carried.indptr[row + 1]):
            group = carried.indices[a]
            sizes[group] = _add_row(X, np.uint64(row), total[group], seen[group], touched[group], sizes[group])
    counts = zeros(n_groups, np.int64)
    room = np.sum(np.minimum(sizes, keep))
    features, values = empty(room, np.int32), empty(room, np.float32)
    at = 0
    for group in range(n_groups):
        first = at
        at = _take_sum(total[group], seen[group], touched[group, : sizes[group]], keep, features, values, at)
        counts[group] = at - first
    return counts, features[:at], values[:at]
