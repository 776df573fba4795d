"""How does one-vs-rest training grow with labels and with rows, on synthetic long-tailed data?

DiSMEC on parts of one ``make_longtail`` set with complete labels, two threads. Labels: a quarter, a half and all of
the labels that have rows, over the same rows. Rows: a quarter, a half and all rows, for the labels that have rows in
the first quarter. Only labels with rows count, since others cost nothing. The exponent is the slope of log
CPU-seconds against log size (1 is linear). The last line trains 45,000 labels over 27,000 features and reports the
peak of memory.
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness import measure, save_results

QUESTION = "How does one-vs-rest training grow with labels and with rows?"
_BASE = {"n_samples": 20_000, "n_features": 10_000, "n_labels": 4_000}
_LARGE = {"n_samples": 40_000, "n_features": 27_000, "n_labels": 45_000}


def main(arguments: list[str]) -> None:
    import numpy as np

    X, Y = _make(_BASE)
    shuffled = np.random.default_rng(0).permutation(_with_rows(Y))
    first = _with_rows(Y[: X.shape[0] // 4])
    results: dict[str, Any] = {}
    for what, parts in {
        "labels": [(X, Y[:, np.sort(shuffled[: shuffled.size // cut])]) for cut in (4, 2, 1)],
        "rows": [(X[: X.shape[0] // cut], Y[: X.shape[0] // cut, first]) for cut in (4, 2, 1)],
    }.items():
        sizes = [part[1].shape[what == "labels"] for part in parts]
        seconds = []
        for size, part in zip(sizes, parts, strict=True):
            seconds.append(_train(*part)["CPU-s"])
            print(f"  {size:,} {what}: {seconds[-1]:.2f} CPU-seconds")
        exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        print(f"  exponent in {what}: {exponent:.2f}")
        results[what] = {"sizes": sizes, "CPU-s": seconds, "exponent": exponent}
    if "quick" not in arguments:
        results["large"] = _train(*_make(_LARGE))
        print("  45,000 labels × 27,000 features: " + ", ".join(f"{k} {v:,.1f}" for k, v in results["large"].items()))
    save_results("linear_scaling", results)


def _make(size: dict[str, int]) -> tuple[Any, Any]:
    from tailwise import make_longtail

    data = make_longtail(**size, exponent=0.5, test_fraction=0.05, random_state=0)
    return data.X_train, data.Y_train_complete.tocsr()


def _with_rows(Y: Any) -> Any:
    import numpy as np

    return np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))


def _train(X: Any, Y: Any) -> dict[str, float]:
    from tailwise import DiSMEC

    DiSMEC(n_jobs=2).fit(X[:50], Y[:50])
    with measure() as m:
        model = DiSMEC(n_jobs=2).fit(X, Y)
    return {
        "labels with rows": float(_with_rows(Y).size),
        "CPU-s": m.cpu,
        "s": m.wall,
        "peak MB": m.peak_mb,
        "model MB": (model.weights_.data.nbytes + model.weights_.indices.nbytes) / 2**20,
    }
