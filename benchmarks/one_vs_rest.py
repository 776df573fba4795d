"""How many CPU-seconds does one-vs-rest training take beside LIBLINEAR, LibMultiLabel and scikit-learn, on EURLex-4K?

Rows have unit length, C = 1. LIBLINEAR (``-s 1 -B 1 -e 0.1``) and scikit-learn's LinearSVC train 200 random labels that
have rows ("labels trained"), and the time is scaled to all of them; LibMultiLabel trains all. Accuracy is that of the
test rows, where all labels were trained. The other models of ``linear`` stand beside DiSMEC with their own accuracy.

``python -m benchmarks one_vs_rest --repeats 2`` takes about 20 minutes on two cores;
``--only "tailwise dismec,liblinear"`` runs the contenders with these texts in their names.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness import Contender, Measurement, folder_mb, keep_predictions, matrices, measure

QUESTION = "How many CPU-seconds does one-vs-rest training take beside LIBLINEAR, LibMultiLabel and scikit-learn?"
REPEATS = 3
THREADS = 2
_SAMPLE = 200


def contenders() -> list[Contender]:
    return [
        Contender("tailwise DiSMEC", "run_ours", arguments={"name": "DiSMEC"}),
        Contender("tailwise DiSMEC, compact", "run_ours", arguments={"name": "DiSMEC", "small": True}),
        Contender("LIBLINEAR -s 1 -e 0.1", "run_liblinear", "peers", ("liblinear",)),
        Contender("LibMultiLabel 1vsrest", "run_libmultilabel", "peers", ("libmultilabel",)),
        Contender("scikit-learn OneVsRest(LinearSVC)", "run_sklearn", "ours", ("sklearn",)),
        Contender("tailwise DiSMEC, logistic", "run_ours", arguments={"name": "DiSMEC", "loss": "logistic"}),
        Contender("tailwise PWDiSMEC", "run_ours", arguments={"name": "PWDiSMEC"}),
        Contender("tailwise PWDiSMEC, convex", "run_ours", arguments={"name": "PWDiSMEC", "weighting": "convex"}),
        Contender(
            "tailwise PWDiSMEC, steep, C 0.3",
            "run_ours",
            arguments={"name": "PWDiSMEC", "weighting": "steep", "C": 0.3},
        ),
        Contender("tailwise PPDSparse", "run_ours", arguments={"name": "PPDSparse"}),
        Contender("tailwise PPDSparse, hinge", "run_ours", arguments={"name": "PPDSparse", "loss": "hinge"}),
        Contender("tailwise ProXML", "run_ours", arguments={"name": "ProXML"}),
        Contender("tailwise ProXML, tail", "run_ours", arguments={"name": "ProXML", "weighting": "tail"}),
        Contender("tailwise ProXML, steep", "run_ours", arguments={"name": "ProXML", "weighting": "steep"}),
    ]


def run_ours(name: str, small: bool = False, **parameters: Any) -> dict[str, Any]:
    import time

    import tailwise

    data = matrices("eurlex-4k")
    make = getattr(tailwise, name)
    # Compile outside the measurement; what compiled is cached on disk for every later run.
    make(n_jobs=THREADS, **parameters).fit(data.X_train[:50], data.Y_train[:50]).predict_topk(data.X_test[:2])
    model = make(n_jobs=THREADS, **parameters)
    with measure() as train:
        model.fit(data.X_train, data.Y_train)
    model = tailwise.compact(model) if small else model
    rows = data.X_test[:1000]
    # What serves many rows is compiled by many rows alone.
    model.predict_topk(rows, 5)
    with measure() as predict:
        model.predict_topk(rows, 5)
    alone = [rows[[i]] for i in range(100)]
    start = time.perf_counter()
    for row in alone:
        model.predict_topk(row, 5)
    one_row = (time.perf_counter() - start) * 10
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        size = folder_mb(Path(folder) / "model")
    return {
        "train": train,
        "predict 1,000": predict,
        "one row ms": one_row,
        "model MB": size,
        "top": keep_predictions(model.predict_topk(data.X_test, 5).labels),
    }


def run_liblinear() -> dict[str, Any]:
    import numpy as np
    from liblinear.liblinearutil import parameter, problem, train
    from scipy import sparse

    X, Y, labels = _sampled_labels()
    dense = Y.toarray()
    rows = sparse.csr_matrix(X, dtype=np.float64)
    # The rows are converted once, outside the measurement; each label only exchanges the targets.
    shared = problem(2.0 * dense[:, labels[0]] - 1, rows, bias=1)
    targets = np.ctypeslib.as_array(shared.y, shape=(X.shape[0],))
    with measure() as m:
        for label in labels:
            targets[:] = 2 * dense[:, label] - 1
            train(shared, parameter("-s 1 -c 1 -B 1 -e 0.1 -q"))
    return _scaled(m, Y)


def run_sklearn() -> dict[str, Any]:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    X, Y, labels = _sampled_labels()
    target = Y[:, labels].toarray()
    with measure() as m:
        OneVsRestClassifier(LinearSVC(), n_jobs=1).fit(X, target)
    return _scaled(m, Y)


def run_libmultilabel() -> dict[str, Any]:
    import libmultilabel.linear as linear
    import numpy as np
    from scipy import sparse

    data = matrices("eurlex-4k")
    Y = sparse.csr_matrix(data.Y_train)
    with measure(children=True) as train:
        model = linear.train_1vsrest(
            Y, sparse.csr_matrix(data.X_train, dtype=np.float64), options="-s 1 -c 1 -B 1 -e 0.1"
        )
    rows = sparse.csr_matrix(data.X_test, dtype=np.float64)
    with measure() as predict:
        linear.predict_values(model, rows[:1000])
    scores = np.asarray(linear.predict_values(model, rows))
    return {
        "train": train,
        "predict 1,000": predict,
        "top": keep_predictions(np.argsort(-scores, axis=1, kind="stable")[:, :5]),
    }


def _sampled_labels() -> tuple[Any, Any, Any]:
    import numpy as np

    data = matrices("eurlex-4k")
    seen = np.flatnonzero(np.asarray(data.Y_train.sum(axis=0)).ravel())
    return data.X_train, data.Y_train, np.random.default_rng(0).choice(seen, _SAMPLE, replace=False)


def _scaled(m: Measurement, Y: Any) -> dict[str, Any]:
    import numpy as np

    factor = np.count_nonzero(np.asarray(Y.sum(axis=0)).ravel()) / _SAMPLE
    return {"train": Measurement(m.cpu * factor, m.wall * factor, m.peak_mb), "labels trained": _SAMPLE}
