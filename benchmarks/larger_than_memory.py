"""Can one-vs-rest and label trees be trained on rows that are four times the memory?

``python -m benchmarks larger_than_memory [DiSMEC] [Bonsai] [--megabytes N] [--labels N]``

Rows are drawn to disk (``write_longtail``), N megabytes of them (default 2,000), and models are trained from the mapped
rows within a run (``workdir``) by a process that may have a quarter of that from its first moment: a control group of
the kernel counts all its memory, the interpreter, numba and the page cache of what it reads too. Beside it the same
without the limit, where the rows fit: time, what was read from disk, the most anonymous memory, the most in all, and
whether the bits are the same. Needs root, for the control group.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, ROOT, measure, save_results

QUESTION = "Can models be trained on rows that are four times the memory?"
_GROUPS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
_LIMITS = ("memory.limit_in_bytes", "memory.max")
_PEAKS = ("memory.max_usage_in_bytes", "memory.peak")
_BYTES_A_VALUE = 8
_WORDS = 400
_SHAPE = {"labels_per_row": 1.2, "words_per_label": 20, "features_per_label": 40, "background_words": _WORDS - 24.0}
_MODELS = ("DiSMEC", "Bonsai")


def main(arguments: list[str]) -> None:
    megabytes, labels = (_number(arguments, name, usual) for name, usual in (("--megabytes", 2000), ("--labels", 128)))
    models = [name for name in arguments if name in _MODELS] or list(_MODELS)
    found: dict[str, Any] = {}
    folder = RESULTS / f"larger-than-memory-{megabytes}-{labels}"
    if not folder.exists():
        _draw(folder, megabytes, labels)
    size = sum(file.stat().st_size for file in (folder / "train.rows").glob("X.*")) / 1e6
    allowed = int(size / 4)
    print(f"  rows of {size:,.0f} MB on disk, {labels:,} labels; allowed {allowed:,} MB of memory")
    _apart(None, "compile", None)
    for model in models:
        found[model] = {}
        for how, limit in (("limited", allowed), ("unlimited", None)):
            _forget(folder)
            with _group(limit) as group:
                found[model][how] = _apart(folder, model, group)
            print(f"  {model:8} {how:10} " + ", ".join(f"{k} {_show(v)}" for k, v in found[model][how].items()))
        digests = {one["digest"] for one in found[model].values()}
        print(f"  {model}: {'the same bits' if len(digests) == 1 else 'OTHER BITS'}", flush=True)
    save_results("larger_than_memory", {"megabytes": size, "allowed": allowed, "labels": labels, "models": found})


def _show(value: Any) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else str(value)[:12]


def _number(arguments: list[str], name: str, usual: int) -> int:
    return int(arguments[arguments.index(name) + 1].replace("_", "")) if name in arguments else usual


def _draw(folder: Path, megabytes: int, labels: int) -> None:
    from tailwise.data import write_longtail

    rows = int(megabytes * 1e6 / _BYTES_A_VALUE / _WORDS)
    try:
        write_longtail(folder, rows, 50_000, labels, **_SHAPE, test_fraction=0.0)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _forget(folder: Path) -> None:
    """Have nothing of the rows in memory: the kernel counts a page for whoever read or wrote it first."""
    for file in folder.rglob("*.rows/*"):
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _apart(folder: Path | None, model: str, group: Path | None) -> dict[str, Any]:
    code = "import json, sys; from benchmarks.larger_than_memory import train; print(json.dumps(train(*sys.argv[1:])))"
    command = [sys.executable, "-c", code, str(folder), model]

    def join() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, preexec_fn=join)
    if done.returncode:
        raise SystemExit(f"{model}: ended with {done.returncode}\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return found if group is None else found | {"MB in all": _peak(group)}


def train(folder: str, name: str) -> dict[str, Any]:
    if name == "compile":
        return _compile()
    import hashlib

    import numpy as np

    import tailwise as tw
    from tailwise.data.mapped import read_rows

    with _anonymous() as most:
        X, Y = read_rows(Path(folder) / "train.rows")
        model = getattr(tw, name)(random_state=0, **({"n_trees": 1} if name == "Bonsai" else {}))
        with measure() as taken, tempfile.TemporaryDirectory(dir=RESULTS) as work, tw.workdir(work):
            model.fit(X, Y)
    learnt = model.chunks_ if name == "Bonsai" else (model.weights_.data, model.weights_.indices, model.bias_)
    return {
        "CPU-s": taken.cpu,
        "s": taken.wall,
        "MB read": resource.getrusage(resource.RUSAGE_SELF).ru_inblock * 512 / 1e6,
        "anonymous MB": most[0],
        "digest": hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in learnt)).hexdigest(),
    }


def _compile() -> dict[str, Any]:
    """Have every kernel compiled, for rows that fit and for rows that do not."""
    import tailwise as tw
    from tailwise.data.mapped import read_rows, write_rows
    from tailwise.linear import dismec

    warm = tw.make_longtail(400, 200, 150, random_state=1)
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        write_rows(Path(folder) / "warm.rows", [(warm.X_train, warm.Y_train)])
        X, Y = read_rows(Path(folder) / "warm.rows")
        for far in (False, True):
            if far:
                dismec._LARGE, tw.memory.free_memory = 0, lambda: 1
            for number, model in enumerate((tw.DiSMEC(random_state=0), tw.Bonsai(n_trees=1, random_state=0))):
                with tw.workdir(Path(folder) / f"run-{far}-{number}"):
                    model.fit(X, Y)
    return {}


@contextmanager
def _anonymous() -> Iterator[list[float]]:
    """The most memory that this process has beside pages of files: [megabytes]."""
    most, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            lines = Path("/proc/self/status").read_text().splitlines()
            most[0] = max(most[0], next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1e3)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield most
    finally:
        done.set()
        watcher.join()


@contextmanager
def _group(megabytes: int | None) -> Iterator[Path | None]:
    """A control group whose processes may have so much memory."""
    if megabytes is None:
        yield None
        return
    for root, limit in zip(_GROUPS, _LIMITS, strict=True):
        group = root / f"tailwise-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(megabytes * 1_000_000))
        except OSError:
            with suppress(OSError):
                group.rmdir()
            continue
        try:
            yield group
        finally:
            with suppress(OSError):
                group.rmdir()
        return
    raise SystemExit("no control group can be made here: this benchmark needs root and the memory controller")


def _peak(group: Path) -> float:
    return next(int((group / name).read_text()) for name in _PEAKS if (group / name).exists()) / 1e6
