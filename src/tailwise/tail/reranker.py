"""Re-ranking a model's candidates: by inverse propensity, or by distance to the labels' centroids."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tailwise.base import TopK, XMCModel
from tailwise.changes import Change
from tailwise.explanation import Explanation, Part
from tailwise.forest import TailCentroids
from tailwise.forest.tail_centroids import CENTROIDS
from tailwise.parameters import Number
from tailwise.persistence.checks import check_exact, check_finite, check_kind, check_range, check_that
from tailwise.propensity import PropensityLike, resolve_propensity
from tailwise.ranges import Range, Ranges
from tailwise.tail.ranking import N_CANDIDATES, rank_candidates
from tailwise.tail.wrapper import Wrapper, as_probabilities, explain_probability
from tailwise.validation import check_number


def gains(probabilities: np.ndarray, labels: np.ndarray, inverse: np.ndarray, tail: float) -> np.ndarray:
    """``probability · (1/p)^tail`` of candidate ``labels`` (-1 where absent)."""
    return probabilities * (np.append(inverse, 1.0) ** tail)[labels]


class PropensityReranker(Wrapper):
    """Rank by ``P(l | x) · (1/p_l)^tail``: what maximises PSP@k when the wrapped model's probabilities are true.

    Scores that are no probabilities are read as margins of a squared hinge, ``exp(-max(0, 1 - s)²)``; wrap the
    model in :class:`Calibrated` for better ones. Scores of this model are gains, not probabilities.

    Parameters
    ----------
    base : XMCModel
        The model whose candidates are re-ranked; it is cloned.
    tail : float
        0 keeps the order of probabilities, 1 is the optimum for propensity-scored precision.
    propensity : Propensity, array or None
        Who goes missing how often; None is ``JainPropensity()``.
    n_candidates : int
        How many of the wrapped model's best labels are re-ranked; the others follow in its order.
    n_jobs : int or None
        Threads of the wrapped model; None leaves it its own.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> X, Y = [[1.0, 0], [1, 0], [1, 0]], [[1, 1], [1, 0], [1, 0]]
    >>> PropensityReranker(Centroid(), propensity=[1.0, 0.2]).fit(X, Y).predict_topk([[1.0, 0]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {"tail": Number(low=0), "propensity": PropensityLike(), "n_candidates": N_CANDIDATES}

    tail_: float
    inverse_propensity_: np.ndarray

    def __init__(
        self,
        base: XMCModel,
        *,
        tail: float = 1.0,
        propensity: object = None,
        n_candidates: int = 50,
        n_jobs: int | None = None,
    ) -> None:
        self.base = base
        self.tail = tail
        self.propensity = propensity
        self.n_candidates = n_candidates
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {"tail": Range(0.0, 1.0, self.tail)}

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        self.inverse_propensity_ = 1.0 / resolve_propensity(self.propensity, Y)
        self.base_ = self._fresh_base().fit(X, Y, weight)
        self.tail_ = self._choose_tail(X, Y, weight)

    def _update(self, change: Change) -> int:
        # The knob stays: it was given, or chosen on rows that nobody keeps apart any more.
        self.inverse_propensity_ = 1.0 / resolve_propensity(self.propensity, change.Y)
        return self._update_base(change)

    def _choose_tail(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> float:
        return self.tail

    def _check_state(self) -> None:
        super()._check_state()
        inverse = check_exact("inverse_propensity_", self.inverse_propensity_, np.float64, (self.n_labels_,))
        check_finite("inverse_propensity_", check_range("inverse_propensity_", inverse, 1))
        tail = check_number("tail_", self.tail_, low=0)
        # The largest gain is a score, which is float32.
        largest = np.log(np.finfo(np.float32).max)
        check_that(tail * np.log(inverse.max()) < largest, f"tail_={tail} makes infinite gains")

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        top = self.base_.predict_topk(X, max(k, min(self.n_candidates, self.n_labels_)))
        probabilities = as_probabilities(top.scores, self.base_)
        scores = gains(probabilities, top.labels, self.inverse_propensity_, self.tail_)
        return rank_candidates(top.labels, scores, self.n_candidates, k)

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        why = explain_probability(self.base_, x, label)
        gain = float(gains(np.array([why.score]), np.array([label]), self.inverse_propensity_, self.tail_)[0])
        return why.then(f"probability × (1/p)^{self.tail_:g}, 1/p = {self.inverse_propensity_[label]:.4g}", gain)

    def before_propensity(self) -> XMCModel:
        """The wrapped model, whose order this one changes by propensity alone."""
        return self.base_


class CentroidReranker(Wrapper):
    """Re-rank any model as PfastreXML does: ``α ln P(l | x) + (1 - α) ln q_l(x)`` with centroid classifiers q.

    Parameters
    ----------
    base : XMCModel
        The model whose candidates are re-ranked; it is cloned.
    alpha : float
        Share of the wrapped model in [0, 1]; the rest is the centroids'.
    centroids : TailCentroids or None
        The tail classifiers; None is ``TailCentroids()``. It is cloned.
    n_candidates : int
        How many of the wrapped model's best labels are re-ranked; the others follow in its order.
    n_jobs : int or None
        Threads of the wrapped model; None leaves it its own.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> model = CentroidReranker(Centroid()).fit([[1.0, 0], [0, 1.0]], [[1, 0], [0, 1]])
    >>> model.predict_topk([[0.9, 0.1]], k=1).labels
    array([[0]], dtype=int32)
    """

    _parameters = {"alpha": Number(low=0, high=1), "centroids": CENTROIDS, "n_candidates": N_CANDIDATES}

    centroids_: TailCentroids

    def __init__(
        self,
        base: XMCModel,
        *,
        alpha: float = 0.8,
        centroids: TailCentroids | None = None,
        n_candidates: int = 50,
        n_jobs: int | None = None,
    ) -> None:
        self.base = base
        self.alpha = alpha
        self.centroids = centroids
        self.n_candidates = n_candidates
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {"alpha": Range(0.5, 1.0, self.alpha)}

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        self.centroids_ = self._average(X, Y, weight)
        self.base_ = self._fresh_base().fit(X, Y, weight)

    def _update(self, change: Change) -> int:
        self.centroids_ = self._average(change.X, change.Y)
        return self._update_base(change)

    def _average(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None = None) -> TailCentroids:
        return (TailCentroids() if self.centroids is None else clone(self.centroids)).fit(X, Y, weight)

    def _check_state(self) -> None:
        super()._check_state()
        check_kind("centroids_", self.centroids_, TailCentroids)._check_is_fitted()
        self.centroids_.check_agrees(self._n_seen, self.n_labels_)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        top = self.base_.predict_topk(X, max(k, min(self.n_candidates, self.n_labels_)))
        log_probability = _log(as_probabilities(top.scores, self.base_))
        scores = self.alpha * log_probability + (1 - self.alpha) * self.centroids_.log_scores(X, top.labels)
        return rank_candidates(top.labels, scores, self.n_candidates, k)

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        why, tail = explain_probability(self.base_, x, label), self.centroids_.explain(x, label)
        if np.isneginf(why.score):
            return why
        logarithm = float(_log(np.float32(why.score)))
        parts = [
            Part(f"{self.alpha:g} ln P(l|x) of {type(self.base_).__name__}", self.alpha * logarithm, of=why),
            Part(f"{1 - self.alpha:g} ln q(x) of the label's centroid", (1 - self.alpha) * tail.score, of=tail),
        ]
        return Explanation.sum_of(label, parts)


def _log(probabilities: np.ndarray | np.float32) -> np.ndarray:
    """ln P; what underflows to 0 still is a candidate of the wrapped model: it ranks last, not out."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(probabilities), np.log(np.finfo(np.float32).tiny))
