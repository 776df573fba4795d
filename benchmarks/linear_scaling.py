"""How does one-vs-rest training grow with labels and with rows, on synthetic long-tailed data?

DiSMEC on parts of one ``make_longtail`` set with complete labels, on all cores. Labels: a quarter, a half and all of
the labels that have rows, over the same rows. Rows: a quarter, a half and all rows, for the labels that have rows in
the first quarter. Only labels with rows count, since others cost nothing. The exponent is the slope of log
CPU-seconds against log size (1 is linear). The last line trains 45,000 labels over 27,000 features and 150,000 rows:
what training adds to memory at its peak, the most that the whole process ever held, and the size of the model.

``python -m benchmarks linear_scaling labels rows large`` answers all three; name one to answer that alone.
``titles`` has the shape of LF-AmazonTitles-131K: 131,073 labels, 294,805 rows of a few words, 40,000 features, drawn to
disk and mapped; ``--every 8`` trains every eighth label of it, over all rows. The saved model is opened by mmap and
asked about single rows. What others took for data sets of this kind, on their machines, stands beside it.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, folder_mb, measure, save_results

QUESTION = "How does one-vs-rest training grow with labels and with rows?"
_BASE = {"n_samples": 20_000, "n_features": 10_000, "n_labels": 4_000}
_LARGE = {"n_samples": 150_000, "n_features": 27_000, "n_labels": 45_000}
_TITLES = {"n_samples": 294_805, "n_features": 40_000, "n_labels": 131_073}
_TITLES_ROWS = {"labels_per_row": 2.29, "words_per_label": 2, "background_words": 3.5, "exponent": 0.5}
PUBLISHED = (
    "DiSMEC, WikiLSHTC-325K a few hours, batches of 1,000 labels on several machines at once (its readme)",
    "PPDSparse, sets of this size tens of minutes where others take days, 100 cores (Yen et al., KDD 2017)",
    "Parabel, 3 trees, Amazon-670K 404 s, WikiLSHTC-325K 959 s, four cores of an i7-6700 (README of omikuji)",
    "Bonsai, 3 trees, Amazon-670K 5,759 s, WikiLSHTC-325K 11,156 s, the same machine (README of omikuji)",
    "omikuji as Bonsai, 3 trees, Amazon-670K 1,753 s, WikiLSHTC-325K 4,259 s, the same machine (its README)",
    "PfastXML, WikiLSHTC-325K under 30 min, Ads-9M 17 h, 16 cores of 2.6 GHz (Jain, Prabhu & Varma, KDD 2016)",
    "MLRF, WikiLSHTC-325K 4 h, Ads-9M 42 h, a cluster of 1,000 cores (quoted by the same paper)",
)
"""What others took for data sets of this kind, on their machines; none of it was measured here."""
_ASKED = 400
_PARTS = ("labels", "rows", "large", "titles")


def main(arguments: list[str]) -> None:
    every = int(arguments.pop(arguments.index("--every") + 1)) if "--every" in arguments else 1
    wanted = [name for name in arguments if name != "--every"] or list(_PARTS)
    if unknown := set(wanted) - set(_PARTS):
        raise SystemExit(f"linear_scaling has no part {', '.join(sorted(unknown))}; there are: {', '.join(_PARTS)}")
    results: dict[str, Any] = {}
    # The large problem first: the peak of the process is then its own.
    if "large" in wanted:
        results["large"] = _LARGE | _train(*_make(_LARGE))
        print("  large: " + ", ".join(f"{key} {value:,.0f}" for key, value in results["large"].items()))
    if "titles" in wanted:
        X, Y = _titles(every)
        results["titles"] = _TITLES | {"every": every, "words": X.nnz, "pairs": Y.nnz} | _train(X, Y, ask=True)
        print("  titles: " + ", ".join(f"{key} {value:,.7g}" for key, value in results["titles"].items()))
        for line in PUBLISHED:
            print(f"  published: {line}")
    if {"labels", "rows"} & set(wanted):
        X, Y = _make(_BASE)
        for what, cut in {"labels": _cut_labels, "rows": _cut_rows}.items():
            if what in wanted:
                results[what] = _grow(what, [cut(X, Y, parts) for parts in (4, 2, 1)])
    save_results("linear_scaling", results)


def _grow(what: str, problems: list[tuple[Any, Any]]) -> dict[str, Any]:
    import numpy as np

    sizes = [Y.shape[what == "labels"] for _, Y in problems]
    trained = [_train(X, Y) for X, Y in problems]
    seconds = [figures["CPU-s"] for figures in trained]
    for size, figures in zip(sizes, trained, strict=True):
        print(f"  {size:,} {what}: " + ", ".join(f"{key} {value:,.2f}" for key, value in figures.items()))
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    print(f"  exponent in {what}: {exponent:.2f}")
    return {"sizes": sizes, "CPU-s": seconds, "exponent": exponent}


def _make(size: dict[str, int]) -> tuple[Any, Any]:
    from tailwise import make_longtail

    data = make_longtail(**size, exponent=0.5, test_fraction=0.0, random_state=0)
    return data.X_train, data.Y_train_complete.tocsr()


def _titles(every: int) -> tuple[Any, Any]:
    from tailwise.data import write_longtail
    from tailwise.data.mapped import read_rows

    folder = RESULTS / "titles-131k"
    if not folder.exists():
        write_longtail(folder, **_TITLES, **_TITLES_ROWS, propensity=1.0, test_fraction=0.0)
    X, Y = read_rows(folder / "train.rows")
    return X, Y[:, ::every]


def _cut_labels(X: Any, Y: Any, parts: int) -> tuple[Any, Any]:
    import numpy as np

    shuffled = np.random.default_rng(0).permutation(_with_rows(Y))
    return X, Y[:, np.sort(shuffled[: shuffled.size // parts])]


def _cut_rows(X: Any, Y: Any, parts: int) -> tuple[Any, Any]:
    n_rows = X.shape[0] // parts
    return X[:n_rows], Y[:n_rows, _with_rows(Y[: X.shape[0] // 4])]


def _with_rows(Y: Any) -> Any:
    import numpy as np

    return np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))


def _train(X: Any, Y: Any, ask: bool = False) -> dict[str, float]:
    from tailwise import DiSMEC

    # Compile outside the measurement.
    DiSMEC().fit(X[:50], Y[:50])
    with measure() as m:
        model = DiSMEC(random_state=0).fit(X, Y)
    weights = model.weights_
    figures = {
        "labels with rows": int(_with_rows(Y).size),
        "CPU-s": m.cpu,
        "s": m.wall,
        "peak MB": m.peak_mb,
        "process MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
        "model MB": (weights.data.nbytes + weights.indices.nbytes + weights.indptr.nbytes) / 2**20,
    }
    return figures | _ask(model, X) if ask else figures


def _ask(model: Any, X: Any) -> dict[str, float]:
    """The size of the saved model, and what single rows take once it is opened: median milliseconds."""
    import tailwise

    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        path = Path(folder) / "model"
        model.save(path)
        opened = tailwise.load(path, verify=False)
        taken = []
        for row in range(_ASKED):
            one = X[[row * (X.shape[0] // _ASKED)]]
            start = time.perf_counter()
            opened.predict_topk(one, 5)
            taken.append(time.perf_counter() - start)
        return {"saved MB": folder_mb(path), "one row ms": 1e3 * statistics.median(taken[_ASKED // 4 :])}
