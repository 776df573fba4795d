"""One max-margin problem over all labels: its dual, the weights that follow, and how far both are from the best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.arrays import read_only
from tailwise.kernels.solvers.max_margin import (
    Active,
    Tables,
    count_features,
    descend,
    fill_tables,
    renew_active,
    search_violators,
)
from tailwise.kernels.solvers.problems import pack_rows
from tailwise.kernels.sparse.csr import csr_parts, csr_views
from tailwise.parallel import map_blocks, row_blocks
from tailwise.validation import label_counts

_ROWS_A_BLOCK = 256
_LABELS_A_BLOCK = 64
_FOUND_A_ROW = 5
_FOUND_AT_FIRST = 100
"""With weights of 0 all other labels of a row violate alike: the more are taken, the less the few drawn are hurt."""
_SWEEPS_A_ROUND = 5
_ROWS_A_CALL = 2048
"""Ctrl-C is heard between calls."""


class Bounds(NamedTuple):
    """The best objective lies between that of the dual and that of the weights."""

    dual: float
    primal: float

    @property
    def gap(self) -> float:
        """Their difference as a share of the primal objective."""
        return (self.primal - self.dual) / self.primal if self.primal > 0 else 0.0


class MaxMargin:
    """``min ½|W|² + l1 |W|₁ + Σ_i C_i max_{k∉y_i, l∈y_i} [1 + f_k - f_l]+`` over W, for rows ``X`` and labels ``Y``.

    ``C`` (n_rows,) is what a row's loss weighs. Goes in rounds: :meth:`search` looks at all labels for those that
    violate most, with the sparse weights so far, on threads; :meth:`improve` goes down the dual over the labels that
    are active, row by row on one thread: once in the first round, five times in each later one. The bits depend on
    ``rng`` alone. Memory: the weights before L1 makes them sparse, about twice.
    """

    def __init__(
        self,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        *,
        C: np.ndarray,
        l1: float,
        rng: np.random.Generator,
        n_jobs: int | None,
    ) -> None:
        self._C, self._l1, self._rng, self._n_jobs = read_only(C), l1, rng, n_jobs
        self._n_features, self._n_labels = X.shape[1], Y.shape[1]
        self._n_rounds = 0
        self._rows, self._labels = csr_parts(X), csr_parts(Y)
        self._squares = pack_rows(self._rows, X.shape[1]).squares
        self._active = Active(
            self._labels.indptr, self._labels.indices, np.zeros(Y.nnz, np.float32), np.diff(self._labels.indptr)
        )
        self.bias = np.where(label_counts(Y) > 0, 0.0, -np.inf).astype(np.float32)
        """(n_labels,) float32: -inf for labels without rows, which are left out, else 0."""
        self.weights = sparse.csr_array((X.shape[1], Y.shape[1]), dtype=np.float32)
        """(n_features, n_labels): those of the dual variables so far."""

    def search(self) -> tuple[np.ndarray, Bounds]:
        """The labels that violate most, (n_rows, 5) int32 or -1, and the bounds that the weights give; 100 at first."""
        n_rows = self._squares.size
        wanted = _FOUND_A_ROW if self._n_rounds else min(_FOUND_AT_FIRST, self._n_labels)
        found, losses = np.empty((n_rows, wanted), np.int32), np.empty(n_rows, np.float32)
        weights, allowed = csr_views(self.weights), read_only(self.bias)

        def search_block(block: tuple[int, int]) -> None:
            search_violators(self._rows, self._labels, weights, allowed, block, found, losses)

        map_blocks(search_block, row_blocks(n_rows, _ROWS_A_BLOCK), n_jobs=self._n_jobs)
        values = self.weights.data.astype(np.float64)
        penalty = 0.5 * float(values @ values)
        primal = penalty + self._l1 * float(np.abs(values).sum()) + float(self._C @ losses.astype(np.float64))
        return found, Bounds(float(self._active.alpha[self._is_own()].sum(dtype=np.float64)) - penalty, primal)

    def improve(self, found: np.ndarray) -> None:
        """Go down the dual over the labels that were active and those ``found``; then ``weights`` are new."""
        indptr, labels, alpha = renew_active(self._active, found)
        self._active = Active(indptr, labels, alpha, self._active.n_own)
        tables = self._fill_tables()
        for _ in range(_SWEEPS_A_ROUND if self._n_rounds else 1):
            order = self._rng.permutation(self._squares.size)
            for start, stop in row_blocks(order.size, _ROWS_A_CALL):
                descend(self._rows, self._squares, order[start:stop], self._active, tables, self._C, self._l1)
        self.weights = self._soft(tables)
        self._n_rounds += 1

    def _is_own(self) -> np.ndarray:
        """Which active labels are labels of their rows."""
        active = self._active
        counts = np.diff(active.indptr)
        place = np.arange(active.alpha.size) - np.repeat(active.indptr[:-1], counts)
        return place < np.repeat(active.n_own, counts)

    def _fill_tables(self) -> Tables:
        """v of the dual variables, computed anew: what rounding left behind in the last round is gone."""
        active = self._active
        by_label = np.argsort(active.labels, kind="stable")
        owners = _offsets(np.bincount(active.labels, minlength=self._n_labels))
        rows = np.repeat(np.arange(self._squares.size), np.diff(active.indptr))[by_label]
        signed = np.where(self._is_own(), active.alpha, -active.alpha)[by_label]
        sizes = np.empty(self._n_labels, np.int64)
        blocks = row_blocks(self._n_labels, _LABELS_A_BLOCK)

        def count(block: tuple[int, int]) -> None:
            count_features(self._rows, owners, rows, block, self._n_features, sizes)

        map_blocks(count, blocks, n_jobs=self._n_jobs)
        starts = _offsets(sizes)
        tables = Tables(starts, np.full(starts[-1], -1, np.int32), np.zeros(starts[-1], np.float32))

        def fill(block: tuple[int, int]) -> None:
            fill_tables(self._rows, owners, rows, signed, block, tables)

        map_blocks(fill, blocks, n_jobs=self._n_jobs)
        return tables

    def _soft(self, tables: Tables) -> sparse.csr_array:
        kept = np.flatnonzero(np.abs(tables.values) > np.float32(self._l1))
        values = tables.values[kept]
        values -= np.sign(values) * np.float32(self._l1)
        labels = np.searchsorted(tables.starts, kept, side="right") - 1
        weights = sparse.csr_array((values, (tables.features[kept], labels)), shape=self.weights.shape)
        weights.sort_indices()
        return weights


def _offsets(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)])
