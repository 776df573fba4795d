"""What does each part of the best effort add on texts, and what does it cost?

The stack that ``Tagger(effort="best")`` chooses is fitted once on training records (members on all of them, and once
more without the rows that it learns to combine from); then only the combining is learnt anew, for stacks that grow by
one member and for the whole without each member. Records are drawn by a seed, seven in eight to train on and the others
judged; every difference has its 95 % interval over records. The corpus is TIBKAT's training records, from
``../shared/data`` (words name the languages ``en`` and ``de``), with the names of all subjects as vocabulary; without
it nothing is measured. ``--records N`` takes N of them, ``--encoder minilm`` adds vectors (extra ``encoder``).
"""

from __future__ import annotations

import json
import lzma
from typing import Any

import numpy as np
from scipy import sparse

import tailwise as tw
from benchmarks.harness import ROOT, save_results
from benchmarks.subsets import Judged, Kept
from tailwise.by_size import BySize
from tailwise.label_lists import indicator
from tailwise.measure import measured
from tailwise.tail.columns import resolve_groups
from tailwise.text import KnownLabels, SentenceVectors, TextFeatures, TextParts
from tailwise.text.effort import plan_features, plan_model

QUESTION = "What does each part of the best effort add, and what does it cost?"
_DATA = ROOT.parent / "shared" / "data"
_METRICS = ["f1@5", "p@1", "ndcg@5", "recall@5"]


def main(arguments: list[str]) -> None:
    options = {"--records": "12000", "--encoder": ""}
    words = list(arguments)
    for name in options:
        if name in words:
            at = words.index(name)
            options[name] = words[at + 1]
            del words[at : at + 2]
    figures = {}
    for language in words or ("en", "de"):
        path = _DATA / f"tibkat-{language}-train.jsonl.xz"
        if not path.exists():
            print(f"{path.name} is not at hand; nothing was measured")
            continue
        figures[language] = _measure(language, int(options["--records"]), options["--encoder"])
    save_results("text_parts", figures)


def _measure(language: str, n_records: int, encoder: str) -> dict[str, Any]:
    with lzma.open(_DATA / f"tibkat-{language}-train.jsonl.xz", "rt") as lines:
        records = [json.loads(line) for line in lines]
    with lzma.open(_DATA / "tibkat-label-names.json.xz", "rt") as file:
        vocabulary = tw.Vocabulary.from_names(json.load(file), language="de")
    records = [records[i] for i in np.random.default_rng(0).permutation(len(records))[:n_records]]
    cut = len(records) * 7 // 8
    texts = tw.Texts({"title": [r["title"] for r in records], "abstract": [r["abstract"] or "" for r in records]})
    observed, ids = indicator([record["labels"] for record in records])
    more = [label for label in vocabulary.ids if label not in set(ids)]
    Y = sparse.csr_array((observed.data, observed.indices, observed.indptr), shape=(len(records), len(ids) + len(more)))
    ids = [*ids, *more]
    known = KnownLabels(ids, [vocabulary.name(label) for label in ids], Y[:cut], vocabulary)
    given = TextParts([TextFeatures(), SentenceVectors(encoder)]) if encoder else None
    with measured() as making:
        maker = plan_features("best", texts, known, given)
        X = maker.fit_transform(texts[:cut], labels=known)
        X_judged = maker.transform(texts[cut:])
    plan = plan_model("best", X, Y[:cut], maker.groups_, base=BySize(), random_state=0)
    stack = Kept(**plan.model.get_params(deep=False))
    resolve_groups(stack, maker.groups_)
    size = f"{cut:,} records to train on, {len(records) - cut:,} judged"
    print(f"{language}: {size}; {making.cpu_seconds:.0f} CPU-s for rows")
    costs = _costs(stack, X, Y[:cut])
    with measured() as fitting:
        stack.fit(X, Y[:cut])
    print(f"stack of {len(stack.members)}: {fitting.cpu_seconds:.0f} CPU-s, peak {fitting.peak_mb:,.0f} MB")
    judged = Judged(stack, X_judged)
    titles = [member.title for member in stack.members_]
    n = len(titles)
    # Names first, because they are what no other member sees; then the members in their order.
    order = [0, n - 1, *range(1, n - 1)]
    subsets = {titles[0]: [0]} | {f"+ {titles[order[i]]}": order[: i + 1] for i in range(1, n)}
    subsets |= {f"all without {title}": [j for j in range(n) if j != i] for i, title in enumerate(titles)}
    tops = {name: judged.rank(Y[:cut], own, 5) for name, own in subsets.items()}
    whole = list(subsets)[n - 1]
    figures: dict[str, Any] = {"rows CPU-s": making.cpu_seconds, "stack CPU-s": fitting.cpu_seconds}
    figures["member CPU-s"] = costs
    before = None
    for name in subsets:
        other = (before or name) if name.startswith("+") or before is None else whole
        compared = tw.compare(Y[cut:], {"other": tops[other], "this": tops[name]}, _METRICS)
        figures[name] = {metric: float(compared["this"][metric].value) for metric in _METRICS}
        figures[name]["difference"] = str(compared.difference("this", "other", "f1@5")) if other != name else ""
        line = "  ".join(f"{metric} {figures[name][metric]:5.2f}" for metric in _METRICS)
        print(f"{name:45} {line}  {figures[name]['difference']}", flush=True)
        before = name
    return figures


def _costs(stack: Kept, X: sparse.csr_array, Y: sparse.csr_array) -> dict[str, float]:
    """CPU-seconds of one fit of each member on all training rows."""
    found = {}
    for member in stack.members:
        with measured() as cost:
            fitted = member.fit(X, Y)
        found[fitted.title] = round(cost.cpu_seconds, 1)
        print(f"  {fitted.title:35} {cost.cpu_seconds:7.1f} CPU-s a fit", flush=True)
    return found
