"""The run that the work of this thread belongs to: what keeps results so that nothing is computed twice.

There is none unless :func:`tailwise.workdir` began one. Threads that work for a run have none: what they call in turn
is part of the piece that they were given.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol, TypeVar

import numpy as np

Result = TypeVar("Result")


class Run(Protocol):
    """Takes over the work that takes long."""

    def job(self, model: Any, call: str, arguments: dict[str, Any]) -> AbstractContextManager[Any]:
        """Within it, pieces belong to ``model.call(**arguments)``; within a job there is no other."""

    def map(
        self, function: Callable[[Any], Any], blocks: Sequence[Any], weight: Callable[[Any], float], **how: Any
    ) -> Iterator[Any]:
        """``function`` of each block, in order, computed here, elsewhere, or in an earlier run."""

    def keep(self, function: Callable[[], Result]) -> Result:
        """What ``function()`` returns, or returned in an earlier run."""

    def room(self, size: int, dtype: Any) -> np.ndarray:
        """An array to be filled."""

    def share(self, part: float) -> AbstractContextManager[Any]:
        """Within it is that part of the work of the step around it."""

    def entropy(self) -> int | None:
        """What to draw from where the caller gave no seed: the same numbers when the work is done again."""


_here = threading.local()


def current_run() -> Run | None:
    """The run of this thread, if there is one.

    >>> current_run() is None
    True
    """
    return getattr(_here, "run", None)


@contextmanager
def within_run(run: Run | None) -> Iterator[None]:
    """Have the work of this thread belong to ``run``."""
    before = current_run()
    _here.run = run
    try:
        yield
    finally:
        _here.run = before


def job_of_run(model: Any, call: str, **arguments: Any) -> AbstractContextManager[Any]:
    """Within it the work belongs to that call, if there is a run."""
    run = current_run()
    return nullcontext() if run is None else run.job(model, call, arguments)


def room(size: int, dtype: Any) -> np.ndarray:
    """An array to be filled: in memory, or, where a run keeps large ones on disk, mapped from a file."""
    run = current_run()
    return np.empty(size, dtype) if run is None else run.room(size, dtype)


def share(part: float) -> AbstractContextManager[Any]:
    """Within it is about that part of the work of the step around it: so a run tells how long it still takes.

    Steps of a step follow each other and add up to 1; work between them counts for nothing.

    >>> with share(0.5):
    ...     pass
    """
    run = current_run()
    return nullcontext() if run is None else run.share(part)


def kept(function: Callable[[], Result]) -> Result:
    """``function()``; a run keeps what it returns, which can be saved, and does not call it again.

    >>> kept(lambda: 1 + 1)
    2
    """
    run = current_run()
    return function() if run is None else run.keep(function)
