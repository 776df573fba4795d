"""Experiment ``loop``: ask people, estimate what is missing, learn from the answers, and again.

A data set's labels are taken to be complete, and half of them are dropped along Jain's curve, in training and in test
rows. Each round plans an audit of 300 questions with the model's kind, has them answered by simulated reviewers who
err, estimates how much is missing, puts the answers into the training labels, and updates the model. Beside every
estimate stands the truth, which neither model nor audit has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

import tailwise
from tailwise.audit import STRATA, Answers, Questions, estimate_audit, plan_audit, simulate_answers
from tailwise.audit.answers import judged
from tailwise.audit.pool import strata_of
from tailwise.base import XMCModel
from tailwise.data import Dataset, drop_labels, load_dataset, make_longtail
from tailwise.data.missing import planted_propensity
from tailwise.experiments.running import Record, Summary
from tailwise.metrics import evaluate
from tailwise.propensity import JainPropensity, Propensity
from tailwise.validation import check_labels, label_counts

KEPT = 0.5
WRONG_YES, WRONG_NO, UNSURE = 0.02, 0.05, 0.03
B = 1.5
_BISECTIONS = 30


class Truth(NamedTuple):
    """The data with complete labels and what is left of them."""

    data: Dataset
    complete: sparse.csr_array
    observed: sparse.csr_array
    test_complete: sparse.csr_array
    test_observed: sparse.csr_array
    a: float
    """Of the curve along which labels were dropped."""
    propensity: np.ndarray
    """(n_labels,): the chance with which each label stayed."""


def choose(size: str, options: Record) -> Record:
    """Data set, questions and seeds of each size."""
    usual = {"dataset": "eurlex-4k", "rounds": 5, "questions": 300, "draws": 1}
    by_size: dict[str, Record] = {
        "quick": {"dataset": "synthetic"},
        "default": {},
        "full": {"draws": 5},
    }
    return {**usual, **by_size[size], **({"dataset": options["data"]} if "data" in options else {})}


def cells(settings: Record) -> list[Record]:
    """One cell a draw: its rounds follow from each other."""
    return [{"draw": draw} for draw in range(settings["draws"])]


def prepare(settings: Record, n_jobs: int | None) -> tuple[Record, Dataset]:
    """The data."""
    if settings["dataset"] == "synthetic":
        made = make_longtail(2_000, 800, 150, random_state=settings["seed"], n_jobs=n_jobs)
        return settings, Dataset(made.X_train, made.Y_train_complete, made.X_test, made.Y_test_complete)
    return settings, load_dataset(settings["dataset"])


def compute(shared: tuple[Record, Dataset], cell: Record, n_jobs: int | None) -> Record:
    """The rounds of one draw."""
    settings, data = shared
    seed = 1000 * settings["seed"] + cell["draw"]
    truth = _drop_half(data, seed)
    Y = truth.observed
    model = tailwise.DiSMEC(random_state=seed, n_jobs=n_jobs).fit(data.X_train, Y)
    rounds = [{"round": 0, "answers": 0, **_judge(model, truth, Y, None)}]
    for number in range(1, settings["rounds"] + 1):
        plan = plan_audit(
            clone(model), data.X_train, Y, n_questions=settings["questions"], seed=settings["rounds"] * seed + number
        )
        answers = simulate_answers(
            plan.questions,
            truth.complete,
            wrong_yes=WRONG_YES,
            wrong_no=WRONG_NO,
            unsure=UNSURE,
            random_state=seed + number,
        )
        found = estimate_audit(plan, answers)
        shares = {name: found.strata[name].missing for name in STRATA}
        was = _right_share(truth.complete, Y)
        changed, rows = apply_answers(Y, plan.questions, answers)
        model.update(data.X_train[rows], changed[rows], rows=rows, known=(data.X_train, Y))
        Y = changed
        rounds.append(
            {
                "round": number,
                "answers": number * settings["questions"],
                **_judge(model, truth, Y, found.propensity),
                **{f"p {name}": 1 - shares[name].value / 100 for name in STRATA},
                **{f"p {name} low": 1 - shares[name].high / 100 for name in STRATA},
                **{f"p {name} high": 1 - shares[name].low / 100 for name in STRATA},
                **{f"true p {name}": was[name] for name in STRATA},
                "labels added": int(Y.nnz - truth.observed.nnz),
                "learnt again": model.n_learnt_again,
            }
        )
    return {"a": truth.a, "rounds": rounds}


def apply_answers(Y: sparse.csr_array, questions: Questions, answers: Answers) -> tuple[sparse.csr_array, np.ndarray]:
    """The labels with what most reviewers of a question said, and the rows that changed.

    >>> one = np.zeros(1, np.int32)
    >>> asked = Questions(one, one + 1, one > 0, one, one + 1.0, one + 1.0, one, one, one > 0)
    >>> Y, rows = apply_answers(sparse.csr_array([[1.0, 0.0]]), asked, Answers.of([0], [1]))
    >>> Y.toarray().tolist(), rows.tolist()
    ([[1.0, 1.0]], [0])
    """
    sure = judged(answers, questions.rows.size)
    says = np.sign(2 * sure.yes - sure.answers)
    asked = sure.question[says != 0]
    right = says[says != 0] > 0
    wrong = right != questions.recorded[asked]
    rows, labels = questions.rows[asked[wrong]], questions.labels[asked[wrong]]
    steps = np.where(right[wrong], 1.0, -1.0).astype(np.float32)
    changed = sparse.csr_array(Y + sparse.csr_array((steps, (rows, labels)), shape=Y.shape))
    changed.eliminate_zeros()
    return check_labels(changed), np.unique(rows).astype(np.int64)


def _drop_half(data: Dataset, seed: int) -> Truth:
    complete, test = check_labels(data.Y_train), check_labels(data.Y_test)
    low, high = 0.01, 1.0
    for _ in range(_BISECTIONS):
        a = (low + high) / 2
        p = planted_propensity(JainPropensity(a, b=B), complete)
        kept = p[complete.indices].mean()
        low, high = (low, a) if kept > KEPT else (a, high)
    observed, seen = drop_labels(complete, p, random_state=seed), drop_labels(test, p, random_state=seed + 1)
    return Truth(data, complete, observed, test, seen, a, p)


def _right_share(complete: sparse.csr_array, Y: sparse.csr_array) -> dict[str, float]:
    """The share of right labels that is recorded, by stratum of the recorded counts."""
    strata = strata_of(label_counts(Y))
    recorded, right = label_counts(sparse.csr_array(Y.multiply(complete))), label_counts(complete)
    return {
        name: float(recorded[strata == s].sum() / max(1, right[strata == s].sum())) for s, name in enumerate(STRATA)
    }


def _judge(model: XMCModel, truth: Truth, Y: sparse.csr_array, audited: Propensity | None) -> Record:
    """True P@5 and coverage on complete test labels, and PSP@5 of the observed ones by what each takes p to be."""
    top = model.predict_topk(truth.data.X_test, 5)
    true = evaluate(truth.test_complete, top, ["p@5", "coverage@5"], confidence=None)
    guess = JainPropensity().fit(Y)
    found = {"true P@5": true["p@5"].value, "coverage@5": true["coverage@5"].value}
    told = {"true p": truth.propensity, "guess": guess, "audited": guess if audited is None else audited}
    for name, propensity in told.items():
        scored = evaluate(truth.test_observed, top, ["psp@5"], propensity=propensity, confidence=None)
        found[f"PSP@5 {name}"] = scored["psp@5"].value
    return found


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """By round, means over the draws."""
    names = results[0]["rounds"][-1]
    rows: list[Record] = []
    for number in range(settings["rounds"] + 1):
        at = [result["rounds"][number] for result in results]
        # Nothing is estimated before the first answers.
        rows.append({n: round(float(np.mean([r[n] for r in at])), 4) if n in at[0] else None for n in names})
    return Summary(rows, _findings(settings, rows, results), {"loop": _plot(rows)})


def _findings(settings: Record, rows: list[Record], results: list[Record]) -> list[str]:
    first, last = rows[0], rows[-1]
    inside = [
        r[f"p {name} low"] <= r[f"true p {name}"] <= r[f"p {name} high"]
        for result in results
        for r in result["rounds"][1:]
        for name in STRATA
    ]
    far = {name: abs(last[f"p {name}"] - last[f"true p {name}"]) for name in STRATA}
    return [
        f"{settings['dataset']}: half of the labels dropped along Jain's curve with A = {results[0]['a']:.3f} and "
        f"B = {B}; {settings['rounds']} rounds of {settings['questions']} questions.",
        f"True P@5 on complete test labels: {first['true P@5']:.2f} before, {last['true P@5']:.2f} after "
        f"{last['answers']:,.0f} answers; coverage@5 {first['coverage@5']:.2f} and {last['coverage@5']:.2f}.",
        f"PSP@5 with the true p {first['PSP@5 true p']:.2f} before, {last['PSP@5 true p']:.2f} after; with Jain's "
        f"guess {last['PSP@5 guess']:.2f}, with what each round's answers say "
        + ", ".join(f"{row['PSP@5 audited']:.2f}" for row in rows[1:])
        + ".",
        f"The interval of the estimated p holds the true one in {sum(inside)} of {len(inside)} cases "
        "(strata × rounds × draws, 95 % intervals).",
        "Off in the last round: " + ", ".join(f"{name} {100 * off:.1f} points" for name, off in far.items()) + ".",
    ]


def _plot(rows: list[Record]) -> Any:
    from tailwise.experiments.plotting import COLOURS, line, make_figure

    figure, axes = make_figure(1, 3)
    x = [row["answers"] for row in rows]
    for i, name in enumerate(("true P@5", "PSP@5 true p", "PSP@5 audited", "PSP@5 guess")):
        own = rows if name != "PSP@5 audited" else rows[1:]
        line(axes[0, 0], i, [row["answers"] for row in own], [row[name] for row in own], label=name)
    axes[0, 0].set(xlabel="answers", ylabel="%", title="what the metrics say")
    line(axes[0, 1], 0, x, [row["coverage@5"] for row in rows], label="coverage@5")
    axes[0, 1].set(xlabel="answers", ylabel="%", title="coverage@5, complete labels")
    for i, name in enumerate(STRATA):
        own = rows[1:]
        value = np.array([row[f"p {name}"] for row in own])
        ends = np.array([[row[f"p {name} low"], row[f"p {name} high"]] for row in own]).T
        spread = np.abs(ends - value)
        line(axes[0, 2], i, x[1:], value, spread, label=name, linestyle="none")
        axes[0, 2].plot(x[1:], [row[f"true p {name}"] for row in own], color=COLOURS[i], linewidth=1)
    axes[0, 2].set(xlabel="answers", ylabel="p", title="estimated p (points), true p (lines)")
    for axis in axes[0]:
        axis.legend(frameon=False, fontsize=8)
    return figure
