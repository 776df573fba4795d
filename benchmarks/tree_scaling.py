"""How does a label tree grow with the number of labels: training time and memory, model size, time of one row?

``python -m benchmarks tree_scaling [size …] [--repeats N] [--trees N] [--threads N]``

Synthetic long-tailed data with as many rows as labels and a fifth as many features: 10,000 to 1,000,000, or the sizes
given as arguments. A tree's shape changes with the size: three levels of at most 100 clusters fill up one after the
other, and the root of more than 100,000 labels is wider. Four sizes a factor of 4.64 apart span both, a factor of 100,
so that the exponent over all of them is not that of a part. Every label that is drawn is kept, and chances fall as rank
** -0.6, so that labels with rows, and the non-zeros of their rows, grow as the size does: exponents are those of the
work. Each size runs in a process of its own: drawing the data, one Bonsai tree (or ``--trees``), saving, opening by
mmap, single rows from the mapped model and batches on two threads, both ``--repeats`` times: the median, and the lowest
and highest. "peak MB" is the process' whole peak, data included. Then the exponents: a cost that grows as size ** e,
from each size to the next and over all of them by least squares. "non-zeros of labels", those of each label's rows
summed up, is what a tree has to look at; "non-zeros of rows" are those of X.
"""

from __future__ import annotations

import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, folder_mb, measure, save_results

QUESTION = "How do training, memory and the time of one row grow with the number of labels?"
SIZES = (10_000, 46_400, 215_000, 1_000_000)
THREADS = 2
GROWING = ("labels with rows", "non-zeros of labels", "train CPU-s", "peak MB", "model MB", "one row ms")
DRAWN: dict[str, Any] = {"exponent": 0.6, "propensity": 1.0}
"""Then nearly all labels have rows, the same share of them at every size."""
_ROWS = 500


def main(arguments: list[str]) -> None:
    arguments = list(arguments)
    repeats, trees = _take(arguments, "--repeats", 3), _take(arguments, "--trees", 1)
    threads = _take(arguments, "--threads", THREADS)
    sizes = [int(text.replace("_", "")) for text in arguments] or list(SIZES)
    rows = []
    for size in sizes:
        call = f"grow({size}, {repeats}, {trees}, {threads})"
        code = f"import json; from benchmarks.tree_scaling import grow; print(json.dumps({call}))"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            raise SystemExit(f"{size:,} labels failed")
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print("  " + ", ".join(f"{name} {_show(value)}" for name, value in rows[-1].items()))
    found = exponents(rows)
    for name, own in found.items():
        print(f"  {name} grows as size ** {own['all']:.2f} ({', '.join(f'{e:.2f}' for e in own['steps'])})")
    save_results("tree_scaling", {"sizes": rows, "exponents": found})


def exponents(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """For what grows: the exponent over all sizes by least squares, and from each size to the next.

    >>> exponents([{"labels": 1, "peak MB": 2.0}, {"labels": 4, "peak MB": 32.0}])["peak MB"]["all"]
    2.0
    """
    found = {}
    for name in GROWING:
        if len(rows) < 2 or name not in rows[0]:
            continue
        sizes = [math.log2(row["labels"]) for row in rows]
        values = [math.log2(statistics.median(row[name]) if isinstance(row[name], list) else row[name]) for row in rows]
        steps = [
            (values[i + 1] - values[i]) / (sizes[i + 1] - sizes[i])
            for i in range(len(rows) - 1)
            if sizes[i + 1] != sizes[i]
        ]
        found[name] = {"all": statistics.linear_regression(sizes, values).slope, "steps": steps}
    return found


def _take(arguments: list[str], option: str, default: int) -> int:
    """The number after ``option``, both removed from the arguments."""
    if option not in arguments:
        return default
    at = arguments.index(option)
    value = int(arguments[at + 1])
    del arguments[at : at + 2]
    return value


def _show(value: Any) -> str:
    if isinstance(value, list):
        return f"{statistics.median(value):,.4g} [{min(value):,.4g}-{max(value):,.4g}]"
    return f"{value:,.4g}"


def grow(n_labels: int, repeats: int, n_trees: int, threads: int) -> dict[str, Any]:
    import numpy as np

    import tailwise
    from tailwise import Bonsai, make_longtail

    warm = make_longtail(500, 300, 200, random_state=1)
    Bonsai(n_trees=1, arity=4, max_leaf=5).fit(warm.X_train, warm.Y_train).predict_topk(warm.X_test)
    data = make_longtail(n_labels, max(1_000, n_labels // 5), n_labels, **DRAWN, test_fraction=0.02, random_state=0)
    with measure() as train:
        model = Bonsai(n_trees=n_trees, random_state=0, n_jobs=threads).fit(data.X_train, data.Y_train)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        size = folder_mb(path)
        start = time.perf_counter()
        mapped = tailwise.load(path, verify=False)
        opened = time.perf_counter() - start
        X = data.X_test[:2000]
        rows = [X[[i % X.shape[0]]] for i in range(_ROWS)]
        one = [_median_ms(mapped, rows) for _ in range(repeats)]
    batches = []
    for _ in range(repeats):
        with measure() as batch:
            top = model.predict_topk(X, 5)
        batches.append(batch)
    lengths = np.diff(data.X_train.indptr)
    carried = np.bincount(data.Y_train.indices, minlength=n_labels)
    hits = [data.Y_test[i, labels[0]] for i, labels in enumerate(top.labels) if labels[0] >= 0]
    return {
        "labels": n_labels,
        "rows": int(data.X_train.shape[0]),
        "features": int(data.X_train.shape[1]),
        "labels with rows": int((carried > 0).sum()),
        "non-zeros of rows": int(data.X_train.nnz),
        "non-zeros of labels": int((np.diff(data.Y_train.indptr) * lengths).sum()),
        "train CPU-s": train.cpu,
        "train s": train.wall,
        "peak MB": peak,
        "model MB": size,
        "open ms": 1e3 * opened,
        "one row ms": one,
        "batch s/1,000": [batch.wall / X.shape[0] * 1000 for batch in batches],
        "batch CPU-s/1,000": [batch.cpu / X.shape[0] * 1000 for batch in batches],
        "P@1": 100 * float(np.mean(hits)),
    }


def _median_ms(model: Any, rows: list[Any]) -> float:
    """Median time of one row, after a few to warm up."""
    taken = []
    for row in rows:
        start = time.perf_counter()
        model.predict_topk(row, 5)
        taken.append(time.perf_counter() - start)
    return 1e3 * statistics.median(taken[50:])
