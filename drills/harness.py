"""What drills share: figures, a small model whose identity can be told, processes that can be killed.

A drill is a module of this package with ``COUNT`` and ``MODEST`` (how many by default, and in ``all``) and
``drill(count, folder)``, which yields an :class:`Outcome` for each way of asking its question.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pkgutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from multiprocessing.context import ForkServerContext
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

import numpy as np
from scipy import sparse

import tailwise
from tailwise.atomic import temporaries_of
from tailwise.errors import ModelFileError
from tailwise.persistence.manifest import OUR_FILE, listed_files


@dataclass
class Outcome:
    """How the tries of one drill ended.

    ``intact`` gave the same bits, ``refused`` one clear error, ``changed`` (without verification) other numbers but no
    harm; ``broken`` is everything else. ``leftover`` counts files that nothing needs and nobody removes.
    """

    name: str
    tried: int = 0
    intact: int = 0
    refused: int = 0
    changed: int = 0
    broken: int = 0
    leftover: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def count(self, kind: str, why: str = "") -> None:
        """One more try that ended as ``kind``."""
        self.tried += 1
        setattr(self, kind, getattr(self, kind) + 1)
        if kind == "broken":
            self.reasons[why] += 1

    def judge(self, path: Path, known: set[str], *, verify: bool = True, refusal: str = "refused") -> None:
        """Open the model and count it: intact if it is one of the ``known``."""
        try:
            found = identity(tailwise.load(path, verify=verify))
        except ModelFileError as error:
            self.count(refusal, str(error))
        except Exception as error:
            self.count("broken", repr(error))
        else:
            kind = "intact" if found in known else "broken" if verify else "changed"
            self.count(kind, "opened as another model")

    @property
    def passed(self) -> bool:
        """Whether nothing was lost and nothing was left."""
        return not self.broken and not self.leftover

    def __str__(self) -> str:
        figures = ("tried", "intact", "refused", "changed", "broken", "leftover")
        lines = [f"  {self.name:36}" + "".join(f"  {name} {getattr(self, name):,}" for name in figures)]
        lines += [f"    {times:,} × {why[:300]}" for why, times in self.reasons.most_common(5)]
        return "\n".join(lines)


def available() -> dict[str, ModuleType]:
    """The drills by name."""
    package = import_module("drills")
    modules = {
        m.name: import_module(f"drills.{m.name}") for m in pkgutil.iter_modules(package.__path__) if m.name[0] != "_"
    }
    return {name: module for name, module in modules.items() if hasattr(module, "drill")}


def wanted(name: str) -> bool:
    """Whether the part of a drill that has this name is to be run; the command line may say which are."""
    return not only or name in only


only: set[str] = set()


def run(name: str, module: ModuleType, count: int) -> bool:
    """Run one drill in a folder of its own and print its figures; returns whether it passed."""
    print(f"{name}: {(module.__doc__ or '').splitlines()[0]}")
    passed = True
    with tempfile.TemporaryDirectory(prefix="drill-") as folder:
        for outcome in module.drill(count, Path(folder)):
            print(outcome, flush=True)
            passed &= outcome.passed
    return passed


def processes() -> ForkServerContext:
    """Processes that start quickly, with tailwise imported, and share nothing with this one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["drills.harness", "tailwise.text", "tailwise.baselines", "tailwise.audit.store"])
    return context


def tried_apart(name: str, work: Callable[..., None], *arguments: Any) -> Outcome:
    """What ``work(*arguments, sender)`` sends, counted; it runs in a process of its own, whose death is broken too."""
    outcome, context = Outcome(name), processes()
    receiver, sender = context.Pipe(duplex=False)
    victim = context.Process(target=work, args=(*arguments, sender))
    victim.start()
    sender.close()
    with suppress(EOFError):
        while True:
            outcome.count(*receiver.recv())
    victim.join()
    if code := victim.exitcode:
        outcome.count("broken", f"the process died: {signal.Signals(-code).name if code < 0 else code}")
    return outcome


class Warmed:
    """A process that did ``warm_up(*arguments)`` once, and copies of it that do more work and can be killed.

    What is imported and compiled is so already: a copy that is killed after a random time is killed while it works.
    """

    def __init__(self, warm_up: Callable[..., None], *arguments: Any) -> None:
        self._warm_up = (warm_up, *arguments)

    def __enter__(self) -> Self:
        context = processes()
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_copy_on, args=(theirs, *self._warm_up))
        self._process.start()
        theirs.close()
        self._pipe.recv()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def killed(self, seconds: float, work: Callable[..., None], *arguments: Any) -> None:
        """Kill a copy so many seconds after it began ``work(*arguments)``."""
        self._pipe.send((work, arguments))
        victim = self._pipe.recv()
        time.sleep(seconds)
        # It may have ended by itself; its number is its own until it is asked for how it ended.
        os.kill(victim, signal.SIGKILL)
        self._ended()

    def finished(self, work: Callable[..., None], *arguments: Any) -> float:
        """Have a copy do ``work(*arguments)`` to its end; returns the seconds, refused where it fails."""
        started = time.monotonic()
        self._pipe.send((work, arguments))
        self._pipe.recv()
        if status := self._ended():
            raise RuntimeError(f"{work.__name__}{arguments} ended with {status}")
        return time.monotonic() - started

    def _ended(self) -> int:
        self._pipe.send(None)
        return int(self._pipe.recv())


def _copy_on(pipe: Any, warm_up: Callable[..., None], *arguments: Any) -> None:
    warm_up(*arguments)
    pipe.send("warm")
    while True:
        work, given = pipe.recv()
        if not (copy := os.fork()):
            try:
                work(*given)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        pipe.send(copy)
        pipe.recv()
        pipe.send(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]))


N_FEATURES, N_LABELS = 60, 300


@cache
def small_model(seed: int) -> Any:
    """A Tagger with sparse weights, dense arrays and enough label names to be packed; another one for each seed."""
    from tailwise.baselines import Centroid
    from tailwise.text import Tagger

    rng = np.random.default_rng(seed)
    X = sparse.random_array((400, N_FEATURES), density=0.2, format="csr", rng=rng, dtype=np.float32)
    Y = sparse.csr_array((rng.random((400, N_LABELS)) < 0.01).astype(np.float32))
    names = [f"label {seed} {i}" for i in range(N_LABELS)]
    return Tagger(Centroid(n_jobs=1)).fit(X, Y, label_ids=names)


def identity(model: Any) -> str:
    """A digest of what a model answers, and of the names it answers with."""
    rows = sparse.random_array(
        (20, N_FEATURES), density=0.3, format="csr", rng=np.random.default_rng(7), dtype=np.float32
    )
    top = model.model_.predict_topk(rows, 5)
    content = top.labels.tobytes() + top.scores.tobytes() + "\n".join(model.label_names_).encode("utf-8", "replace")
    return hashlib.sha256(content).hexdigest()


def left_over(path: Path) -> int:
    """How many temporaries, lock files and files that no manifest lists are in and beside the model at ``path``."""
    beside = [*temporaries_of(path), *path.parent.glob(f".{path.name}.*lock")]
    listed = listed_files(path) or set()
    inside = [file for file in path.iterdir() if OUR_FILE.fullmatch(file.name) and file.name not in listed]
    return len(beside) + len(inside)
