"""What the metrics need to know of each row: hits, gains, the best possible ranking."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.errors import InvalidInput
from tailwise.kernels.metrics import best_values, mark_hits, sum_values
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.sparse.topk import topk_csr
from tailwise.matrices import canonical_csr
from tailwise.validation import check_labels


@dataclass(frozen=True, eq=False)
class View:
    """Which labels count in a metric, and for how much.

    ``gains`` (n_labels,) float64 is what a correct label is worth: 1, or ``1 / p_l`` in the propensity-scored form,
    and 0 outside the slice. None stands for all ones. ``mask`` (n_labels,) bool is the slice, None for every label.
    """

    n_labels: int
    gains: np.ndarray | None = None
    mask: np.ndarray | None = None
    scored: bool = False
    sliced: bool = False
    normalize: bool = True

    @property
    def max_gain(self) -> float:
        """``ρ``: the largest gain of a label."""
        return 1.0 if self.gains is None else float(self.gains.max())

    @property
    def total_gain(self) -> float:
        """The gains of all labels together."""
        return float(self.n_labels if self.gains is None else self.gains.sum())


class Batch:
    """Checked truth and predictions of some rows: ``Y`` CSR, ``labels`` (n, k) int32, ``hits`` (n, k) bool."""

    def __init__(self, Y_true: Any, topk: Any, n_labels: int | None, min_k: int, relevant_counts: Any = None) -> None:
        self.Y = check_labels(Y_true, n_labels=n_labels)
        self.labels = check_topk(topk, self.Y.shape[0], self.Y.shape[1], min_k)
        self.hits = np.empty(self.labels.shape, bool)
        repeated = mark_hits(csr_parts(self.Y), self.labels, self.hits)
        if repeated >= 0:
            raise InvalidInput(
                f"topk names a label twice in row {repeated}: {self.labels[repeated].tolist()}; each may appear once"
            )
        self.n_true = np.diff(self.Y.indptr).astype(np.float64)
        self.relevant_counts = self._check_relevant(relevant_counts)

    def _check_relevant(self, counts: Any) -> np.ndarray | None:
        if counts is None:
            return None
        counts = np.asarray(counts, np.float64)
        if counts.shape != self.n_true.shape:
            raise InvalidInput(f"relevant_counts has shape {counts.shape}; pass one count a row, {self.n_true.shape}")
        if not (counts >= self.n_true).all():
            bad = int(np.flatnonzero(~(counts >= self.n_true))[0])
            raise InvalidInput(
                f"relevant_counts of row {bad} is {counts[bad]:g}, but the row has {self.n_true[bad]:g} observed labels"
            )
        return counts


class RowFacts:
    """The rows of a batch seen through a view; everything is computed when first asked for."""

    def __init__(self, batch: Batch, view: View) -> None:
        self.batch, self.view = batch, view

    @cached_property
    def gains(self) -> np.ndarray:
        """(n, k) float64: what each predicted label earns, 0 where it is wrong."""
        if self.view.gains is None:
            return self.batch.hits.astype(np.float64)
        return self.batch.hits * self.view.gains[self.batch.labels]

    @cached_property
    def best(self) -> np.ndarray:
        """(n, k) float64: the gains of the best possible ranking of the observed labels."""
        best = np.empty(self.batch.labels.shape, np.float64)
        values = np.ones(self.view.n_labels) if self.view.gains is None else self.view.gains
        best_values(csr_parts(self.batch.Y), values, best)
        return best

    @cached_property
    def true_gain(self) -> np.ndarray:
        """(n,) float64: the gains of all observed labels, an unbiased estimate of how many are relevant."""
        return self.batch.n_true if self.view.gains is None else self._sum(self.view.gains)

    @cached_property
    def n_true(self) -> np.ndarray:
        """(n,) float64: how many observed labels the row has in the slice."""
        return self.batch.n_true if self.view.mask is None else self._sum(self.view.mask.astype(np.float64))

    @cached_property
    def n_relevant(self) -> np.ndarray:
        """(n,) float64: how many labels are truly relevant if that is known, else how many were observed."""
        known = self.batch.relevant_counts
        return known if known is not None and self.view.scored and not self.view.sliced else self.n_true

    def n_predicted(self, k: int) -> np.ndarray:
        """(n,) float64: how many of the first k places hold a label of the slice."""
        labels = self.batch.labels[:, :k]
        present = labels >= 0
        if self.view.mask is not None:
            present = present & self.view.mask[labels]
        return present.sum(axis=1, dtype=np.float64)

    def _sum(self, values: np.ndarray) -> np.ndarray:
        sums = np.empty(self.batch.Y.shape[0], np.float64)
        sum_values(csr_parts(self.batch.Y), values, sums)
        return sums


def check_topk(topk: Any, n_rows: int, n_labels: int, min_k: int) -> np.ndarray:
    """The predicted labels as (n, k) int32, from a TopK, an array of labels or a sparse matrix of scores."""
    if sparse.issparse(topk):
        topk = _best_of_scores(topk, max(min_k, 1))
    labels = np.asarray(topk.labels if isinstance(topk, TopK) else topk)
    if labels.ndim != 2 or not np.issubdtype(labels.dtype, np.integer):
        raise InvalidInput(
            f"topk has shape {labels.shape} and dtype {labels.dtype}; pass model.predict_topk(X, k), "
            "an (n, k) array of label indices, or a sparse matrix of scores"
        )
    if labels.shape[0] != n_rows:
        raise InvalidInput(
            f"topk has {labels.shape[0]:,} rows but Y_true has {n_rows:,}; they must describe the same rows"
        )
    if labels.shape[1] < max(min_k, 1):
        raise InvalidInput(
            f"topk has {labels.shape[1]} labels a row but the metrics look at {max(min_k, 1)}; "
            f"predict more: model.predict_topk(X, k={max(min_k, 1)})"
        )
    if labels.size and (labels.min() < -1 or labels.max() >= n_labels):
        raise InvalidInput(
            f"topk has labels from {labels.min()} to {labels.max()}, but Y_true has {n_labels:,} columns; "
            "labels are column indices, -1 for none"
        )
    return np.ascontiguousarray(labels, np.int32)


def _best_of_scores(scores: Any, k: int) -> TopK:
    csr = canonical_csr("topk", scores, np.float32)
    most = int(np.diff(csr.indptr).max(initial=0))
    if most > 1 and (csr.data == csr.data[0]).all():
        raise InvalidInput(
            f"topk is a matrix whose {csr.nnz:,} entries are all {csr.data[0]:g}, such as predict(X) gives: nothing "
            "says which label of a row comes first; pass model.predict_topk(X, k), or scores: decision_function(X)"
        )
    best = TopK(np.empty((csr.shape[0], k), np.int32), np.empty((csr.shape[0], k), np.float32))
    topk_csr(csr_parts(csr), *best)
    return best
