"""Which ways to make rows of texts find more labels, and what does each cost?

Chosen inside training records: 10,000 of a corpus, drawn by a seed, four in five of them to train on and one in five to
judge. The corpora are English and German TIBKAT training records (title and abstract, GND subjects, from
``../shared/data``) and the nouns of WordNet (words of a noun and its gloss, labelled by the nouns above it, from
``/usr/share/wordnet`` as Debian's ``wordnet-base`` installs it); one that is not at hand is left out. The model is
``DiSMEC()`` on one thread. Words name corpora (``en``, ``de``, ``wordnet``), ``--records N`` takes another number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tailwise as tw
from benchmarks import corpora
from benchmarks.harness import save_results
from tailwise.label_lists import indicator
from tailwise.measure import measured
from tailwise.text import TextRows

QUESTION = "Which of fields, n-grams and pieces of words find more labels, and at what cost?"
_METRICS = ["p@1", "f1@5", "ndcg@50"]
_JUDGED = 0.2

CHOICES: dict[str, Any] = {
    "joined": lambda first, second: tw.TextFeatures(fields="joined"),
    "balanced": lambda first, second: tw.TextFeatures(fields="balanced"),
    "equal": lambda first, second: tw.TextFeatures(fields={first: 1, second: 1}),
    "second field ×3": lambda first, second: tw.TextFeatures(fields={first: 1, second: 3}),
    "separate": lambda first, second: tw.TextFeatures(fields="separate"),
    "balanced + first field apart": lambda first, second: tw.TextParts(
        [tw.TextFeatures(fields="balanced"), tw.TextFeatures(fields={first: 1})], weights=[1, 0.5]
    ),
    "balanced, runs of 2 words": lambda first, second: tw.TextFeatures(2, fields="balanced"),
    "balanced, pieces of 4 to 6": lambda first, second: tw.TextFeatures(
        char_ngrams=(4, 6), fields="balanced", min_df=3
    ),
}


def main(arguments: list[str]) -> None:
    wanted = list(arguments)
    n_records = 10_000
    if "--records" in wanted:
        at = wanted.index("--records")
        n_records = int(wanted[at + 1])
        del wanted[at : at + 2]
    figures: dict[str, Any] = {}
    for corpus in wanted or ("en", "de", "wordnet"):
        found = list(corpora.nouns() if corpus == "wordnet" else corpora.tibkat(corpus))
        if not found:
            print(f"{corpus} is not at hand; it was not measured")
            continue
        chosen = np.random.default_rng(0).permutation(len(found))[:n_records]
        figures[corpus] = _compare(corpus, [found[i] for i in chosen])
    save_results("text_choices", figures)


def _compare(corpus: str, records: list[tuple[dict[str, str], list[str]]]) -> dict[str, Any]:
    names = list(records[0][0])
    texts = tw.Texts({name: [fields[name] for fields, _ in records] for name in names})
    cut = round((1 - _JUDGED) * len(texts))
    Y, ids = indicator([labels for _, labels in records])
    seen = np.flatnonzero(np.diff(Y[:cut].tocsc().indptr))
    print(
        f"{corpus}: {cut:,} records to train on, {len(texts) - cut:,} judged, {seen.size:,} of {len(ids):,} labels seen"
    )
    figures: dict[str, Any] = {}
    tops: dict[str, tw.TopK] = {}
    for name, make in CHOICES.items():
        figures[name], tops[name] = _run(make(*names), texts, Y, cut)
        compared = tw.compare(Y[cut:], {"joined": tops["joined"], "this": tops[name]}, _METRICS)
        figures[name] |= {metric: float(compared["this"][metric].value) for metric in _METRICS}
        figures[name]["f1@5 beside joined"] = str(compared.difference("this", "joined", "f1@5"))
        print(f"{name:30} " + _line(figures[name]), flush=True)
    return figures


def _line(found: dict[str, Any]) -> str:
    metrics = "  ".join(f"{metric} {found[metric]:5.2f}" for metric in _METRICS)
    cost = (
        f"{found['columns']:8,} columns, {found['values']:5.0f} a row, {found['cpu']:4.0f} CPU-s, {found['mb']:4.0f} MB"
    )
    return f"{metrics}  {found['f1@5 beside joined']:22}  {cost}"


def _run(features: TextRows, texts: tw.Texts, Y: Any, cut: int) -> tuple[dict[str, Any], tw.TopK]:
    with measured() as cost:
        X = features.fit_transform(texts[:cut])
        model = tw.DiSMEC(random_state=0, n_jobs=1).fit(X, Y[:cut])
    top = model.predict_topk(features.transform(texts[cut:]), 50)
    weights = model.label_weights().nnz * 8 / 1e6
    return {"columns": X.shape[1], "values": X.nnz / X.shape[0], "cpu": cost.cpu_seconds, "mb": weights}, top
