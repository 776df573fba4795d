"""Splitting a set of labels by their vectors: balanced 2-means (Parabel) and K-way k-means (Bonsai)."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse

from tailwise.kernels.arrays import frozen
from tailwise.kernels.solvers.problems import Rows, pack_rows
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.kernels.trees.clustering import Centroids, assign_nearest, unit_centroids
from tailwise.kernels.trees.halving import halve_rows

_MAX_ROUNDS = 25
MAX_SHARE = 1.5
"""A cluster's labels at most, as a multiple of the average: every label of a large one learns from all rows that come
there. With four times the average one tree took a sixth longer on six data sets, for 0.2 points of P@1; larger clusters
gain more (:mod:`.bonsai`)."""
SAMPLE = 40
"""Labels a cluster from which centroids are found: more of them move a centroid little, and cost as much each."""
_LEAST_SAMPLE, _ENTRIES = 10, 1 << 22
"""Fewer, down to ten a cluster, where labels have many entries: four million in all tell where centroids are."""
_LEAST_GAIN = 3e-4
"""Clustering stops when a round lifts the mean cosine to the own centroid by less than this."""


class Vectors(Protocol):
    """The vectors of labels: a sparse matrix, or what makes its rows when they are asked for."""

    def __getitem__(self, labels: np.ndarray) -> sparse.csr_array:
        """Of some labels, one row each."""


def split_in_two(labels: np.ndarray, vectors: sparse.csr_array, rng: np.random.Generator) -> np.ndarray:
    """Balanced spherical 2-means: (n,) zeros and ones, as many of the one as of the other (±1).

    Each round sorts the labels by ``v_l·(c₁ - c₀)`` and gives the upper half to c₁ (Parabel, section 3.1: the
    assignment that maximises the summed cosine under the balance constraint). Ties go by label index. Starts from two
    labels drawn at random. Time O(rounds · (entries + n log n)).
    """
    starts = rng.choice(labels.size, 2, replace=False)
    own = labels.astype(np.int32, copy=False)
    return halve_rows(csr_parts(vectors), own, vectors.shape[1], starts, _MAX_ROUNDS, _LEAST_GAIN)


class Clusters(NamedTuple):
    """Clusters that were found from a sample; labels are still to be assigned to them."""

    centroids: Centroids
    features: np.ndarray
    """(n,) int32, ascending: those of the vectors that the features of ``centroids`` stand for"""
    n_clusters: int


def split_in_many(vectors: sparse.csr_array, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Spherical k-means without a balance constraint: (n,) cluster numbers; some clusters may stay empty.

    A rare label is not pushed into a foreign cluster to even out sizes (Bonsai, section 3.2). Only a cluster of half as
    much again as the average gives the labels farthest from its centroid to others: labels that resemble nothing would
    gather there by the thousand, and every search that passes would score them all. Starts from labels drawn at
    random, and finds centroids from at most 40 labels a cluster, drawn at random too; then all labels go to the
    nearest. Time O((rounds · entries of those + all entries) · clusters that have a feature); memory is that of the
    entries.
    """
    found = find_clusters(np.arange(vectors.shape[0]), vectors, n_clusters, rng)
    return found if isinstance(found, np.ndarray) else assign_labels(vectors, found)


def find_clusters(
    labels: np.ndarray, vectors: Vectors, n_clusters: int, rng: np.random.Generator
) -> np.ndarray | Clusters:
    """The first part of :func:`split_in_many`: of more labels than a sample has, the clusters alone."""
    n_clusters = min(n_clusters, labels.size)
    some = labels
    if labels.size > SAMPLE * n_clusters:
        some = labels[np.sort(rng.choice(labels.size, SAMPLE * n_clusters, replace=False))]
    own = vectors[some]
    enough = max(_LEAST_SAMPLE * n_clusters, int(some.size * min(1.0, _ENTRIES / max(1, own.nnz))))
    if some.size > enough:
        own = own[np.sort(rng.choice(some.size, enough, replace=False))]
    sample = _packed(own)
    assignment, centroids = _find_centroids(sample, n_clusters, rng)
    if own.shape[0] == labels.size:
        return assignment
    return Clusters(centroids, sample.features, n_clusters)


def assign_labels(vectors: sparse.csr_array, clusters: Clusters) -> np.ndarray:
    """The nearest of ``clusters`` to each label, (n,) int32, but for those that are too many for one."""
    assignment = np.empty(vectors.shape[0], np.int32)
    sizes = np.zeros(vectors.shape[1], np.int64)
    sizes[clusters.features] = np.diff(clusters.centroids.indptr)
    everywhere = frozen(clusters.centroids._replace(indptr=np.append(0, np.cumsum(sizes))))
    room = _room(assignment.size, clusters.n_clusters)
    assign_nearest(csr_parts(vectors), everywhere, clusters.n_clusters, room, assignment)
    return assignment


def _packed(vectors: sparse.csr_array) -> Rows:
    """The vectors without the features that none has."""
    return pack_rows(csr_parts(vectors), vectors.shape[1], np.arange(vectors.shape[0]))


def _find_centroids(vectors: Rows, n_clusters: int, rng: np.random.Generator) -> tuple[np.ndarray, Centroids]:
    """Clusters (n,) by Lloyd's rounds, and their centroids."""
    n, n_features = vectors.squares.shape[0], vectors.features.shape[0]
    rows = csr_parts(vectors)
    assignment = np.empty(n, np.int32)
    centroids = _draw_centroids(rows, n_features, n_clusters, rng)
    best = -np.inf
    for _ in range(_MAX_ROUNDS):
        assign_nearest(rows, frozen(centroids), n_clusters, _room(n, n_clusters), assignment)
        centroids, cosine = unit_centroids(rows, assignment, n_features, n_clusters)
        if cosine < best + _LEAST_GAIN:
            break
        best = cosine
    return assignment, centroids


def _room(n: int, n_clusters: int) -> int:
    return ceil(MAX_SHARE * n / n_clusters)


def _draw_centroids(rows: Csr, n_features: int, n_clusters: int, rng: np.random.Generator) -> Centroids:
    alone = np.full(rows.indptr.shape[0] - 1, -1, np.int32)
    alone[rng.choice(alone.size, n_clusters, replace=False)] = np.arange(n_clusters)
    return unit_centroids(rows, alone, n_features, n_clusters)[0]
