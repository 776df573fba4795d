"""Running pure block functions on threads, with a progress bar, a fixed order of results and a prompt Ctrl-C.

Kernels release the GIL, so threads share one copy of the data. Results come back in the order of the blocks,
whatever the number of threads: this is what makes fitted models the same bits for every ``n_jobs``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from tailwise.errors import InvalidInput

Block = TypeVar("Block")
Result = TypeVar("Result")

_POLL_SECONDS = 0.2
_progress_setting: bool | None = None


def set_progress(show: bool | None) -> None:
    """Switch progress bars on or off; ``None`` (the start value) shows them where standard error is a terminal."""
    global _progress_setting
    _progress_setting = show


def _progress_is_on() -> bool:
    return sys.stderr.isatty() if _progress_setting is None else _progress_setting


def count_jobs(n_jobs: int | None) -> int:
    """How many threads ``n_jobs`` means: None or -1 is every core this process may use, -2 all but one, …"""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0):
        raise InvalidInput(f"n_jobs={n_jobs!r} must be a positive or negative integer, or None for every core")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def row_blocks(n_rows: int, size: int) -> list[tuple[int, int]]:
    """Half-open ranges that cover ``range(n_rows)``: the same ones for every number of threads.

    >>> row_blocks(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


@contextmanager
def progress(description: str, total: float | None) -> Iterator[Callable[..., None]]:
    """A bar on standard error; yields ``advance(amount=1, note="")``. Silent where bars are off.

    >>> with progress("Counting", total=2) as advance:
    ...     advance()
    ...     advance(note="loss 0.1")
    """
    if not _progress_is_on() or not description:
        yield lambda amount=1.0, note="": None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    class RateColumn(ProgressColumn):
        """Steps a second."""

        def render(self, task: Any) -> str:
            return f"{task.finished_speed or task.speed or 0:,.3g}/s"

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    console = Console(stderr=True)
    # In a log a bar cannot move: its last state is printed once, as a line.
    with Progress(*columns, console=console, transient=console.is_terminal) as bar:
        task = bar.add_task(description, total=total, note="")
        yield lambda amount=1.0, note="": bar.update(task, advance=amount, **({"note": note} if note else {}))


def map_blocks(
    function: Callable[[Block], Result],
    blocks: Sequence[Block],
    *,
    n_jobs: int | None = None,
    description: str = "",
    weight: Callable[[Block], float] = lambda block: 1.0,
) -> list[Result]:
    """``[function(b) for b in blocks]`` on ``n_jobs`` threads.

    Blocks start in order, results return in order. Ctrl-C stops after the blocks that are running now.
    ``weight`` is what a block counts for in the progress bar.

    >>> map_blocks(lambda block: block ** 2, [1, 2, 3], n_jobs=2)
    [1, 4, 9]
    """
    threads = min(count_jobs(n_jobs), max(1, len(blocks)))
    with progress(description, total=sum(weight(b) for b in blocks)) as advance:
        if threads == 1:
            results = []
            for block in blocks:
                results.append(function(block))
                advance(weight(block))
            return results
        return _map_on_threads(function, blocks, threads, lambda block: advance(weight(block)))


def _map_on_threads(function: Any, blocks: Any, threads: int, done: Callable[[Any], None]) -> list[Any]:
    results: list[Any] = [None] * len(blocks)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="tailwise")
    try:
        where: dict[Future[Any], int] = {pool.submit(function, block): i for i, block in enumerate(blocks)}
        pending = set(where)
        while pending:
            # A bounded wait lets the main thread see Ctrl-C while kernels run.
            finished, pending = wait(pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in finished:
                results[where[future]] = future.result()
                done(blocks[where[future]])
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return results
