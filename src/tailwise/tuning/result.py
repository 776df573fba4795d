"""What a search found: the settings, what each reached, and what mattered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tailwise.base import XMCModel
from tailwise.display import Table
from tailwise.errors import import_extra
from tailwise.pages.page import cards, figure, page, plots
from tailwise.pages.svg import Axis, Chart, spanning
from tailwise.ranges import Range, Ranges

USUAL = 0
"""The number of the trial with everything as it was."""


class Trial(NamedTuple):
    """One setting and how far it came."""

    number: int
    parameters: dict[str, Any]
    values: list[float]
    """The metric on each rung, from the smallest; a setting that was given up has fewer than others."""
    lost: dict[str, float]
    """On its last rung, points of the constrained metrics below the untuned model; negative where it gains."""
    seconds: float
    whole: bool
    """Whether it came to all rows."""


class Tuning(NamedTuple):
    """The result of :func:`tailwise.tune`."""

    model: XMCModel
    """The model with the best setting, not fitted."""
    metric: str
    max_loss: dict[str, float]
    trials: list[Trial]
    best: int
    """Which of the trials."""
    intervals: dict[int, tuple[float, float]]
    """Of the metric on the rows held out, of the usual setting and of the best."""
    ranges: Ranges
    importance: dict[str, float]
    """The share of each parameter in what made a difference; empty where trials are too few to tell."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The best setting."""
        return self.trials[self.best].parameters

    @property
    def gain(self) -> float:
        """Points of the metric over the model as it was, on the rows held out; they chose it, so it flatters."""
        return self.trials[self.best].values[-1] - self.trials[USUAL].values[-1]

    def table(self, most: int = 10) -> Table:
        """The best trials that came to all rows, and the usual setting."""
        whole = sorted((t for t in self.trials if t.whole), key=lambda t: (t.number != self.best, -t.values[-1]))
        shown = whole[:most] + [t for t in whole[most:] if t.number == USUAL]
        rows = []
        for trial in shown:
            notes = [("best", self.best), ("as it was", USUAL)]
            note = ", ".join(word for word, number in notes if number == trial.number)
            values = [shown_value(trial.parameters[name]) for name in self.ranges]
            lost = [f"{0.0 - points:+.2f}" for points in trial.lost.values()]
            rows.append([str(trial.number), *values, f"{trial.values[-1]:.2f}", *lost, f"{trial.seconds:.1f}", note])
        return Table(
            f"Settings tried on rows held out, {self.metric} in percent: {len(self.trials):,} trials, "
            f"{len(whole):,} of them on all rows",
            ["trial", *self.ranges, self.metric, *(f"{metric} gained" for metric in self.max_loss), "s", ""],
            rows,
        )

    def records(self) -> list[dict[str, Any]]:
        """One dict for each trial."""
        return [
            {"trial": t.number, **t.parameters, "values": t.values, "lost": t.lost, "seconds": t.seconds}
            for t in self.trials
        ]

    def to_frame(self) -> Any:
        """The trials as a pandas DataFrame."""
        return import_extra("pandas", "report", "Tuning.to_frame").DataFrame(self.records())

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table().html()

    def page(self) -> str:
        """The whole search as one HTML page: what mattered, what each parameter did, the best trials."""
        best, usual = self.trials[self.best], self.trials[USUAL]
        facts = [
            (f"{self.metric}, as it was", _with_interval(usual.values[-1], self.intervals[USUAL])),
            (f"{self.metric}, best setting", _with_interval(best.values[-1], self.intervals[self.best])),
            *((name, shown_value(value)) for name, value in best.parameters.items()),
        ]
        sections = [("best", "The best setting", cards(facts) + self.table().html())]
        if self.importance:
            sections.append(("mattered", "What mattered", plots(self._importance())))
        sections.append(("each", "What each parameter did", plots(*(self._spread(name) for name in self.ranges))))
        lead = "Chosen on rows held out of the training rows; the best of many looks better there than it is."
        return page("Settings chosen by data", f"<p>{lead}</p>", sections, "")

    def _importance(self) -> str:
        names = list(self.importance)
        shares = [100 * self.importance[name] for name in names]
        places = list(range(1, len(names) + 1))
        x = Axis("parameter", 0.5, len(names) + 0.5, ticks=places, names=[name.split("__")[-1] for name in names])
        chart = Chart("Share of each parameter in what made a difference", x, Axis("percent", 0, 100))
        for place, share, name in zip(places, shares, names, strict=True):
            chart.bar(place - 0.35, place + 0.35, share, name=name)
        return figure(
            chart.svg(), ", ".join(f"{name} {share:.0f} %" for name, share in zip(names, shares, strict=True))
        )

    def _spread(self, name: str) -> str:
        """The metric on the smallest rung, where every setting was tried, by one parameter."""
        points = [(t.parameters[name], t.values[0]) for t in self.trials if t.values]
        found = self.ranges[name]
        heights = [value for _, value in points]
        y = spanning(self.metric, heights)
        if isinstance(found, Range):
            x = Axis(name, found.low, found.high, found.log)
            across = [float(value) for value, _ in points]
        else:
            x = Axis(
                name, -0.5, len(found.values) - 0.5, ticks=range(len(found.values)), names=[*map(str, found.values)]
            )
            across = [float(found.values.index(value)) for value, _ in points]
        chart = Chart(f"{self.metric} by {name}", x, y)
        for place, height in zip(across, heights, strict=True):
            chart.point(place, height, name=name)
        return figure(chart.svg(), f"{name}: every setting, on the smallest part of the data")


def shown_value(value: Any) -> str:
    """A setting as it is typed: floats to four digits.

    >>> shown_value(0.123456), shown_value("beam"), shown_value(3)
    ('0.1235', 'beam', '3')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _with_interval(value: float, interval: Sequence[float]) -> str:
    low, high = interval
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"
