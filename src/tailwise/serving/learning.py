"""Learning from records that clients send: they are kept in a queue on disk, and a process of its own applies them.

``python -m tailwise.serving.learning MODEL`` learns all that is queued for a model and saves the new version over the
old one, which the workers then take up like any other. Records leave the queue when the model that knows them is saved:
a crash means that they are learnt again, and learning a record again changes nothing. One process at a time learns for
a model, whichever worker started it.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from tailwise.atomic import write_whole
from tailwise.errors import InvalidInput, TailwiseError, Unsupported
from tailwise.parallel import set_progress
from tailwise.persistence import load
from tailwise.serving.logs import set_up_logs
from tailwise.serving.problems import Problem, overloaded
from tailwise.serving.served import Served
from tailwise.serving.suggesting import with_metadata
from tailwise.text import Tagger

QUEUE = "learn-queue"
"""A folder within the model's: a file for each request."""
REFUSED = "refused"
_MOST_FILES = 10_000
_NICENESS = 10
_log = logging.getLogger("tailwise.serving")

Record = dict[str, Any]
"""``text`` and ``labels``, a dict from the label's id to its name or None."""


def records_of(served: Served, documents: list[dict[str, Any]]) -> list[Record]:
    """What Annif's documents say; those without text or subjects say nothing."""
    return [
        {
            "text": with_metadata(served, one["text"], one.get("metadata") or {}),
            "labels": {subject["uri"]: subject.get("label") for subject in one["subjects"]},
        }
        for one in documents
        if "text" in one and "subjects" in one
    ]


def check_learns(served: Served) -> None:
    """Refuse a model that cannot learn more, saying why."""
    try:
        served.tagger.model_._check_updates()
    except Unsupported as error:
        raise Problem(409, str(error), title="Learning not possible") from error
    if served.tagger.training_ is None:
        raise Problem(
            409,
            f"{served.id} keeps no training records, and cannot learn from new ones alone; train it with "
            "--keep-training-data",
            title="Learning not possible",
        )


def enqueue(model: Path, records: list[Record]) -> None:
    """Keep records for later: when this returns they are on the disk."""
    queue = model / QUEUE
    try:
        queue.mkdir(exist_ok=True)
        if len(queued(model)) >= _MOST_FILES:
            raise overloaded(f"{_MOST_FILES:,} requests wait to be learnt already", 60)
        write_whole(queue / f"{time.time_ns():020d}-{uuid4().hex}.json", json.dumps(records))
    except OSError as error:
        raise overloaded(f"the records cannot be kept ({error.strerror or error})", 60) from error


def queued(model: Path) -> list[Path]:
    """The files that wait, the oldest first."""
    return sorted((model / QUEUE).glob("[0-9]*.json")) if (model / QUEUE).is_dir() else []


def learn_queued(model: Path) -> int:
    """Learn all that waits and save the model in its place; returns how many records that were.

    A request whose records cannot be learnt is put aside under ``refused`` and told; the others are learnt.
    """
    files = queued(model)
    if not files:
        return 0
    try:
        n_records = _learn(model, files)
    except TailwiseError as error:
        if len(files) == 1:
            _put_aside(files[0], error)
            return 0
        return sum(_learn_alone(model, file) for file in files)
    return n_records


def _learn_alone(model: Path, file: Path) -> int:
    try:
        return _learn(model, [file])
    except TailwiseError as error:
        _put_aside(file, error)
        return 0


def _learn(model: Path, files: list[Path]) -> int:
    records: list[Record] = [record for file in files for record in json.loads(file.read_text(encoding="utf-8"))]
    # Of a record that came twice the last word counts.
    latest = {record["text"]: record["labels"] for record in records}
    tagger = load(model)
    if not isinstance(tagger, Tagger):
        raise InvalidInput(f"{model} holds no Tagger")
    if latest:
        given = {uri: name for labels in latest.values() for uri, name in labels.items() if name}
        known = (
            {}
            if tagger.vocabulary_ is None
            else {uri: tagger.vocabulary_.name(uri) for uri in given if uri in tagger.vocabulary_}
        )
        tagger.update(list(latest), [list(labels) for labels in latest.values()], names=given | known)
        tagger.save(model)
    for file in files:
        file.unlink(missing_ok=True)
    return len(latest)


def _put_aside(file: Path, error: Exception) -> None:
    aside = file.parent / REFUSED
    aside.mkdir(exist_ok=True)
    file.rename(aside / file.name)
    _log.error(
        "records cannot be learnt; they are put aside", extra={"file": str(aside / file.name), "reason": str(error)}
    )


@contextmanager
def alone(model: Path) -> Iterator[bool]:
    """Whether this process is the only one that learns for the model, as long as the block lasts."""
    with (model / QUEUE / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


class Learning:
    """Starts the process that learns, one a model, and again as long as records wait."""

    def __init__(self) -> None:
        self._under_way: dict[Path, asyncio.Task[None]] = {}

    def start(self, model: Path) -> None:
        """Have what waits for the model learnt; nothing to do where that goes on already."""
        task = self._under_way.get(model)
        if task is None or task.done():
            self._under_way[model] = asyncio.get_running_loop().create_task(self._learn(model))

    async def _learn(self, model: Path) -> None:
        waiting = None
        while (now := queued(model)) and now != waiting:
            waiting = now
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tailwise.serving.learning", str(model), stdin=asyncio.subprocess.DEVNULL
            )
            status = await process.wait()
            if status:
                _log.error("learning failed; the records still wait", extra={"model": str(model), "status": status})
                return


def main(path: str) -> int:
    """Learn what waits for a model, unless another process is at it."""
    set_up_logs()
    set_progress(False)
    os.nice(_NICENESS)
    model = Path(path)
    with alone(model) as first:
        if not first:
            return 0
        start = time.perf_counter()
        n_records = learn_queued(model)
    seconds = round(time.perf_counter() - start, 3)
    _log.info("learnt", extra={"model": str(model), "records": n_records, "seconds": seconds})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
