"""Rows in a few parts by k-means, and to which part a new row belongs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from tailwise.compression.low_rank import LARGEST, encode
from tailwise.persistence.checks import check_exact, check_range

_MAX_ROUNDS = 20


class Partition(NamedTuple):
    """The parts of a k-means: a row belongs to the nearest centroid c, the one of largest ``x·c - ½|c|²``."""

    centroids: np.ndarray
    """(n_features, n_parts) float32: a column a part."""
    offsets: np.ndarray
    """(n_parts,) float32: ``-½|c|²``."""

    def of(self, X: sparse.csr_array, *, n_jobs: int | None = None) -> np.ndarray:
        """The part of each row: (n,) integers. The lowest of equally near ones."""
        return np.argmax(encode(X, self.centroids, n_jobs=n_jobs) + self.offsets, axis=1)

    def check(self, name: str, n_features: int) -> int:
        """Refuse what :func:`partition_rows` never makes for rows of ``n_features``; returns the number of parts."""
        n_parts = check_exact(f"{name}.centroids", self.centroids, np.float32, (n_features, None)).shape[1]
        check_exact(f"{name}.offsets", self.offsets, np.float32, (n_parts,))
        check_range(f"{name}.centroids", self.centroids, -LARGEST, LARGEST)
        check_range(f"{name}.offsets", self.offsets, -LARGEST, 0)
        # argmax wants one.
        check_range(f"number of {name}", np.array([n_parts]), 1)
        return n_parts


def partition_rows(
    X: sparse.csr_array, n_parts: int, rng: np.random.Generator, weight: np.ndarray | None = None
) -> Partition:
    """k-means of the rows into at most ``n_parts``; O(rounds · entries of X · n_parts), on one thread.

    Row i counts ``weight[i]`` times, or once.

    >>> X = sparse.csr_array(np.array([[1, 0], [0.9, 0], [0, 1.0]], np.float32))
    >>> parts = partition_rows(X, 2, np.random.default_rng(0)).of(X)
    >>> bool(parts[0] == parts[1] != parts[2])
    True
    """
    n_parts = min(n_parts, X.shape[0])
    if n_parts == 1:
        centroids = np.asarray(X.mean(axis=0)).reshape(1, -1)
    else:
        from sklearn.cluster import KMeans

        means = KMeans(n_parts, n_init=1, max_iter=_MAX_ROUNDS, random_state=int(rng.integers(2**31)))
        # Threads would add up centroids in the order in which they come.
        with threadpool_limits(1):
            centroids = means.fit(X, sample_weight=weight).cluster_centers_
    table = np.ascontiguousarray(centroids.T, np.float32)
    return Partition(table, (-0.5 * np.einsum("ij,ij->j", table, table)).astype(np.float32))
