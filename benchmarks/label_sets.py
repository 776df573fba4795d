"""How many labels should a row get: always five, all above one score, or the set of highest expected F1?

``Calibrated(DiSMEC())`` on training rows, one in eight of them held out: on those the one number of labels and the one
score are chosen that serve them best. Test rows are judged by the mean F1 of rows, each rule's difference to always
five with its 95 % interval. Then the same with labels missing: those of training are dropped as Jain's propensities
say, and test rows are judged by their complete labels. Words name the data sets: ``eurlex-4k``, and ``bibtex`` and
``delicious``, which are read from ``../shared/data`` and left out where it is absent::

    python -m benchmarks label_sets eurlex-4k bibtex delicious
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

import tailwise as tw
from benchmarks.harness import ROOT, save_results
from tailwise.assigning import relevance, worth_most
from tailwise.data.missing import planted_propensity
from tailwise.topk import TopK

QUESTION = "How many labels should a row get, with and without missing labels?"
_DATA = ROOT.parent / "shared" / "data"
_K = 50


def main(arguments: list[str]) -> None:
    figures = {}
    for name in arguments or ["eurlex-4k", "bibtex", "delicious"]:
        files = [_DATA / f"{name}-{part}.arff.xz" for part in ("train", "test")]
        if name == "eurlex-4k":
            data = tw.load_dataset(name)
        elif all(file.exists() for file in files):
            data = tw.load_dataset(files[0], test=files[1])
        else:
            print(f"{name}: {files[0].name} is not at hand; nothing was measured")
            continue
        figures[name] = {"complete": _complete(data), "missing": _missing(data)}
        for labels, found in figures[name].items():
            print(f"{name}, {labels} labels: mean F1 of rows, labels a row, difference to always five")
            for rule, (value, size, difference, half) in found.items():
                print(f"  {rule:45} {value:5.2f}  {size:4.1f}  {difference:+5.2f} ± {half:.2f}", flush=True)
    save_results("label_sets", figures)


def _complete(data: Any) -> dict[str, Any]:
    top, near, Y_near = _ranked(data, data.Y_train)
    return _judge(data.Y_test, _rules(near, Y_near, top))


def _missing(data: Any) -> dict[str, Any]:
    true = planted_propensity(tw.JainPropensity(), data.Y_train)
    Y = tw.drop_labels(data.Y_train, true, random_state=0)
    top, near, Y_near = _ranked(data, Y)
    rules = _rules(near, Y_near, top)
    guess = tw.JainPropensity().fit(Y).propensity_
    rules["expected F1, right but missing: Jain's guess"] = worth_most(relevance(top, guess), at_least=1)
    rules["expected F1, right but missing: true p"] = worth_most(relevance(top, true), at_least=1)
    return _judge(data.Y_test, rules)


def _ranked(data: Any, Y: sparse.csr_array) -> tuple[TopK, TopK, sparse.csr_array]:
    """The best labels of test rows and of held-out training rows, and the labels of those."""
    order = np.random.default_rng(0).permutation(Y.shape[0])
    held, rest = order[: len(order) // 8], order[len(order) // 8 :]
    model = tw.Calibrated(tw.DiSMEC(random_state=0), random_state=0).fit(data.X_train[rest], Y[rest])
    return model.predict_topk(data.X_test, _K), model.predict_topk(data.X_train[held], _K), sparse.csr_array(Y[held])


def _rules(near: TopK, Y_near: sparse.csr_array, top: TopK) -> dict[str, TopK]:
    """What each rule gives test rows; what it must know is chosen on rows that were held out."""
    n = len(top.labels)
    size = max(range(1, 16), key=lambda k: _f1(near.first(np.full(len(near.labels), k)), Y_near).mean())
    scores = np.quantile(near.scores[np.isfinite(near.scores)], np.linspace(0.5, 0.999, 200))
    score = max(scores, key=lambda s: _f1(_above(near, s), Y_near).mean())
    return {
        "always five": top.first(np.full(n, 5)),
        f"always {size}, the best number": top.first(np.full(n, size)),
        f"all above {score:.2f}, the best score": _above(top, score),
        "expected F1": worth_most(top, at_least=1),
    }


def _above(top: TopK, score: float) -> TopK:
    return top.first(np.maximum((top.scores >= score).sum(axis=1), 1))


def _f1(top: TopK, Y: sparse.csr_array) -> np.ndarray:
    chosen = top.to_csr(Y.shape[1])
    hits = np.asarray(chosen.multiply(Y).sum(axis=1)).ravel()
    sizes = np.diff(chosen.indptr) + np.diff(Y.indptr)
    return 100 * np.divide(2 * hits, sizes, out=np.ones(hits.size), where=sizes > 0)


def _judge(Y: sparse.csr_array, rules: dict[str, TopK]) -> dict[str, Any]:
    values = {rule: _f1(top, sparse.csr_array(Y)) for rule, top in rules.items()}
    five = values["always five"]
    return {
        rule: (
            float(own.mean()),
            float((rules[rule].labels >= 0).sum(axis=1).mean()),
            float((own - five).mean()),
            float(1.96 * (own - five).std() / np.sqrt(own.size)),
        )
        for rule, own in values.items()
    }
