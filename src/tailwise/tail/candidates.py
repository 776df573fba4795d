"""The candidates of one model or of several, as one long table of (row, label) pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.kernels.sparse.topk import topk_csr
from tailwise.parallel import row_blocks

_ROWS_A_BLOCK = 4096


def is_hit(labels: np.ndarray, Y: sparse.csr_array, rows: np.ndarray | None = None) -> np.ndarray:
    """Whether ``Y`` has each label in its row: boolean, of the shape of ``labels``; -1 is no hit.

    ``labels`` is (n, k), as a TopK has them; or of any shape, with ``rows`` beside it.
    """
    rows = np.arange(labels.shape[0])[:, None] if rows is None else rows
    observed = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr)) * Y.shape[1] + Y.indices
    asked = rows.astype(np.int64) * Y.shape[1] + labels
    if not observed.size:
        return np.zeros(asked.shape, bool)
    place = np.minimum(np.searchsorted(observed, asked), observed.size - 1)
    return (observed[place] == asked) & (labels >= 0)


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

    def grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Each row's labels side by side, (n, most of a row) int32, -1 behind them, and each pair's column there."""
        sizes = np.diff(self.indptr)
        column = np.arange(self.labels.size) - np.repeat(self.indptr[:-1], sizes)
        labels = np.full((sizes.size, int(sizes.max(initial=1))), -1, np.int32)
        labels[self.rows, column] = self.labels
        return labels, column

    def filled(self) -> Candidates:
        """With the lowest score that a member gave in the row where it did not name the label; NaN if it named none."""
        scores = self.scores
        if self.labels.size:
            occupied = np.flatnonzero(np.diff(self.indptr))
            lowest = np.full((self.indptr.size - 1, scores.shape[1]), np.nan, np.float32)
            lowest[occupied] = np.fmin.reduceat(scores, self.indptr[occupied], axis=0)
            scores = np.where(np.isnan(scores), lowest[self.rows], scores)
        return self._replace(scores=scores)

    def are_hits(self, Y: sparse.csr_array) -> np.ndarray:
        """Whether ``Y`` has each pair: (n_pairs,) bool."""
        return is_hit(self.labels, Y, self.rows)

    def best(self, pair_scores: np.ndarray, k: int) -> TopK:
        """The ``k`` best candidates of each row by ``pair_scores`` (n_pairs,)."""
        n = self.indptr.size - 1
        top = TopK(np.empty((n, k), np.int32), np.empty((n, k), np.float32))
        topk_csr(csr_parts(Csr(self.indptr, self.labels, pair_scores)), *top)
        return top

    def beyond(self, n_candidates: int, k: int) -> TopK:
        """Up to ``k`` labels that no member ranks within ``n_candidates``, by their best rank; their scores are inf."""
        rank = np.min(np.nan_to_num(self.ranks, nan=np.inf), axis=1, initial=np.inf)
        others = self.best(np.where(rank < n_candidates, -np.inf, -rank), k)
        return TopK(others.labels, np.where(others.labels >= 0, np.inf, -np.inf).astype(np.float32))


def gather_candidates(members: list[TopK], n_labels: int) -> Candidates:
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


def candidate_blocks(members: list[TopK], n_labels: int) -> Iterator[tuple[slice, Candidates]]:
    """:func:`gather_candidates` of some thousand rows at a time, and which rows these are.

    What is known of a pair takes ten times the room of a prediction: that of all rows is never there at once.
    """
    for block in row_blocks(members[0].labels.shape[0], _ROWS_A_BLOCK):
        rows = slice(*block)
        yield rows, gather_candidates([TopK(top.labels[rows], top.scores[rows]) for top in members], n_labels)
