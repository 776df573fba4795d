"""How far a job is, and how long it still takes: one bar for all of its sites.

A model says with :func:`tailwise.runs.share` which part of its work a step is. Within a step, and where nothing was
said, the sites seen so far count alike and the one at work is taken for the last: an estimate may grow when the work
comes to a site that nobody announced. Pieces that an earlier run left count as done, but not for the time work takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

_MINUTE, _HOUR = 60, 3600
_TOTAL = 100.0
_NOTHING = 1e-9


@dataclass
class _Step:
    """A part of the work: where it begins and how wide it is, as shares of the whole, and what of it is done."""

    begin: float
    width: float
    done: float = 0.0
    found: float = 0.0
    """what of ``done`` an earlier run had left"""
    sites: int = 0
    divided: bool = False

    @property
    def now(self) -> float:
        return self.begin + self.width * min(self.done, 1.0)


class Progress:
    """What of a job is done; ``advance(amount, note)`` moves a bar of 100.

    >>> progress = Progress(lambda amount, note: None)
    >>> with progress.share(0.25), progress.site([3.0, 1.0], found=[]) as finish:
    ...     finish(0)
    ...     print(progress.done)
    0.1875
    """

    def __init__(self, advance: Callable[..., None], clock: Callable[[], float] = time.monotonic) -> None:
        self._advance, self._clock = advance, clock
        self._began = clock()
        self._steps = [_Step(0.0, 1.0)]
        self._shown = 0.0

    @property
    def done(self) -> float:
        """The share of the work that is done."""
        return self._steps[-1].now

    @property
    def seconds_left(self) -> float | None:
        """By what the work of this run took; None before there was any."""
        worked = self.done - sum(step.width * step.found for step in self._steps)
        return (self._clock() - self._began) * (1 - self.done) / worked if worked > _NOTHING else None

    @contextmanager
    def share(self, part: float) -> Iterator[None]:
        """Within it is that part of the step around it."""
        around = self._steps[-1]
        if not around.divided:
            around.divided, around.done, around.found = True, 0.0, 0.0
        step = _Step(around.now, around.width * part)
        self._steps.append(step)
        try:
            yield
        finally:
            self._steps.pop()
            around.done += part
            # A step without any site was read, not worked at.
            around.found += part * (step.found / step.done if step.done else 1.0)
            self._show()

    @contextmanager
    def site(self, costs: Sequence[float], found: Sequence[int]) -> Iterator[Callable[[int], None]]:
        """At a site with pieces of these costs, ``found`` of them computed before; yields what to call for others."""
        step = self._steps[-1]
        if step.divided:
            # What lies between announced steps counts for nothing.
            yield lambda piece: None
            return
        step.sites += 1
        # What the sites before it did is pressed together, to make room for one more of their size.
        step.done *= (step.sites - 1) / step.sites
        step.found *= (step.sites - 1) / step.sites
        sizes = [cost / (sum(costs) or 1.0) / step.sites for cost in costs]
        step.done += sum(sizes[piece] for piece in found)
        step.found += sum(sizes[piece] for piece in found)
        self._show()

        def finish(piece: int) -> None:
            step.done += sizes[piece]
            self._show()

        yield finish

    def _show(self) -> None:
        left = self.seconds_left
        self._advance(_TOTAL * (self.done - self._shown), "" if left is None else f"about {told(left)} left")
        self._shown = self.done


def told(seconds: float) -> str:
    """A time in words.

    >>> told(40), told(400), told(40_000)
    ('40 s', '7 min', '11.1 h')
    """
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.1f} h"
