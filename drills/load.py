"""Does a reader see the old model or the new one while others save, always?

A process saves two models in turn to one path without a pause; this one opens it again and again, with verification and
without. Models that were opened before must stay readable.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tailwise
from drills.harness import Outcome, identity, left_over, processes, small_model

COUNT = 500
MODEST = 100


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    path = folder / "model"
    known = {identity(small_model(seed)) for seed in range(2)}
    small_model(0).save(path)
    early = tailwise.load(path)
    context = processes()
    stop, saves = context.Event(), context.Value("q", 0)
    saver = context.Process(target=_save_on, args=(path, stop, saves, [small_model(0), small_model(1)]))
    saver.start()
    while not saves.value:
        time.sleep(0.01)
    try:
        for verify in (True, False):
            before = saves.value
            outcome = Outcome(f"verify={verify}")
            for _ in range(count):
                outcome.judge(path, known, verify=verify, refusal="broken")
            # Without verification another model would count as changed; here only the two may be seen.
            outcome.broken += outcome.changed
            outcome.name += f", {saves.value - before:,} saves"
            yield outcome
    finally:
        stop.set()
        saver.join()
    outcome = Outcome("opened before, read after")
    outcome.count("intact" if identity(early) == identity(small_model(0)) else "broken", "an open model changed")
    outcome.leftover = left_over(path)
    yield outcome


def _save_on(path: Path, stop: Any, saves: Any, models: Any) -> None:
    while not stop.is_set():
        models[saves.value % 2].save(path)
        saves.value += 1
