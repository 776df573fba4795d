"""One knob between P@k and PSP@k: the whole curve from one set of candidates, and a point on it under a constraint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tailwise.base import TopK, XMCModel
from tailwise.errors import InvalidInput
from tailwise.metrics import evaluate
from tailwise.propensity import resolve_propensity
from tailwise.tail.reranker import rerank_by_propensity
from tailwise.tail.wrapper import Wrapper, as_probabilities, check_model
from tailwise.validation import as_rng, check_number

DEFAULT_STEPS = tuple(np.linspace(0.0, 1.0, 21).round(3).tolist())


class TradeOffCurve(NamedTuple):
    """Metric values in percent along the knob: ``values`` (n_steps, n_metrics) for ``steps`` t and ``metrics``."""

    steps: np.ndarray
    metrics: list[str]
    values: np.ndarray

    def column(self, metric: str) -> np.ndarray:
        """The values of one metric along the curve."""
        if metric not in self.metrics:
            raise InvalidInput(f"the curve has no {metric!r}; it has {', '.join(self.metrics)}")
        return self.values[:, self.metrics.index(metric)]

    def choose(self, maximise: str, max_loss: dict[str, float] | None = None) -> float:
        """The t with the highest ``maximise`` among those that lose at most ``max_loss`` points of each named metric.

        Losses are counted against the best value of that metric on the curve.
        """
        allowed = np.ones(self.steps.size, bool)
        for metric, points in (max_loss or {}).items():
            check_number(f"max_loss[{metric!r}]", points, low=0)
            allowed &= self.column(metric) >= self.column(metric).max() - points
        if not allowed.any():
            raise InvalidInput(f"max_loss={max_loss!r} allows no point of the curve; allow a larger loss")
        target = np.where(allowed, self.column(maximise), -np.inf)
        return float(self.steps[int(np.argmax(target))])

    def plot(self, x: str = "p@1", y: str = "psp@1", ax: Any = None, chosen: float | None = None) -> Any:
        """Draw metric ``y`` against ``x`` along the knob; marks the ends and the ``chosen`` t. Returns the axes."""
        import matplotlib.pyplot as plt

        ax = ax or plt.subplots(figsize=(5, 4), layout="constrained")[1]
        xs, ys = self.column(x), self.column(y)
        ax.plot(xs, ys, marker="o", markersize=3)
        marks = {0: 0, len(xs) - 1: len(xs) - 1}
        if chosen is not None:
            marks[int(np.argmin(np.abs(self.steps - chosen)))] = 1
        for i in marks:
            ax.annotate(f"t = {self.steps[i]:g}", (xs[i], ys[i]), textcoords="offset points", xytext=(6, 4))
        ax.set_xlabel(x.upper())
        ax.set_ylabel(y.upper())
        ax.set_title("Trade-off between frequent and rare labels")
        return ax


def trade_off_curve(
    top: TopK,
    probabilities: np.ndarray,
    Y: sparse.csr_array,
    propensity: np.ndarray,
    *,
    steps: Sequence[float] = DEFAULT_STEPS,
    metrics: Sequence[str] = ("p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5"),
) -> TradeOffCurve:
    """Rank the candidates ``top`` by ``probability · (1/p)^t`` for every t in ``steps``; evaluate each against ``Y``.

    One prediction serves the whole curve: only the ranking of the candidates changes.
    """
    width = max(int(m.partition("@")[2].partition(":")[0] or 5) for m in metrics)
    values = []
    for t in steps:
        ranked = rerank_by_propensity(top, probabilities, 1.0 / propensity, float(t), width)
        result = evaluate(Y, ranked, list(metrics), propensity=propensity, confidence=None)
        values.append([result[m].value for m in metrics])
    return TradeOffCurve(np.asarray(steps, float), list(metrics), np.array(values))


class TradeOff(Wrapper):
    """Choose how far to lean to the rare labels: rank by ``P(l | x) · (1/p_l)^t`` with t from validation rows.

    Fits ``base`` on part of the rows, computes the curve on the rest, chooses t, and fits ``base`` again on all rows.
    Afterwards ``t_`` is the knob and ``curve_`` the :class:`TradeOffCurve` on validation rows (``curve_.plot()``); with
    a given ``t`` there is one training and no curve.

    Parameters
    ----------
    base : XMCModel
        The model; it is cloned. Its probabilities matter: wrap it in :class:`Calibrated` or use :class:`Stacked`.
    t : float or None
        The knob in [0, 1]; None chooses it.
    maximise : str
        The metric to maximise when choosing.
    max_loss : dict or None
        Points that may be lost of other metrics, such as ``{"p@1": 1.0}``; None constrains nothing.
    propensity : Propensity, array or None
        None is ``JainPropensity()``.
    validation : float
        Share of the rows that t is chosen on.
    n_candidates : int
        Labels of the wrapped model that are considered.
    random_state : int, Generator or None
        Draws the validation rows.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> X, Y = [[1.0, 0.1], [0.9, 0], [0.2, 1.0]] * 8, [[1, 0], [1, 0], [0, 1]] * 8
    >>> TradeOff(Centroid(), max_loss={"p@1": 1.0}, random_state=0).fit(X, Y).t_
    0.0
    """

    def __init__(
        self,
        base: XMCModel,
        t: float | None = None,
        maximise: str = "psp@5",
        max_loss: dict[str, float] | None = None,
        propensity: object = None,
        validation: float = 0.2,
        n_candidates: int = 50,
        random_state: int | None = None,
    ) -> None:
        self.base = base
        self.t = t
        self.maximise = maximise
        self.max_loss = max_loss
        self.propensity = propensity
        self.validation = validation
        self.n_candidates = n_candidates
        self.random_state = random_state

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        check_model("base", self.base)
        check_number("n_candidates", self.n_candidates, integer=True, low=1)
        propensity = resolve_propensity(self.propensity, Y)
        self.inverse_propensity_ = 1.0 / propensity
        if self.t is None:
            self.curve_ = self._validate(X, Y, propensity)
            self.t_ = self.curve_.choose(self.maximise, self.max_loss)
        else:
            self.t_ = float(check_number("t", self.t, low=0, high=1))
        self._fit_base(X, Y)

    def _validate(self, X: sparse.csr_array, Y: sparse.csr_array, propensity: np.ndarray) -> TradeOffCurve:
        check_number("validation", self.validation, low=0, high=1, open_low=True, open_high=True)
        order = as_rng(self.random_state).permutation(X.shape[0])
        n_held_out = max(1, round(self.validation * X.shape[0]))
        if n_held_out >= X.shape[0]:
            raise InvalidInput(
                f"validation={self.validation!r} leaves no training row of n_samples={X.shape[0]}; "
                "use more rows or give t"
            )
        held_out, rest = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
        model = clone(self.base).fit(X[rest], Y[rest])
        top = model.predict_topk(X[held_out], min(self.n_candidates, self.n_labels_))
        metrics = list(
            dict.fromkeys(["p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5", self.maximise, *(self.max_loss or {})])
        )
        return trade_off_curve(
            top, as_probabilities(top.scores, model), sparse.csr_array(Y[held_out]), propensity, metrics=metrics
        )

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        top = self.base_.predict_topk(X, max(k, self.n_candidates))
        probabilities = as_probabilities(top.scores, self.base_)
        return rerank_by_propensity(top, probabilities, self.inverse_propensity_, self.t_, k)
