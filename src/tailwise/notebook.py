"""Progress in a notebook: one line of text that moves, without widgets."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SECONDS_BETWEEN = 0.5


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


@contextmanager
def moving_line(description: str, total: float | None) -> Iterator[Callable[..., None]]:
    """A line on standard error that is written over twice a second, and gone at the end; yields ``advance``."""
    start = shown = time.monotonic()
    done, width = 0.0, 0

    def advance(amount: float = 1.0, note: str = "") -> None:
        nonlocal done, shown, width
        done += amount
        now = time.monotonic()
        if now - shown < _SECONDS_BETWEEN:
            return
        share = f"{100 * done / total:.0f} %" if total else f"{done:,.0f}"
        line = f"{description}: {share}, {now - start:.0f} s {note}".rstrip()
        sys.stderr.write("\r" + line.ljust(width))
        sys.stderr.flush()
        shown, width = now, len(line)

    try:
        yield advance
    finally:
        if width:
            sys.stderr.write("\r" + " " * width + "\r")
            sys.stderr.flush()
