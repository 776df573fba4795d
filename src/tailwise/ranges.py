"""What is worth trying of a parameter when it is chosen by data: ranges of numbers, and a few values.

A class says in ``_ranges`` which of its own parameters matter and how far to look; :func:`tailwise.tune` reads it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self


class Range(NamedTuple):
    """Numbers from ``low`` to ``high``; ``usual`` is what the parameter is before it is chosen."""

    low: float
    high: float
    usual: float
    log: bool = False
    """Whether ratios count, not differences."""
    integer: bool = False

    @classmethod
    def around(cls, usual: float, times: float, *, integer: bool = False) -> Self:
        """From a ``times``-th of the usual value to ``times`` as much.

        >>> Range.around(2.0, 8)
        Range(low=0.25, high=16.0, usual=2.0, log=True, integer=False)
        """
        low, high = usual / times, usual * times
        return cls(max(1, round(low)) if integer else low, round(high) if integer else high, usual, True, integer)

    def between(self, a: float, b: float) -> float:
        """The middle of two numbers of the range."""
        middle = math.sqrt(a * b) if self.log else (a + b) / 2
        return round(middle) if self.integer else middle

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}{', by ratios' if self.log else ''}"


class OneOf(NamedTuple):
    """A few values; ``usual`` is one of them."""

    values: tuple[Any, ...]
    usual: Any

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))


Ranges = dict[str, Range | OneOf]
