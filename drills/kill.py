"""Does kill -9 at any moment of a save or a write leave the old or the new, and does the next one clean up?

A process saves models (or writes a file) in turn without a pause and is killed after a random time. The path must then
open as one of them; after one more save by somebody else nothing may be left over.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from drills.harness import Outcome, identity, left_over, processes, small_model
from tailwise.atomic import temporaries_of, writing

COUNT = 200
MODEST = 20
TEXTS = (b"old " * 300_000, b"new" * 500_000)


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    path = folder / "model"
    known = {identity(small_model(seed)) for seed in range(3)}
    small_model(0).save(path)
    outcome, after_kills = Outcome("save"), 0
    for _ in kills(count, _save_on, path, [small_model(0), small_model(1)]):
        after_kills += left_over(path)
        outcome.judge(path, known, refusal="broken")
        small_model(2).save(path)
        outcome.leftover += left_over(path)
    outcome.name += f", {after_kills:,} cleaned"
    yield outcome
    yield _writes(count, folder / "data.txt")


def _writes(count: int, path: Path) -> Outcome:
    outcome, after_kills = Outcome("write"), 0
    _write(path, TEXTS[0])
    for _ in kills(count, _write_on, path, TEXTS):
        after_kills += len(temporaries_of(path))
        outcome.count("intact" if path.read_bytes() in TEXTS else "broken", "half a file")
        _write(path, TEXTS[0])
        outcome.leftover += len(temporaries_of(path))
    outcome.name += f", {after_kills:,} cleaned"
    return outcome


def kills(count: int, work: Callable[[Path, Any, Any], None], path: Path, things: Any) -> Iterator[None]:
    """Start ``work`` on ``path`` with ``things`` in a process and kill it after a random time, ``count`` times."""
    context, chance = processes(), random.Random(0)
    for _ in range(count):
        started = context.Event()
        victim = context.Process(target=work, args=(path, started, things))
        victim.start()
        started.wait()
        time.sleep(chance.random() * 0.1)
        victim.kill()
        victim.join()
        yield


def _save_on(path: Path, started: Any, models: Any) -> None:
    started.set()
    while True:
        for model in models:
            model.save(path)


def _write_on(path: Path, started: Any, texts: Any) -> None:
    started.set()
    while True:
        for text in texts:
            _write(path, text)


def _write(path: Path, text: bytes) -> None:
    with writing(path) as file:
        file.write(text)
