"""What the linear models of low rank share: a small space in between, a vector a label, prediction and explanation."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.compression.ridge import CentredRows
from tailwise.explanation import Explanation, margin_explanation, not_ranked
from tailwise.kernels.arrays import read_only
from tailwise.kernels.networks.embedding import encode_rows
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.parallel import ONE_BLAS_THREAD, map_blocks, row_blocks
from tailwise.parameters import Integer, Number
from tailwise.persistence.checks import check_exact, check_range
from tailwise.ranges import Range, Ranges
from tailwise.rows import UNIT_LENGTH, RowView
from tailwise.scoring import search_vectors

_ROWS_A_BLOCK = 1024
LARGEST = 1e15
"""What a factor's entry may be: products of two, summed, stay finite float32."""

DIM = Integer(low=1)
POSITIVE = Number(low=0, open_low=True)


class Factors(NamedTuple):
    """``score = x W Hᵀ + b`` of the labels that have rows."""

    W: np.ndarray
    """(n_features, m)"""
    H: np.ndarray
    """(n labels that have rows, m)"""
    b: np.ndarray
    """(n labels that have rows,)"""


class LowRank(XMCModel):
    """``score_l = (x W) · h_l + b_l``: rows and labels meet in a space of few dimensions.

    A subclass writes ``_factor``. Rows are seen at unit length. Labels without rows have no vector and are never
    predicted. A prediction costs O(entries of the row · m + n_labels · m); the model keeps (n_features + n_labels) · m
    numbers.

    Attributes
    ----------
    projection_ : ndarray (n_features, m)
        W, float32.
    vectors_ : ndarray (n labels that have rows, m + 1)
        ``h_l`` with ``b_l`` behind it, float32.
    """

    _parameters = {"dim": DIM, "l2": POSITIVE, "tol": POSITIVE}

    dim: int
    l2: float
    tol: float
    n_jobs: int | None
    random_state: Any

    projection_: np.ndarray
    vectors_: np.ndarray

    def _ranges(self) -> Ranges:
        return {"l2": Range.around(self.l2, 16)}

    @abstractmethod
    def _factor(self, rows: CentredRows, Y: sparse.csr_array) -> Factors:
        """The model of the centred rows and of labels Y, scaled as these, each of which has rows."""

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return UNIT_LENGTH

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        rows = CentredRows(X, weight)
        with ONE_BLAS_THREAD:
            W, H, b = self._factor(rows, rows.scaled(labels_with_rows(Y, self._ranked)))
        self.projection_ = np.ascontiguousarray(W, np.float32)
        self.vectors_ = np.ascontiguousarray(np.column_stack([H, b]), np.float32)

    @property
    def _ranked(self) -> np.ndarray:
        """The labels that have rows."""
        return np.flatnonzero(self.label_counts_)

    def _check_state(self) -> None:
        super()._check_state()
        m = check_exact("projection_", self.projection_, np.float32, (self._n_seen, None)).shape[1]
        check_range("projection_", self.projection_, -LARGEST, LARGEST)
        check_exact("vectors_", self.vectors_, np.float32, (self._ranked.size, m + 1))
        check_range("vectors_", self.vectors_, -LARGEST, LARGEST)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        # One more column of ones meets the biases.
        queries = np.ones((X.shape[0], self.projection_.shape[1] + 1), np.float32)
        queries[:, :-1] = encode(X, self.projection_, n_jobs=self.n_jobs)
        return best_labels(queries, self.vectors_, self._ranked, k, n_jobs=self.n_jobs)

    def _label_weights(self) -> sparse.csr_array:
        weights = np.zeros((self.n_labels_, self._n_seen), np.float32)
        weights[self._ranked] = self.vectors_[:, :-1] @ self.projection_.T
        return sparse.csr_array(weights)

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        if not self.label_counts_[label]:
            return not_ranked(label, "no training row has the label")
        vector = self.vectors_[np.searchsorted(self._ranked, label)].astype(np.float64)
        return margin_explanation(label, x, self.projection_[x.indices] @ vector[:-1], vector[-1])


def labels_with_rows(Y: sparse.csr_array, ranked: np.ndarray) -> sparse.csr_array:
    """The columns ``ranked`` of Y; Y itself where that is all."""
    return Y if ranked.size == Y.shape[1] else sparse.csr_array(Y[:, ranked])


def encode(X: sparse.csr_array, projection: np.ndarray, *, n_jobs: int | None = None) -> np.ndarray:
    """``X W`` (n, m) float32, each row with the same bits alone and in any company."""
    encoded = np.empty((X.shape[0], projection.shape[1]), np.float32)
    rows, table = csr_parts(X), read_only(projection)
    nothing = read_only(np.zeros(projection.shape[1], np.float32))

    def encode_block(block: tuple[int, int]) -> None:
        encode_rows(rows, block, table, nothing, encoded[slice(*block)])

    map_blocks(encode_block, row_blocks(X.shape[0], _ROWS_A_BLOCK), n_jobs=n_jobs)
    return encoded


def best_labels(
    queries: np.ndarray, vectors: np.ndarray, labels: np.ndarray, k: int, *, n_jobs: int | None = None
) -> TopK:
    """The ``k`` of ``labels``, ascending, whose ``vectors`` have the largest inner product with each query."""
    top = TopK(np.full((queries.shape[0], k), -1, np.int32), np.full((queries.shape[0], k), -np.inf, np.float32))
    if labels.size == 0:
        return top
    search_vectors(queries, vectors, *top, n_jobs=n_jobs)
    return TopK(np.where(top.labels >= 0, labels[top.labels], -1).astype(np.int32), top.scores)
