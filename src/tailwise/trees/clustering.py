"""Splitting a set of labels by their vectors: balanced 2-means (Parabel) and K-way k-means (Bonsai)."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.solvers.problems import Rows, pack_rows
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.trees.clustering import assign_nearest, dot_rows, unit_centroids

_MAX_ROUNDS = 25
_MAX_SHARE = 4
"""A cluster's labels at most, as a multiple of the average."""
_SAMPLE = 100
"""Labels a cluster from which centroids are found: more of them move a centroid little, and cost as much each."""
_LEAST_GAIN = 1e-4
"""Clustering stops when a round lifts the mean cosine to the own centroid by less than this."""


def split_in_two(vectors: Rows, rng: np.random.Generator) -> np.ndarray:
    """Balanced spherical 2-means: (n,) zeros and ones, as many of the one as of the other (±1).

    Each round sorts the labels by ``v_l·(c₁ - c₀)`` and gives the upper half to c₁ (Parabel, section 3.1: the
    assignment that maximises the summed cosine under the balance constraint). Ties go by label index. Starts from two
    labels drawn at random. Time O(rounds · (entries + n log n)).
    """
    n = vectors.squares.shape[0]
    assignment = np.zeros(n, np.int32)
    centroids = _draw_centroids(vectors, 2, rng)
    margin = np.empty(n, np.float32)
    best = -np.inf
    for _ in range(_MAX_ROUNDS):
        dot_rows(vectors, centroids[:, 1] - centroids[:, 0], margin)
        assignment[:] = 0
        assignment[np.argsort(margin, kind="stable")[n // 2 :]] = 1
        cosine = unit_centroids(vectors, assignment, centroids)
        if cosine < best + _LEAST_GAIN:
            break
        best = cosine
    return assignment


def split_in_many(vectors: Rows, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Spherical k-means without a balance constraint: (n,) cluster numbers; some clusters may stay empty.

    A rare label is not pushed into a foreign cluster to even out sizes (Bonsai, section 3.2). Only a cluster of four
    times the average size gives the labels farthest from its centroid to others: labels that resemble nothing would
    gather there by the thousand, and every search that passes would score them all. Starts from labels drawn at
    random, and finds centroids from at most 100 labels a cluster, drawn at random too; then all labels go to the
    nearest. Time O((rounds · entries of those + all entries) · n_clusters), memory n_features · n_clusters floats.
    """
    n = vectors.squares.shape[0]
    n_clusters = min(n_clusters, n)
    sample = vectors
    if n > _SAMPLE * n_clusters:
        chosen = np.sort(rng.choice(n, _SAMPLE * n_clusters, replace=False))
        sample = pack_rows(csr_parts(vectors), vectors.features.shape[0], chosen)
    assignment, centroids = _find_centroids(sample, n_clusters, rng)
    if sample is vectors:
        return assignment
    everywhere = np.zeros((vectors.features.shape[0], n_clusters), np.float32)
    everywhere[sample.features] = centroids
    assignment = np.empty(n, np.int32)
    assign_nearest(vectors, everywhere, _room(n, n_clusters), assignment)
    return assignment


def _find_centroids(vectors: Rows, n_clusters: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Clusters (n,) by Lloyd's rounds, and their centroids."""
    n = vectors.squares.shape[0]
    assignment = np.empty(n, np.int32)
    centroids = _draw_centroids(vectors, n_clusters, rng)
    best = -np.inf
    for _ in range(_MAX_ROUNDS):
        assign_nearest(vectors, centroids, _room(n, n_clusters), assignment)
        cosine = unit_centroids(vectors, assignment, centroids)
        if cosine < best + _LEAST_GAIN:
            break
        best = cosine
    return assignment, centroids


def _room(n: int, n_clusters: int) -> int:
    return -(-_MAX_SHARE * n // n_clusters)


def _draw_centroids(vectors: Rows, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    centroids = np.zeros((vectors.features.shape[0], n_clusters), np.float32)
    for cluster, label in enumerate(rng.choice(vectors.squares.shape[0], n_clusters, replace=False)):
        own = slice(vectors.indptr[label], vectors.indptr[label + 1])
        centroids[vectors.indices[own], cluster] = vectors.data[own]
    return centroids
