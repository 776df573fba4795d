"""How every plot of an experiment looks, and writing it as PNG and SVG that are the same bytes each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tailwise.atomic import writing
from tailwise.errors import import_extra

COLOURS = ("#4C72B0", "#DD8452", "#55A868", "#C44E52", "#8172B3", "#937860", "#DA8BC3", "#8C8C8C", "#CCB974", "#64B5CD")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")


def make_figure(rows: int, columns: int, *, width: float = 4.2, height: float = 3.4) -> tuple[Any, Any]:
    """A figure and its (rows, columns) array of axes, with a light grid and no box."""
    figure = import_extra("matplotlib.figure", "report", "a plot").Figure(
        figsize=(width * columns, height * rows), layout="constrained"
    )
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.grid(True, alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def line(axis: Any, i: int, x: Any, y: Any, spread: Any = None, **style: Any) -> None:
    """The ``i``-th line of a plot: points with error bars."""
    style = {"color": COLOURS[i % 10], "marker": MARKERS[i % 10], "markersize": 4, "linewidth": 1.4, **style}
    axis.errorbar(x, y, yerr=spread, capsize=2.5, **style)


def dots(axis: Any, names: list[str], values: dict[str, list[Any]]) -> None:
    """A line for each name, the first on top, and on it a mark for each series of ``values``; None leaves a gap."""
    for i, (series, points) in enumerate(values.items()):
        shown = [(x, y) for y, x in enumerate(points) if x is not None]
        style = {"color": COLOURS[i % 10], "marker": MARKERS[i % 10], "markersize": 5, "linestyle": "none"}
        axis.plot([x for x, _ in shown], [y for _, y in shown], label=series, **style)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)


def save(figure: Any, path: Path) -> None:
    """Write ``path``.png and ``path``.svg, without the date and with fixed names inside."""
    rc_context = import_extra("matplotlib", "report", "a plot").rc_context
    for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None, "Creator": None})):
        with rc_context({"svg.hashsalt": path.name}), writing(path.with_suffix(suffix)) as file:
            figure.savefig(file, format=suffix[1:], dpi=130, metadata=metadata, transparent=suffix == ".svg")
