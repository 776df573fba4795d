"""Can one-vs-rest and label trees be trained on rows that are four times the memory?

``python -m benchmarks larger_than_memory [DiSMEC] [Bonsai] [commands] [--megabytes N] [--labels N,N] [--allowed N]``

Rows are drawn to disk (``write_longtail``), N megabytes of them (default 2,000) with few labels that many rows carry
and with a long tail of them, and models are trained from the mapped rows within a run (``workdir``) by a process that
may have a quarter of that, or as many megabytes as are allowed, from its first moment: a control group of the kernel
counts all its memory, the interpreter, numba and the page cache of what it reads too. Beside it the same without the
limit, where the rows fit: time, how often the rows were read from disk, the most anonymous memory, the most in all,
precision on test rows, and whether the bits are the same. Needs root, for the control group. ``commands`` asks what
``tailwise convert`` and ``tailwise predict`` take for text of two sizes.
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
import time
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
_WORDS, _FEATURES = 400, 50_000
_SHAPE = {
    "labels_per_row": 1.2,
    "words_per_label": 20,
    "features_per_label": 40,
    "background_words": _WORDS - 24.0,
    "test_fraction": 0.02,
}
_LABELS = (128, 1000)
_MODELS = ("DiSMEC", "Bonsai")
_TEXT = (80, 320)
"""Megabytes."""
_COLUMNS = ("CPU-s", "s", "reads", "anonymous MB", "MB in all", "P@1", "P@5")


def main(arguments: list[str]) -> None:
    megabytes = int(_argument(arguments, "--megabytes", "2000"))
    labels = [int(number) for number in _argument(arguments, "--labels", ",".join(map(str, _LABELS))).split(",")]
    named = [name for name in arguments if name in (*_MODELS, "commands")] or [*_MODELS, "commands"]
    allowed = int(_argument(arguments, "--allowed", "0"))
    found: dict[str, Any] = {}
    models = [name for name in named if name in _MODELS]
    if models:
        _apart(None, "compile", None)
    for n_labels in labels if models else []:
        found[f"{n_labels} labels"] = _compare(models, megabytes, n_labels, allowed)
    if "commands" in named:
        found["commands"] = _commands()
    save_results("larger_than_memory", found)


def _argument(arguments: list[str], name: str, usual: str) -> str:
    return arguments[arguments.index(name) + 1].replace("_", "") if name in arguments else usual


def _compare(models: list[str], megabytes: int, labels: int, allowed: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    folder = RESULTS / f"larger-than-memory-{megabytes}-{labels}"
    if not folder.exists():
        _draw(folder, megabytes, labels)
    size = sum(file.stat().st_size for file in (folder / "train.rows").glob("X.*")) / 1e6
    allowed = allowed or int(size / 4)
    print(f"  rows of {size:,.0f} MB on disk, {labels:,} labels; allowed {allowed:,} MB of memory")
    print(f"  {'':20}" + "".join(f"{column:>14}" for column in _COLUMNS))
    for model in models:
        found[model] = {}
        for how, limit in (("limited", allowed), ("unlimited", None)):
            _forget(folder)
            with _group(limit) as group:
                own = found[model][how] = _apart(folder, model, group)
            own["reads"] = own["MB read"] / size
            print(f"  {model:8} {how:10} " + "".join(f"{own.get(column, 0):14,.1f}" for column in _COLUMNS), flush=True)
        digests = {one["digest"] for one in found[model].values()}
        print(f"  {model}: {'the same bits' if len(digests) == 1 else 'OTHER BITS'}", flush=True)
    return {"megabytes": size, "allowed": allowed, "models": found}


def _draw(folder: Path, megabytes: int, labels: int) -> None:
    from tailwise.data import write_longtail

    rows = int(megabytes * 1e6 / _BYTES_A_VALUE / _WORDS)
    try:
        write_longtail(folder, rows, _FEATURES, labels, **_SHAPE)
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

    with _anonymous(os.getpid()) as most:
        X, Y = read_rows(Path(folder) / "train.rows")
        model = getattr(tw, name)(random_state=0, **({"n_trees": 1} if name == "Bonsai" else {}))
        with measure() as taken, tempfile.TemporaryDirectory(dir=RESULTS) as work, tw.workdir(work):
            model.fit(X, Y)
        X_test, Y_test = read_rows(Path(folder) / "test.rows")
        scores = tw.evaluate(Y_test, model.predict_topk(X_test, 5), ["p@1", "p@5"], confidence=None)
    learnt = model.chunks_ if name == "Bonsai" else (model.weights_.data, model.weights_.indices, model.bias_)
    return {
        "CPU-s": taken.cpu,
        "s": taken.wall,
        "MB read": resource.getrusage(resource.RUSAGE_SELF).ru_inblock * 512 / 1e6,
        "anonymous MB": most[0],
        "P@1": scores["p@1"].value,
        "P@5": scores["p@5"].value,
        "digest": hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in learnt)).hexdigest(),
    }


def _compile() -> dict[str, Any]:
    """Have every kernel compiled, for rows that fit and for rows that do not."""
    import tailwise as tw
    from tailwise.data.mapped import read_rows, write_rows
    from tailwise.kernels.solvers import solve
    from tailwise.linear import dismec

    warm = tw.make_longtail(400, 200, 150, random_state=1)
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        write_rows(Path(folder) / "warm.rows", [(warm.X_train, warm.Y_train)])
        X, Y = read_rows(Path(folder) / "warm.rows")
        for far in (False, True):
            if far:
                dismec._LARGE, solve._MANY_VALUES, tw.memory.free_memory = 0, 1, lambda: 1
            for number, model in enumerate((tw.DiSMEC(random_state=0), tw.Bonsai(n_trees=1, random_state=0))):
                with tw.workdir(Path(folder) / f"run-{far}-{number}"):
                    model.fit(X, Y)
    return {}


@contextmanager
def _anonymous(process: int) -> Iterator[list[float]]:
    """The most memory that a process has beside pages of files: [megabytes]."""
    most, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            with suppress(OSError, StopIteration):
                lines = Path(f"/proc/{process}/status").read_text().splitlines()
                most[0] = max(most[0], next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1e3)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield most
    finally:
        done.set()
        watcher.join()


def _commands() -> dict[str, Any]:
    """The most anonymous memory of commands that read text of two sizes and write what comes of it."""
    import tailwise as tw

    found: dict[str, Any] = {}
    shape = {name: value for name, value in _SHAPE.items() if name != "test_fraction"}
    data = tw.make_longtail(5000, _FEATURES, 1000, **shape, test_fraction=0.0)
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        here = Path(folder)
        tw.data.write_xmc(here / "some.txt", data.X_train, data.Y_train)
        header, *lines = (here / "some.txt").read_text().splitlines(keepends=True)
        block = "".join(lines)
        _command("train", here / "some.txt", "-o", here / "model", "--model", "dismec")
        for megabytes in (1, *_TEXT):  # the first is for kernels to compile
            times = -(-megabytes * 10**6 // len(block))
            with (here / "rows.txt").open("w") as file:
                file.write(f"{times * len(lines)} {header.split(maxsplit=1)[1]}")
                for _ in range(times):
                    file.write(block)
            arguments = {
                "convert": [here / "rows.txt", here / f"{megabytes}.rows"],
                "predict": [here / "model", here / "rows.txt", "-o", here / "labels.tsv"],
            }
            for name, own in arguments.items():
                taken = _command(name, *own)
                if megabytes > 1:
                    found[f"{name}, {megabytes} MB of text"] = taken
                    told = ", ".join(f"{what} {value:,.0f}" for what, value in taken.items())
                    print(f"  tailwise {name}, {megabytes} MB of text: {told}", flush=True)
    return found


def _command(name: str, *arguments: Any) -> dict[str, float]:
    began = time.perf_counter()
    running = subprocess.Popen([sys.executable, "-m", "tailwise.cli", name, *map(str, arguments), "-q"], cwd=ROOT)
    with _anonymous(running.pid) as most:
        if running.wait():
            raise SystemExit(f"tailwise {name}: ended with {running.returncode}")
    return {"anonymous MB": most[0], "s": time.perf_counter() - began}


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
