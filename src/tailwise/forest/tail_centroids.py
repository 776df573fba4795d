"""Tail classifiers: one hypersphere a label, around the mean of the label's training rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from tailwise import persistence
from tailwise.errors import InvalidInput, NotFitted
from tailwise.kernels.centroids import Means, score_candidates
from tailwise.parallel import map_blocks, row_blocks
from tailwise.validation import check_features, check_labels, check_number, label_counts, unit_rows

_ROWS_A_BLOCK = 256


class TailCentroids(persistence.Saveable, BaseEstimator):
    """Score labels that any model proposes by their distance to the row: ``q_l(x) = 1 / (1 + exp(γ/2 |x - μ_l|²))``.

    μ_l is the mean of the label's training rows (equations 5 and 6 of the PfastreXML paper; rows are scaled to unit
    length). A mean needs no counterexamples and few rows, so it serves rare labels as well as frequent ones. Fitting
    is one sparse product ``Yᵀ X``; a score costs the non-zeros of μ_l.

    Parameters
    ----------
    gamma : float
        How fast q falls with the distance.
    n_jobs : int or None
        Threads for scoring; None uses every core.

    Examples
    --------
    >>> tail = TailCentroids().fit([[1.0, 0], [0, 1.0]], [[1, 0, 0], [0, 1, 0]])
    >>> tail.log_scores([[1.0, 0]], np.array([[0, 1, 2]])).round(2)
    array([[ -0.69, -30.  ,   -inf]], dtype=float32)
    """

    def __init__(self, gamma: float = 30.0, n_jobs: int | None = None) -> None:
        self.gamma = gamma
        self.n_jobs = n_jobs

    def fit(self, X: Any, Y: Any) -> Self:
        """Average the rows of each label: ``X`` (n_samples, n_features), binary ``Y`` (n_samples, n_labels)."""
        check_number("gamma", self.gamma, low=0, open_low=True)
        X = unit_rows(check_features(X))
        Y = check_labels(Y, n_rows=X.shape[0])
        counts = label_counts(Y)
        means = sparse.csr_array(Y.T.tocsr() @ X)
        label = np.repeat(np.arange(Y.shape[1]), np.diff(means.indptr))
        means.data /= counts[label].astype(np.float32)
        squares = np.bincount(label, means.data.astype(np.float64) ** 2, minlength=Y.shape[1])
        order = np.lexsort((means.indices, -np.abs(means.data), label))
        means.indices, means.data = means.indices[order], means.data[order]
        means.has_sorted_indices = False
        self.n_features_in_ = X.shape[1]
        self.means_ = means
        self.squares_ = np.where(counts > 0, squares, np.inf)
        return self

    def log_scores(self, X: Any, labels: np.ndarray) -> np.ndarray:
        """``ln q_l(x)`` of candidate ``labels`` (n, k), such as those of a TopK: (n, k) float32.

        It is -inf where the candidate is -1 or a label that no training row has.
        """
        if not hasattr(self, "means_"):
            raise NotFitted("this TailCentroids is not fitted yet; call TailCentroids.fit(X, Y) first")
        X = unit_rows(check_features(X, n_features=self.n_features_in_, allow_no_rows=True))
        labels = np.asarray(labels)
        if labels.ndim != 2 or labels.shape[0] != X.shape[0] or not np.issubdtype(labels.dtype, np.integer):
            raise InvalidInput(
                f"labels has shape {labels.shape} and dtype {labels.dtype}; pass integers, one row of candidates for "
                f"each of the {X.shape[0]:,} rows of X: predict_topk(X, k).labels"
            )
        if labels.size and not -1 <= labels.min() <= labels.max() < self.squares_.size:
            raise InvalidInput(
                f"labels has values from {labels.min()} to {labels.max()}; pass -1 or a label below "
                f"{self.squares_.size:,}"
            )
        labels = labels.astype(np.int32)
        scores = np.empty(labels.shape, np.float32)
        map_blocks(
            lambda block: score_candidates(
                X.indptr, X.indices, X.data, block, self._means(), X.shape[1], labels, scores
            ),
            row_blocks(X.shape[0], _ROWS_A_BLOCK),
            n_jobs=self.n_jobs,
        )
        return scores

    def _means(self) -> Means:
        return Means(self.means_.indptr, self.means_.indices, self.means_.data, self.squares_, float(self.gamma))
