"""Re-ranking a model's candidates: by inverse propensity, or by distance to the labels' centroids."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.forest import TailCentroids
from tailwise.propensity import resolve_propensity
from tailwise.tail.wrapper import Wrapper, as_probabilities, sort_topk
from tailwise.validation import check_number


def rerank_by_propensity(top: TopK, probabilities: np.ndarray, inverse: np.ndarray, power: float, k: int) -> TopK:
    """The best ``k`` of the candidates by ``probability · (1/p)^power``."""
    weights = np.append(inverse, 1.0) ** power
    return sort_topk(top.labels, probabilities * weights[top.labels], k)


class PropensityReranker(Wrapper):
    """Rank by ``P(l | x) · (1/p_l)^power``: what maximises PSP@k when the wrapped model's probabilities are true.

    Scores that are no probabilities are read as margins of a squared hinge, ``exp(-max(0, 1 - s)²)``; wrap the
    model in :class:`Calibrated` for better ones. Scores of this model are gains, not probabilities.

    Parameters
    ----------
    base : XMCModel
        The model whose candidates are re-ranked; it is cloned.
    power : float
        0 keeps the order of probabilities, 1 is the optimum for propensity-scored precision.
    propensity : Propensity, array or None
        Who goes missing how often; None is ``JainPropensity()``.
    n_candidates : int
        How many of the wrapped model's best labels are considered.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> X, Y = [[1.0, 0], [1, 0], [1, 0]], [[1, 1], [1, 0], [1, 0]]
    >>> PropensityReranker(Centroid(), propensity=[1.0, 0.2]).fit(X, Y).predict_topk([[1.0, 0]], k=1).labels
    array([[1]], dtype=int32)
    """

    def __init__(
        self,
        base: XMCModel,
        power: float = 1.0,
        propensity: object = None,
        n_candidates: int = 50,
    ) -> None:
        self.base = base
        self.power = power
        self.propensity = propensity
        self.n_candidates = n_candidates

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        check_number("power", self.power, low=0)
        check_number("n_candidates", self.n_candidates, integer=True, low=1)
        self.inverse_propensity_ = 1.0 / resolve_propensity(self.propensity, Y)
        self._fit_base(X, Y)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        top = self.base_.predict_topk(X, max(k, self.n_candidates))
        probabilities = as_probabilities(top.scores, self.base_)
        return rerank_by_propensity(top, probabilities, self.inverse_propensity_, self.power, k)


class CentroidReranker(Wrapper):
    """Re-rank any model as PfastreXML does: ``α ln P(l | x) + (1 - α) ln q_l(x)`` with centroid classifiers q.

    Parameters
    ----------
    base : XMCModel
        The model whose candidates are re-ranked; it is cloned.
    alpha : float
        Share of the wrapped model in [0, 1]; the rest is the centroids'.
    gamma : float
        Sharpness of :class:`tailwise.forest.TailCentroids`.
    n_candidates : int
        How many of the wrapped model's best labels are considered.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> model = CentroidReranker(Centroid()).fit([[1.0, 0], [0, 1.0]], [[1, 0], [0, 1]])
    >>> model.predict_topk([[0.9, 0.1]], k=1).labels
    array([[0]], dtype=int32)
    """

    def __init__(self, base: XMCModel, alpha: float = 0.8, gamma: float = 30.0, n_candidates: int = 50) -> None:
        self.base = base
        self.alpha = alpha
        self.gamma = gamma
        self.n_candidates = n_candidates

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        check_number("alpha", self.alpha, low=0, high=1)
        check_number("n_candidates", self.n_candidates, integer=True, low=1)
        self.centroids_ = TailCentroids(gamma=self.gamma).fit(X, Y)
        self._fit_base(X, Y)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        top = self.base_.predict_topk(X, max(k, self.n_candidates))
        with np.errstate(divide="ignore"):
            log_probability = np.log(as_probabilities(top.scores, self.base_))
        # A probability that underflows to 0 still is a candidate of the wrapped model: it ranks last, not out.
        log_probability = np.maximum(log_probability, np.log(np.finfo(np.float32).tiny))
        scores = self.alpha * log_probability + (1 - self.alpha) * self.centroids_.log_scores(X, top.labels)
        return sort_topk(top.labels, scores, k)
