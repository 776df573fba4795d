"""Sums of the sparse rows of a group, such as those that carry a label."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.compilation import njit


@njit(nogil=True, cache=True, boundscheck=False)
def _floor_of(total, touched, keep):
    """A value that at most ``keep`` magnitudes exceed, found by bisection."""
    low, high = np.float32(0), np.float32(0)
    for feature in touched:
        high = max(high, abs(total[feature]))
    for _ in range(24):
        middle = (low + high) / np.float32(2)
        above = 0
        for feature in touched:
            above += abs(total[feature]) > middle
        if above > keep:
            low = middle
        else:
            high = middle
    return high


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def sum_groups(groups, block, X, n_features, keep):
    """Unit-length sums of the rows of X in each group ``block[0]:block[1]``, each cut to its ``keep`` largest entries.

    ``groups`` is a :class:`Csr` of row numbers, each any number of times, its data not read; X is one too. Both may be
    read-only. Returns ``(counts, features, values)``: the entries of each group, in the order in which the features
    were first met. Groups without entries are empty. Sums run in the order of the input: the same bits whoever calls.
    """
    start, stop = block
    room = 0
    for group in range(start, stop):
        size = 0
        for a in range(groups.indptr[group], groups.indptr[group + 1]):
            row = np.uint64(groups.indices[a])
            size += X.indptr[row + np.uint64(1)] - X.indptr[row]
        room += min(size, n_features, keep)
    counts = np.zeros(stop - start, np.int64)
    features = np.empty(room, np.int32)
    values = np.empty(room, np.float32)
    total = np.zeros(n_features, np.float32)
    seen = np.zeros(n_features, np.bool_)
    touched = np.empty(n_features, np.int32)
    at = 0
    for group in range(start, stop):
        n = 0
        for a in range(groups.indptr[group], groups.indptr[group + 1]):
            row = np.uint64(groups.indices[a])
            for b in range(np.uint64(X.indptr[row]), np.uint64(X.indptr[row + np.uint64(1)])):
                feature = np.uint64(X.indices[b])
                if not seen[feature]:
                    seen[feature] = True
                    touched[n] = feature
                    n += 1
                total[feature] += X.data[b]
        floor = np.float32(0)
        if n > keep:
            floor = _floor_of(total, touched[:n], keep)
        first = at
        norm = 0.0
        for j in range(n):
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
        counts[group - start] = at - first
    return counts, features[:at], values[:at]
