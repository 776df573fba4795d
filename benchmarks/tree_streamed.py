"""One Bonsai tree on rows that were drawn to disk, in the shape of Amazon-3M unless told otherwise.

``python -m benchmarks tree_streamed FOLDER [rows features labels] [--labels-per-row N] [--threads N]``

FOLDER gets the rows (``data``, drawn once), the pieces of the run (``run``) and the model (``model``): killed anywhere,
the same command goes on where it was, and then says only what it took itself. Every label that is drawn is kept, and
chances of labels fall as rank ** -0.6, so that most labels have rows. Without numbers: 3,000,000 labels, 1,734,694
rows (of which 1,700,000 are for training), 337,067 features, 4 labels a row. Without a folder a small set shows that
it works.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness import folder_mb, measure, save_results

QUESTION = "What does one tree of millions of labels take on this machine?"
_SHAPE = (1_734_694, 337_067, 3_000_000)
_SMALL = (20_000, 5_000, 20_000)
_ROWS = 500
_BATCH = 2000


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="tree_streamed")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("shape", nargs="*", type=int, default=_SHAPE)
    parser.add_argument("--labels-per-row", type=float, default=4.0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        if options.folder is None:
            options.folder, options.shape = Path(stack.enter_context(TemporaryDirectory())), _SMALL
        if not (options.folder / "data").exists():
            _draw(options.folder / "data", options)
        figures = train(options.folder, options.threads)
    print(json.dumps(figures, indent=1))
    save_results("tree_streamed", figures)


def _draw(data: Path, options: Any) -> None:
    from tailwise.data import write_longtail

    shape = {"labels_per_row": options.labels_per_row, "exponent": 0.6, "propensity": 1.0, "test_fraction": 0.02}
    write_longtail(data, *options.shape, **shape, random_state=0, n_jobs=options.threads)


def train(folder: Path, threads: int) -> dict[str, Any]:
    """Train, save, open again, predict; what each took."""
    import numpy as np

    import tailwise

    warm = tailwise.make_longtail(500, 300, 200, random_state=1)
    tailwise.Bonsai(1, arity=4, max_leaf=5, n_jobs=1).fit(warm.X_train, warm.Y_train).predict_topk(warm.X_test)
    data = tailwise.load_dataset(folder / "data")
    carried = int((np.bincount(data.Y_train.indices, minlength=data.n_labels) > 0).sum())
    with measure() as taken, tailwise.workdir(folder / "run"):
        model = tailwise.Bonsai(1, random_state=0, n_jobs=threads).fit(data.X_train, data.Y_train)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    model.save(folder / "model")
    start = time.perf_counter()
    mapped = tailwise.load(folder / "model", verify=False)
    opened = time.perf_counter() - start
    X, Y = data.X_test[:_BATCH], data.Y_test[:_BATCH]
    singles = []
    for i in range(_ROWS):
        row = X[[i % X.shape[0]]]
        start = time.perf_counter()
        mapped.predict_topk(row, 5)
        singles.append(time.perf_counter() - start)
    with measure() as batch:
        top = mapped.predict_topk(X, 5)
    hits = [Y[i, labels[0]] for i, labels in enumerate(top.labels) if labels[0] >= 0]
    return {
        "labels": data.n_labels,
        "labels with rows": carried,
        "rows": int(data.X_train.shape[0]),
        "features": int(data.X_train.shape[1]),
        "labels a row": data.Y_train.nnz / data.X_train.shape[0],
        "non-zeros a row": data.X_train.nnz / data.X_train.shape[0],
        "train CPU-s": taken.cpu,
        "train s": taken.wall,
        "peak MB": peak,
        "model MB": folder_mb(folder / "model"),
        "open ms": 1e3 * opened,
        "one row ms": 1e3 * statistics.median(singles[50:]),
        "batch CPU-s/1,000": batch.cpu / X.shape[0] * 1000,
        "P@1": 100 * float(np.mean(hits)),
    }
