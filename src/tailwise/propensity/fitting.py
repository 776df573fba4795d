"""Fitting Jain's curve to the share of relevant labels that was observed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares

from tailwise.display import Printable, Table
from tailwise.errors import InvalidInput
from tailwise.parameters import Choice
from tailwise.persistence.checks import check_kind, check_shape
from tailwise.propensity.models import PRESETS, JainPropensity, jain_inverse
from tailwise.validation import as_rng, check_number

LABELS_A_BIN = 20
BINS_BY = Choice("relevant", "observed")
BOUNDS = np.log([[0.05, 0.01], [1.0, 1000.0]])
_NEWTON_STEPS = 8
_ROWS_SHOWN = 8


class LabelEvidence(NamedTuple):
    """What is known of some labels: (n,) arrays.

    Of ``relevant`` rows the label was found on ``found``; their ratio estimates the propensity. ``frequency`` is the
    number of training rows that carry it. ``exact`` says that relevant rows are counted on the training rows
    themselves, so that frequency = found.
    """

    source: str
    frequency: np.ndarray
    found: np.ndarray
    relevant: np.ndarray
    n_samples: int
    exact: bool


class CurveFit(NamedTuple):
    """How well a fitted curve is known.

    Bins of labels have mean ``frequency``, observed ``rate`` and fitted ``propensity`` with its interval
    ``propensity_low`` … ``propensity_high``. ``a_interval`` and ``b_interval`` are bootstrap intervals at level
    ``confidence``; a and b make up for each other, so the propensities are known better than these two.
    """

    source: str
    n_samples: int
    n_labels: int
    frequency: np.ndarray
    rate: np.ndarray
    propensity: np.ndarray
    propensity_low: np.ndarray
    propensity_high: np.ndarray
    a_interval: tuple[float, float]
    b_interval: tuple[float, float]
    error: float
    confidence: float


class EstimatedPropensity(Printable, JainPropensity):
    """A :class:`JainPropensity` whose a and b were fitted to evidence; ``print`` shows the fit, ``fit_`` keeps it.

    It is fitted on the training labels already, and can be passed wherever a propensity is wanted.
    """

    fit_: CurveFit

    def _check_state(self) -> None:
        super()._check_state()
        if "fit_" in vars(self):
            fit = check_kind("fit_", self.fit_, CurveFit)
            n = check_shape("rate", fit.rate, (None,), "f").size
            check_kind("source", fit.source, str)
            for name in ("frequency", "propensity", "propensity_low", "propensity_high"):
                check_shape(name, getattr(fit, name), (n,), "f")
            for name in ("n_samples", "n_labels"):
                check_number(name, getattr(fit, name), integer=True, low=1)
            (a_low, a_high), (b_low, b_high) = fit.a_interval, fit.b_interval
            for number in (a_low, a_high, b_low, b_high, fit.error, fit.confidence):
                check_number("an interval, error or confidence", number)

    def table(self) -> Table:
        """Observed and fitted propensities by label frequency, and the intervals of a and b."""
        if "fit_" not in vars(self):
            return Table(repr(self), ["label frequency"], [], ["no evidence: this copy was not fitted to any"])
        fit = self.fit_
        shown = np.unique(np.linspace(0, fit.rate.size - 1, _ROWS_SHOWN).round().astype(int))
        rows = [
            [
                f"{fit.frequency[i]:,.1f}",
                f"{fit.rate[i]:.3f}",
                f"{fit.propensity[i]:.3f}",
                f"[{fit.propensity_low[i]:.3f}, {fit.propensity_high[i]:.3f}]",
            ]
            for i in shown
        ]
        notes = [
            f"a = {self.a:.3f} [{fit.a_interval[0]:.3f}, {fit.a_interval[1]:.3f}]   "
            f"b = {self.b:.3f} [{fit.b_interval[0]:.3f}, {fit.b_interval[1]:.3f}]",
            f"{fit.confidence:.0%} bootstrap intervals over labels; root mean square error of a bin {fit.error:.3f}",
        ]
        title = (
            f"Propensity from {fit.source}: {fit.n_labels:,} labels in {fit.rate.size:,} bins, {fit.n_samples:,} rows"
        )
        return Table(title, ["label frequency", "observed", "fitted", "interval"], rows, notes)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}


def observed_counts(complete: np.ndarray, n_samples: int, a: float, b: float) -> np.ndarray:
    """How many of ``complete`` relevant rows are observed if Jain's curve holds: the n with ``n / p(n) = n*``."""
    counts = complete / jain_inverse(complete, n_samples, a, b)
    for _ in range(_NEWTON_STEPS):
        inverse = jain_inverse(counts, n_samples, a, b)
        slope = inverse - a * (inverse - 1.0) * counts / (counts + b)
        counts = np.clip(counts - (counts * inverse - complete) / slope, 0.0, complete)
    return counts


class _Bins(NamedTuple):
    frequency: np.ndarray
    relevant: np.ndarray
    rate: np.ndarray
    weight: np.ndarray


def _bin_labels(evidence: LabelEvidence, labels: np.ndarray, bin_size: int, as_published: bool = False) -> _Bins:
    """Equal-height bins of ``labels`` (indices into the evidence, repeats allowed); the last takes the remainder.

    Where relevant rows are counted on the training rows, bins are made by that count: a label's observed frequency
    is the very thing that missing labels disturb, and bins of equal luck would bend the curve. With
    ``as_published`` bins are made by frequency and have the mean of their labels' propensities; all weigh alike.
    """
    frequency, found, relevant = (part[labels] for part in (evidence.frequency, evidence.found, evidence.relevant))
    order = np.argsort(relevant if evidence.exact and not as_published else frequency, kind="stable")
    starts = np.arange(max(1, len(order) // bin_size)) * bin_size
    sizes = np.diff(np.append(starts, len(order)))

    def sums(part: np.ndarray) -> np.ndarray:
        return np.add.reduceat(part[order], starts)

    total = sums(relevant)
    if as_published:
        return _Bins(sums(frequency) / sizes, total / sizes, sums(found / relevant) / sizes, np.ones(sizes.size))
    # A bin's frequency is that of its relevant pairs, because its rate is one of pairs.
    return _Bins(sums(frequency * relevant) / total, total / sizes, sums(found) / total, total)


def _fit_bins(bins: _Bins, n_samples: int, exact: bool, starts: list[tuple[float, float]]) -> np.ndarray:
    """(a, b) by least squares on the bins."""

    def residuals(logs: np.ndarray) -> np.ndarray:
        return _curve(bins, n_samples, exact, *np.exp(logs)) - bins.rate

    def weighted(logs: np.ndarray) -> np.ndarray:
        return residuals(logs) * np.sqrt(bins.weight / bins.weight.mean())

    # An audited sample gives some bins many pairs and others a handful; full counts make every bin's noise small.
    function = residuals if exact else weighted
    found = [least_squares(function, np.clip(np.log(start), *BOUNDS), bounds=BOUNDS) for start in starts]
    return np.exp(min(found, key=lambda result: result.cost).x)


def _curve(bins: _Bins, n_samples: int, exact: bool, a: float, b: float) -> np.ndarray:
    if exact:
        return observed_counts(bins.relevant, n_samples, a, b) / bins.relevant
    return 1.0 / jain_inverse(bins.frequency, n_samples, a, b)


def fit_propensity(
    evidence: LabelEvidence,
    *,
    bin_size: int = LABELS_A_BIN,
    bins_by: str = "relevant",
    confidence: float = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = 0,
) -> EstimatedPropensity:
    """Jain's curve with the (a, b) that fits the evidence best, and how sure they are.

    Least squares on the rates of equal-height bins of ``bin_size`` labels; intervals from ``n_bootstrap`` resamples
    of the labels. ``bins_by="observed"`` makes bins by how often labels were observed and fits the curve to the mean
    propensity of each, as Jain et al. do. The result still has to be fitted on the training labels.
    """
    BINS_BY.check("bins_by", bins_by)
    as_published = evidence.exact and bins_by == "observed"
    exact = evidence.exact and not as_published
    check_number("bin_size", bin_size, integer=True, low=1)
    check_number("n_bootstrap", n_bootstrap, integer=True, low=1)
    check_number("confidence", confidence, low=0, high=1, open_low=True, open_high=True)
    n_labels = len(evidence.found)
    if n_labels < 2 * bin_size:
        raise InvalidInput(
            f"{evidence.source} tells about {n_labels} labels only; two parameters need at least two bins of "
            f"bin_size={bin_size}: bring more evidence or lower bin_size"
        )
    rng = as_rng(random_state)

    bins = _bin_labels(evidence, np.arange(n_labels), bin_size, as_published)
    best = _fit_bins(bins, evidence.n_samples, exact, list(PRESETS.values()))
    samples = np.empty((n_bootstrap, 2))
    for i in range(n_bootstrap):
        drawn = np.sort(rng.integers(0, n_labels, n_labels))
        resampled = _bin_labels(evidence, drawn, bin_size, as_published)
        samples[i] = _fit_bins(resampled, evidence.n_samples, exact, [tuple(best)])
    curves = np.array([_curve(bins, evidence.n_samples, exact, a, b) for a, b in samples])
    levels = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(curves, levels, axis=0)
    (a_low, b_low), (a_high, b_high) = np.quantile(samples, levels, axis=0)
    fitted = _curve(bins, evidence.n_samples, exact, *best)
    result = EstimatedPropensity(float(best[0]), b=float(best[1]))
    result.fit_ = CurveFit(
        evidence.source,
        evidence.n_samples,
        n_labels,
        bins.frequency,
        bins.rate,
        fitted,
        low,
        high,
        (float(a_low), float(a_high)),
        (float(b_low), float(b_high)),
        float(np.sqrt(((fitted - bins.rate) ** 2).mean())),
        confidence,
    )
    return result
