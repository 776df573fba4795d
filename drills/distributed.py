"""Does kill -9 of workers, of the scheduler or of the run itself change a single bit of what comes out?

A label tree is trained by Dask workers in processes of their own, which are killed at random moments and replaced, as
a cluster's manager does; by runs that are killed themselves and begun again; and once the scheduler dies. Every run
must end, at last, with the bits of a fit in memory.
"""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from drills.harness import Outcome
from tailwise.atomic import temporaries_of
from tailwise.errors import MissingExtra, import_extra

COUNT = 50
MODEST = 3
_WORKERS = 3
_LONGEST_SECONDS = 300.0
_KILLS_A_RUN, _SECONDS_APART = 10, 4.0
"""Of workers: a run stops where they die faster than others start."""
_WORK = """
import sys, tailwise
from drills.distributed import digest, fit
print(digest(fit(sys.argv[1], None if sys.argv[2] == "threads" else sys.argv[2])), flush=True)
"""


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    """``count`` kills of workers; two fifths as many of runs on Dask, processes and threads; one of a scheduler."""
    try:
        import_extra("distributed", "dask", "this drill")
    except MissingExtra as error:
        print(f"  skipped: {error}")
        return
    expected = digest(fit(None, None))
    with cluster() as (address, workers):
        yield _kill_workers(count, folder, address, workers, expected)
        yield _kill_runs(max(1, 2 * count // 5), folder, address, expected)
    yield _kill_runs(max(1, 2 * count // 5), folder, "processes", expected)
    yield _kill_runs(max(1, 2 * count // 5), folder, "threads", expected)
    yield _kill_scheduler(folder, expected)


def fit(folder: str | None, engine: str | None) -> Any:
    """The model: some seconds of work, many pieces."""
    import tailwise as tw

    data = tw.make_longtail(20_000, 8000, 8000, test_fraction=0, random_state=0)
    model = tw.Bonsai(n_trees=3, max_leaf=50, random_state=0, n_jobs=1)
    if folder is None:
        return model.fit(data.X_train, data.Y_train)
    with tw.workdir(folder, engine):
        return model.fit(data.X_train, data.Y_train)


def digest(model: Any) -> str:
    """Of every bit that the model has learnt."""
    import hashlib

    return hashlib.sha256(b"".join(part.tobytes() for part in model.chunks_)).hexdigest()


@contextmanager
def cluster() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler's address and its workers, who end with it."""
    with ExitStack() as ends:
        port = _free_port()
        ends.enter_context(_process("dask", "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"))
        address = f"dask://127.0.0.1:{port}"
        workers = [_start_worker(address) for _ in range(_WORKERS)]
        try:
            yield address, workers
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def _kill_workers(count: int, folder: Path, address: str, workers: list[Any], expected: str) -> Outcome:
    outcome, chance, kills = Outcome("workers"), random.Random(0), 0
    while kills < count:
        path = folder / f"workers-{outcome.tried}"
        run, last = _begin(path, address), min(count, kills + _KILLS_A_RUN)
        ends = time.monotonic() + _LONGEST_SECONDS
        while run.poll() is None and time.monotonic() < ends:
            time.sleep(chance.random() * _SECONDS_APART)
            if kills < last and run.poll() is None and _has_pieces(path):
                place = chance.randrange(len(workers))
                workers[place].kill()
                workers[place].wait()
                workers[place] = _start_worker(address)
                kills += 1
        _judge(outcome, run, path, expected)
    outcome.name = f"{kills:,} kills of workers"
    return outcome


def _kill_runs(count: int, folder: Path, engine: str, expected: str) -> Outcome:
    kind = engine.partition(":")[0]
    outcome, chance, kills = Outcome(kind), random.Random(1), 0
    while kills < count:
        path = folder / f"{kind}-{outcome.tried}"
        while True:
            run = _begin(path, engine)
            ends, kill_at = time.monotonic() + _LONGEST_SECONDS, chance.random() * 2
            while run.poll() is None and time.monotonic() < ends:
                time.sleep(0.02)
                begun = _has_pieces(path)
                kill_at -= 0.02 * begun
                if kills < count and kill_at < 0 and run.poll() is None:
                    run.kill()
                    run.wait()
                    kills += 1
            if run.returncode != -signal.SIGKILL:
                break
        _judge(outcome, run, path, expected)
    outcome.name = f"{kills:,} kills of runs on {kind}"
    return outcome


def _kill_scheduler(folder: Path, expected: str) -> Outcome:
    """The run ends with an error that says so, and goes on with another cluster."""
    outcome, path = Outcome("scheduler"), folder / "scheduler"
    with cluster() as (address, _):
        run = _begin(path, address)
        while run.poll() is None and not _has_pieces(path):
            time.sleep(0.02)
    if run.wait(_LONGEST_SECONDS) == 0:
        outcome.count("broken", "the run did not notice")
    with cluster() as (address, _):
        again = _begin(path, address)
        again.wait(_LONGEST_SECONDS)
        _judge(outcome, again, path, expected)
    return outcome


def _judge(outcome: Outcome, run: Any, path: Path, expected: str) -> None:
    if run.poll() is None:
        run.kill()
        outcome.count("broken", "it did not end")
        return
    out, errors = run.communicate()
    found = out.decode().strip()
    same = found == expected
    outcome.count("intact" if same else "broken", f"{run.returncode}: {errors.decode()[-300:]}")
    outcome.leftover += sum(len(temporaries_of(file)) for file in path.rglob("*.shard"))


def _has_pieces(path: Path) -> bool:
    """Looks at folders of sites alone: what is beside them is renamed while a run begins."""
    return any(path.glob("job-*/site-*/*.shard"))


def _begin(path: Path, engine: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _WORK, str(path), engine]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _start_worker(address: str) -> subprocess.Popen[bytes]:
    where = "tcp://" + address.removeprefix("dask://")
    options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60"]
    return _started("dask", "worker", where, *options)


@contextmanager
def _process(*command: Any) -> Iterator[subprocess.Popen[bytes]]:
    process = _started(*command)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _started(program: str, *arguments: Any) -> subprocess.Popen[bytes]:
    path = Path(sys.executable).parent / program
    return subprocess.Popen([str(path), *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
