"""What the library logs and warns of, told to whoever waits: above all that the first run compiles, and moves."""

from __future__ import annotations

import logging
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tailwise.cli import output

_WORTH_TELLING_SECONDS = 1.0
_TICK_SECONDS = 0.5


@contextmanager
def telling() -> Iterator[None]:
    """Have messages of the library shown as the command's own, and compiling told, while a verb runs."""
    logger, listener = logging.getLogger("tailwise"), _Listener()
    level = logger.level
    logger.addHandler(listener)
    logger.setLevel(logging.INFO)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            yield
        finally:
            logger.removeHandler(listener)
            logger.setLevel(level)
            listener.end()


def _show_warning(message: Any, *where: Any) -> None:
    output.warn(str(message))


class _Listener(logging.Handler):
    """Shows warnings, and counts the functions that are compiled and the time from the first to the last."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.depth, self.functions, self.seconds, self.since = 0, 0, 0.0, 0.0
        self.told, self.drawn, self.over = False, False, threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        begins = getattr(record, "compiling", None)
        if begins is None:
            if record.levelno >= logging.WARNING:
                output.warn(record.getMessage())
        elif begins:
            self._begin()
        elif self.depth:
            self._finish()

    def end(self) -> None:
        """The verb is over: say what compiling cost, where it was told that it goes on."""
        self.over.set()
        if self.told:
            output.say(f"compiled {self.functions} functions in {self.seconds:.0f} s; later runs do without")

    def _begin(self) -> None:
        if not self.depth:
            self.since = time.monotonic()
        if not self.depth and not self.functions:
            threading.Thread(target=self._watch, name="tailwise_telling", daemon=True).start()
        self.depth += 1

    def _finish(self) -> None:
        self.depth -= 1
        self.functions += 1
        if not self.depth:
            self.seconds += time.monotonic() - self.since
            self._draw("")

    def _watch(self) -> None:
        while not self.over.wait(_TICK_SECONDS):
            spent = self.seconds + (time.monotonic() - self.since if self.depth else 0.0)
            if not self.told and spent > _WORTH_TELLING_SECONDS:
                self.told = True
                output.say(
                    "compiling for this machine, which takes up to a minute and is kept: only the first run waits "
                    "(`tailwise warm` compiles ahead)"
                )
            elif self.told and self.depth:
                self._draw(f"compiling: {self.functions} functions, {spent:.0f} s")

    def _draw(self, text: str) -> None:
        """A line that the next one overwrites, on a terminal that no progress bar has taken."""
        free = sys.stderr.isatty() and type(sys.stderr).__name__ != "FileProxy"
        if free and (text or self.drawn) and not output.is_quiet():
            self.drawn = bool(text)
            print(f"\x1b[K{text}\r", end="", file=sys.stderr, flush=True)
