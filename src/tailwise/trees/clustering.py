"""Splitting a set of labels by their vectors: balanced 2-means (Parabel) and K-way k-means (Bonsai)."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.solvers.problems import Rows
from tailwise.kernels.trees.clustering import assign_nearest, dot_rows, unit_centroids

_MAX_ROUNDS = 25
_MAX_SHARE = 4
"""A cluster's labels at most, as a multiple of the average."""
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
    random. Time O(rounds · entries · n_clusters), memory n_features · n_clusters floats.
    """
    n = vectors.squares.shape[0]
    assignment = np.empty(n, np.int32)
    room = -(-_MAX_SHARE * n // n_clusters)
    centroids = _draw_centroids(vectors, min(n_clusters, n), rng)
    best = -np.inf
    for _ in range(_MAX_ROUNDS):
        assign_nearest(vectors, centroids, room, assignment)
        cosine = unit_centroids(vectors, assignment, centroids)
        if cosine < best + _LEAST_GAIN:
            break
        best = cosine
    return assignment


def _draw_centroids(vectors: Rows, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    centroids = np.zeros((vectors.features.shape[0], n_clusters), np.float32)
    for cluster, label in enumerate(rng.choice(vectors.squares.shape[0], n_clusters, replace=False)):
        own = slice(vectors.indptr[label], vectors.indptr[label + 1])
        centroids[vectors.indices[own], cluster] = vectors.data[own]
    return centroids
