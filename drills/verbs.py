"""Does kill -9 at any moment of a command leave the old or the new result, and does the next run clean up?

Each verb that writes runs on one of two small tables in turn, over what the last run left, and is killed after a random
time. What lies there must then be the whole result of either table; after a run that is left alone, nothing else may.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import random
import re
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from drills.harness import Outcome, processes
from tailwise.atomic import temporaries_of

COUNT = 200
MODEST = 5
WORDS = ("tax", "law", "sea", "fish", "ship", "road", "river", "bank", "coin", "tree")
TABLES = ("one", "two")
_ALONE_EVERY = 10


class _Verb(NamedTuple):
    """A verb that writes ``out``: its arguments for a table, and how to tell a whole result from another."""

    name: str
    out: str
    arguments: Callable[[str], list[str]]
    identity: Callable[[Path], str]


VERBS = (
    _Verb(
        "train",
        "m",
        lambda table: ["train", f"{table}.csv", "-o", "m", "--model", "dismec", "--overwrite"],
        lambda p: _model(p),
    ),
    _Verb("convert", "rows.txt.xz", lambda table: ["convert", f"{table}.csv", "rows.txt.xz"], lambda p: _bytes(p)),
    _Verb("predict", "p.csv", lambda table: ["predict", "model", f"{table}.csv", "-o", "p.csv"], lambda p: _bytes(p)),
    _Verb("report", "r.html", lambda table: ["report", "model", f"{table}.csv", "-o", "r.html"], lambda p: _page(p)),
)


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    """``count`` kills of each verb, and of a download."""
    for seed, table in enumerate(TABLES):
        write_table(folder / f"{table}.csv", random.Random(seed))
    _finish(folder, ["train", "one.csv", "-o", "model", "--model", "dismec"])
    for verb in VERBS:
        yield _kill(verb, count, folder)
    yield _kill_downloads(count, folder)


def _kill(verb: _Verb, count: int, folder: Path) -> Outcome:
    outcome, path, chance = Outcome(verb.name), folder / verb.out, random.Random(0)
    known, longest = set(), 0.0
    for table in TABLES:
        started = time.monotonic()
        _finish(folder, verb.arguments(table))
        longest = max(longest, time.monotonic() - started)
        known.add(verb.identity(path))
    cleaned = 0
    for number in range(count):
        _start_and_kill(chance.random() * longest, _run, folder, verb.arguments(TABLES[number % 2]))
        outcome.count(*_judged(verb.identity, path, known))
        if number % _ALONE_EVERY == 0 or number == count - 1:
            cleaned += len(temporaries_of(path))
            _finish(folder, verb.arguments(TABLES[0]))
            outcome.leftover += len(temporaries_of(path))
    outcome.name += f", {cleaned:,} cleaned"
    return outcome


def _judged(identity: Callable[[Path], str], path: Path, known: set[str]) -> tuple[str, str]:
    try:
        return ("intact", "") if identity(path) in known else ("broken", "neither the old nor the new")
    except Exception as error:
        return "broken", repr(error)


def _start_and_kill(seconds: float, work: Callable[..., None], *arguments: Any) -> None:
    context = processes()
    started = context.Event()
    victim = context.Process(target=work, args=(*arguments, started))
    victim.start()
    started.wait()
    time.sleep(seconds)
    victim.kill()
    victim.join()


def _finish(folder: Path, arguments: list[str]) -> None:
    worker = processes().Process(target=_run, args=(folder, arguments))
    worker.start()
    worker.join()
    if worker.exitcode:
        raise RuntimeError(f"tailwise {' '.join(arguments)} ended with {worker.exitcode}")


def _run(folder: Path, arguments: list[str], started: Any = None) -> None:
    from tailwise.cli import main

    os.chdir(folder)
    if started is not None:
        started.set()
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        status = main(arguments)
    os._exit(status)


def _kill_downloads(count: int, folder: Path) -> Outcome:
    outcome, chance = Outcome("download"), random.Random(0)
    entry = _publish(folder / "index")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder / "index")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    index = f"http://127.0.0.1:{server.server_port}/simple"
    home = folder / "home"
    path = home / "datasets" / entry["name"]
    digests = {entry["train"], entry["test"]}
    started = time.monotonic()
    _fetch_alone(home, index, entry)
    longest, cleaned = time.monotonic() - started, 0
    for number in range(count):
        for file in path.iterdir() if path.exists() else ():
            file.unlink()
        _start_and_kill(chance.random() * longest, _fetch, home, index, entry)
        found = {_bytes(file) for file in path.iterdir()} if path.exists() else set()
        outcome.count("intact" if found in (set(), digests) else "broken", "half a data set")
        if number % _ALONE_EVERY == 0 or number == count - 1:
            cleaned += len(temporaries_of(path))
            _fetch_alone(home, index, entry)
            outcome.leftover += len(temporaries_of(path))
    server.shutdown()
    server.server_close()
    outcome.name += f", {cleaned:,} cleaned"
    return outcome


def _fetch_alone(home: Path, index: str, entry: dict[str, str]) -> None:
    worker = processes().Process(target=_fetch, args=(home, index, entry))
    worker.start()
    worker.join()
    if worker.exitcode:
        raise RuntimeError(f"the download ended with {worker.exitcode}")


def _fetch(home: Path, index: str, entry: dict[str, str], started: Any = None) -> None:
    from tailwise.data import download, registry
    from tailwise.data.registry import PackagedFile, RegisteredDataset

    os.environ |= {"TAILWISE_HOME": str(home), "PIP_INDEX_URL": index, "NO_PROXY": "127.0.0.1"}
    os.environ.pop("PIP_EXTRA_INDEX_URL", None)
    download._pip_listing = lambda: ""  # type: ignore[assignment]
    name = entry["name"]
    files = (PackagedFile(f"{name}-1.0/{part}.txt", f"{part}.txt", entry[part]) for part in ("train", "test"))
    registry.REGISTRY[name] = RegisteredDataset(
        name, "for a drill", "no rows", name, f"{name}-1.0.tar.gz", entry["archive"], *files
    )
    if started is not None:
        started.set()
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
        download.fetch(name)
    os._exit(0)


def _publish(root: Path) -> dict[str, str]:
    """A package index of one data set, too large to be fetched in one piece; returns its digests."""
    name, chance = "drilled", random.Random(0)
    (root / "simple" / name).mkdir(parents=True)
    (root / "simple" / name / "index.html").write_text(f'<a href="/{name}-1.0.tar.gz">{name}-1.0.tar.gz</a>')
    parts = {part: chance.randbytes(8_000_000) for part in ("train", "test")}
    with tarfile.open(root / f"{name}-1.0.tar.gz", "w:gz", compresslevel=1) as archive:
        for part, data in parts.items():
            member = tarfile.TarInfo(f"{name}-1.0/{part}.txt")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    digests = {part: hashlib.sha256(data).hexdigest() for part, data in parts.items()}
    return {"name": name, "archive": _bytes(root / f"{name}-1.0.tar.gz"), **digests}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send it, though the other end may have been killed."""
        with contextlib.suppress(OSError):
            super().copyfile(source, outputfile)


def write_table(path: Path, chance: random.Random) -> None:
    """A table of 300 short texts whose labels are two of their words."""
    rows = [chance.sample(WORDS, 4) for _ in range(300)]
    path.write_text("text,labels\n" + "".join(f"{' '.join(row)},{';'.join(sorted(row)[:2])}\n" for row in rows))


def _bytes(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _page(path: Path) -> str:
    """A report without its numbers: it says how long it took."""
    page = path.read_text()
    if not page.rstrip().endswith("</html>"):
        raise ValueError("half a page")
    return hashlib.sha256(re.sub(r"\d+", "", page).encode()).hexdigest()


def _model(path: Path) -> str:
    import tailwise

    top = tailwise.load(path).predict_topk([" ".join(WORDS[i : i + 3]) for i in range(7)], 3)
    return hashlib.sha256(top.labels.tobytes() + top.scores.tobytes()).hexdigest()
