"""LPSR: rows in partitions, and in each only the labels that serve its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.compression.partition import Partition, partition_rows
from tailwise.explanation import Explanation, not_ranked
from tailwise.parallel import map_blocks
from tailwise.parameters import Integer
from tailwise.persistence.checks import check_kind, check_matrix
from tailwise.tail.wrapper import Wrapper
from tailwise.validation import as_rng

_MAX_ROUNDS = 10
_FIRST_LOOK = 8
"""How many labels are looked at for each that is wanted, before all are."""


class LPSR(Wrapper):
    """Label partitioning for sub-linear ranking: rows in partitions by k-means, each with its own few labels.

    A partition keeps the labels of its training rows, and drops, round by round, those that lower its precision@k:
    a label among the first k of a row counts for what it is (1 if relevant) less what would move up in its place. A
    row is answered with the wrapped model's ranking of the labels that its partition keeps; scores are passed on
    unchanged. Training adds a k-means, O(entries of X · n_partitions) a round, and one prediction of the training rows.

    Paper: J. Weston, A. Makadia and H. Yee, *Label partitioning for sublinear ranking* (2013). There the scores of the
    labels left out are never computed; here the wrapped model is asked for its best labels, whatever its kind, so what
    a partition saves is noise, not time.

    Parameters
    ----------
    base : XMCModel
        The model whose labels are chosen from; it is cloned.
    n_partitions : int
        Partitions of the rows.
    precision_at : int
        The k of the precision that decides which labels a partition keeps.
    n_candidates : int
        How many of the wrapped model's best labels of a training row are looked at.
    random_state : int, Generator or None
        Starts the k-means.
    n_jobs : int or None
        Threads of the wrapped model, too; None leaves it its own.

    Attributes
    ----------
    kept_ : csr_array (n_partitions, n_labels)
        Ones where a partition keeps a label.

    Examples
    --------
    >>> from tailwise import Popularity
    >>> X, Y = [[1.0, 0], [1, 0], [0, 1.0]], [[1, 0], [1, 0], [0, 1]]
    >>> LPSR(Popularity(), n_partitions=2, random_state=0).fit(X, Y).predict_topk([[0.0, 1]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {
        "n_partitions": Integer(low=1),
        "precision_at": Integer(low=1),
        "n_candidates": Integer(low=1),
    }

    partition_: Partition
    kept_: sparse.csr_array

    def __init__(
        self,
        base: XMCModel,
        *,
        n_partitions: int = 20,
        precision_at: int = 5,
        n_candidates: int = 50,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.base = base
        self.n_partitions = n_partitions
        self.precision_at = precision_at
        self.n_candidates = n_candidates
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def scores_are_probabilities(self) -> bool:  # type: ignore[override]
        """As the wrapped model."""
        return bool(self.base.scores_are_probabilities)

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        self.base_ = self._fresh_base().fit(X, Y, weight)
        self.partition_ = partition_rows(X, self.n_partitions, as_rng(self.random_state), weight)
        parts = self.partition_.of(X, n_jobs=self.n_jobs)
        candidates = self.base_.predict_topk(X, min(self.n_candidates, self.n_labels_)).labels
        n_parts = self.partition_.offsets.size

        def choose(part: int) -> np.ndarray:
            rows = np.flatnonzero(parts == part)
            counted = None if weight is None else weight[rows]
            return labels_that_serve(sparse.csr_array(Y[rows]), candidates[rows], self.precision_at, counted)

        kept = map_blocks(choose, list(range(n_parts)), n_jobs=self.n_jobs, description="Choosing labels of partitions")
        indptr = np.append(0, np.cumsum([labels.size for labels in kept]))
        ones = np.ones(indptr[-1], np.float32)
        self.kept_ = sparse.csr_array((ones, np.concatenate(kept), indptr), shape=(n_parts, self.n_labels_))

    def _check_state(self) -> None:
        super()._check_state()
        n_parts = check_kind("partition_", self.partition_, Partition).check("partition_", self._n_seen)
        check_matrix("kept_", self.kept_, (n_parts, self.n_labels_))

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        keys = self._kept_keys()
        parts = self.partition_.of(X, n_jobs=self.n_jobs)
        top = TopK(np.full((X.shape[0], k), -1, np.int32), np.full((X.shape[0], k), -np.inf, np.float32))
        rows, wide = np.arange(X.shape[0]), min(_FIRST_LOOK * k, self.n_labels_)
        while rows.size:
            seen = self.base_.predict_topk(X[rows], wide)
            kept = (seen.labels >= 0) & _among(keys, parts[rows, None] * self.n_labels_ + seen.labels)
            place = np.cumsum(kept, axis=1) - 1
            kept &= place < k
            at = np.broadcast_to(rows[:, None], kept.shape)[kept]
            top.labels[at, place[kept]], top.scores[at, place[kept]] = seen.labels[kept], seen.scores[kept]
            # Only the whole ranking tells that there are no more.
            rows = rows[kept.sum(axis=1) < k] if wide < self.n_labels_ else rows[:0]
            wide = self.n_labels_
        return top

    def _kept_keys(self) -> np.ndarray:
        """``partition · n_labels + label`` of what is kept, ascending."""
        parts = np.repeat(np.arange(self.kept_.shape[0]), np.diff(self.kept_.indptr))
        return np.sort(parts * self.n_labels_ + self.kept_.indices)

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        part = int(self.partition_.of(x)[0])
        if not _among(self._kept_keys(), np.array([part * self.n_labels_ + label]))[0]:
            return not_ranked(label, f"partition {part} does not keep the label")
        return self.base_.explain(x, label)


def labels_that_serve(
    Y: sparse.csr_array, candidates: np.ndarray, k: int, weight: np.ndarray | None = None
) -> np.ndarray:
    """The labels of Y's rows without those that lower precision@k of ``candidates`` (n, c), best first, -1 for none.

    Ascending int32. Rows are ranked by those candidates that are kept; row i counts ``weight[i]`` times, or once. Of
    three rows, label 0 leads in all:

    >>> Y = sparse.csr_array([[1, 0, 0], [0, 1, 0], [0, 1, 0]])
    >>> labels_that_serve(Y, np.array([[0, 1], [0, 1], [0, 1]]), k=1)
    array([1], dtype=int32)
    """
    kept = np.zeros(Y.shape[1] + 1, bool)
    kept[Y.indices] = True
    row_of = np.arange(Y.shape[0])[:, None] * Y.shape[1]
    known = np.repeat(row_of.ravel(), np.diff(Y.indptr)) + Y.indices
    relevant = (candidates >= 0) & _among(np.sort(known), row_of + candidates)
    counted = np.ones((Y.shape[0], 1)) if weight is None else weight[:, None]
    for _ in range(_MAX_ROUNDS):
        there = kept[candidates]
        place = np.cumsum(there, axis=1)
        first = there & (place <= k)
        moves_up = (there & (place == k + 1) & relevant).any(axis=1)
        gains = counted * (relevant.astype(float) - moves_up[:, None])
        worth = np.bincount(candidates[first], gains[first], minlength=kept.size)
        if not (kept & (worth < 0)).any():
            break
        kept &= worth >= 0
    return np.flatnonzero(kept).astype(np.int32)


def _among(sorted_keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Which of ``wanted`` are in ``sorted_keys``."""
    at = np.searchsorted(sorted_keys, wanted)
    return np.append(sorted_keys, -1)[at] == wanted
