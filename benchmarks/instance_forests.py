"""How accurate and how fast are the forests on EURLex-4K? ``python -m benchmarks instance_forests``.

The repository's figures for the same features: FastXML P 71.4/59.9/50.4, PSP 26.6/32.1/35.2; PfastXML PSP
39.9/43.0/44.5; PfastreXML P 75.5/62.7/52.5, PSP 43.9/45.2/46.0. The authors' C++ program of PfastreXML with 50 trees
on two threads of a 2-core machine: 83.5 CPU-s of training, a model of 138 MB, 0.93 s per 1,000 rows,
P 73.3/59.9/50.0, PSP 42.0/44.1/45.4.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import Contender, folder_mb, keep_predictions, matrices, measure

QUESTION = "How accurate and how fast are FastXML, PfastXML and PfastreXML on EURLex-4K?"
REPEATS = 3
N_TREES = 50
MODELS = ("PfastreXML", "PfastXML", "FastXML")
SINGLE_ROWS = 200


def contenders() -> list[Contender]:
    """The three models by default settings, and PfastreXML by those that keep more of its precision."""
    precise = Contender(
        "PfastreXML, max_leaf=15, alpha=0.9", "run", arguments={"name": "PfastreXML", "max_leaf": 15, "alpha": 0.9}
    )
    return [*(Contender(name, "run", arguments={"name": name}) for name in MODELS), precise]


def run(name: str, **params: Any) -> dict[str, Any]:
    import tailwise

    data = matrices("eurlex-4k")
    make = getattr(tailwise, name)
    # Compilation is not measured: it happens once on a machine.
    make(n_trees=2, random_state=0).fit(data.X_train[:200], data.Y_train[:200]).predict_topk(data.X_test[:2])
    model = make(n_trees=N_TREES, random_state=0, **params)
    with measure() as training:
        model.fit(data.X_train, data.Y_train)
    with measure() as prediction:
        top = model.predict_topk(data.X_test, 5)
    rows = [data.X_test[[i]] for i in range(SINGLE_ROWS)]
    seconds = []
    for row in rows:
        start = time.perf_counter()
        model.predict_topk(row, 5)
        seconds.append(time.perf_counter() - start)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        size = folder_mb(Path(folder) / "model")
    return {
        "train": training,
        "CPU-s per 1,000 rows": prediction.cpu * 1000 / data.X_test.shape[0],
        "one row ms (median)": sorted(seconds)[SINGLE_ROWS // 2] * 1000,
        "model MB": size,
        "top": keep_predictions(top.labels),
    }
