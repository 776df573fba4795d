"""Opening and asking forged folders in a process of its own: a crash or a hang is an answer, too."""

from __future__ import annotations

import resource
import signal
import traceback
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

import tailwise
from drills.harness import processes
from tailwise.errors import ModelFileError, NotFitted

PATIENCE = 30.0
SLACK_BYTES = 50_000_000
"""What Python and its libraries may take for themselves, beside twice the files of a folder."""


class Judge:
    """Opens folders, one after the other, and says how each ended: ``with Judge() as judge: judge(forged, good)``.

    The process is started again whenever a folder brought it down.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience

    def __enter__(self) -> Self:
        context = processes()
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,))
        self._process.start()
        theirs.close()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def __call__(self, path: Path, good: Path, *, verify: bool) -> tuple[str, str]:
        """How the folder ended, as :class:`drills.harness.Outcome` counts it, and why; it was forged from ``good``."""
        self._pipe.send((path, good, verify))
        try:
            if self._pipe.poll(self.patience):
                return self._pipe.recv()
            why = f"no answer within {self.patience:g} seconds"
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode or 0
            why = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        self.__exit__(None, None, None)
        self.__enter__()
        return "broken", why


def _serve(pipe: Any) -> None:
    np.seterr(all="ignore")
    # What a class imports is not what its folder takes.
    for library in (
        "torch",
        "faiss",
        "transformers",
        "sklearn.ensemble",
        "sklearn.linear_model",
        "sklearn.isotonic",
        "sklearn.cluster",
        "sklearn.feature_extraction.text",
        "snowballstemmer",
    ):
        with suppress(ImportError):
            import_module(library)
    while True:
        path, good, verify = pipe.recv()
        expected, before = _expected(good), _peak_bytes()
        kind, why = _judge(path, verify, expected)
        took = _peak_bytes() - before
        if took > 2 * sum(file.stat().st_size for file in path.iterdir()) + SLACK_BYTES:
            kind, why = "broken", f"took {took / 1e6:.0f} MB"
        pipe.send((kind, why))


def _peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@cache
def _expected(good: Path) -> list[bytes]:
    from drills.zoo import answers

    return [part.tobytes() for part in answers(tailwise.load(good))]


def _judge(path: Path, verify: bool, expected: list[bytes]) -> tuple[str, str]:
    from drills.zoo import answers

    try:
        model = tailwise.load(path, verify=verify)
    except ModelFileError as error:
        return "refused", str(error)
    except BaseException as error:
        return "broken", f"load: {error!r}"
    try:
        found = [part.tobytes() for part in answers(model)]
    except NotFitted as error:
        return "refused", str(error)
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return "broken", f"{error!r} at {Path(last.filename).name}:{last.lineno}"
    return "intact" if found == expected else "changed", ""
