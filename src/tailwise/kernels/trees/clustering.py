"""Label vectors and spherical k-means over them.

All inputs may be read-only; indptr may be int32 or int64. Sums run in the order of the input, so that results are the
same bits whoever calls.
"""

from __future__ import annotations

import numpy as np
from numba import njit


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
def sum_rows(group_indptr, group_rows, block, x_indptr, x_indices, x_data, n_features, keep):
    """Unit-length sums of the rows of X in each group ``block[0]:block[1]``, each cut to its ``keep`` largest entries.

    Groups are a CSR of row numbers. Returns ``(counts, features, values)``: the entries of each group, in the order in
    which the features were first met. Groups without entries are empty.
    """
    start, stop = block
    room = 0
    for group in range(start, stop):
        size = 0
        for a in range(group_indptr[group], group_indptr[group + 1]):
            row = np.uint64(group_rows[a])
            size += x_indptr[row + np.uint64(1)] - x_indptr[row]
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
        for a in range(group_indptr[group], group_indptr[group + 1]):
            row = np.uint64(group_rows[a])
            for b in range(np.uint64(x_indptr[row]), np.uint64(x_indptr[row + np.uint64(1)])):
                feature = np.uint64(x_indices[b])
                if not seen[feature]:
                    seen[feature] = True
                    touched[n] = feature
                    n += 1
                total[feature] += x_data[b]
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


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def dot_rows(indptr, indices, data, direction, out):
    """``out = rows @ direction`` for a CSR and a dense vector."""
    for i in range(out.shape[0]):
        total = np.float32(0)
        for a in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += data[a] * direction[np.uint64(indices[a])]
        out[i] = total


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def unit_centroids(indptr, indices, data, assignment, centroids):
    """Write the unit-length sum of each cluster's rows into ``centroids`` (n_features, K), one column a cluster.

    Returns the mean cosine of the rows with their own centroid, given unit rows: ``Σ_k |sum_k| / n``. A cluster
    without rows, or whose rows sum to nothing, becomes zero.
    """
    n_features, n_clusters = centroids.shape
    centroids[:] = 0
    for i in range(assignment.shape[0]):
        cluster = np.uint64(assignment[i])
        for a in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            centroids[np.uint64(indices[a]), cluster] += data[a]
    squares = np.zeros(n_clusters, np.float64)
    for feature in range(n_features):
        for cluster in range(n_clusters):
            squares[cluster] += np.float64(centroids[feature, cluster]) ** 2
    cosine = 0.0
    scale = np.zeros(n_clusters, np.float32)
    for cluster in range(n_clusters):
        norm = np.sqrt(squares[cluster])
        cosine += norm
        if norm > 0:
            scale[cluster] = 1 / norm
    for feature in range(n_features):
        for cluster in range(n_clusters):
            centroids[feature, cluster] *= scale[cluster]
    return cosine / max(1, assignment.shape[0])


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def _dot_centroids(indptr, indices, data, row, centroids, total):
    total[:] = 0
    for a in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
        value = data[a]
        column = centroids[np.uint64(indices[a])]
        for cluster in range(centroids.shape[1]):
            total[cluster] += value * column[cluster]


@njit(nogil=True, cache=True, boundscheck=False)
def assign_nearest(indptr, indices, data, centroids, room, assignment):
    """Write the cluster of greatest inner product for each row; ties go to the lower cluster.

    A cluster keeps the ``room`` rows nearest to it (ties: the lower row); the others, in their order, go to the nearest
    cluster that has room left. There must be room for all.
    """
    n_clusters = centroids.shape[1]
    n = assignment.shape[0]
    total = np.empty(n_clusters, np.float32)
    near = np.empty(n, np.float32)
    size = np.zeros(n_clusters, np.int64)
    for i in range(n):
        _dot_centroids(indptr, indices, data, i, centroids, total)
        best = 0
        for cluster in range(1, n_clusters):
            if total[cluster] > total[best]:
                best = cluster
        assignment[i] = best
        near[i] = total[best]
        size[best] += 1
    if size.max() <= room:
        return
    size[:] = 0
    homeless = np.zeros(n, np.bool_)
    for i in np.argsort(-near, kind="mergesort"):
        homeless[i] = size[assignment[i]] == room
        size[assignment[i]] += not homeless[i]
    for i in np.flatnonzero(homeless):
        _dot_centroids(indptr, indices, data, i, centroids, total)
        best = -1
        for cluster in range(n_clusters):
            if size[cluster] < room and (best < 0 or total[cluster] > total[best]):
                best = cluster
        assignment[i] = best
        size[best] += 1
