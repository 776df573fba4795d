"""The union of several models' candidates, as one long table of (row, label) pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.kernels.sparse.topk import topk_csr


class Candidates(NamedTuple):
    """Pairs sorted by row, then label.

    ``indptr`` (n + 1,) bounds each row's pairs, ``labels`` (n_pairs,) names them. ``scores`` and ``ranks``
    (n_pairs, n_members) float32 hold each member's score and 0-based rank, NaN where it did not name the label.
    """

    indptr: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    ranks: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """The row of each pair."""
        return np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))

    def are_observed(self, Y: sparse.csr_array) -> np.ndarray:
        """Whether ``Y`` has each pair: (n_pairs,) bool."""
        observed = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr)) * Y.shape[1] + Y.indices
        return np.isin(self.rows * np.int64(Y.shape[1]) + self.labels, observed, assume_unique=True)

    def best(self, pair_scores: np.ndarray, k: int) -> TopK:
        """The ``k`` best candidates of each row by ``pair_scores`` (n_pairs,)."""
        n = self.indptr.size - 1
        top = TopK(np.empty((n, k), np.int32), np.empty((n, k), np.float32))
        topk_csr(csr_parts(Csr(self.indptr, self.labels, pair_scores)), *top)
        return top


def unite_candidates(members: list[TopK], n_labels: int) -> Candidates:
    """Join the members' predictions for the same rows into one table."""
    n = members[0].labels.shape[0]
    keys = [
        np.where(top.labels >= 0, np.arange(n, dtype=np.int64)[:, None] * n_labels + top.labels, -1) for top in members
    ]
    pairs = np.unique(np.concatenate([key.ravel() for key in keys]))
    pairs = pairs[pairs >= 0]
    scores = np.full((pairs.size, len(members)), np.nan, np.float32)
    ranks = np.full((pairs.size, len(members)), np.nan, np.float32)
    for m, (key, top) in enumerate(zip(keys, members, strict=True)):
        present = key >= 0
        place = np.searchsorted(pairs, key[present])
        scores[place, m] = top.scores[present]
        ranks[place, m] = np.nonzero(present)[1]
    rows = pairs // n_labels
    indptr = np.searchsorted(rows, np.arange(n + 1)).astype(np.int64)
    return Candidates(indptr, (pairs % n_labels).astype(np.int32), scores, ranks)
