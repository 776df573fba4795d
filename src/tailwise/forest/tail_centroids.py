"""Tail classifiers: how near a row is to the mean of a label's training rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from tailwise import persistence
from tailwise.errors import InvalidInput, NotFitted
from tailwise.explanation import Explanation, Part, not_ranked
from tailwise.kernels.arrays import frozen
from tailwise.kernels.sparse.centroids import Centroids, score_by_centroids
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.parallel import map_blocks, row_blocks
from tailwise.parameters import Choice, Component, Flag, Number, OrNone, check_parameters
from tailwise.persistence.checks import (
    check_exact,
    check_finite,
    check_kind,
    check_matrix,
    check_range,
    check_that,
)
from tailwise.rows import UNIT_LENGTH, RowView, idf_weights, scaled_rows
from tailwise.validation import check_features, check_labels, check_number, check_sample_weight, counted_rows

_ROWS_A_BLOCK = 256
# What D pays for the likeness of a label's rows: chosen on validation rows of five data sets.
_ALIKE = 0.45


class TailCentroids(persistence.Saveable, BaseEstimator):
    """Score labels that any model proposes by how near the row is to the label's: ``ln q = -ln(1 + exp(γ/2 D_l(x)))``.

    μ_l is the mean of the label's training rows. It needs no counterexamples and few rows, so it serves rare labels as
    well as frequent ones. Fitting is one sparse product ``Yᵀ X``; a score costs the non-zeros of μ_l.

    * ``shape="sphere"`` is the PfastreXML paper's (equations 5 and 6): ``D = |x - μ_l|²``. Rows have unit length, so
      they are nearer to a short mean, of many rows that differ, than to a long one, of a row or two.
    * ``shape="cone"``: ``D = 1 - cos(x, μ_l) + 0.45 |μ_l|²``, the angle to the mean, whatever its length. ``|μ_l|²`` is
      how alike the label's rows are: the more, and it is 1 for a single row, the closer x has to match. For one label
      both shapes order rows alike.

    Parameters
    ----------
    gamma : float
        How fast q falls with D.
    shape : {"cone", "sphere"}
        What D is; "sphere" is the paper's, "cone" gained precision on validation rows.
    idf : bool
        Weigh features by ``ln((1 + n) / (1 + rows that have it)) + 1`` before rows are scaled to unit length.
    n_jobs : int or None
        Threads for scoring; None uses every core.

    Examples
    --------
    >>> tail = TailCentroids().fit([[1.0, 0], [0, 1.0]], [[1, 0, 0], [0, 1, 0]])
    >>> tail.log_scores([[1.0, 0]], np.array([[0, 1, 2]])).round(2)
    array([[ -6.75, -21.75,   -inf]], dtype=float32)
    """

    _parameters = {"gamma": Number(low=0, open_low=True), "shape": Choice("cone", "sphere"), "idf": Flag()}

    rows_: RowView

    def __init__(
        self, gamma: float = 30.0, *, shape: str = "cone", idf: bool = True, n_jobs: int | None = None
    ) -> None:
        self.gamma = gamma
        self.shape = shape
        self.idf = idf
        self.n_jobs = n_jobs

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Self:
        """Average the rows of each label: ``X`` (n_samples, n_features), binary ``Y`` (n_samples, n_labels).

        ``sample_weight`` (n_samples,) is how often a row counts in the means; None is once.
        """
        check_parameters(self)
        X = check_features(X)
        Y = check_labels(Y, n_rows=X.shape[0])
        X, Y, weight = counted_rows(X, Y, check_sample_weight(sample_weight, X.shape[0]))
        # A mean does not mind a common factor; without one, large weights could leave float32.
        Y = Y if weight is None else scaled_rows(Y, weight / weight.max())
        self.n_features_in_ = X.shape[1]
        self.rows_ = UNIT_LENGTH._replace(weights=idf_weights(X) if self.idf else None)
        counts = np.bincount(Y.indices, Y.data, minlength=Y.shape[1])
        centroids = sparse.csr_array(Y.T.tocsr() @ self.rows_(X))
        label = np.repeat(np.arange(Y.shape[1]), np.diff(centroids.indptr))
        centroids.data /= counts[label].astype(np.float32)
        lengths = np.sqrt(np.bincount(label, centroids.data.astype(np.float64) ** 2, minlength=Y.shape[1]))
        offsets = lengths**2
        if self.shape == "cone":
            # v = μ / (2 |μ|) and c = 0.45 |μ|² make of |x|² + c - 2 x·v the cone's D.
            centroids.data /= np.maximum(2 * lengths, np.finfo(np.float32).tiny)[label].astype(np.float32)
            lengths, offsets = np.where(lengths > 0, 0.5, 0.0), _ALIKE * lengths**2
        order = np.lexsort((centroids.indices, -np.abs(centroids.data), label))
        centroids.indices, centroids.data = centroids.indices[order], centroids.data[order]
        centroids.has_sorted_indices = False
        self.centroids_ = centroids
        self.lengths_ = lengths
        self.offsets_ = np.where(counts > 0, offsets, np.inf)
        return self

    def log_scores(self, X: Any, labels: np.ndarray) -> np.ndarray:
        """``ln q_l(x)`` of candidate ``labels`` (n, k), such as those of a TopK: (n, k) float32.

        It is -inf where the candidate is -1 or a label that no training row has.
        """
        X = self._seen(X)
        labels = np.asarray(labels)
        if labels.ndim != 2 or labels.shape[0] != X.shape[0] or not np.issubdtype(labels.dtype, np.integer):
            raise InvalidInput(
                f"labels has shape {labels.shape} and dtype {labels.dtype}; pass integers, one row of candidates for "
                f"each of the {X.shape[0]:,} rows of X: predict_topk(X, k).labels"
            )
        if labels.size and not -1 <= labels.min() <= labels.max() < self.offsets_.size:
            raise InvalidInput(
                f"labels has values from {labels.min()} to {labels.max()}; pass -1 or a label below "
                f"{self.offsets_.size:,}"
            )
        labels = labels.astype(np.int32)
        scores = np.empty(labels.shape, np.float32)
        rows, centroids = csr_parts(X), self.compiled()
        map_blocks(
            lambda block: score_by_centroids(rows, block, centroids, X.shape[1], labels, scores),
            row_blocks(X.shape[0], _ROWS_A_BLOCK),
            n_jobs=self.n_jobs,
        )
        return scores

    def explain(self, x: Any, label: int) -> Explanation:
        """``ln q`` of one label for the one row ``x``, a function of D, which is a sum over the features."""
        x = self._seen(x)
        label = int(check_number("label", label, integer=True, low=0, high=self.offsets_.size - 1))
        if np.isposinf(self.offsets_[label]):
            return not_ranked(label, "no training row has the label")
        vector = self.centroids_[[label]].toarray().ravel()
        shares = -2 * x.data.astype(np.float64) * vector[x.indices]
        distance = Explanation.sum_of(
            label,
            [
                Part("|x|², the squared length of the row", float((x.data.astype(np.float64) ** 2).sum())),
                Part("how alike the label's rows are", float(self.offsets_[label])),
                *(
                    Part(f"feature {feature}", float(share), int(feature))
                    for feature, share in zip(x.indices, shares, strict=True)
                    if share != 0
                ),
            ],
        )
        score = -np.logaddexp(0.0, 0.5 * self.gamma * max(distance.score, 0.0))
        return distance.then("ln q = -ln(1 + exp(γ/2 D)) of the distance D", float(score))

    def check_agrees(self, n_features: int, n_labels: int) -> None:
        """Refuse to be part of a model of other features or labels."""
        found = (self.n_features_in_, self.offsets_.size)
        check_that(found == (n_features, n_labels), f"centroids_ has (features, labels) = {found}")

    def _check_state(self) -> None:
        check_parameters(self)
        check_number("n_features_in_", self.n_features_in_, integer=True, low=1)
        n_features = check_kind("rows_", self.rows_, RowView).check(self.n_features_in_)
        offsets = check_exact("offsets_", self.offsets_, np.float64, (None,))
        check_range("offsets_", offsets, 0)
        lengths = check_exact("lengths_", self.lengths_, np.float64, offsets.shape)
        check_range("lengths_", check_finite("lengths_", lengths), 0)
        check_matrix("centroids_", self.centroids_, (offsets.size, n_features))

    def _seen(self, X: Any) -> sparse.csr_array:
        self._check_is_fitted()
        return self.rows_(check_features(X, n_features=self.n_features_in_, allow_no_rows=True))

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "centroids_"):
            raise NotFitted("this TailCentroids is not fitted yet; call TailCentroids.fit(X, Y) first")

    def compiled(self) -> Centroids:
        """What the kernels read."""
        v = self.centroids_
        return frozen(Centroids(v.indptr, v.indices, v.data, self.lengths_, self.offsets_, float(self.gamma)))


CENTROIDS = OrNone(Component(TailCentroids, "TailCentroids", "TailCentroids()"))
"""The constraint of a parameter ``centroids``."""
