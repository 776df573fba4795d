"""How do Parabel and Bonsai compare with omikuji, PECOS and napkinxc: training, prediction, accuracy?

``python -m benchmarks label_trees [--data short-rows|tibkat-de-titles|many-labels] [--only NAMES] [--repeats N]``

On EURLex-4K, or on many rare labels and short rows: ``make_longtail`` with 45,000 labels and about ten words a row, or
the titles of German TIBKAT records (90 % of the training records to train, the others to judge), if they are at hand;
or on the rows of 215,000 labels that ``tree_scaling`` draws.
Everyone trains on the same unit-length rows with two threads. "batch" is the whole test set on two threads, "one row"
the median over single rows. The contenders train with their published defaults: omikuji's Parabel and Bonsai
presets, PECOS' XR-Linear, napkinxc's PLT. Settings of ours were compared on rows cut from the training set.
"""

from __future__ import annotations

import json
import lzma
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, ROOT, Contender, folder_mb, keep_predictions, matrices, measure

QUESTION = "How do Parabel and Bonsai compare with omikuji, PECOS and napkinxc?"
REPEATS = 2
THREADS = 2

_SINGLE_ROWS = 300
_TITLES = ROOT.parent / "shared" / "data" / "tibkat-de-train.jsonl.xz"
_BONSAI = {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}


def contenders(data: str = "eurlex-4k") -> list[Contender]:
    matrices(data, _DRAWN.get(data))

    def ours(name: str, kind: str, **parameters: Any) -> Contender:
        return Contender(f"tailwise {name}", "run_ours", arguments={"data": data, "kind": kind, **parameters})

    def peer(name: str, module: str, where: str = "peers", **parameters: Any) -> Contender:
        return Contender(name, f"run_{module}", where, (module,), {"data": data, **parameters})

    return [
        ours("Parabel", "Parabel"),
        ours("Parabel, two trees", "Parabel", n_trees=2),
        ours("Parabel, siblings only", "Parabel", negatives="siblings"),
        ours("Bonsai", "Bonsai"),
        ours("Bonsai, one tree", "Bonsai", n_trees=1),
        ours("Bonsai, tail leaves", "Bonsai", weighting="tail"),
        ours("Bonsai, steep leaves", "Bonsai", weighting="steep"),
        ours("Bonsai, siblings only", "Bonsai", negatives="siblings"),
        ours("Bonsai, logistic", "Bonsai", loss="logistic"),
        peer("omikuji Parabel", "omikuji"),
        peer("omikuji Bonsai", "omikuji", **_BONSAI),
        peer("PECOS XR-Linear", "pecos", "pecos"),
        peer("napkinxc PLT", "napkinxc"),
    ]


def _short_rows() -> Any:
    from tailwise import make_longtail

    words = {"labels_per_row": 3.0, "words_per_label": 2, "background_words": 5.0}
    return make_longtail(
        58_000, 40_000, 45_000, **words, exponent=0.8, propensity=1.0, test_fraction=0.2, random_state=0
    )


def _titles() -> Any:
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import MultiLabelBinarizer

    from tailwise.data import Dataset

    with lzma.open(_TITLES, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    order = np.random.default_rng(7).permutation(len(records))
    train, judged = ([records[i] for i in part] for part in np.split(order, [int(0.9 * order.size)]))
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    X_train = words.fit_transform([record["title"] for record in train])
    names = MultiLabelBinarizer(sparse_output=True).fit([record["labels"] for record in train])
    known = set(names.classes_)
    labels = [[label for label in record["labels"] if label in known] for record in judged]
    return Dataset(
        X_train,
        names.transform([record["labels"] for record in train]).astype(np.float32),
        words.transform([record["title"] for record in judged]),
        names.transform(labels).astype(np.float32),
        name="tibkat-de-titles",
    )


def _many_labels() -> Any:
    from benchmarks.tree_scaling import DRAWN
    from tailwise import make_longtail

    return make_longtail(215_000, 43_000, 215_000, **DRAWN, test_fraction=0.02, random_state=0)


_DRAWN = {"short-rows": _short_rows, "tibkat-de-titles": _titles, "many-labels": _many_labels}


def run_ours(data: str, kind: str, **parameters: Any) -> dict[str, Any]:
    import tailwise

    own = matrices(data)
    make = getattr(tailwise, kind)
    make(random_state=0, n_jobs=THREADS, **parameters).fit(own.X_train[:200], own.Y_train[:200]).predict_topk(
        own.X_test[:2]
    )
    with measure() as train:
        model = make(random_state=0, n_jobs=THREADS, **parameters).fit(own.X_train, own.Y_train)
    with measure() as batch:
        top = model.predict_topk(own.X_test, 5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        start = time.perf_counter()
        mapped = tailwise.load(path, verify=False)
        opened = time.perf_counter() - start
        one = _median_ms(lambda row: mapped.predict_topk(row, 5), own.X_test)
        size = folder_mb(path)
    return _figures(train, batch, own, one, size) | {"open ms": 1e3 * opened, "top": keep_predictions(top.labels, data)}


def run_omikuji(data: str, **parameters: Any) -> dict[str, Any]:
    import numpy as np
    import omikuji

    own = matrices(data)
    file = _training_file(data, own)
    settings = omikuji.Model.default_hyper_param()
    for name, value in parameters.items():
        setattr(settings, name, value)
    with measure() as train:
        model = omikuji.Model.train_on_data(str(file), settings, n_threads=THREADS)
    model.init_prediction_thread_pool(THREADS)
    rows = [_pairs(own.X_test, i) for i in range(own.X_test.shape[0])]
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
    return _figures(train, batch, own, one, size) | {"top": keep_predictions(labels, data)}


def run_pecos(data: str) -> dict[str, Any]:
    import numpy as np
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    own = matrices(data)
    X, Y, X_test = (part.astype(np.float32) for part in (own.X_train, own.Y_train, own.X_test))
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
    return _figures(train, batch, own, one, size) | {"top": keep_predictions(labels, data)}


def run_napkinxc(data: str) -> dict[str, Any]:
    import numpy as np
    from napkinxc.models import PLT

    own = matrices(data)
    lists = [
        own.Y_train.indices[a:b].tolist() for a, b in zip(own.Y_train.indptr[:-1], own.Y_train.indptr[1:], strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        model = PLT(folder, threads=THREADS, verbose=False)
        with measure() as train:
            model.fit(own.X_train, lists)
        model.load()
        with measure() as batch:
            predicted = model.predict(own.X_test, top_k=5)
        labels = np.full((len(predicted), 5), -1, np.int32)
        for i, row in enumerate(predicted):
            labels[i, : len(row)] = row
        one = _median_ms(lambda row: model.predict(row, top_k=5), own.X_test)
        size = folder_mb(Path(folder))
    return _figures(train, batch, own, one, size) | {"top": keep_predictions(labels, data)}


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


def _training_file(name: str, data: Any) -> Path:
    """omikuji trains from a file in the repository's format; it refuses rows without a feature, which teach nothing."""
    import numpy as np

    path = RESULTS / "data" / f"{name}-unit.txt"
    if path.exists():
        return path
    known = np.diff(data.X_train.indptr) > 0
    X, Y = data.X_train[known], data.Y_train[known]
    with path.open("w") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for i in range(X.shape[0]):
            labels = ",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]]))
            file.write(labels + " " + " ".join(f"{j}:{v:.7g}" for j, v in _pairs(X, i)) + "\n")
    return path
