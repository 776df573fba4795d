"""How does one-vs-rest training grow with labels and with rows, on synthetic long-tailed data?

DiSMEC on ``make_longtail`` at 1×, 2× and 4× labels, and at 1×, 2× and 4× rows, two threads; the exponent is the slope
of log CPU-seconds against log size (1 is linear). The last line trains 45,000 labels over 27,000 features and
reports the peak of memory.
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness import measure, save_results

QUESTION = "How does one-vs-rest training grow with labels and with rows?"
_BASE = {"n_samples": 5_000, "n_features": 10_000, "n_labels": 2_000}
_LARGE = {"n_samples": 20_000, "n_features": 27_000, "n_labels": 45_000}


def main(arguments: list[str]) -> None:
    import numpy as np

    results: dict[str, Any] = {}
    for what in ("n_labels", "n_samples"):
        sizes, seconds = [], []
        for times in (1, 2, 4):
            size = _BASE | {what: _BASE[what] * times}
            sizes.append(size[what])
            seconds.append(_train(size)["CPU-s"])
            print(f"  {what} {size[what]:,}: {seconds[-1]:.2f} CPU-seconds")
        exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        print(f"  exponent in {what}: {exponent:.2f}")
        results[what] = {"sizes": sizes, "CPU-s": seconds, "exponent": exponent}
    if "quick" not in arguments:
        results["large"] = _train(_LARGE)
        print("  45,000 labels × 27,000 features: " + ", ".join(f"{k} {v:,.1f}" for k, v in results["large"].items()))
    save_results("linear_scaling", results)


def _train(size: dict[str, int]) -> dict[str, float]:
    from tailwise import DiSMEC, make_longtail

    data = make_longtail(**size, random_state=0)
    DiSMEC(n_jobs=2).fit(data.X_train[:50], data.Y_train[:50])
    with measure() as m:
        model = DiSMEC(n_jobs=2).fit(data.X_train, data.Y_train)
    return {
        "CPU-s": m.cpu,
        "s": m.wall,
        "peak MB": m.peak_mb,
        "model MB": (model.weights_.data.nbytes + model.weights_.indices.nbytes) / 2**20,
    }
