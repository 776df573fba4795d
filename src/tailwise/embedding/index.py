"""Finding the label vectors with the largest inner products: :class:`ExactIndex`, and the report on any other."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from tailwise.base import TopK
from tailwise.errors import InvalidInput, NotFitted
from tailwise.parameters import Constraint, check_parameters
from tailwise.persistence import Saveable
from tailwise.persistence.checks import check_exact, check_finite, check_monotone, check_range
from tailwise.scoring import search_vectors
from tailwise.validation import check_number


class LabelIndex(Saveable, BaseEstimator):
    """Label vectors that can be searched. A subclass writes ``_search``, and ``_build`` or ``_adapt`` where it has to.

    ``vectors_`` is (n, d) float32, ``labels_`` (n,) int32 ascending: which label each vector belongs to.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {}

    n_jobs: int | None
    vectors_: np.ndarray
    labels_: np.ndarray

    def build(self, vectors: Any, labels: Any = None, queries: Any = None) -> Self:
        """Take ``vectors`` (n, d); ``labels`` names the label of each, in ascending order (default 0, 1, …).

        ``queries`` (m, d) are a few hundred like those to come, by which an approximate index chooses its effort.
        """
        check_parameters(self)
        self.vectors_ = np.ascontiguousarray(vectors, dtype=np.float32)
        if self.vectors_.ndim != 2:
            raise InvalidInput(f"vectors has shape {self.vectors_.shape}; pass one row a label")
        n = self.vectors_.shape[0]
        self.labels_ = np.arange(n, dtype=np.int32) if labels is None else np.asarray(labels, dtype=np.int32)
        if self.labels_.shape != (n,) or (np.diff(self.labels_) <= 0).any():
            raise InvalidInput(f"labels has shape {self.labels_.shape}; pass {n:,} label indices in ascending order")
        self._build()
        if queries is not None and self.vectors_.size and len(queries):
            self._adapt(self._check_queries(queries))
        return self

    def search(self, queries: Any, k: int) -> TopK:
        """The ``k`` labels of largest inner product for each row of ``queries`` (n, d); ties by label index."""
        self._check_is_fitted()
        check_number("k", k, integer=True, low=1)
        queries = self._check_queries(queries)
        labels = np.full((queries.shape[0], k), -1, np.int32)
        scores = np.full((queries.shape[0], k), -np.inf, np.float32)
        if self.vectors_.size:
            self._search(queries, labels, scores)
            labels = np.where(labels >= 0, self.labels_[labels], -1).astype(np.int32)
        return TopK(labels, scores)

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "vectors_"):
            raise NotFitted(f"this {type(self).__name__} holds no vectors yet; call build(vectors) first")

    def _check_state(self) -> None:
        check_parameters(self)
        n = check_exact("vectors_", self.vectors_, np.float32, (None, None)).shape[0]
        check_finite("vectors_", self.vectors_)
        labels = check_range("labels_", check_exact("labels_", self.labels_, np.int32, (n,)), 0)
        check_monotone("labels_", labels, strict=True)

    def _check_queries(self, queries: Any) -> np.ndarray:
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        if queries.ndim != 2 or queries.shape[1] != self.vectors_.shape[1]:
            raise InvalidInput(f"queries has shape {queries.shape}; pass rows of {self.vectors_.shape[1]} values")
        return queries

    def _build(self) -> None:
        """Prepare the search of ``vectors_``."""

    def _adapt(self, queries: np.ndarray) -> None:
        """Choose how to search, by queries like those to come."""

    @abstractmethod
    def _search(self, queries: np.ndarray, positions: np.ndarray, scores: np.ndarray) -> None:
        """Fill the rows of ``positions`` (in ``vectors_``) and ``scores``."""


class ExactIndex(LabelIndex):
    """Exact search: a blocked matrix product with a running top-k, O(n_labels · d) a row.

    A row's result has the same bits alone and in any batch: see :func:`tailwise.scoring.search_vectors`.

    Parameters
    ----------
    n_jobs : int or None
        Threads; None uses every core.

    Examples
    --------
    >>> ExactIndex().build([[1.0, 0.0], [0.6, 0.8]]).search([[0.0, 1.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def _search(self, queries: np.ndarray, positions: np.ndarray, scores: np.ndarray) -> None:
        search_vectors(queries, self.vectors_, positions, scores, n_jobs=self.n_jobs)


class RecallReport(NamedTuple):
    """How much of exact search an approximate one finds: recall@k overall, and by decile of label frequency.

    ``by_decile[0]`` is the tenth of the labels that are rarest in training, ``by_decile[9]`` the most frequent one; a
    decile that exact search never returned is nan. ``found_in_decile`` counts what exact search returned there.
    """

    k: int
    overall: float
    by_decile: np.ndarray
    found_in_decile: np.ndarray

    def __str__(self) -> str:
        deciles = " ".join("–" if np.isnan(value) else f"{value:.3f}" for value in self.by_decile)
        return f"recall@{self.k} {self.overall:.3f}; by label frequency, rarest tenth first: {deciles}"


def found_in(wanted: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Which labels of ``wanted`` (n, k) are among those ``found`` for the same row; padding never is.

    >>> found_in(np.array([[4, 7, -1]]), np.array([[7, -1, 2]]))
    array([[False,  True, False]])
    """
    return (wanted[:, :, None] == found[:, None, :]).any(axis=2) & (wanted >= 0)


def recall_report(index: LabelIndex, queries: Any, label_counts: Any, k: int = 5) -> RecallReport:
    """Compare ``index`` with exact search on ``queries``; ``label_counts`` (n_labels,) are training frequencies.

    Approximate search loses rare labels first, because few rows lie near them: look at the first deciles.
    """
    counts = np.asarray(label_counts)
    if counts.ndim != 1 or counts.size <= int(index.labels_.max(initial=-1)):
        raise InvalidInput(
            f"label_counts has shape {counts.shape} but the index holds label {index.labels_.max():,}; "
            "pass the training counts of every label: model.label_counts_"
        )
    exact = ExactIndex(n_jobs=index.n_jobs).build(index.vectors_, index.labels_).search(queries, k).labels
    found = index.search(queries, k).labels
    hit = found_in(exact, found)
    rank = np.empty(index.labels_.size, np.int64)
    rank[np.argsort(counts[index.labels_], kind="stable")] = np.arange(index.labels_.size)
    decile = np.zeros(counts.size, np.int64)
    decile[index.labels_] = rank * 10 // index.labels_.size
    wanted = np.bincount(decile[exact[exact >= 0]], minlength=10)
    got = np.bincount(decile[exact[hit]], minlength=10)
    by_decile = np.divide(got, wanted, out=np.full(10, np.nan), where=wanted > 0)
    return RecallReport(k, float(got.sum() / max(1, wanted.sum())), by_decile, wanted)
