"""Which finds more missing labels with its first 500 pairs: the audit's list, or cleanlab's multi-label filter?

Both get the same out-of-fold probabilities: cleanlab as the dense matrix that it needs (rows × labels), the audit as
the best labels of each row. Data are a small ``make_longtail``, and 6,000 rows of EURLex-4K of whose labels some were
dropped; the complete labels are known, and a pair is right if its label is truly missing. The audit ranks before any
answer, by Jain's guess, and after 500 questions that reviewers answered who say yes to 3 % of wrong and no to 6 % of
right labels, by what they tell of the propensities. cleanlab has an environment of its own, which ``make peers`` makes;
without it the question is answered for us alone.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, Contender, measure

QUESTION = "Which finds more missing labels with its first 500 pairs, the audit or cleanlab's multi-label filter?"
REPEATS = 1
THREADS = 1
FIRST = 500
DATA = ("longtail", "eurlex")


def contenders() -> list[Contender]:
    """Ours before and after answers, and cleanlab by its two ways of ranking, on both data sets."""
    peer = {"where": "cleanlab", "needs": ("cleanlab",)}
    found = []
    for name in DATA:
        prepare(name)
        found += [
            Contender(f"audit, guess: {name}", f"run_guess_{name}"),
            Contender(f"audit, 500 questions: {name}", f"run_answers_{name}"),
            Contender(f"cleanlab find_label_issues: {name}", f"run_issues_{name}", **peer),
            Contender(f"cleanlab label quality: {name}", f"run_quality_{name}", **peer),
        ]
    return found


def prepare(name: str) -> None:
    """Write the data, once: observed and complete labels, and out-of-fold probabilities as a dense matrix."""
    import numpy as np
    from scipy import sparse

    import tailwise as tw
    from tailwise.tail.folds import out_of_fold, split_folds

    folder = data_folder(name)
    if (folder / "chance.npy").exists():
        return
    X, Y, complete = _labelled(name)
    # Calibrated gives probabilities from folds of its own, within the rows that each fold may see.
    model = tw.Calibrated(tw.Centroid(n_jobs=1), per="frequency-bin", n_candidates=300, random_state=0)
    top = out_of_fold(model, X, Y, 300, split_folds(Y, 3, 0))
    dense = np.zeros(Y.shape, np.float32)
    rows, places = np.nonzero(top.labels >= 0)
    dense[rows, top.labels[rows, places]] = np.clip(top.scores[rows, places], 0, 1)
    folder.mkdir(parents=True, exist_ok=True)
    for kept, matrix in (("Y", Y), ("complete", complete)):
        sparse.save_npz(folder / f"{kept}.npz", sparse.csr_matrix(matrix))
    told = {"guess": tw.JainPropensity().fit(Y).propensity_, "answers": _audited(X, Y, complete)}
    np.savez(folder / "propensity.npz", **told)
    np.save(folder / "chance.npy", dense)


def _labelled(name: str) -> tuple[Any, Any, Any]:
    """Rows with observed and with complete labels."""
    import tailwise as tw
    from tailwise.data import drop_labels, planted_propensity

    if name == "longtail":
        data = tw.make_longtail(4000, 2000, 300, test_fraction=0, random_state=0)
        return data.X_train, data.Y_train, data.Y_train_complete
    data = tw.load_dataset("eurlex-4k")
    X, complete = data.X_train[:6000], data.Y_train[:6000]
    return X, drop_labels(complete, planted_propensity(tw.JainPropensity(0.8, b=1.2), complete), 0), complete


def _audited(X: Any, Y: Any, complete: Any) -> Any:
    """(n_labels,) propensities by an audit of 500 questions."""
    import tailwise as tw
    from tailwise.audit import estimate_audit, plan_audit, simulate_answers

    plan = plan_audit(tw.Centroid(n_jobs=1), X, Y, n_questions=500)
    answers = simulate_answers(plan.questions, complete, wrong_yes=0.03, wrong_no=0.06, random_state=0)
    return estimate_audit(plan, answers).propensity.propensity_


def data_folder(name: str) -> Path:
    return RESULTS / "data" / f"audit-cleanlab-{name}"


def load(name: str) -> tuple[Any, Any, Any]:
    import numpy as np
    from scipy import sparse

    folder = data_folder(name)
    Y, complete = (sparse.load_npz(folder / f"{kept}.npz").toarray().astype(bool) for kept in ("Y", "complete"))
    return Y, complete, np.load(folder / "chance.npy")


def precision(pairs: Any, Y: Any, complete: Any) -> dict[str, float]:
    """Of the first pairs (row, label): how many are there, not recorded, and truly missing."""
    import numpy as np

    rows, labels = np.asarray(pairs)[:FIRST].T
    missing = complete & ~Y
    return {"pairs": float(len(rows)), "right %": 100 * float(missing[rows, labels].mean())}


def _ours(name: str, told: str) -> dict[str, Any]:
    """By the chance to be missing, with the propensities that are ``told``."""
    import numpy as np

    from tailwise.audit import missing_chance
    from tailwise.audit.pool import most_probable

    Y, complete, chance = load(name)
    propensity = np.load(data_folder(name) / "propensity.npz")[told]
    top = np.argsort(-chance, axis=1, kind="stable")[:, :100]  # what a model hands over: the best of each row
    scores = np.take_along_axis(chance, top, axis=1)
    with measure() as m:
        rows = np.repeat(np.arange(top.shape[0]), top.shape[1])
        labels = top.ravel()
        new = ~Y[rows, labels]
        missing = missing_chance(scores.ravel()[new].astype(np.float64), propensity[labels[new]])
        order = most_probable(missing, scores.ravel()[new])[:FIRST]
        pairs = np.column_stack([rows[new][order], labels[new][order]])
    return {"rank": m, **precision(pairs, Y, complete)}


def _issues(name: str) -> dict[str, Any]:
    """The unrecorded labels that cleanlab's filter calls issues, the most probable first."""
    import numpy as np
    from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class

    Y, complete, chance = load(name)
    lists = [np.flatnonzero(row).tolist() for row in Y]
    with measure() as m:
        masks = find_multilabel_issues_per_class(labels=lists, pred_probs=chance, n_jobs=1)
        issues = np.asarray(masks).T if np.asarray(masks).shape != Y.shape else np.asarray(masks)
        rows, labels = np.nonzero(issues & ~Y)  # those it would add; it calls recorded labels issues too
        order = np.argsort(-chance[rows, labels], kind="stable")[:FIRST]
    return {"rank": m, **precision(np.column_stack([rows, labels])[order], Y, complete), "issues": float(issues.sum())}


def _quality(name: str) -> dict[str, Any]:
    """Rows by cleanlab's quality of all their labels, worst first, and in each the best unrecorded label."""
    import numpy as np
    from cleanlab.multilabel_classification import get_label_quality_scores

    Y, complete, chance = load(name)
    lists = [np.flatnonzero(row).tolist() for row in Y]
    with measure() as m:
        quality = get_label_quality_scores(lists, chance)
        rows = np.argsort(quality, kind="stable")[:FIRST]
        labels = np.where(Y[rows], -1.0, chance[rows]).argmax(axis=1)
    return {"rank": m, **precision(np.column_stack([rows, labels]), Y, complete)}


run_guess_longtail, run_guess_eurlex = (partial(_ours, name, "guess") for name in DATA)
run_answers_longtail, run_answers_eurlex = (partial(_ours, name, "answers") for name in DATA)
run_issues_longtail, run_issues_eurlex = (partial(_issues, name) for name in DATA)
run_quality_longtail, run_quality_eurlex = (partial(_quality, name) for name in DATA)
