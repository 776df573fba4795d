"""Do several savers on one folder leave one whole model?

Each round starts two threads, or two processes, that save different models to the same path at the same time; then the
path must open as one of the two, with nothing left over.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drills.harness import Outcome, identity, left_over, processes, small_model

COUNT = 200
MODEST = 20
SAVERS = 2


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    known = {identity(small_model(seed)) for seed in range(SAVERS)}
    yield with_threads(count, folder / "threads", known)
    yield with_processes(count, folder / "processes", known)


def with_threads(count: int, path: Path, known: set[str]) -> Outcome:
    outcome = Outcome("threads")

    def save(seed: int) -> None:
        try:
            small_model(seed).save(path)
        except BaseException as error:
            outcome.count("broken", repr(error))

    for number in range(count):
        _start_anew(path, number)
        threads = [threading.Thread(target=save, args=(seed,)) for seed in range(SAVERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        _judge(outcome, path, known)
    return outcome


def with_processes(count: int, path: Path, known: set[str]) -> Outcome:
    outcome = Outcome("processes")
    context = processes()
    pipes = [context.Pipe() for _ in range(SAVERS)]
    savers = [context.Process(target=_serve, args=(pipes[seed][1], seed, path)) for seed in range(SAVERS)]
    for saver in savers:
        saver.start()
    for number in range(count):
        _start_anew(path, number)
        for ours, _ in pipes:
            ours.send("save")
        for ours, _ in pipes:
            answer = ours.recv()
            if answer:
                outcome.count("broken", answer)
        _judge(outcome, path, known)
    for saver, (ours, _) in zip(savers, pipes, strict=True):
        ours.send("stop")
        saver.join()
    return outcome


def _start_anew(path: Path, number: int) -> None:
    """Every other round begins without a folder, the others with the model of the round before."""
    if number % 2 == 0:
        shutil.rmtree(path, ignore_errors=True)


def _judge(outcome: Outcome, path: Path, known: set[str]) -> None:
    outcome.judge(path, known, refusal="broken")
    outcome.leftover += left_over(path)


def _serve(pipe: Any, seed: int, path: Path) -> None:
    model = small_model(seed)
    while pipe.recv() == "save":
        try:
            model.save(path)
            pipe.send("")
        except BaseException as error:
            pipe.send(repr(error))
