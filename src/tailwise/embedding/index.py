"""Finding the label vectors with the largest inner products: :class:`ExactIndex`, and the report on any other."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from tailwise.base import TopK
from tailwise.errors import InvalidInput, NotFitted
from tailwise.kernels.networks.embedding import score_candidates
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.kernels.sparse.topk import topk_csr, topk_dense
from tailwise.parallel import ONE_BLAS_THREAD, map_blocks, row_blocks
from tailwise.parameters import Constraint, check_parameters
from tailwise.persistence import Saveable
from tailwise.persistence.checks import check_exact, check_finite, check_monotone, check_range
from tailwise.validation import check_number

_ROWS_A_BLOCK = 256
_LABELS_A_BLOCK = 8192
_FEW_ROWS = 2
_SPARE = 16


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

    def _rank(self, queries: np.ndarray, candidates: np.ndarray, positions: np.ndarray, scores: np.ndarray) -> None:
        """Score ``candidates`` (n, c) in full precision and keep the best of each row."""
        exact = np.empty(candidates.shape, np.float32)
        candidates = np.ascontiguousarray(candidates, dtype=np.int32)
        score_candidates(queries, self.vectors_, candidates, exact)
        indptr = np.arange(0, candidates.size + 1, candidates.shape[1], dtype=np.int64)
        topk_csr(csr_parts(Csr(indptr, candidates.ravel(), exact.ravel())), positions, scores)


class ExactIndex(LabelIndex):
    """Exact search: a blocked matrix product with a running top-k, O(n_labels · d) a row.

    The product only nominates ``k + 16`` labels a row; their scores are then computed one by one, in an order that does
    not depend on the other rows of the batch. Where rounding could have hidden a better label (ties, mostly), the row
    is scanned in full. So a row's result has the same bits alone and in any batch.

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
        n, k = positions.shape
        if n <= _FEW_ROWS:
            self._scan(queries, range(n), positions, scores)
            return
        spare = min(k + _SPARE, self.vectors_.shape[0])
        longest = float(np.sqrt(np.einsum("ij,ij->i", self.vectors_, self.vectors_).max()))

        def search_block(block: tuple[int, int]) -> None:
            rows = slice(*block)
            part = np.ascontiguousarray(queries[rows])
            nominees = np.full((part.shape[0], spare), -1, np.int32)
            rough = np.full((part.shape[0], spare), -np.inf, np.float32)
            for start, stop in row_blocks(self.vectors_.shape[0], _LABELS_A_BLOCK):
                topk_dense(part @ self.vectors_[start:stop].T, start, nominees, rough)
            self._rank(part, nominees, positions[rows], scores[rows])
            if spare < self.vectors_.shape[0]:
                # The error of a float32 product of d terms is at most d · eps · |q| |v|, here and in the re-scoring.
                doubt = 2 * part.shape[1] * np.finfo(np.float32).eps * longest * np.linalg.norm(part, axis=1)
                unsure = np.flatnonzero(scores[rows][:, -1] <= rough[:, -1] + doubt)
                self._scan(part, unsure, positions[rows], scores[rows])

        with ONE_BLAS_THREAD:
            map_blocks(search_block, row_blocks(n, _ROWS_A_BLOCK), n_jobs=self.n_jobs)

    def _scan(self, queries: np.ndarray, rows: Any, positions: np.ndarray, scores: np.ndarray) -> None:
        everything = np.arange(self.vectors_.shape[0], dtype=np.int32)[None]
        total = np.empty(everything.shape, np.float32)
        for i in rows:
            score_candidates(queries[i : i + 1], self.vectors_, everything, total)
            positions[i], scores[i] = -1, -np.inf
            topk_dense(total, 0, positions[i : i + 1], scores[i : i + 1])


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
