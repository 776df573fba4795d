"""Who computes pieces: threads of this process, other processes, a Dask cluster, or anything that has ``submit``."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from tailwise.cpus import available_cores
from tailwise.distributed.jobs import Job, RunError, Site
from tailwise.distributed.programs import compute_piece, forget
from tailwise.errors import InvalidInput, TailwiseError, import_extra
from tailwise.parallel import count_jobs, map_blocks

Done = Callable[[int], None]
_log = logging.getLogger("tailwise.distributed")
_MOST_FAILURES = 3
_POLL_SECONDS = 0.02
_DASK = "dask://"


class Future(Protocol):
    """What ``submit`` returns."""

    def done(self) -> bool:
        """Whether it has a result or has failed."""

    def result(self) -> Any:
        """The result, or the exception."""


class Engine(Protocol):
    """Has pieces computed."""

    elsewhere: bool
    """Whether that is done by other processes."""

    def compute(
        self, job: Job, site: Site, missing: list[int], *, done: Done, n_jobs: int | None, description: str
    ) -> None:
        """Return when the ``missing`` pieces of ``site`` are in the folder of ``job``; ``done`` is called for each."""

    def end(self, job: Job) -> None:
        """No more pieces of ``job`` will be asked for."""


class Threads:
    """The threads of this process."""

    elsewhere = False

    def compute(
        self, job: Job, site: Site, missing: list[int], *, done: Done, n_jobs: int | None, description: str
    ) -> None:
        """See :class:`Engine`."""
        map_blocks(lambda piece: job.write(site, piece), missing, n_jobs=n_jobs, description=job.what, done=done)

    def end(self, job: Job) -> None:
        """See :class:`Engine`."""


class Lost(Exception):
    """Who computed a piece is gone; the piece is not to blame."""


class Submitting:
    """Anything with ``submit(function, *arguments)`` that returns a :class:`Future`."""

    elsewhere = True

    def __init__(self, executor: Any) -> None:
        self._executor = executor

    def submit(self, name: str, *arguments: Any) -> Future:
        """Have one piece computed; ``name`` is what people see."""
        return self._executor.submit(compute_piece, *arguments)

    def look(self) -> None:
        """Raise :class:`RunError` where nothing can be computed any more; asked while the run waits."""

    def replaced(self) -> None:
        """Make what was lost anew, where it does not come back by itself."""

    def compute(
        self, job: Job, site: Site, missing: list[int], *, done: Done, n_jobs: int | None, description: str
    ) -> None:
        """See :class:`Engine`.

        A piece that fails three times stops the run. A process that dies is nobody's fault: its pieces are computed
        again, as long as any piece is finished between three such deaths.
        """
        failures: Counter[int] = Counter()
        deaths, attempt = 0, 0
        what = description or job.what
        waiting: dict[Any, int] = {}

        def submit(piece: int) -> None:
            name = f"{what}, site {site.number}-{piece:03}-{attempt}"
            waiting[self.submit(name, str(job.folder), site.number, piece)] = piece

        for piece in missing:
            submit(piece)
        while waiting:
            ended = [future for future in waiting if future.done()]
            if not ended:
                self.look()
                time.sleep(_POLL_SECONDS)
            for future in ended:
                piece = waiting.pop(future)
                attempt += 1
                try:
                    self._finish(job, site, piece, future)
                except Lost as error:
                    deaths += 1
                    _log.warning("piece %d of site %d was lost: %s", piece, site.number, error)
                    if deaths > _MOST_FAILURES * max(1, len(waiting)):
                        raise RunError(
                            f"{what} stops: processes die one after the other ({error}); the run goes on from here "
                            "when it is started again"
                        ) from error
                    self.replaced()
                    submit(piece)
                except TailwiseError:
                    raise
                except Exception as error:
                    failures[piece] += 1
                    _log.warning("piece %d of site %d failed: %r", piece, site.number, error)
                    if failures[piece] >= _MOST_FAILURES:
                        raise RunError(
                            f"{what} stops: piece {piece} of site {site.number} failed {_MOST_FAILURES} times, the "
                            f"last time with {error!r}; what is done is kept in {job.folder.parent}"
                        ) from error
                    submit(piece)
                else:
                    deaths = 0
                    done(piece)

    def end(self, job: Job) -> None:
        """See :class:`Engine`. Where it cannot be told to others, they forget it after a while."""
        forget(str(job.folder))

    def _finish(self, job: Job, site: Site, piece: int, future: Future) -> None:
        digest = self._result(future)
        if not job.has(site.number, piece, digest):
            raise RunError(
                f"a process computed piece {piece} of site {site.number}, but {job.path(site.number, piece)} does not "
                "hold it; the folder of a run lies on a file system that all its processes share"
            )

    def _result(self, future: Future) -> str:
        return future.result()


class Processes(Submitting):
    """``n`` processes of this machine; None is one a core."""

    def __init__(self, n: int | None = None) -> None:
        self._n = available_cores() if n is None else count_jobs(n)
        super().__init__(None)

    def submit(self, name: str, *arguments: Any) -> Future:
        """See :class:`Submitting`."""
        if self._executor is None:
            from multiprocessing import get_context

            self._executor = ProcessPoolExecutor(self._n, mp_context=get_context("spawn"), initializer=_end_with_parent)
        try:
            return super().submit(name, *arguments)
        except BrokenExecutor:
            self.replaced()
            return self.submit(name, *arguments)

    def replaced(self) -> None:
        """A pool that lost a process takes no more work."""
        self.close()

    def close(self) -> None:
        """End the processes."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None

    def _result(self, future: Future) -> str:
        try:
            return future.result()
        except BrokenExecutor as error:
            raise Lost(str(error)) from error


def _end_with_parent() -> None:
    """Have this process end when the one that started it is killed, and can no longer tell it that there is no work."""
    from multiprocessing import parent_process

    def wait() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


class Dask(Submitting):
    """The workers of a Dask cluster, by its scheduler's address or a ``distributed.Client``."""

    _PATIENCE_SECONDS = 30.0

    def __init__(self, where: Any) -> None:
        distributed = import_extra("distributed", "dask", "a Dask cluster")
        self._own = isinstance(where, str)
        self._lost: tuple[type[BaseException], ...] = (
            distributed.scheduler.KilledWorker,
            distributed.CancelledError,
            distributed.comm.CommClosedError,
        )
        try:
            client = distributed.Client(where, timeout=self._PATIENCE_SECONDS) if self._own else where
        except (OSError, TimeoutError) as error:
            raise RunError(f"no Dask scheduler answers at {where} ({error}); start one: dask scheduler") from error
        self._silent_since: float | None = None
        super().__init__(client)

    def submit(self, name: str, *arguments: Any) -> Future:
        """See :class:`Submitting`."""
        return self._executor.submit(compute_piece, *arguments, key=name, pure=False, retries=0)

    def look(self) -> None:
        """Raise when the scheduler is gone for good."""
        if self._executor.status == "running":
            self._silent_since = None
            return
        self._silent_since = self._silent_since or time.monotonic()
        if time.monotonic() - self._silent_since > self._PATIENCE_SECONDS or self._executor.status == "closed":
            raise RunError("the Dask scheduler is gone; start one and run the same again: it goes on from where it was")

    def end(self, job: Job) -> None:
        """See :class:`Engine`."""
        with suppress(Exception):  # the scheduler may be gone
            self._executor.run(forget, str(job.folder), wait=False)

    def close(self) -> None:
        """Leave the cluster."""
        if self._own:
            self._executor.close(timeout=2)

    def _result(self, future: Future) -> str:
        try:
            return future.result()
        except self._lost as error:
            self.look()
            raise Lost(repr(error)) from error


class RayExecutor:
    """``submit`` for a Ray cluster that ``ray.init`` has connected to."""

    def __init__(self) -> None:
        self._ray = import_extra("ray", "ray", "a Ray cluster")
        self._call = self._ray.remote(max_retries=3)(_call)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """A future of ``function(*arguments)``."""
        return _RayFuture(self._ray, self._call.remote(function, *arguments))


class _RayFuture:
    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray, self._reference = ray, reference

    def done(self) -> bool:
        return bool(self._ray.wait([self._reference], timeout=0)[0])

    def result(self) -> Any:
        return self._ray.get(self._reference)


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


@contextmanager
def open_engine(engine: Any) -> Iterator[Engine]:
    """The engine that was asked for: a name, an address, a client, an executor, or an engine itself."""
    made = _made(engine)
    try:
        yield made
    finally:
        # What the user opened, the user closes.
        if made is not engine and hasattr(made, "close"):
            made.close()


def _made(engine: Any) -> Any:
    if engine is None or engine == "threads":
        return Threads()
    if engine == "processes":
        return Processes()
    if isinstance(engine, str):
        if engine.startswith(_DASK):
            return Dask("tcp://" + engine.removeprefix(_DASK))
        raise InvalidInput(f"engine={engine!r} is not known; it may be threads, processes or dask://HOST:PORT")
    if hasattr(engine, "compute") and hasattr(engine, "elsewhere"):
        return engine
    if type(engine).__module__.partition(".")[0] == "distributed":
        return Dask(engine)
    if hasattr(engine, "submit"):
        return Submitting(engine)
    raise InvalidInput(f"engine={engine!r} has no submit; pass threads, processes, dask://HOST:PORT or an executor")
