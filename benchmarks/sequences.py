"""Does reading words in their order pay for what it costs?

On the first 1,500 English TIBKAT records for training (of 41,333; title and abstract, GND subjects) and the first 2,000
for judging: :class:`~tailwise.XMLCNN` and :class:`~tailwise.AttentionXML` from scratch, beside
:class:`~tailwise.DiSMEC` and :class:`~tailwise.Bonsai` on TF-IDF of the same texts. Training CPU-seconds, and those of
the whole set if they grow as the records do. ``--records N`` takes another number, further words name the models. The
corpus lies in ``../shared/data``; without it there is nothing to measure.
"""

from __future__ import annotations

import json
import lzma
from itertools import islice
from typing import Any

from scipy import sparse

import tailwise as tw
from benchmarks.harness import ROOT, save_results
from tailwise.data.loading import encode_labels
from tailwise.measure import measured

QUESTION = "Do networks on words in their order find more than linear models on TF-IDF, and at what cost?"
_DATA = ROOT.parent / "shared" / "data"
_WHOLE = 41_333
_JUDGED = 2_000
_METRICS = ["p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5"]
MODELS: dict[str, Any] = {
    "DiSMEC": lambda: tw.Tagger(tw.DiSMEC(random_state=0)),
    "Bonsai": lambda: tw.Tagger(tw.Bonsai(random_state=0)),
    "XMLCNN": lambda: tw.Tagger(
        tw.XMLCNN(epochs=12, batch_size=16, learning_rate=2e-3, patience=5, random_state=0), features=tw.Sequences(128)
    ),
    "AttentionXML": lambda: tw.Tagger(
        tw.AttentionXML(64, beam=5, epochs=12, batch_size=16, learning_rate=4e-3, patience=5, random_state=0),
        features=tw.Sequences(128),
    ),
}


def main(arguments: list[str]) -> None:
    if not (_DATA / "tibkat-en-train.jsonl.xz").exists():
        print(f"{_DATA / 'tibkat-en-train.jsonl.xz'} is not at hand; nothing was measured")
        return
    wanted = list(arguments)
    n_records = 1_500
    if "--records" in wanted:
        at = wanted.index("--records")
        n_records = int(wanted[at + 1])
        del wanted[at : at + 2]
    texts, labels = _read("train", n_records)
    judged, judged_labels = _read("dev", _JUDGED)
    ids = sorted(set().union(*labels))
    Y = encode_labels(labels, ids)
    known = set(ids)
    Y_judged = encode_labels([[label for label in row if label in known] for row in judged_labels], ids)
    unseen = sum(label not in known for row in judged_labels for label in row)
    print(f"{len(texts):,} records, {len(ids):,} labels; {len(judged):,} judged, {unseen:,} of whose labels are unseen")
    figures = {}
    for name in wanted or MODELS:
        found = figures[name] = _run(MODELS[name](), texts, Y, ids, judged, Y_judged)
        row = "  ".join(f"{metric} {found[metric]:5.1f}" for metric in _METRICS)
        cost = f"{found['cpu']:6.0f} CPU-s, whole set {found['cpu'] * _WHOLE / len(texts):7,.0f}"
        print(f"{name:13} {row}  {cost}, {found['epochs']} epochs", flush=True)
    save_results("sequences", figures)


def _run(tagger: Any, texts: list[str], Y: sparse.csr_array, ids: list[str], judged: list[str], Y_judged: Any) -> Any:
    with measured() as training:
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


def _read(part: str, n: int) -> tuple[list[str], list[list[str]]]:
    texts, labels = [], []
    with lzma.open(_DATA / f"tibkat-en-{part}.jsonl.xz", "rt", encoding="utf-8") as file:
        for line in islice(file, n):
            record = json.loads(line)
            texts.append(f"{record['title']} {record['abstract']}")
            labels.append(record["labels"])
    return texts, labels
