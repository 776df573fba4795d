"""Can one-vs-rest and label trees be trained on rows that are four times the memory?

``python -m benchmarks larger_than_memory [--megabytes N] [--labels N]``

Rows are drawn to disk (``write_longtail``), N megabytes of them (default 2,000), and models are trained from the mapped
rows within a run (``workdir``) by a process that may have a quarter of that: a control group of the kernel counts all
its memory, the page cache of what it reads too. Beside it the same without the limit, and in memory: time, peak and
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
_WORDS = 200


def main(arguments: list[str]) -> None:
    megabytes, labels = (_number(arguments, name, usual) for name, usual in (("--megabytes", 2000), ("--labels", 128)))
    found = {}
    folder = RESULTS / f"larger-than-memory-{megabytes}-{labels}"
    if not folder.exists():
        _draw(folder, megabytes, labels)
    size = sum(file.stat().st_size for file in (folder / "train.rows").glob("X.*")) / 1e6
    allowed = int(size / 4)
    print(f"  rows of {size:,.0f} MB on disk, {labels:,} labels; allowed {allowed:,} MB of memory")
    for model in ("DiSMEC", "Bonsai"):
        found[model] = {}
        for how in ("limited", "mapped", "in memory"):
            _forget(folder)
            with _group(allowed if how == "limited" else None) as group:
                found[model][how] = _apart(folder, model, how, group)
            print(f"  {model:8} {how:10} " + ", ".join(f"{k} {_show(v)}" for k, v in found[model][how].items()))
        digests = {one["digest"] for one in found[model].values()}
        print(f"  {model}: {'the same bits' if len(digests) == 1 else 'OTHER BITS'}")
    save_results("larger_than_memory", {"megabytes": size, "allowed": allowed, "labels": labels, "models": found})


def _show(value: Any) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else str(value)[:12]


def _number(arguments: list[str], name: str, usual: int) -> int:
    return int(arguments[arguments.index(name) + 1].replace("_", "")) if name in arguments else usual


def _draw(folder: Path, megabytes: int, labels: int) -> None:
    from tailwise.data import write_longtail

    rows = int(megabytes * 1e6 / _BYTES_A_VALUE / _WORDS)
    try:
        write_longtail(
            folder, rows, 50_000, labels, labels_per_row=3.0, background_words=_WORDS - 6.0, test_fraction=0.0
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _forget(folder: Path) -> None:
    """Have nothing of the rows in memory: the kernel counts a page for whoever read or wrote it first."""
    for file in folder.rglob("*.rows/*"):
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _apart(folder: Path, model: str, how: str, group: Path | None) -> dict[str, Any]:
    code = "import json, sys; from benchmarks.larger_than_memory import train; print(json.dumps(train(*sys.argv[1:])))"
    command = [sys.executable, "-c", code, str(folder), model, how, "" if group is None else str(group)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{model}, {how}: ended with {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def train(folder: str, name: str, how: str, group: str) -> dict[str, Any]:
    import hashlib

    import numpy as np

    import tailwise as tw
    from tailwise.data.mapped import read_rows

    warm = tw.make_longtail(400, 200, 150, random_state=1)
    getattr(tw, name)(random_state=0).fit(warm.X_train, warm.Y_train).predict_topk(warm.X_test)
    if group:
        (Path(group) / "cgroup.procs").write_text(str(os.getpid()))
    X, Y = read_rows(Path(folder) / "train.rows")
    model = getattr(tw, name)(random_state=0, **({"n_trees": 1} if name == "Bonsai" else {}))
    with measure() as taken:
        if how == "in memory":
            X.data, X.indices = np.array(X.data), np.array(X.indices)
            model.fit(X, Y)
        else:
            with tempfile.TemporaryDirectory(dir=RESULTS) as work, tw.workdir(work):
                model.fit(X, Y)
    learnt = model.chunks_ if name == "Bonsai" else (model.weights_.data, model.weights_.indices, model.bias_)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "CPU-s": taken.cpu,
        "s": taken.wall,
        "MB read": usage.ru_inblock * 512 / 1e6,
        "peak MB": _peak(Path(group)) if group else usage.ru_maxrss / 1024,
        "digest": hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in learnt)).hexdigest(),
    }


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
