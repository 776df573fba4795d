"""Spherical k-means over label vectors.

Rows are anything with indptr, indices and data: a :class:`Csr` or the :class:`Rows` of solvers. Sums run in the order
of the input, so that results are the same bits whoever calls.
"""

from __future__ import annotations

import numpy as np

from tailwise.kernels.compilation import njit


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def dot_rows(rows, direction, out):
    """``out = rows @ direction`` for a dense vector; overwrites ``out`` (n,) float32, reads the rest."""
    for i in range(out.shape[0]):
        total = np.float32(0)
        for a in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            total += rows.data[a] * direction[np.uint64(rows.indices[a])]
        out[i] = total


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def unit_centroids(rows, assignment, centroids):
    """Write the unit-length sum of each cluster's rows into ``centroids`` (n_features, K), one column a cluster.

    Returns the mean cosine of the rows with their own centroid, given unit rows: ``Σ_k |sum_k| / n``. A cluster
    without rows, or whose rows sum to nothing, becomes zero. ``assignment`` (n,) int32 and ``rows`` may be read-only.
    """
    n_features, n_clusters = centroids.shape
    centroids[:] = 0
    for i in range(assignment.shape[0]):
        cluster = np.uint64(assignment[i])
        for a in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            centroids[np.uint64(rows.indices[a]), cluster] += rows.data[a]
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
def _dot_centroids(rows, row, centroids, total):
    total[:] = 0
    for a in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + 1])):
        value = rows.data[a]
        column = centroids[np.uint64(rows.indices[a])]
        for cluster in range(centroids.shape[1]):
            total[cluster] += value * column[cluster]


@njit(nogil=True, cache=True, boundscheck=False)
def assign_nearest(rows, centroids, room, assignment):
    """Write the cluster of greatest inner product for each row; ties go to the lower cluster.

    A cluster keeps the ``room`` rows nearest to it (ties: the lower row); the others, in their order, go to the nearest
    cluster that has room left. There must be room for all. Overwrites ``assignment`` (n,) int32; ``rows`` and
    ``centroids`` (n_features, K) float32 may be read-only.
    """
    n_clusters = centroids.shape[1]
    n = assignment.shape[0]
    total = np.empty(n_clusters, np.float32)
    near = np.empty(n, np.float32)
    size = np.zeros(n_clusters, np.int64)
    for i in range(n):
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
    homeless = np.zeros(n, np.bool_)
    for i in np.argsort(-near, kind="mergesort"):
        homeless[i] = size[assignment[i]] == room
        size[assignment[i]] += not homeless[i]
    for i in np.flatnonzero(homeless):
        _dot_centroids(rows, i, centroids, total)
        best = -1
        for cluster in range(n_clusters):
            if size[cluster] < room and (best < 0 or total[cluster] > total[best]):
                best = cluster
        assignment[i] = best
        size[best] += 1
