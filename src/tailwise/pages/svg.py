"""Small charts as inline SVG: no script, no network, colours from the page's style sheet.

A chart is drawn in a 420 × 270 view that scales down to a phone with its text still readable. Series are told
apart by colour and by dash or shape; every mark carries a ``<title>`` that browsers show on hover.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from tailwise.display import html_text

_WIDTH, _HEIGHT = 420, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 12, 44
_ids = count(1)

Numbers = Sequence[float] | np.ndarray


class Axis(NamedTuple):
    """One axis: its caption and range, linear or logarithmic."""

    caption: str
    low: float
    high: float
    log: bool = False
    ticks: Sequence[float] | None = None
    names: Sequence[str] | None = None

    def place(self, value: float) -> float:
        """Where ``value`` lies between the axis ends, in [0, 1]."""
        if self.log:
            value, low, high = (math.log10(max(v, 1e-300)) for v in (value, self.low, self.high))
        else:
            low, high = self.low, self.high
        return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5

    def marks(self) -> list[tuple[float, str]]:
        """The ticks with their texts."""
        values = list(self.ticks) if self.ticks is not None else self._round_ticks()
        names = list(self.names) if self.names is not None else [_short(v) for v in values]
        return list(zip(values, names, strict=True))

    def _round_ticks(self) -> list[float]:
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            step = max(1, (last - first) // 4)
            return [10.0**e for e in range(first, last + 1, step)]
        span = (self.high - self.low) or 1.0
        step = 10 ** math.floor(math.log10(span / 4))
        step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= 6)
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def spanning(caption: str, *values: Numbers, log: bool = False, zero: bool = False) -> Axis:
    """An axis over all finite ``values`` with a little air; ``zero`` starts it at 0.

    >>> spanning("rows", [1, 10], zero=True)[:3]
    ('rows', 0.0, 10.5)
    """
    all_values = np.concatenate([np.asarray(v, float).ravel() for v in values]) if values else np.zeros(0)
    finite = all_values[np.isfinite(all_values) & ((all_values > 0) | (not log))]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (1.0, 10.0)
    if log:
        return Axis(caption, low / 1.2, max(high, low * 10) * 1.2, True)
    air = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    if zero:
        return Axis(caption, 0.0, high * 1.05 or 1.0)
    return Axis(caption, low - air, high + air)


def _short(value: float) -> str:
    if value and (abs(value) >= 1e5 or abs(value) < 1e-3):
        return f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


class Chart:
    """Marks on two axes, rendered by :meth:`svg`.

    >>> chart = Chart("P@k by k", Axis("k", 1, 5), Axis("percent", 0, 100))
    >>> chart.line([1, 3, 5], [80, 70, 60], series=0, name="dismec")
    >>> "polyline" in chart.svg()
    True
    """

    def __init__(self, title: str, x: Axis, y: Axis) -> None:
        self.title, self.x, self.y = title, x, y
        self.parts: list[str] = []

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The pixel of a point."""
        across = _LEFT + self.x.place(x) * (_WIDTH - _LEFT - _RIGHT)
        return across, _HEIGHT - _BOTTOM - self.y.place(y) * (_HEIGHT - _TOP - _BOTTOM)

    def line(self, x: Numbers, y: Numbers, *, series: int = 0, name: str = "", points: bool = True) -> None:
        """A line through the points, which get their own marks and hover texts."""
        pairs = [(a, b) for a, b in zip(x, y, strict=True) if np.isfinite(a) and np.isfinite(b)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in (self.at(a, b) for a, b in pairs))
        self.parts.append(f'<polyline class="line s{series % 6}" points="{path}"/>')
        if points:
            for a, b in pairs:
                self.point(a, b, series=series, name=name)

    def point(self, x: float, y: float, *, series: int = 0, name: str = "", radius: float = 3.0) -> None:
        """One mark: a circle, square or diamond by series."""
        px, py = self.at(x, y)
        said = f"{name}: {self.x.caption} {x:.4g}, {self.y.caption} {y:.4g}"
        hover = f"<title>{html_text(said)}</title>"
        shapes = (
            f'<circle class="dot s{series % 6}" cx="{px:.1f}" cy="{py:.1f}" r="{radius}">{hover}</circle>',
            f'<rect class="dot s{series % 6}" x="{px - radius:.1f}" y="{py - radius:.1f}" width="{2 * radius}" '
            f'height="{2 * radius}">{hover}</rect>',
            f'<path class="dot s{series % 6}" d="M{px:.1f} {py - radius * 1.4:.1f}l{radius * 1.4} {radius * 1.4}'
            f'l{-radius * 1.4} {radius * 1.4}l{-radius * 1.4} {-radius * 1.4}z">{hover}</path>',
        )
        self.parts.append(shapes[series % 3])

    def bar(self, left: float, right: float, height: float, *, series: int = 0, name: str = "") -> None:
        """A bar from 0 (or the axis' low end) to ``height``."""
        (x0, y0), (x1, y1) = self.at(left, max(self.y.low, 0.0)), self.at(right, height)
        self.parts.append(
            f'<rect class="bar s{series % 6}" x="{x0:.1f}" y="{y1:.1f}" width="{max(x1 - x0, 0.5):.1f}" '
            f'height="{max(y0 - y1, 0):.1f}"><title>{html_text(name)}: {height:.4g}</title></rect>'
        )

    def interval(self, x: float, low: float, high: float, *, series: int = 0) -> None:
        """A vertical whisker."""
        (px, p0), (_, p1) = self.at(x, low), self.at(x, high)
        self.parts.append(f'<path class="whisker s{series % 6}" d="M{px:.1f} {p0:.1f}V{p1:.1f}"/>')

    def region(self, left: float, right: float, caption: str, shade: int) -> None:
        """A shaded range of x with a caption at its top; drawn behind everything."""
        (x0, top), (x1, bottom) = self.at(left, self.y.high), self.at(right, self.y.low)
        self.parts.insert(
            0,
            f'<g class="region r{shade}"><rect x="{x0:.1f}" y="{top:.1f}" width="{max(x1 - x0, 0):.1f}" '
            f'height="{bottom - top:.1f}"/><text x="{(x0 + x1) / 2:.1f}" y="{top + 13:.1f}" '
            f'text-anchor="middle">{html_text(caption)}</text></g>',
        )

    def guide(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """A thin reference line."""
        (a, b), (c, d) = self.at(x0, y0), self.at(x1, y1)
        self.parts.append(f'<path class="guide" d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}"/>')

    def svg(self) -> str:
        """The chart as an ``<svg>`` element with a title for screen readers."""
        key = f"chart-{next(_ids)}"
        return (
            f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="{key}">'
            f'<title id="{key}">{html_text(self.title)}</title>{self._frame()}{"".join(self.parts)}</svg>'
        )

    def _frame(self) -> str:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        parts = [f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>']
        for value, name in self.x.marks():
            px, _ = self.at(value, self.y.low)
            parts.append(
                f'<text class="tick" x="{px:.1f}" y="{bottom + 16}" text-anchor="middle">{html_text(name)}</text>'
            )
        for value, name in self.y.marks():
            _, py = self.at(self.x.low, value)
            parts.append(
                f'<path class="grid" d="M{_LEFT} {py:.1f}H{right}"/>'
                f'<text class="tick" x="{_LEFT - 6}" y="{py + 4:.1f}" text-anchor="end">{html_text(name)}</text>'
            )
        middle = (_TOP + bottom) / 2
        parts.append(
            f'<text class="caption" x="{(_LEFT + right) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">'
            f"{html_text(self.x.caption)}</text>"
            f'<text class="caption" x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">'
            f"{html_text(self.y.caption)}</text>"
        )
        return "".join(parts)
