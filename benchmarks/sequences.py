"""Does reading words in their order pay for what it costs?

On English TIBKAT records (title and abstract, GND subjects): the first 20,000 training records that have one of the
1,000 most frequent labels, and only these labels; judged on the first 2,000 such records of the dev set.
:class:`~tailwise.XMLCNN` and :class:`~tailwise.AttentionXML`, whose word vectors start from all 41,333 training texts
without their labels, beside :class:`~tailwise.DiSMEC` and :class:`~tailwise.Bonsai` on TF-IDF of the same texts.
Training CPU-seconds, and those of all records if they grow as the records do. ``--records N`` and ``--labels N`` take
other numbers (``--labels 0``: all), further words name the models. The corpus lies in ``../shared/data``; without it
there is nothing to measure.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from typing import Any

import numpy as np
from scipy import sparse

import tailwise as tw
from benchmarks.harness import ROOT, save_results
from tailwise.data.loading import encode_labels
from tailwise.measure import measured
from tailwise.text import learn_word_vectors

QUESTION = "Do networks on words in their order find more than linear models on TF-IDF, and at what cost?"
_DATA = ROOT.parent / "shared" / "data"
_WHOLE = 41_333
_JUDGED = 2_000
_METRICS = ["p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5"]
_LENGTH, _WORD_DIM = 128, 64
MODELS: dict[str, Any] = {
    "DiSMEC": lambda words: tw.Tagger(tw.DiSMEC(random_state=0)),
    "Bonsai": lambda words: tw.Tagger(tw.Bonsai(random_state=0)),
    "XMLCNN": lambda words: tw.Tagger(
        tw.XMLCNN(
            n_filters=128,
            chunks=2,
            word_dropout=0.1,
            dropout=0.1,
            word_dim=_WORD_DIM,
            word_vectors=words(),
            epochs=12,
            batch_size=32,
            random_state=0,
        ),
        features=tw.Sequences(_LENGTH),
    ),
    "AttentionXML": lambda words: tw.Tagger(
        tw.AttentionXML(
            64,
            word_dim=_WORD_DIM,
            word_vectors=words(),
            epochs=12,
            batch_size=32,
            learning_rate=4e-3,
            average_from=6,
            random_state=0,
        ),
        features=tw.Sequences(_LENGTH),
    ),
}


def main(arguments: list[str]) -> None:
    if not (_DATA / "tibkat-en-train.jsonl.xz").exists():
        print(f"{_DATA / 'tibkat-en-train.jsonl.xz'} is not at hand; nothing was measured")
        return
    wanted = list(arguments)
    n_records, n_labels = _taken(wanted, "--records", 20_000), _taken(wanted, "--labels", 1_000)
    read = _read("train")
    counts = Counter(label for _, labels in read for label in labels)
    chosen = {label for label, _ in counts.most_common(n_labels or None)}
    texts, labels = _among(read, chosen, n_records)
    ids = sorted(set().union(*labels))
    judged, judged_labels = _among(_read("dev"), set(ids), _JUDGED)
    Y, Y_judged = encode_labels(labels, ids), encode_labels(judged_labels, ids)
    print(f"{len(texts):,} records, {len(ids):,} labels, {Y.nnz / len(texts):.1f} a record; {len(judged):,} judged")
    figures = {}

    def words() -> np.ndarray:
        return learn_word_vectors(tw.Sequences(_LENGTH).fit(texts), [text for text, _ in read], _WORD_DIM)

    for name in wanted or MODELS:
        found = figures[name] = _run(lambda name=name: MODELS[name](words), texts, Y, ids, judged, Y_judged)
        row = "  ".join(f"{metric} {found[metric]:5.1f}" for metric in _METRICS)
        cost = f"{found['cpu']:6.0f} CPU-s, whole set {found['cpu'] * _WHOLE / len(texts):7,.0f}"
        print(f"{name:13} {row}  {cost}, {found['peak_mb']:,.0f} MB, {found['epochs']} epochs", flush=True)
    save_results("sequences", figures)


def _run(make: Any, texts: list[str], Y: sparse.csr_array, ids: list[str], judged: list[str], Y_judged: Any) -> Any:
    with measured() as training:
        tagger = make()
        tagger.fit(texts, Y, label_ids=ids)
    with measured() as predicting:
        top = tagger.predict_topk(judged, 5)
    propensity = tw.JainPropensity().fit(Y)
    result = tw.evaluate(Y_judged, top, _METRICS, propensity=propensity, confidence=None)
    return {
        **{metric: float(result[metric].value) for metric in _METRICS},
        "cpu": training.cpu_seconds,
        "wall": training.seconds,
        "peak_mb": training.peak_mb,
        "cpu_ms_a_row": 1000 * predicting.cpu_seconds / len(judged),
        "epochs": len(getattr(tagger.model_, "history_", [])),
    }


def _taken(arguments: list[str], option: str, otherwise: int) -> int:
    """The number behind ``option``, which is taken out of the arguments."""
    if option not in arguments:
        return otherwise
    at = arguments.index(option)
    value = int(arguments[at + 1])
    del arguments[at : at + 2]
    return value


def _read(part: str) -> list[tuple[str, list[str]]]:
    with lzma.open(_DATA / f"tibkat-en-{part}.jsonl.xz", "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    return [(f"{record['title']} {record['abstract']}", record["labels"]) for record in records]


def _among(read: list[tuple[str, list[str]]], chosen: set[str], n: int) -> tuple[list[str], list[list[str]]]:
    """The first ``n`` texts that have a label among those ``chosen``, and these labels."""
    kept = [(text, [label for label in labels if label in chosen]) for text, labels in read]
    kept = [(text, labels) for text, labels in kept if labels][:n]
    return [text for text, _ in kept], [labels for _, labels in kept]
