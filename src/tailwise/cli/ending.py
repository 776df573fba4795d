"""How the command begins and ends: streams that take what is written, and an end within a second when it is told to.

Python hears of Ctrl-C and of SIGTERM when its main thread comes back from compiled code, which may take long. So a
thread hears of them too: what has not ended by itself after a moment, it ends.
"""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_GRACE_SECONDS = 0.4
_IN_ASCII = {"▲": "+", "▼": "-", "−": "-", "–": "-", "…": "...", "×": "x", "·": "-", "─": "-", "’": "'"}
_SAID = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class _Received:
    """The first signal that told this process to end, and whether the user was told so."""

    number: int | None = None
    said = False


def say_ended() -> int:
    """Tell, once, that the command was interrupted or terminated; returns the exit status that shells expect."""
    number = _Received.number or signal.SIGINT
    if not _Received.said:
        _Received.said = _Received.number is not None
        print(f"tailwise: {_SAID[signal.Signals(number)]}; no file was left half-written", file=sys.stderr, flush=True)
    return 128 + number


@contextmanager
def ending_promptly() -> Iterator[None]:
    """Have Ctrl-C and SIGTERM end this process: in the main thread as KeyboardInterrupt, else by force."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ears, mouth = os.pipe()
    os.set_blocking(mouth, False)
    wakeup = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    before = {number: signal.getsignal(number) for number in _SAID}
    for number, handler in before.items():
        # Whoever started the command may have made it deaf, as nohup and shells do; that stays.
        if handler in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)
    threading.Thread(target=_watch, args=(ears,), name="tailwise_ending", daemon=True).start()
    try:
        yield
    finally:
        # Once a signal came the watcher stays: the end of the interpreter would wait for threads that still compute.
        if _Received.number is None:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
            os.close(mouth)


def _interrupt(number: int, frame: Any) -> None:
    if _Received.number is None:
        _Received.number = number
        raise KeyboardInterrupt


def _watch(ears: int) -> None:
    while heard := os.read(ears, 1):
        if heard[0] in _SAID and signal.getsignal(heard[0]) is _interrupt:
            time.sleep(_GRACE_SECONDS)
            _end(heard[0])
    os.close(ears)


def _end(number: int) -> None:
    from tailwise.atomic import remove_held

    _Received.number = _Received.number or number
    remove_held()
    status = say_ended()
    os._exit(status)


def open_closed_streams() -> None:
    """Give standard input, output and error that were closed, and are None, something to read from and write to."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def take_every_character() -> None:
    """Have standard output and error take characters that their encoding lacks: our signs in ASCII, others escaped."""
    codecs.register_error("tailwise", _spell)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict" and "utf" not in stream.encoding.lower():
            stream.reconfigure(errors="tailwise")


def _spell(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeEncodeError) and (sign := _IN_ASCII.get(error.object[error.start])):
        return sign, error.start + 1
    return codecs.backslashreplace_errors(error)
