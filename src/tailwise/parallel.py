"""Running pure block functions on threads, with a progress bar, a fixed order of results and a prompt Ctrl-C.

Kernels release the GIL, so threads share one copy of the data. Results come back in the order of the blocks,
whatever the number of threads: this is what makes fitted models the same bits for every ``n_jobs``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from tailwise.cpus import available_cores
from tailwise.errors import InvalidInput
from tailwise.notebook import in_notebook, moving_line
from tailwise.runs import current_run

Block = TypeVar("Block")
Result = TypeVar("Result")

_POLL_SECONDS = 0.2
_progress_setting: bool | None = None
_most_jobs: int | None = None


def set_progress(show: bool | None) -> None:
    """Switch progress bars on or off; ``None`` (the start value) shows them in terminals and notebooks."""
    global _progress_setting
    _progress_setting = show


def _progress_is_on() -> bool:
    # There is no standard error where somebody closed it.
    shown = sys.stderr is not None and (sys.stderr.isatty() or in_notebook())
    return shown if _progress_setting is None else _progress_setting


def set_jobs(most: int | None) -> None:
    """Bound the threads of everything in this process, whatever ``n_jobs`` a model has; None takes the bound away."""
    global _most_jobs
    _most_jobs = None
    _most_jobs = None if most is None else count_jobs(most)


def count_jobs(n_jobs: int | None) -> int:
    """How many threads ``n_jobs`` means: None or -1 is every core this process may use, -2 all but one, …

    The cores are those of the process's affinity and of its container's CPU quota. :func:`set_jobs` bounds the answer.
    """
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0):
        raise InvalidInput(f"n_jobs={n_jobs!r} must be a positive or negative integer, or None for every core")
    wanted = n_jobs if n_jobs is not None and n_jobs > 0 else max(1, available_cores() + 1 + (n_jobs or -1))
    return wanted if _most_jobs is None else min(wanted, _most_jobs)


def row_blocks(n_rows: int, size: int) -> list[tuple[int, int]]:
    """Half-open ranges that cover ``range(n_rows)``: the same ones for every number of threads.

    >>> row_blocks(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def falling_blocks(n_rows: int, size: int) -> list[tuple[int, int]]:
    """As :func:`row_blocks`, but the last ones are smaller and smaller, so that nobody waits long for the very last.

    >>> falling_blocks(20, 8)
    [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10), (10, 12), (12, 14), (14, 16), (16, 18), (18, 20)]
    """
    least, ends = -(-size // 4), [0]
    while ends[-1] < n_rows:
        left = n_rows - ends[-1]
        ends.append(ends[-1] + min(left, size, max(least, left // 8)))
    return list(pairwise(ends))


def gathered(items: Sequence[Block], size: Callable[[Block], int], enough: int) -> list[list[Block]]:
    """Neighbours together until they have ``enough``, the largest groups first.

    >>> gathered([1, 1, 5, 2, 1], int, 2)
    [[5], [1, 1], [2], [1]]
    """
    groups: list[list[Block]] = []
    sizes: list[int] = []
    for item in items:
        if not sizes or sizes[-1] >= enough:
            groups.append([])
            sizes.append(0)
        groups[-1].append(item)
        sizes[-1] += size(item)
    return [groups[i] for i in sorted(range(len(groups)), key=lambda i: -sizes[i])]


@contextmanager
def progress(description: str, total: float | None, *, timed: bool = True) -> Iterator[Callable[..., None]]:
    """A bar on standard error; yields ``advance(amount=1, note="")``. Silent where bars are off.

    With ``timed=False`` it is a share in percent, and the notes tell how long it still takes.

    >>> with progress("Counting", total=2) as advance:
    ...     advance()
    ...     advance(note="loss 0.1")
    """
    if not _progress_is_on() or not description:
        yield lambda amount=1.0, note="": None
        return
    if in_notebook():
        with moving_line(description, total) as advance:
            yield advance
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TaskProgressColumn,
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
        *((MofNCompleteColumn(), RateColumn()) if timed else (TaskProgressColumn(),)),
        TimeElapsedColumn(),
        *((TimeRemainingColumn(),) if timed else ()),
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
    done: Callable[[Block], None] | None = None,
) -> list[Result]:
    """``[function(b) for b in blocks]`` on ``n_jobs`` threads.

    Blocks start in order, results return in order. Ctrl-C raises at once: no further block starts, and the threads end
    on their own after the blocks that are running now, whose results nobody sees. What has a ``description`` takes
    long, and runs on a thread even where it is one, because only a main thread that waits can be interrupted.
    ``weight`` is what a block counts for in the progress bar; where ``done`` is given there is no bar, and it is called
    for each block, on this thread.

    >>> map_blocks(lambda block: block ** 2, [1, 2, 3], n_jobs=2)
    [1, 4, 9]
    """
    if len(blocks) == 1 and not description and n_jobs is None:
        # One short piece of work, as each single prediction is: nothing to prepare for it.
        return _map_here(function, blocks, lambda block: None)
    threads = min(count_jobs(n_jobs), len(blocks))
    with progress("" if done else description, total=sum(weight(b) for b in blocks)) as advance:
        told = done or (lambda block: advance(weight(block)))
        if threads <= 1 and not (blocks and description and threading.current_thread() is threading.main_thread()):
            return _map_here(function, blocks, told)
        return _map_on_threads(function, blocks, threads, told)


def map_shards(
    function: Callable[[Block], Result],
    blocks: Sequence[Block],
    *,
    take: Callable[[Block, Result], None] | None = None,
    n_jobs: int | None = None,
    description: str = "",
    weight: Callable[[Block], float] = lambda block: 1.0,
) -> list[Result]:
    """:func:`map_blocks` for work that takes long, which a run may have done elsewhere or before.

    ``function`` is pure: the same block gives the same result in every process, and the result can be saved. ``take``,
    if given, gets each block with its result, in any order and on any thread, and the list is empty: so results need
    not all be there at once. ``weight`` is what a block is expected to cost: the dearest start first, so that nobody
    waits long for the last.

    >>> map_shards(lambda block: block ** 2, [1, 2, 3])
    [1, 4, 9]
    """
    order = sorted(range(len(blocks)), key=lambda i: -weight(blocks[i]))
    dearest_first = [blocks[i] for i in order]
    run = current_run()
    how: dict[str, Any] = {"n_jobs": n_jobs, "description": description, "weight": weight}
    if take is not None:
        if run is None:
            map_blocks(lambda block: take(block, function(block)), dearest_first, **how)
        else:
            for block, result in zip(dearest_first, run.map(function, dearest_first, **how), strict=True):
                take(block, result)
        return []
    found = map_blocks(function, dearest_first, **how) if run is None else run.map(function, dearest_first, **how)
    return [result for _, result in sorted(zip(order, found, strict=True), key=lambda pair: pair[0])]


class _Abandoned(BaseException):
    """Ends the work of a thread whose results nobody waits for any more."""


class _Stop:
    """Whether the threads of one call should start no further block: by its own word or that of the call around it."""

    def __init__(self) -> None:
        self.around: _Stop | None = getattr(_here, "stop", None)
        self.said = False

    def __bool__(self) -> bool:
        return self.said or bool(self.around)


_here = threading.local()


def _map_here(function: Any, blocks: Any, done: Callable[[Any], None]) -> list[Any]:
    stop, results = _Stop(), []
    for block in blocks:
        if stop:
            raise _Abandoned
        results.append(function(block))
        done(block)
    return results


def _map_on_threads(function: Any, blocks: Any, threads: int, done: Callable[[Any], None]) -> list[Any]:
    results: list[Any] = [None] * len(blocks)
    finished: SimpleQueue[tuple[int, BaseException | None]] = SimpleQueue()
    stop, todo, taking = _Stop(), iter(range(len(blocks))), threading.Lock()

    def work() -> None:
        _here.stop = stop
        while not stop:
            with taking:
                i = next(todo, None)
            if i is None:
                return
            try:
                results[i] = function(blocks[i])
            except BaseException as error:
                finished.put((i, error))
                return
            finished.put((i, None))

    running = _start(work, threads)
    if not running:
        return _map_here(function, blocks, done)
    try:
        for _ in blocks:
            i, error = _next(finished, stop)
            if error is not None:
                raise error
            done(blocks[i])
    except Exception:
        stop.said = True
        for thread in running:
            thread.join()
        raise
    except BaseException:
        stop.said = True
        raise
    for thread in running:
        thread.join()
    return results


def _start(work: Callable[[], None], threads: int) -> list[threading.Thread]:
    """As many threads as there is memory for, up to ``threads``."""
    running: list[threading.Thread] = []
    for number in range(threads):
        thread = threading.Thread(target=work, name=f"tailwise_{number}")
        try:
            thread.start()
        except RuntimeError:
            break
        running.append(thread)
    return running


def _next(finished: SimpleQueue[Any], stop: _Stop) -> Any:
    while True:
        # A bounded wait lets an abandoned thread that waits for others see that it is.
        with suppress(Empty):
            return finished.get(timeout=_POLL_SECONDS)
        if stop:
            raise _Abandoned


class SharedSetting:
    """A setting of the whole process for as long as any thread is within: the first sets it, the last takes it back.

    ``change`` sets it and returns how to take it back. Had each thread put back what it found, the last one would leave
    what the first one set.
    """

    def __init__(self, change: Callable[[], Callable[[], Any]]) -> None:
        self._change = change
        self._take_back: Callable[[], Any] = lambda: None
        self._within = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            if self._within == 0:
                self._take_back = self._change()
            self._within += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._within -= 1
            if self._within == 0:
                self._take_back()


def _limit_blas() -> Callable[[], Any]:
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas").restore_original_limits


ONE_BLAS_THREAD = SharedSetting(_limit_blas)
"""Within it a matrix product runs on the thread that asks for it, because threads over blocks use the cores already."""
