"""Running a job's program: in the process that wants its result, and in those that compute pieces for it."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from tailwise import persistence
from tailwise.distributed.jobs import Inputs, Job, RunError, Site
from tailwise.distributed.progress import Progress
from tailwise.errors import ModelFileError
from tailwise.persistence import Saveable
from tailwise.persistence.manifest import MANIFEST
from tailwise.runs import within_run

_IDLE_SECONDS = 600.0
_LARGE_BYTES = 1 << 27
_LOOK_SECONDS = 0.5
_MOST_AT_HAND = 1 << 28
"""Bytes of a site's results that are read while others are computed; the rest is only looked at."""


class _Kept(Saveable):
    """What a step returned, and how many sites and draws the program had come to behind it."""

    def __init__(self, value: Any, site: int, draws: int) -> None:
        self.value = value
        self.site = site
        self.draws = draws

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"value": self.value, "site": self.site, "draws": self.draws}


class Program:
    """Counts what a program comes to: sites, and draws of random numbers that nobody gave a seed for."""

    def __init__(self, job: Job) -> None:
        self.job_of_program = job
        self._site = 0
        self._draws = 0

    def job(self, model: Any, call: str, arguments: dict[str, Any]) -> Any:
        """Within a job all belongs to it."""
        return _nothing()

    def share(self, part: float) -> Any:
        """Nobody watches a program but its driver."""
        return _nothing()

    def entropy(self) -> int:
        """The next seed: the same in every process that runs the program."""
        self._draws += 1
        state = np.random.SeedSequence([self.job_of_program.entropy, self._draws]).generate_state(2, np.uint64)
        return int(state[0])

    def room(self, size: int, dtype: Any) -> np.ndarray:
        """Large arrays lie in files of the job's folder that nobody else sees and that are gone with the process."""
        bytes_wanted = size * np.dtype(dtype).itemsize
        if bytes_wanted < _LARGE_BYTES:
            return np.empty(size, dtype)
        with tempfile.TemporaryFile(dir=self.job_of_program.folder) as file:
            file.truncate(bytes_wanted)
            return np.memmap(file, dtype, "r+", shape=(size,)).view(np.ndarray)

    def _next_site(self) -> int:
        self._site += 1
        return self._site - 1

    def _read_kept(self, number: int) -> Any:
        """The value of a step that was done: the program goes on behind it."""
        kept = persistence.load(self.job_of_program.kept_path(number))
        if not isinstance(kept, _Kept):
            raise ModelFileError(f"{self.job_of_program.kept_path(number)} holds no step of a run; remove it")
        self._site, self._draws = kept.site, kept.draws
        return kept.value

    def _has_kept(self, number: int) -> bool:
        return (self.job_of_program.kept_path(number) / MANIFEST).exists()


class Driver(Program):
    """The program in the process that wants its result; ``engine`` has the pieces computed."""

    def __init__(self, job: Job, engine: Any, progress: Progress) -> None:
        super().__init__(job)
        self._engine = engine
        self._progress = progress

    def share(self, part: float) -> Any:
        """See :class:`tailwise.runs.Run`."""
        return self._progress.share(part)

    def map(
        self, function: Callable[[Any], Any], blocks: Sequence[Any], weight: Callable[[Any], float], **how: Any
    ) -> Iterator[Any]:
        """See :class:`tailwise.runs.Run`."""
        site = Site.cut(self._next_site(), function, blocks, weight)
        there = [self.job_of_program.has(site.number, piece) for piece in range(site.n_pieces)]
        missing = [piece for piece in range(site.n_pieces) if not there[piece]]
        found: dict[int, list[Any]] = {}
        sound: set[int] = set()
        at_hand = 0
        with self._progress.site(site.costs, [piece for piece in range(site.n_pieces) if there[piece]]) as advance:

            def done(piece: int) -> None:
                # While others compute, so that nobody waits for it at the end; many bytes would stay in memory. What
                # this process has just written itself is as it was written.
                nonlocal at_hand
                at_hand += self.job_of_program.size(site, piece)
                own = not self._engine.elsewhere
                if at_hand > _MOST_AT_HAND:
                    if own or self.job_of_program.is_sound(site, piece):
                        sound.add(piece)
                else:
                    with suppress(ModelFileError):
                        found[piece] = self.job_of_program.read(site, piece, sound=own)
                advance(piece)

            if missing:
                self._engine.compute(self.job_of_program, site, missing, done=done, **how)
        return self.job_of_program.results(site, found, sound)

    def keep(self, function: Callable[[], Any]) -> Any:
        """See :class:`tailwise.runs.Run`."""
        number = self._next_site()
        if self._has_kept(number):
            # What is damaged is computed again.
            with suppress(ModelFileError):
                return self._read_kept(number)
            shutil.rmtree(self.job_of_program.kept_path(number), ignore_errors=True)
        value = function()
        persistence.save(_Kept(value, self._site, self._draws), self.job_of_program.kept_path(number))
        return value


class _Abandoned(BaseException):
    """Ends a program that nobody asks for pieces any more."""


class Follower(Program):
    """The program in a process that computes pieces: it stops at each site until a later one is asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Job(folder))
        self._inputs: Inputs = self.job_of_program.open_inputs()
        self._changed = threading.Condition()
        self._at: Site | None = None
        self._wanted = -1
        self._ended: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"tailwise {self.job_of_program.what}", daemon=True)
        self._thread.start()

    def compute(self, site: int, piece: int) -> str:
        """Compute that piece and keep its results; returns their digest. Any number of threads may ask."""
        with self._changed:
            self._wanted = max(self._wanted, site)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._ended or (self._at is not None and self._at.number >= site))
            at = self._at
        if self._ended is not None:
            raise RunError(f"{self.job_of_program.what} did not come to its site {site}: {self._ended!r}")
        if at is None or at.number != site:
            raise RunError(f"{self.job_of_program.what} is at another site than {site}; it is not the same program")
        return self.job_of_program.write(at, piece)

    @property
    def alive(self) -> bool:
        """Whether it can be asked for more."""
        return self._ended is None

    def abandon(self) -> None:
        """End it."""
        with self._changed:
            self._ended = self._ended or RunError("it was given up")
            self._changed.notify_all()

    def map(
        self, function: Callable[[Any], Any], blocks: Sequence[Any], weight: Callable[[Any], float], **how: Any
    ) -> Iterator[Any]:
        """See :class:`tailwise.runs.Run`."""
        site = Site.cut(self._next_site(), function, blocks, weight)
        with self._changed:
            self._at = site
            self._changed.notify_all()
            self._wait(lambda: self._wanted > site.number)
        return self.job_of_program.results(site, {}, set())

    def keep(self, function: Callable[[], Any]) -> Any:
        """See :class:`tailwise.runs.Run`."""
        number = self._next_site()
        with self._changed:
            self._wait(lambda: self._wanted > number or self._has_kept(number))
        # A site behind this one is wanted: it is within the step unless that is done.
        return self._read_kept(number) if self._has_kept(number) else function()

    def _wait(self, until: Callable[[], bool]) -> None:
        waited = 0.0
        while not until():
            if self._ended is not None or waited > _IDLE_SECONDS:
                raise _Abandoned
            self._changed.wait(_LOOK_SECONDS)
            waited += _LOOK_SECONDS

    def _run(self) -> None:
        ended: BaseException = RunError("it is at its end")
        try:
            with within_run(self):
                self._inputs()
        except BaseException as error:
            ended = error
        with self._changed:
            self._ended = self._ended or ended
            self._at = None
            self._changed.notify_all()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


_followers: dict[str, Follower] = {}
_following = threading.Lock()


def compute_piece(folder: str, site: int, piece: int) -> str:
    """Compute one piece of the job in ``folder`` and keep its results there; returns their digest.

    This is what engines send to other processes: a path and two numbers.
    """
    with _following:
        follower = _followers.get(folder)
        if follower is None or not follower.alive:
            if not Path(folder).is_dir():
                raise RunError(
                    f"this process does not see {folder}; the folder of a run lies where all its processes see it "
                    "under the same path"
                )
            for other in _followers.values():
                other.abandon()
            _followers.clear()
            follower = _followers[folder] = Follower(Path(folder))
    return follower.compute(site, piece)


def forget(folder: str) -> None:
    """Compute no more pieces of the job in ``folder``: it is done, or its run was stopped."""
    with _following:
        follower = _followers.pop(folder, None)
    if follower is not None:
        follower.abandon()
