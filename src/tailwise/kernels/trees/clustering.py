"""Spherical k-means over label vectors.

Rows are anything with indptr, indices and data: a :class:`Csr` or the :class:`Rows` of solvers. Sums run in the order
of the input, so that results are the same bits whoever calls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty, zeros
from tailwise.kernels.compilation import njit

_GOOD_PART = 8
"""A feature that more than one in so many clusters have lists all of them: reading on is quicker than leaping."""

_MOST_KEPT = 1 << 22
"""Inner products of rows and clusters that are kept, for rows that go to another cluster than the nearest."""


class Centroids(NamedTuple):
    """Vectors of clusters, feature by feature: what a large node needs of them stays in the caches."""

    indptr: np.ndarray
    """(n_features + 1,) int64"""
    clusters: np.ndarray
    """(nnz,) int32, ascending for a feature: those that have it, or all"""
    values: np.ndarray
    """(nnz,) float32"""


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def unit_centroids(rows, assignment, n_features, n_clusters):
    """The unit-length sums of each cluster's rows: :class:`Centroids`, and the mean cosine of the rows with their own.

    That is ``Σ_k |sum_k| / n``, given unit rows. A row whose cluster is -1 counts nowhere; a cluster without rows, or
    whose rows sum to nothing, becomes zero. ``assignment`` (n,) int32 and ``rows`` may be read-only.
    """
    first = zeros(n_clusters + 2, np.int64)
    for cluster in assignment:
        first[cluster + 2] += 1
    for cluster in range(n_clusters + 1):
        first[cluster + 1] += first[cluster]
    order = empty(assignment.shape[0], np.int32)
    for i in range(assignment.shape[0]):
        order[first[assignment[i] + 1]] = i
        first[assignment[i] + 1] += 1
    # Now the rows of a cluster end where those of the next begin: first[cluster] : first[cluster + 1].
    place = empty(n_features, np.int64)
    last_seen = np.full(n_features, -1, np.int32)
    features = empty(rows.indices.shape[0], np.int32)
    sums = empty(rows.indices.shape[0], np.float32)
    ends = empty(n_clusters, np.int64)
    used = 0
    for cluster in range(n_clusters):
        for i in order[first[cluster] : first[cluster + 1]]:
            for a in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
                feature = np.uint64(rows.indices[a])
                if last_seen[feature] != cluster:
                    last_seen[feature] = cluster
                    place[feature] = used
                    features[used] = feature
                    sums[used] = 0
                    used += 1
                sums[np.uint64(place[feature])] += rows.data[a]
        ends[cluster] = used
    centroids = _by_feature(features[:used], sums, ends, n_features)
    squares = zeros(n_clusters, np.float64)
    for a in range(centroids.values.shape[0]):
        squares[centroids.clusters[a]] += np.float64(centroids.values[a]) ** 2
    cosine = 0.0
    scale = zeros(n_clusters, np.float32)
    for cluster in range(n_clusters):
        norm = np.sqrt(squares[cluster])
        cosine += norm
        if norm > 0:
            scale[cluster] = 1 / norm
    for a in range(centroids.values.shape[0]):
        centroids.values[a] *= scale[centroids.clusters[a]]
    return centroids, cosine / max(1, assignment.shape[0])


@njit(nogil=True, cache=True, boundscheck=False)
def _by_feature(features, sums, ends, n_features):
    """Centroids from the entries of one cluster after the other, those of cluster k up to ``ends[k]``."""
    n_clusters = ends.shape[0]
    indptr = zeros(n_features + 1, np.int64)
    for feature in features:
        indptr[feature + 1] += 1
    for feature in range(n_features):
        size = indptr[feature + 1]
        indptr[feature + 1] = indptr[feature] + (n_clusters if size * _GOOD_PART > n_clusters else size)
    clusters = empty(indptr[n_features], np.int32)
    values = zeros(indptr[n_features], np.float32)
    for feature in range(n_features):
        if indptr[feature + 1] - indptr[feature] == n_clusters:
            for cluster in range(n_clusters):
                clusters[indptr[feature] + cluster] = cluster
    fill = indptr[:-1].copy()
    at = 0
    for cluster in range(n_clusters):
        while at < ends[cluster]:
            feature = features[at]
            if indptr[feature + 1] - indptr[feature] == n_clusters:
                values[indptr[feature] + cluster] = sums[at]
            else:
                clusters[fill[feature]], values[fill[feature]] = cluster, sums[at]
                fill[feature] += 1
            at += 1
    return Centroids(indptr, clusters, values)


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def _dot_centroids(rows, row, centroids, total):
    total[:] = 0
    n_clusters = np.uint64(total.shape[0])
    for a in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + 1])):
        value = rows.data[a]
        feature = np.uint64(rows.indices[a])
        first, last = np.uint64(centroids.indptr[feature]), np.uint64(centroids.indptr[feature + np.uint64(1)])
        if last - first == n_clusters:
            for cluster in range(n_clusters):
                total[cluster] += value * centroids.values[first + cluster]
        else:
            for b in range(first, last):
                total[np.uint64(centroids.clusters[b])] += value * centroids.values[b]


@njit(nogil=True, cache=True, boundscheck=False)
def assign_nearest(rows, centroids, n_clusters, room, assignment):
    """Write the cluster of greatest inner product for each row; ties go to the lower cluster.

    A cluster keeps the ``room`` rows nearest to it (ties: the lower row); the others, in their order, go to the nearest
    cluster that has room left. There must be room for all. Overwrites ``assignment`` (n,) int32; ``rows`` and
    ``centroids``, :class:`Centroids`, may be read-only.
    """
    n = assignment.shape[0]
    kept = n * n_clusters <= _MOST_KEPT
    totals = empty((n if kept else 1, n_clusters), np.float32)
    near = empty(n, np.float32)
    size = zeros(n_clusters, np.int64)
    for i in range(n):
        total = totals[i if kept else 0]
        _dot_centroids(rows, i, centroids, total)
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
    homeless = zeros(n, np.bool_)
    for i in np.argsort(-near, kind="mergesort"):
        homeless[i] = size[assignment[i]] == room
        size[assignment[i]] += not homeless[i]
    for i in np.flatnonzero(homeless):
        total = totals[i if kept else 0]
        if not kept:
            _dot_centroids(rows, i, centroids, total)
        best = -1
        for cluster in range(n_clusters):
            if size[cluster] < room and (best < 0 or total[cluster] > total[best]):
                best = cluster
        assignment[i] = best
        size[best] += 1
