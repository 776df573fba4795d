"""What an evaluation says: values with intervals, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tailwise.display import Cell, Printable, Table, plain
from tailwise.errors import InvalidInput, import_extra
from tailwise.metrics.intervals import Resample
from tailwise.metrics.names import Request


@dataclass(frozen=True)
class Estimate:
    """A metric's value with its interval ``low`` … ``high``; in percent, except Hamming (labels a row).

    ``method`` says how the interval was made: "bootstrap", "jackknife", "hoeffding" or "none" (then it is NaN).
    """

    value: float
    low: float = np.nan
    high: float = np.nan
    method: str = "none"
    higher_is_better: bool = True
    resample: Resample | None = field(default=None, repr=False, compare=False)

    def __float__(self) -> float:
        return self.value

    def cell(self) -> Cell:
        """The value, with its interval as the detail."""
        if np.isnan(self.value):
            return Cell("–")
        return Cell(f"{self.value:.2f}", "" if np.isnan(self.low) else f"[{self.low:.2f}, {self.high:.2f}]")

    def __str__(self) -> str:
        return str(self.cell())


class Evaluation(Printable, Mapping[str, Estimate]):
    """The results of :func:`evaluate`: a mapping from metric names to :class:`Estimate`."""

    def __init__(
        self, estimates: Mapping[Request, Estimate], n_rows: int, n_labels: int, confidence: float | None
    ) -> None:
        self.requests = {request.text: request for request in estimates}
        self.n_rows, self.n_labels, self.confidence = n_rows, n_labels, confidence
        self._estimates = {request.text: estimate for request, estimate in estimates.items()}

    def __getitem__(self, metric: str) -> Estimate:
        if metric not in self._estimates:
            raise InvalidInput(f"metric {metric!r} was not evaluated; there are {', '.join(self._estimates)}")
        return self._estimates[metric]

    def __contains__(self, metric: object) -> bool:
        return metric in self._estimates

    def __iter__(self) -> Iterator[str]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and strings, ready for JSON (NaN becomes None)."""
        metrics = {
            name: {"value": e.value, "low": e.low, "high": e.high, "method": e.method} for name, e in self.items()
        }
        return plain(
            {"n_rows": self.n_rows, "n_labels": self.n_labels, "confidence": self.confidence, "metrics": metrics}
        )

    def records(self) -> list[dict[str, Any]]:
        """One dict a metric: its name, slice, value, interval and how that was made."""
        return [
            {
                "metric": request.base,
                "slice": request.slice or "all",
                "value": self[text].value,
                "low": self[text].low,
                "high": self[text].high,
                "method": self[text].method,
            }
            for text, request in self.requests.items()
        ]

    def plot(self, ax: Any = None) -> Any:
        """Draw every metric with its interval, the first on top. Returns the axes."""
        plt = import_extra("matplotlib.pyplot", "report", "Evaluation.plot")
        ax = ax or plt.subplots(figsize=(5, 1 + 0.3 * len(self)), layout="constrained")[1]
        for place, estimate in enumerate(self.values()):
            if not np.isnan(estimate.low):
                ax.plot([estimate.low, estimate.high], [place, place], color="C0", linewidth=2)
            ax.plot(estimate.value, place, "o", color="C0")
        ax.set_yticks(range(len(self)), list(self))
        ax.invert_yaxis()
        ax.grid(axis="x", alpha=0.3)
        ax.set_xlabel("percent" if all(r.metric.percent for r in self.requests.values()) else "value")
        ax.set_title(f"{self.n_rows:,} rows, {self.n_labels:,} labels")
        return ax

    def table(self) -> Table:
        """Metrics down, slices across."""
        slices = list(dict.fromkeys(request.slice for request in self.requests.values()))
        cells: dict[str, dict[str | None, Cell]] = {}
        for text, request in self.requests.items():
            cells.setdefault(request.base, {})[request.slice] = self[text].cell()
        rows = [[base, *(by_slice.get(name, "") for name in slices)] for base, by_slice in cells.items()]
        header = ["metric", *("value" if name is None else name for name in slices)]
        return Table(f"{self.n_rows:,} rows, {self.n_labels:,} labels", header, rows, self._notes())

    def _notes(self) -> list[str]:
        notes = ["in percent"]
        unscaled = [t for t, request in self.requests.items() if not request.metric.percent]
        if unscaled:
            notes = [f"in percent, except {', '.join(unscaled)}: wrong labels a row, smaller is better"]
        if self.confidence is not None:
            methods = list(dict.fromkeys(e.method for e in self.values() if e.method != "none"))
            notes.append(f"[{self.confidence:.0%} interval: {' or '.join(methods)} over rows]")
        return notes

    def __repr__(self) -> str:
        return f"Evaluation({', '.join(f'{name}={estimate}' for name, estimate in self.items())})"
