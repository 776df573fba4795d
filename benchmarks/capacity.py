"""What does a data set of any size take: CPU-seconds, bytes, and so machines, hours and money?

``python -m benchmarks capacity``

Formulas in rows, labels and non-zeros, whose form is fixed here, are fitted to some sizes, checked at two larger ones
that had no part in choosing the form or the constants, and then asked about 9 million labels, 70 million rows and 2
million features (the shape of Ads-9M in Jain, Prabhu & Varma 2016). Each size is measured in a process of its own, on
one thread, and what is measured is kept in ``benchmarks/results/capacity-measured.json``; remove it to measure again.
Where ``linear_scaling titles`` was run, its 131,073 labels are one more check.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.harness import RESULTS, ROOT, measure, save_results

QUESTION = "What does a data set of any size take: CPU-seconds, bytes, machines, hours and money?"
_TREES = (5_000, 10_000, 20_000, 40_000, 80_000)
_TREES_CHECKED = (120_000, 160_000)
"""Labels, and as many rows."""
_ONE_VS_REST = ((5_000, 1_000), (10_000, 1_000), (5_000, 2_000), (10_000, 2_000), (20_000, 2_000), (10_000, 4_000))
_ONE_VS_REST_CHECKED = ((30_000, 3_000), (15_000, 6_000))
"""(rows, labels)"""
_MEASURED = RESULTS / "capacity-measured.json"
_PLAN = {"labels": 9e6, "rows": 70e6, "features": 2e6, "words": 20.0, "labels a row": 2.0}
"""Words and labels a row are ours: the paper does not tell them."""
_DOLLARS_A_CORE_HOUR = 0.05
_CORES_A_MACHINE, _GB_A_MACHINE = 16, 128
_BUSY = 0.7
"""The share of the time that cores work, as measured for eight workers on small data."""
_BYTES_A_VALUE = 8
_HOUR = 3600


def main(arguments: list[str]) -> None:
    trees, trees_checked = ([_measured("tree", size) for size in sizes] for sizes in (_TREES, _TREES_CHECKED))
    linear, linear_checked = (
        [_measured("one_vs_rest", *size) for size in sizes] for sizes in (_ONE_VS_REST, _ONE_VS_REST_CHECKED)
    )
    formulas = {
        "one Bonsai tree": _fit(trees, lambda s: [s["values"] * np.log2(s["labels"])]),
        "one-vs-rest": _fit(linear, lambda s: [s["labels"] * s["values"], s["pairs"] * s["values"] / s["rows"]]),
    }
    print(f"  one Bonsai tree: CPU-s = {formulas['one Bonsai tree'].told('non-zeros · log2 labels')}")
    print(f"  one-vs-rest: CPU-s = {formulas['one-vs-rest'].told('labels · non-zeros', 'pairs · words a row')}")
    checks = {}
    for name, sizes in (("one Bonsai tree", trees_checked), ("one-vs-rest", linear_checked + _titles())):
        for size in sizes:
            predicted = formulas[name](size)
            ratio = predicted / size["CPU-s"]
            checks[f"{name}, {size['labels']:,} labels, {size['rows']:,} rows"] = ratio
            print(
                f"  check: {name}, {size['labels']:,} labels × {size['rows']:,} rows: {predicted:,.1f} CPU-s said, "
                f"{size['CPU-s']:,.1f} measured ({ratio:.2f})"
            )
    plans = {
        name: _plan(name, formulas[name], sizes)
        for name, sizes in (("one Bonsai tree", trees + trees_checked), ("one-vs-rest", linear + linear_checked))
    }
    save_results("capacity", {"trees": trees, "one_vs_rest": linear, "checks": checks, "plans": plans})


def _titles() -> list[dict[str, Any]]:
    """What ``linear_scaling titles`` took, if it was run for all labels."""
    path = RESULTS / "linear_scaling.json"
    found = json.loads(path.read_text()).get("titles", {}) if path.exists() else {}
    if found.get("every") != 1:
        return []
    names = {"labels": "labels with rows", "rows": "n_samples", "values": "words", "pairs": "pairs", "CPU-s": "CPU-s"}
    return [{new: found[old] for new, old in names.items()}]


class _Formula:
    """``Σ c_i term_i``."""

    def __init__(self, terms: Any, factors: np.ndarray) -> None:
        self._terms, self.factors = terms, factors

    def __call__(self, size: dict[str, Any]) -> float:
        return float(np.dot(self.factors, self._terms(size)))

    def told(self, *names: str) -> str:
        return " + ".join(f"{factor:.3g} · {name}" for factor, name in zip(self.factors, names, strict=True))


def _fit(sizes: list[dict[str, Any]], terms: Any) -> _Formula:
    """By the least relative error."""
    from scipy.optimize import nnls

    seconds = np.array([size["CPU-s"] for size in sizes])
    table = np.array([terms(size) for size in sizes], float)
    factors, _ = nnls(table / seconds[:, None], np.ones(seconds.size))
    return _Formula(terms, factors)


def _measured(what: str, *size: int) -> dict[str, Any]:
    kept = json.loads(_MEASURED.read_text()) if _MEASURED.exists() else {}
    key = f"{what} {size}"
    if key not in kept:
        code = f"import json; from benchmarks import capacity; print(json.dumps(capacity.{what}{(*size,)}))"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{key} failed:\n{done.stderr[-2000:]}")
        kept[key] = json.loads(done.stdout.splitlines()[-1])
        _MEASURED.write_text(json.dumps(kept, indent=1))
    figures = kept[key]
    print("  measured: " + what + ", " + ", ".join(f"{name} {value:,.4g}" for name, value in figures.items()))
    return figures


def tree(n_labels: int) -> dict[str, Any]:
    """One Bonsai tree on as many rows as labels."""
    import tailwise as tw

    shape = {"n_samples": n_labels, "n_features": max(5_000, n_labels // 5), "n_labels": n_labels}
    return _train(tw.Bonsai(n_trees=1, random_state=0, n_jobs=1), shape)


def one_vs_rest(n_rows: int, n_labels: int) -> dict[str, Any]:
    """DiSMEC; labels alike frequent but for the head, so that nearly all of them have rows."""
    import tailwise as tw

    shape = {"n_samples": n_rows, "n_features": 20_000, "n_labels": n_labels, "exponent": 0.5}
    return _train(tw.DiSMEC(random_state=0, n_jobs=1), shape)


def _train(model: Any, shape: dict[str, Any]) -> dict[str, Any]:
    import tempfile
    from pathlib import Path

    import tailwise as tw
    from benchmarks.harness import folder_mb

    warm = tw.make_longtail(500, 300, 200, random_state=1)
    type(model)(**model.get_params()).fit(warm.X_train, warm.Y_train)
    data = tw.make_longtail(**shape, propensity=1.0, test_fraction=0.0, random_state=0, n_jobs=1)
    with measure() as taken:
        model.fit(data.X_train, data.Y_train)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        size = folder_mb(Path(folder) / "model")
    return {
        "labels": int(np.count_nonzero(model.label_counts_)),
        "rows": int(data.X_train.shape[0]),
        "features": int(data.X_train.shape[1]),
        "values": int(data.X_train.nnz),
        "pairs": int(data.Y_train.nnz),
        "CPU-s": taken.cpu,
        "peak MB": peak,
        "model MB": size,
    }


def _plan(name: str, formula: _Formula, sizes: list[dict[str, Any]]) -> dict[str, float]:
    """What the planned size takes: memory by what values added from the smallest size to the largest, models by
    what the largest took a label."""
    first, last = sizes[0], sizes[-1]
    bytes_a_value = 1e6 * (last["peak MB"] - first["peak MB"]) / (last["values"] - first["values"])
    size = {
        "labels": _PLAN["labels"],
        "rows": _PLAN["rows"],
        "values": _PLAN["rows"] * _PLAN["words"],
        "pairs": _PLAN["rows"] * _PLAN["labels a row"],
    }
    hours = formula(size) / _HOUR
    data_gb = _BYTES_A_VALUE * (size["values"] + size["pairs"]) / 1e9
    model_gb = last["model MB"] / last["labels"] * size["labels"] / 1e3
    machines = max(1, -(-int(hours) // (24 * _CORES_A_MACHINE * _BUSY)))
    found = {
        "CPU hours": hours,
        "machines for a day": machines,
        "hours": hours / (machines * _CORES_A_MACHINE * _BUSY),
        "dollars": hours / _BUSY * _DOLLARS_A_CORE_HOUR,
        "data GB": data_gb,
        "model GB": model_gb,
        "peak GB with rows in memory": bytes_a_value * size["values"] / 1e9,
    }
    print(
        f"  plan: {name}, 9 million labels × 70 million rows, {_PLAN['words']:g} words and {_PLAN['labels a row']:g} "
        f"labels a row, machines of {_CORES_A_MACHINE} cores busy {_BUSY:.0%}, ${_DOLLARS_A_CORE_HOUR} a core-hour: "
        + ", ".join(f"{key} {value:,.3g}" for key, value in found.items())
    )
    return found
