"""One knob between P@k and PSP@k: the whole curve from one set of candidates, and a point on it under a constraint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.display import Table
from tailwise.errors import InvalidInput, import_extra
from tailwise.metrics import evaluate
from tailwise.metrics.names import METRIC, parse_metric
from tailwise.parameters import Constraint, Number, OrNone
from tailwise.persistence.checks import check_kind, check_shape, check_strings
from tailwise.ranges import Ranges
from tailwise.tail.ranking import sort_topk
from tailwise.tail.reranker import PropensityReranker, gains
from tailwise.tail.wrapper import as_probabilities
from tailwise.validation import as_rng, check_number

DEFAULT_TAILS = tuple(np.linspace(0.0, 1.0, 21).round(3).tolist())
DEFAULT_METRICS = ("p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5")


class MaxLoss(Constraint):
    """Points that may be lost, by metric."""

    def check(self, name: str, value: Any) -> Any:
        """The value, a dict from metrics to numbers that are not negative."""
        if not isinstance(value, dict):
            raise InvalidInput(f"{name}={value!r}; pass a dict from metrics to points, such as {{'p@1': 1.0}}")
        for metric, points in value.items():
            METRIC.check(name, metric)
            check_number(f"{name}[{metric!r}]", points, low=0)
        return value

    def __str__(self) -> str:
        return "a dict from metrics to points"


class TradeOffCurve(NamedTuple):
    """Metric values in percent along the knob: ``values`` (n_tails, n_metrics) for ``tails`` and ``metrics``."""

    tails: np.ndarray
    metrics: list[str]
    values: np.ndarray

    def column(self, metric: str) -> np.ndarray:
        """The values of one metric along the curve."""
        if metric not in self.metrics:
            raise InvalidInput(f"the curve has no {metric!r}; it has {', '.join(self.metrics)}")
        return self.values[:, self.metrics.index(metric)]

    def table(self) -> Table:
        """The knob down, metrics across."""
        rows = [[f"{tail:g}", *(f"{value:.2f}" for value in line)] for tail, line in zip(*self[::2], strict=True)]
        return Table("Trade-off between frequent and rare labels, in percent", ["tail", *self.metrics], rows)

    def records(self) -> list[dict[str, float]]:
        """One dict for each position of the knob."""
        lines = zip(self.tails.tolist(), self.values.tolist(), strict=True)
        return [{"tail": tail, **dict(zip(self.metrics, line, strict=True))} for tail, line in lines]

    def to_frame(self) -> Any:
        """The curve as a pandas DataFrame, one line for each position of the knob."""
        return import_extra("pandas", "report", "TradeOffCurve.to_frame").DataFrame(self.records())

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table().html()

    def choose(self, maximise: str, max_loss: dict[str, float] | None = None) -> float:
        """The knob of the highest ``maximise`` among those that lose at most ``max_loss`` points of each metric named.

        Losses are counted against the best value of that metric on the curve.
        """
        allowed = np.ones(self.tails.size, bool)
        for metric, points in (max_loss or {}).items():
            check_number(f"max_loss[{metric!r}]", points, low=0)
            allowed &= self.column(metric) >= self.column(metric).max() - points
        if not allowed.any():
            raise InvalidInput(f"max_loss={max_loss!r} allows no point of the curve; allow a larger loss")
        target = np.where(allowed, self.column(maximise), -np.inf)
        return float(self.tails[int(np.argmax(target))])

    def plot(self, x: str = "p@1", y: str = "psp@1", ax: Any = None, chosen: float | None = None) -> Any:
        """Draw metric ``y`` against ``x`` along the knob; marks the ends and the ``chosen`` knob. Returns the axes."""
        plt = import_extra("matplotlib.pyplot", "report", "TradeOffCurve.plot")
        ax = ax or plt.subplots(figsize=(5, 4), layout="constrained")[1]
        xs, ys = self.column(x), self.column(y)
        ax.plot(xs, ys, marker="o", markersize=3)
        marks = {0: 0, len(xs) - 1: len(xs) - 1}
        if chosen is not None:
            marks[int(np.argmin(np.abs(self.tails - chosen)))] = 1
        for i in marks:
            ax.annotate(f"tail {self.tails[i]:g}", (xs[i], ys[i]), textcoords="offset points", xytext=(6, 4))
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
    tails: Sequence[float] = DEFAULT_TAILS,
    metrics: Sequence[str] = DEFAULT_METRICS,
) -> TradeOffCurve:
    """Rank the candidates ``top`` by ``probability · (1/p)^tail`` for each of ``tails``; evaluate against ``Y``.

    One prediction serves the whole curve: only the ranking of the candidates changes.
    """
    width = max(parse_metric(m).k or 5 for m in metrics)
    values = []
    for tail in tails:
        scores = gains(probabilities, top.labels, 1.0 / propensity, float(tail))
        ranked = sort_topk(top.labels, scores, width)
        result = evaluate(Y, ranked, list(metrics), propensity=propensity, confidence=None)
        values.append([result[m].value for m in metrics])
    return TradeOffCurve(np.asarray(tails, float), list(metrics), np.array(values))


class TradeOff(PropensityReranker):
    """Choose how far to lean to the rare labels: rank by ``P(l | x) · (1/p_l)^tail``, the knob from validation rows.

    Fits ``base`` on all rows, then on part of them, computes the curve on the others, and chooses the knob. Afterwards
    ``tail_`` is the knob and ``curve_`` the :class:`TradeOffCurve` on validation rows (``curve_.plot()``). Where the
    knob is known, :class:`PropensityReranker` takes it and trains once.
    ``sample_weight`` is for ``base``; validation rows count once each.

    Parameters
    ----------
    base : XMCModel
        The model; it is cloned. Its probabilities matter: wrap it in :class:`Calibrated` or use :class:`Stacked`.
    maximise : str
        The metric to maximise when choosing.
    max_loss : dict or None
        Points that may be lost of other metrics, such as ``{"p@1": 1.0}``; None constrains nothing.
    propensity : Propensity, array or None
        None is ``JainPropensity()``.
    validation_fraction : float
        Share of the rows that the knob is chosen on.
    n_candidates : int
        How many of the wrapped model's best labels are re-ranked; the others follow in its order.
    random_state : int, Generator or None
        Draws the validation rows.
    n_jobs : int or None
        Threads of the wrapped model; None leaves it its own.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> X, Y = [[1.0, 0.1], [0.9, 0], [0.2, 1.0]] * 8, [[1, 0], [1, 0], [0, 1]] * 8
    >>> TradeOff(Centroid(), max_loss={"p@1": 1.0}, random_state=0).fit(X, Y).tail_
    0.0
    """

    _parameters = {
        "maximise": METRIC,
        "max_loss": OrNone(MaxLoss()),
        "validation_fraction": Number(low=0, high=1, open_low=True, open_high=True),
    }

    curve_: TradeOffCurve

    def __init__(
        self,
        base: XMCModel,
        *,
        maximise: str = "psp@5",
        max_loss: dict[str, float] | None = None,
        propensity: object = None,
        validation_fraction: float = 0.2,
        n_candidates: int = 50,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.base = base
        self.maximise = maximise
        self.max_loss = max_loss
        self.propensity = propensity
        self.validation_fraction = validation_fraction
        self.n_candidates = n_candidates
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {}

    def _check_state(self) -> None:
        super()._check_state()
        curve = check_kind("curve_", self.curve_, TradeOffCurve)
        tails = check_shape("tails of curve_", curve.tails, (None,), "f")
        metrics = check_strings("metrics of curve_", curve.metrics)
        check_shape("values of curve_", curve.values, (tails.size, len(metrics)), "f")

    def _choose_tail(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> float:
        order = as_rng(self.random_state).permutation(X.shape[0])
        n_held_out = max(1, round(self.validation_fraction * X.shape[0]))
        if n_held_out >= X.shape[0]:
            raise InvalidInput(
                f"validation_fraction={self.validation_fraction!r} leaves no training row of n_samples={X.shape[0]}; "
                "use more rows, or give the knob to PropensityReranker(tail=)"
            )
        held_out, rest = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
        model = self.base_.fit_part(X[rest], Y[rest], rest, None if weight is None else weight[rest])
        top = model.predict_topk(X[held_out], min(self.n_candidates, self.n_labels_))
        metrics = list(dict.fromkeys([*DEFAULT_METRICS, self.maximise, *(self.max_loss or {})]))
        self.curve_ = trade_off_curve(
            top,
            as_probabilities(top.scores, model),
            sparse.csr_array(Y[held_out]),
            1.0 / self.inverse_propensity_,
            metrics=metrics,
        )
        return self.curve_.choose(self.maximise, self.max_loss)
