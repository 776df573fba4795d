"""How do Parabel and Bonsai compare with omikuji, PECOS and napkinxc on EURLex-4K: training, prediction, accuracy?

Everyone trains on the same unit-length rows with two threads. "batch" is the whole test set on two threads, "one row"
the median over single rows. The contenders train with their published defaults: omikuji's Parabel and Bonsai
presets, PECOS' XR-Linear, napkinxc's PLT. Settings of ours were compared on rows cut from the training set.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, Contender, folder_mb, keep_predictions, matrices, measure

QUESTION = "How do Parabel and Bonsai compare with omikuji, PECOS and napkinxc on EURLex-4K?"
REPEATS = 2
THREADS = 2

_SINGLE_ROWS = 300
_BONSAI = {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}


def contenders() -> list[Contender]:
    def ours(name: str, kind: str, **parameters: Any) -> Contender:
        return Contender(f"tailwise {name}", "run_ours", arguments={"kind": kind, **parameters})

    return [
        ours("Parabel", "Parabel"),
        ours("Bonsai", "Bonsai"),
        ours("Bonsai, one tree", "Bonsai", n_trees=1),
        ours("Bonsai, tail leaves", "Bonsai", weighting="tail"),
        ours("Bonsai, steep leaves", "Bonsai", weighting="steep"),
        ours("Bonsai, siblings only", "Bonsai", negatives="siblings"),
        ours("Bonsai, logistic", "Bonsai", loss="logistic"),
        Contender("omikuji Parabel", "run_omikuji", "peers", ("omikuji",), {}),
        Contender("omikuji Bonsai", "run_omikuji", "peers", ("omikuji",), _BONSAI),
        Contender("PECOS XR-Linear", "run_pecos", "pecos", ("pecos",)),
        Contender("napkinxc PLT", "run_napkinxc", "peers", ("napkinxc",)),
    ]


def run_ours(kind: str, **parameters: Any) -> dict[str, Any]:
    import tailwise

    data = matrices("eurlex-4k")
    make = getattr(tailwise, kind)
    make(random_state=0, n_jobs=THREADS, **parameters).fit(data.X_train[:200], data.Y_train[:200]).predict_topk(
        data.X_test[:2]
    )
    with measure() as train:
        model = make(random_state=0, n_jobs=THREADS, **parameters).fit(data.X_train, data.Y_train)
    with measure() as batch:
        top = model.predict_topk(data.X_test, 5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        start = time.perf_counter()
        mapped = tailwise.load(path, verify=False)
        opened = time.perf_counter() - start
        one = _median_ms(lambda row: mapped.predict_topk(row, 5), data.X_test)
        size = folder_mb(path)
    return _figures(train, batch, data, one, size) | {"open ms": 1e3 * opened, "top": keep_predictions(top.labels)}


def run_omikuji(**parameters: Any) -> dict[str, Any]:
    import numpy as np
    import omikuji

    data = matrices("eurlex-4k")
    file = _training_file(data)
    settings = omikuji.Model.default_hyper_param()
    for name, value in parameters.items():
        setattr(settings, name, value)
    with measure() as train:
        model = omikuji.Model.train_on_data(str(file), settings, n_threads=THREADS)
    model.init_prediction_thread_pool(THREADS)
    rows = [_pairs(data.X_test, i) for i in range(data.X_test.shape[0])]
    with measure() as batch:
        # omikuji offers no batch call; one row after the other is what its users do.
        predicted = [model.predict(row, beam_size=10, top_k=5) for row in rows]
    labels = np.full((len(rows), 5), -1, np.int32)
    for i, row in enumerate(predicted):
        labels[i, : len(row)] = [label for label, _ in row]
    one = _median_ms(lambda i: model.predict(rows[i], beam_size=10, top_k=5), None)
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        size = folder_mb(Path(folder))
    return _figures(train, batch, data, one, size) | {"top": keep_predictions(labels)}


def run_pecos() -> dict[str, Any]:
    import numpy as np
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    data = matrices("eurlex-4k")
    X, Y, X_test = (part.astype(np.float32) for part in (data.X_train, data.Y_train, data.X_test))
    with measure() as train:
        clusters = Indexer.gen(LabelEmbeddingFactory.create(Y, X, method="pifa"))
        model = XLinearModel.train(X, Y, C=clusters, threads=THREADS)
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        size = folder_mb(Path(folder))
        # Its fast prediction works on models opened for prediction only.
        model = XLinearModel.load(folder, is_predict_only=True)
        with measure() as batch:
            predicted = model.predict(X_test, only_topk=5, beam_size=10, threads=THREADS)
        one = _median_ms(lambda row: model.predict(row, only_topk=5, beam_size=10, threads=1), X_test)
    labels = np.full((X_test.shape[0], 5), -1, np.int32)
    for i in range(predicted.shape[0]):
        row = slice(predicted.indptr[i], predicted.indptr[i + 1])
        ranked = predicted.indices[row][np.argsort(-predicted.data[row], kind="stable")]
        labels[i, : ranked.size] = ranked
    return _figures(train, batch, data, one, size) | {"top": keep_predictions(labels)}


def run_napkinxc() -> dict[str, Any]:
    import numpy as np
    from napkinxc.models import PLT

    data = matrices("eurlex-4k")
    lists = [
        data.Y_train.indices[a:b].tolist()
        for a, b in zip(data.Y_train.indptr[:-1], data.Y_train.indptr[1:], strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        model = PLT(folder, threads=THREADS, verbose=False)
        with measure() as train:
            model.fit(data.X_train, lists)
        model.load()
        with measure() as batch:
            predicted = model.predict(data.X_test, top_k=5)
        labels = np.full((len(predicted), 5), -1, np.int32)
        for i, row in enumerate(predicted):
            labels[i, : len(row)] = row
        one = _median_ms(lambda row: model.predict(row, top_k=5), data.X_test)
        size = folder_mb(Path(folder))
    return _figures(train, batch, data, one, size) | {"top": keep_predictions(labels)}


def _figures(train: Any, batch: Any, data: Any, one: float, size: float) -> dict[str, Any]:
    n = data.X_test.shape[0] / 1000
    return {
        "train": train,
        "batch s/1,000": batch.wall / n,
        "batch CPU-s/1,000": batch.cpu / n,
        "one row ms": one,
        "model MB": size,
    }


def _median_ms(predict: Any, X: Any) -> float:
    """Median time of one prediction over the first test rows, after a few to warm up."""
    rows = [X[i] for i in range(_SINGLE_ROWS)] if X is not None else range(_SINGLE_ROWS)
    taken = []
    for row in rows:
        start = time.perf_counter()
        predict(row)
        taken.append(time.perf_counter() - start)
    return 1e3 * statistics.median(taken[10:])


def _pairs(X: Any, i: int) -> list[tuple[int, float]]:
    row = slice(X.indptr[i], X.indptr[i + 1])
    return list(zip(X.indices[row].tolist(), X.data[row].tolist(), strict=True))


def _training_file(data: Any) -> Path:
    """omikuji trains from a file in the repository's format."""
    path = RESULTS / "data" / "eurlex-4k-unit.txt"
    if path.exists():
        return path
    X, Y = data.X_train, data.Y_train
    with path.open("w") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for i in range(X.shape[0]):
            labels = ",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]]))
            file.write(labels + " " + " ".join(f"{j}:{v:.7g}" for j, v in _pairs(X, i)) + "\n")
    return path
