"""Which model is really better: paired differences with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailwise.display import MARKS, Cell, Printable, Table, plain
from tailwise.errors import InvalidInput, import_extra
from tailwise.metrics.evaluator import evaluate
from tailwise.metrics.result import Estimate, Evaluation
from tailwise.validation import as_rng, check_number


@dataclass(frozen=True)
class Difference:
    """``value`` of one model minus another's on the same rows, with an interval; in percentage points."""

    value: float
    low: float
    high: float
    higher_is_better: bool

    @property
    def verdict(self) -> str:
        """ "better", "worse", or "unclear" where the interval holds 0."""
        if not (self.low > 0 or self.high < 0):
            return "unclear"
        return "better" if (self.low > 0) == self.higher_is_better else "worse"

    def cell(self) -> Cell:
        """The value with its interval and its verdict; without an interval there is none."""
        if np.isnan(self.value):
            return Cell("–")
        if np.isnan(self.low):
            return Cell(f"{self.value:+.2f}")
        return Cell(f"{self.value:+.2f}", f"[{self.low:+.2f}, {self.high:+.2f}]", self.verdict)

    def __str__(self) -> str:
        return str(self.cell())


class Comparison(Printable):
    """The results of :func:`compare`: an evaluation for each model, and the differences between any two.

    ``comparison["b"]`` is the evaluation of model b; ``comparison.difference("b", "a", "p@5")`` is how much better
    b is than a.
    """

    def __init__(self, evaluations: Mapping[str, Evaluation], baseline: str, confidence: float | None) -> None:
        self.evaluations = dict(evaluations)
        self.baseline, self.confidence = baseline, confidence

    def __getitem__(self, name: str) -> Evaluation:
        if name not in self.evaluations:
            raise InvalidInput(f"model {name!r} was not compared; there are {', '.join(self.evaluations)}")
        return self.evaluations[name]

    def difference(self, name: str, other: str, metric: str) -> Difference:
        """``name`` minus ``other`` on one metric."""
        a, b = self[name][metric], self[other][metric]
        value = a.value - b.value
        return Difference(value, *self._interval(value, a, b), a.higher_is_better)

    def _interval(self, value: float, a: Estimate, b: Estimate) -> tuple[float, float]:
        if self.confidence is not None and a.resample is not None and b.resample is not None:
            return a.resample.minus(b.resample).interval(value, self.confidence)
        # Hoeffding's intervals were made with half the error each, so both hold at once.
        return a.low - b.high, a.high - b.low

    def differences(self) -> dict[str, dict[str, Difference]]:
        """Every model but the baseline → metric → its difference to the baseline."""
        others = [name for name in self.evaluations if name != self.baseline]
        return {
            name: {metric: self.difference(name, self.baseline, metric) for metric in self[name]} for name in others
        }

    def verdicts(self) -> list[str]:
        """One sentence a model: on which metrics it is better, worse, or not clearly different."""
        if self.confidence is None:
            return []
        sentences = []
        for name, differences in self.differences().items():
            by_verdict: dict[str, list[str]] = {"better": [], "worse": [], "unclear": []}
            for metric, difference in differences.items():
                by_verdict[difference.verdict].append(metric)
            parts = [
                f"{word} on {', '.join(by_verdict[verdict])}"
                for verdict, word in (("better", "better"), ("worse", "worse"), ("unclear", "no clear difference"))
                if by_verdict[verdict]
            ]
            sentences.append(f"{name} against {self.baseline}: {'; '.join(parts)}")
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and strings, ready for JSON (NaN becomes None)."""
        return plain(
            {
                "baseline": self.baseline,
                "confidence": self.confidence,
                "models": {
                    name: {metric: estimate.value for metric, estimate in evaluation.items()}
                    for name, evaluation in self.evaluations.items()
                },
                "differences": {
                    name: {
                        metric: {"value": d.value, "low": d.low, "high": d.high, "verdict": d.verdict}
                        for metric, d in differences.items()
                    }
                    for name, differences in self.differences().items()
                },
            }
        )

    def records(self) -> list[dict[str, Any]]:
        """One dict for each model and metric: the value, and the difference to the baseline with its interval."""
        nothing = Difference(0.0, 0.0, 0.0, True)
        differences = self.differences()
        lines = []
        for name, evaluation in self.evaluations.items():
            for metric, estimate in evaluation.items():
                found = differences[name][metric] if name in differences else nothing
                lines.append(
                    {
                        "model": name,
                        "metric": metric,
                        "value": estimate.value,
                        "difference": found.value,
                        "low": found.low,
                        "high": found.high,
                        "verdict": "baseline" if found is nothing else found.verdict,
                    }
                )
        return lines

    def plot(self, ax: Any = None) -> Any:
        """Draw each model's differences to the baseline with their intervals. Returns the axes."""
        plt = import_extra("matplotlib.pyplot", "report", "Comparison.plot")
        differences, metrics = self.differences(), list(self[self.baseline])
        ax = ax or plt.subplots(figsize=(5.5, 1.2 + 0.35 * len(metrics) * len(differences)), layout="constrained")[1]
        for shade, (name, by_metric) in enumerate(differences.items()):
            places = np.arange(len(metrics)) + 0.6 * (shade + 0.5) / len(differences) - 0.3
            color = f"C{shade}"
            for place, difference in zip(places, by_metric.values(), strict=True):
                ax.plot([difference.low, difference.high], [place, place], color=color, linewidth=2)
            ax.plot([d.value for d in by_metric.values()], places, "o", color=color, label=name)
        ax.axvline(0, color="gray", linewidth=1)
        ax.set_yticks(range(len(metrics)), metrics)
        ax.invert_yaxis()
        ax.grid(axis="x", alpha=0.3)
        ax.set_xlabel(f"points above {self.baseline}")
        ax.legend()
        return ax

    def table(self) -> Table:
        """Metrics down; each model's value, then its difference to the baseline."""
        differences = self.differences()
        header = ["metric", *self.evaluations, *(f"{name} − {self.baseline}" for name in differences)]
        rows = [
            [
                metric,
                *(f"{evaluation[metric].value:.2f}" for evaluation in self.evaluations.values()),
                *(by_metric[metric].cell() for by_metric in differences.values()),
            ]
            for metric in self[self.baseline]
        ]
        first = self[self.baseline]
        title = f"{first.n_rows:,} rows, {first.n_labels:,} labels"
        if self.confidence is None or not differences:
            return Table(title, header, rows)
        title += f"; paired differences, {self.confidence:.0%} intervals"
        marks = f"{MARKS['better']} better  {MARKS['worse']} worse  {MARKS['unclear']} no clear difference"
        return Table(title, header, rows, [marks, *self.verdicts()])

    def __repr__(self) -> str:
        return f"Comparison({'; '.join(self.verdicts())})"


def compare(
    Y_true: Any,
    topks: Mapping[str, Any],
    metrics: str | Iterable[str] | None = None,
    propensity: Any = None,
    label_counts: Any = None,
    confidence: float | None = 0.95,
    *,
    baseline: str | None = None,
    random_state: Any = 0,
    **options: Any,
) -> Comparison:
    """Compare models on the same rows, so that what makes a row hard for all of them cancels out.

    ``topks`` maps names to predictions for the rows of ``Y_true``; the other models are set against ``baseline``, by
    default the first. Every bootstrap replicate draws the same rows for all models. Each interval holds by itself at
    the level ``confidence``: among twenty metrics without any difference, about one will look clear at 0.95. None
    computes no intervals, and no verdicts.
    Further arguments are those of :func:`evaluate`.

    >>> Y = [[1, 0], [0, 1], [1, 0], [1, 0]]
    >>> good, bad = np.array([[0], [1], [0], [0]]), np.array([[1], [0], [1], [1]])
    >>> compare(Y, {"old": bad, "new": good}, "p@1").difference("new", "old", "p@1").verdict
    'better'
    """
    if not isinstance(topks, Mapping) or len(topks) < 2:
        raise InvalidInput("topks must map at least two names to predictions: {'a': topk_a, 'b': topk_b}")
    baseline = next(iter(topks)) if baseline is None else baseline
    if baseline not in topks:
        raise InvalidInput(f"baseline={baseline!r} is not one of {', '.join(map(repr, topks))}")
    level = confidence
    if confidence is not None:
        check_number("confidence", confidence, low=0, high=1, open_low=True, open_high=True)
        level = confidence if options.get("interval", "bootstrap") == "bootstrap" else (1 + confidence) / 2
    # A number stays what it is, so that a model alone and among others has the same interval.
    seed = random_state if isinstance(random_state, int) else int(as_rng(random_state).integers(2**31))
    evaluations = {
        name: evaluate(Y_true, topk, metrics, propensity, label_counts, level, random_state=seed, **options)
        for name, topk in topks.items()
    }
    return Comparison(evaluations, baseline, confidence)
