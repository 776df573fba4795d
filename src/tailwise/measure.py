"""What a piece of work costs: wall time, CPU time of all threads, peak memory."""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_RESET = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


@dataclass
class Cost:
    """Filled in when the work is over."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_mb: float = 0.0


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure the block; ``peak_mb`` is this process's peak during it where Linux lets it be reset, else until its end.

    >>> with measured() as cost:
    ...     _ = sum(range(1000))
    >>> cost.peak_mb > 0
    True
    """
    cost = Cost()
    gc.collect()
    _reset_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - wall
        cost.cpu_seconds = time.process_time() - cpu
        cost.peak_mb = _peak_mb()


def private_megabytes() -> float:
    """What this process has in memory for itself alone: without files that are mapped and shared with others."""
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024
    return _peak_mb()


def _reset_peak() -> None:
    with suppress(OSError):
        _RESET.write_text("5")


def _peak_mb() -> float:
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


class Clock:
    """Where the time goes: :meth:`begin` names what starts now and ends what ran before.

    >>> clock = Clock(now=iter([0.0, 2.0, 5.0]).__next__)
    >>> for step in ("reading", "training"):
    ...     clock.begin(step)
    >>> clock.stop()
    >>> clock.seconds
    {'reading': 2.0, 'training': 3.0}
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self._now, self._name, self._since = now, "", 0.0

    def begin(self, name: str) -> None:
        """Start a step, and end the one that runs."""
        now = self._now()
        if self._name:
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._since
        self._name, self._since = name, now

    def stop(self) -> None:
        """End the step that runs."""
        self.begin("")
