"""Which finds more missing labels with its first 500 pairs: the audit's list, or cleanlab's multi-label filter?

Both get the same out-of-fold probabilities of a small ``make_longtail`` whose complete labels are known: cleanlab as
the dense matrix that it needs (rows × labels), the audit as the best labels of each row. A pair is right if its label
is truly missing. cleanlab has an environment of its own, which ``make peers`` makes; without it the question is
answered for us alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, Contender, measure

QUESTION = "Which finds more missing labels with its first 500 pairs, the audit or cleanlab's multi-label filter?"
REPEATS = 1
THREADS = 1
FIRST = 500


def contenders() -> list[Contender]:
    """Ours, and cleanlab by its two ways of ranking."""
    prepare()
    peer = {"where": "cleanlab", "needs": ("cleanlab",)}
    return [
        Contender("audit", "run_ours"),
        Contender("cleanlab find_label_issues", "run_issues", **peer),
        Contender("cleanlab label quality", "run_quality", **peer),
    ]


def prepare() -> None:
    """Write the data, once: observed and complete labels, and out-of-fold probabilities as a dense matrix."""
    import numpy as np
    from scipy import sparse

    import tailwise as tw
    from tailwise.tail.folds import out_of_fold, split_folds

    folder = data_folder()
    if (folder / "chance.npy").exists():
        return
    data = tw.make_longtail(4000, 2000, 300, test_fraction=0, random_state=0)
    X, Y = data.X_train, data.Y_train
    # Calibrated gives probabilities from folds of its own, within the rows that each fold may see.
    model = tw.Calibrated(tw.Centroid(n_jobs=1), per="frequency-bin", n_candidates=300, random_state=0)
    top = out_of_fold(model, X, Y, 300, split_folds(Y, 3, 0))
    dense = np.zeros(Y.shape, np.float32)
    rows, places = np.nonzero(top.labels >= 0)
    dense[rows, top.labels[rows, places]] = np.clip(top.scores[rows, places], 0, 1)
    folder.mkdir(parents=True, exist_ok=True)
    sparse.save_npz(folder / "Y.npz", sparse.csr_matrix(Y))
    sparse.save_npz(folder / "complete.npz", sparse.csr_matrix(data.Y_train_complete))
    np.save(folder / "chance.npy", dense)


def data_folder() -> Path:
    return RESULTS / "data" / "audit-cleanlab"


def load() -> tuple[Any, Any, Any]:
    import numpy as np
    from scipy import sparse

    folder = data_folder()
    Y, complete = (sparse.load_npz(folder / f"{name}.npz").toarray().astype(bool) for name in ("Y", "complete"))
    return Y, complete, np.load(folder / "chance.npy")


def precision(pairs: Any, Y: Any, complete: Any) -> dict[str, float]:
    """Of the first pairs (row, label): how many are there, not recorded, and truly missing."""
    import numpy as np

    rows, labels = np.asarray(pairs)[:FIRST].T
    missing = complete & ~Y
    return {"pairs": float(len(rows)), "right %": 100 * float(missing[rows, labels].mean())}


def run_ours() -> dict[str, Any]:
    """By the chance to be missing, with Jain's guess of the propensities."""
    import numpy as np

    from tailwise import JainPropensity
    from tailwise.audit import missing_chance

    Y, complete, chance = load()
    from scipy import sparse

    top = np.argsort(-chance, axis=1, kind="stable")[:, :100]  # what a model hands over: the best of each row
    scores = np.take_along_axis(chance, top, axis=1)
    with measure() as m:
        rows = np.repeat(np.arange(top.shape[0]), top.shape[1])
        labels = top.ravel()
        new = ~Y[rows, labels]
        guess = JainPropensity().fit(sparse.csr_array(Y.astype(np.float32))).propensity_
        missing = missing_chance(scores.ravel()[new].astype(np.float64), guess[labels[new]])
        order = np.argsort(-missing, kind="stable")[:FIRST]
        pairs = np.column_stack([rows[new][order], labels[new][order]])
    return {"rank": m, **precision(pairs, Y, complete)}


def run_issues() -> dict[str, Any]:
    """The unrecorded labels that cleanlab's filter calls issues, the most probable first."""
    import numpy as np
    from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class

    Y, complete, chance = load()
    lists = [np.flatnonzero(row).tolist() for row in Y]
    with measure() as m:
        masks = find_multilabel_issues_per_class(labels=lists, pred_probs=chance, n_jobs=1)
        issues = np.asarray(masks).T if np.asarray(masks).shape != Y.shape else np.asarray(masks)
        rows, labels = np.nonzero(issues & ~Y)  # those it would add; it calls recorded labels issues too
        order = np.argsort(-chance[rows, labels], kind="stable")[:FIRST]
    return {"rank": m, **precision(np.column_stack([rows, labels])[order], Y, complete), "issues": float(issues.sum())}


def run_quality() -> dict[str, Any]:
    """Rows by cleanlab's quality of all their labels, worst first, and in each the best unrecorded label."""
    import numpy as np
    from cleanlab.multilabel_classification import get_label_quality_scores

    Y, complete, chance = load()
    lists = [np.flatnonzero(row).tolist() for row in Y]
    with measure() as m:
        quality = get_label_quality_scores(lists, chance)
        rows = np.argsort(quality, kind="stable")[:FIRST]
        labels = np.where(Y[rows], -1.0, chance[rows]).argmax(axis=1)
    return {"rank": m, **precision(np.column_stack([rows, labels]), Y, complete)}
