"""Does a model that learns step by step stay as good as one trained anew? ``python -m benchmarks updates [model …]``.

Half of the training rows of EURLex-4K come first, in a random order, then in five steps each time a tenth more rows.
After each step: P@k and PSP@k on the test rows (propensities of all training rows) of the model that was updated and of
one trained anew on the same rows, and the CPU-seconds of both. Models by their names, ``dismec`` by default; a number
is how many steps; ``tibkat`` among them takes 20,000 English records of TIBKAT from ``../shared/data``, as texts, by a
``Tagger`` without its calibration, and with ``calibrated`` by one with it, as ``tailwise train`` and ``learn`` do;
``validation`` judges by 2,000 rows that are cut from the training rows, by which settings are chosen: of EURLex-4K, or
of another set that ``benchmarks.generality`` knows, such as ``records-en``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import ROOT, save_results

METRICS = ("p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5")
STEPS = 5
FIRST, GROWTH = 0.5, 1.1
TIBKAT = ROOT.parent / "shared" / "data"
TIBKAT_ROWS = 20_000
VALIDATION_ROWS, MOST_ROWS = 2_000, 16_000


class Step(NamedTuple):
    """One line of the table."""

    model: str
    rows: int
    labels: int
    learnt_again: int
    update_cpu: float
    anew_cpu: float
    updated: dict[str, float]
    anew: dict[str, float]


def rows_alone(name: str, n_steps: int, validation: str = "") -> Iterator[Step]:
    """Rows of X: the model alone, told again what it has learnt from. ``validation`` names the set to cut rows from."""
    from benchmarks.generality import SETS
    from tailwise import JainPropensity, evaluate, load_dataset
    from tailwise.measure import measured
    from tailwise.models import make_model

    if validation:
        found = SETS[validation](MOST_ROWS)
        if found is None:
            print(f"{validation} is not at hand: this part is skipped", file=sys.stderr)
            return
        X, Y = found
    else:
        data = load_dataset("eurlex-4k")
        X, Y, X_test, Y_test = data.X_train, data.Y_train, data.X_test, data.Y_test
    order = np.random.default_rng(0).permutation(X.shape[0])
    if validation:
        held_out, order = order[:VALIDATION_ROWS], order[VALIDATION_ROWS:]
        X_test, Y_test = X[held_out], Y[held_out]
    X, Y = X[order], Y[order]
    propensity = JainPropensity().fit(Y)

    def judge(model: Any) -> dict[str, float]:
        result = evaluate(Y_test, model.predict_topk(X_test, 5), METRICS, propensity=propensity, confidence=None)
        return {metric: result[metric].value for metric in METRICS}

    seed = {} if name in ("centroid", "popularity", "nearest-rows") else {"random_state": 0}
    known = round(FIRST * X.shape[0])
    model = make_model(name, n_jobs=1, **seed).fit(X[:known], Y[:known])
    for step in range(n_steps):
        now = round(GROWTH * known)
        new, old, both = ((X[part], Y[part]) for part in (slice(known, now), slice(known), slice(now)))
        if not step:
            # Compile what an update needs.
            deepcopy(model).update(*new, known=old)
        with measured() as update:
            model.update(*new, known=old)
        with measured() as anew:
            fresh = make_model(name, n_jobs=1, **seed).fit(*both)
        seen = int((model.label_counts_ > 0).sum())
        yield Step(
            name, now, seen, model.n_learnt_again, update.cpu_seconds, anew.cpu_seconds, judge(model), judge(fresh)
        )
        known = now


def tibkat(name: str, n_steps: int, calibrate: bool) -> Iterator[Step]:
    """Texts with new words and new labels: the whole tagger."""
    from scipy import sparse

    from tailwise import JainPropensity, Tagger, evaluate, load_dataset
    from tailwise.data import Rows
    from tailwise.measure import measured
    from tailwise.models import make_model

    path = TIBKAT / "tibkat-en-train.jsonl.xz"
    if not path.exists():
        print(f"{path} is absent: this part is skipped", file=sys.stderr)
        return
    rows = Rows.of(_records(load_dataset, path))
    test = Rows.of(_records(load_dataset, TIBKAT / "tibkat-en-dev.jsonl.xz"))
    order = np.random.default_rng(0).permutation(rows.Y.shape[0])[:TIBKAT_ROWS]

    def judge(tagger: Tagger, propensity: dict[str, float]) -> dict[str, float]:
        column = {label: place for place, label in enumerate(tagger.label_ids_)}
        shared = [place for place, label in enumerate(test.label_ids) if label in column]
        Y = test.Y[:, shared].tocoo()
        ids = np.array([column[test.label_ids[place]] for place in shared])
        truth = sparse.csr_array((Y.data, (Y.coords[0], ids[Y.coords[1]])), shape=(Y.shape[0], len(column)))
        p = np.array([propensity[label] for label in tagger.label_ids_])
        result = evaluate(truth, tagger.predict_topk(test.rows, 5), METRICS, propensity=p, confidence=None)
        return {metric: result[metric].value for metric in METRICS}

    def fit(n: int) -> Tagger:
        part = rows.take(order[:n])
        # Calibration fits further models, and what it learnt out of fold stays in an update.
        tagger = Tagger(make_model(name, n_jobs=1, random_state=0), calibrate=calibrate, keep_training_data=True)
        return tagger.fit(part.rows, part.Y, label_ids=part.label_ids)

    whole = rows.take(order)
    all_p = JainPropensity().fit(whole.Y).propensity_
    propensity = dict(zip(whole.label_ids, all_p.tolist(), strict=True))

    def learn(tagger: Tagger, first: int, last: int) -> None:
        part = rows.take(order[first:last])
        tagger.update(part.rows, part.Y, label_ids=part.label_ids)

    known = round(FIRST * TIBKAT_ROWS)
    tagger = fit(known)
    for step in range(n_steps):
        now = round(GROWTH * known)
        if not step:
            # Compile what an update needs.
            learn(deepcopy(tagger), known, now)
        with measured() as update:
            learn(tagger, known, now)
        with measured() as anew:
            fresh = fit(now)
        yield Step(
            f"tibkat, {name}",
            now,
            tagger.n_labels_,
            tagger.model_.n_learnt_again,
            update.cpu_seconds,
            anew.cpu_seconds,
            judge(tagger, propensity),
            judge(fresh, propensity),
        )
        known = now


def _records(load: Any, path: Path) -> Any:
    return load(path, text_columns=["title", "abstract"], label_column="labels")


def main(arguments: list[str]) -> None:
    """Print each step as it is done, and the ratios at the end."""
    from benchmarks.generality import SETS

    steps = []
    texts, judges_inside, calibrate = (word in arguments for word in ("tibkat", "validation", "calibrated"))
    validation = next((a for a in arguments if a in SETS), "eurlex") if judges_inside else ""
    n_steps = next((int(a) for a in arguments if a.isdigit()), STEPS)
    words = {"tibkat", "validation", "calibrated", *SETS}
    names = [a for a in arguments if a not in words and not a.isdigit()]
    for name in names or ["dismec"]:
        for step in tibkat(name, n_steps, calibrate) if texts else rows_alone(name, n_steps, validation):
            steps.append(step)
            drift = {m: step.updated[m] - step.anew[m] for m in METRICS}
            cells = "  ".join(f"{m.upper()} {step.updated[m]:.2f} ({drift[m]:+.2f})" for m in METRICS)
            print(
                f"{step.model}  {step.rows:,} rows  {step.learnt_again:,} of {step.labels:,} labels  "
                f"CPU-s {step.update_cpu:.2f} / {step.anew_cpu:.2f} = {step.update_cpu / step.anew_cpu:.2f}  {cells}",
                flush=True,
            )
    where = "-texts" if texts else f"-{validation}" if validation else ""
    save_results(f"updates{where}", {"steps": [step._asdict() for step in steps]})
