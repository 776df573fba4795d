"""Over many draws of missing labels, scored metrics average to the truth on complete labels; plain ones do not."""

import numpy as np
import pytest
from scipy import sparse

from tailwise.base import TopK
from tailwise.data import drop_labels, make_longtail
from tailwise.metrics import evaluate

DRAWS = 300
PAIRS = {
    "psp@3": "p@3",
    "psndcg@3": "ndcg@3",
    "psdcg@3": "dcg@3",
    "psrecall@3": "recall@3",
    "psf1@3": "f1@3",
    "psmrr": "mrr",
    "psadg": "adg",
    "pshamming": "hamming",
    "psp@3:tail": "p@3:tail",
    "pshamming:head": "hamming:head",
}


@pytest.fixture(scope="module")
def world():
    """A small world in which predictions are right about half the time."""
    data = make_longtail(300, 100, 60, labels_per_row=4, propensity=1.0, test_fraction=0, random_state=1)
    complete = data.Y_train_complete
    rng = np.random.default_rng(2)
    scores = complete.toarray() + rng.normal(0, 0.7, complete.shape)
    labels = np.argsort(-scores, axis=1)[:, :5].astype(np.int32)
    topk = TopK(labels, np.take_along_axis(scores, labels, axis=1).astype(np.float32))
    return complete, topk, rng.uniform(0.15, 0.9, complete.shape[1])


@pytest.fixture(scope="module")
def draws(world):
    """The plain and scored metrics of every draw: name → (DRAWS,) values."""
    complete, topk, p = world
    counts = np.asarray(complete.sum(axis=0)).ravel()
    options = {"label_counts": counts, "slices": (20, 40), "confidence": None, "normalize": False}
    relevant = np.diff(complete.indptr)
    names = [*PAIRS, *PAIRS.values()]
    values = {name: np.empty(DRAWS) for name in names}
    for draw in range(DRAWS):
        observed = drop_labels(complete, p, random_state=draw)
        result = evaluate(observed, topk, names, p, relevant_counts=relevant, **options)
        for name in names:
            values[name][draw] = result[name].value
    truth = evaluate(complete, topk, list(PAIRS.values()), **options)
    return values, truth


@pytest.mark.parametrize("scored", PAIRS)
def test_scored_estimate_is_unbiased_and_plain_is_not(draws, scored):
    values, truth = draws
    plain = PAIRS[scored]
    error = values[scored].std(ddof=1) / np.sqrt(DRAWS)
    assert abs(values[scored].mean() - truth[plain].value) < 4 * error
    plain_error = values[plain].std(ddof=1) / np.sqrt(DRAWS)
    assert abs(values[plain].mean() - truth[plain].value) > 10 * plain_error


def test_of_two_normalisations_one_is_unbiased_by_itself(world):
    """psdcg divides by k hits and needs nothing else; psndcg divides by the labels that were observed, and errs."""
    complete, topk, p = world
    names = ["dcg@3", "ndcg@3"]
    truth = evaluate(complete, topk, names, confidence=None)
    values = np.array(
        [
            [result[f"ps{name}"].value for name in names]
            for result in (
                evaluate(
                    drop_labels(complete, p, seed), topk, ["psdcg@3", "psndcg@3"], p, confidence=None, normalize=False
                )
                for seed in range(DRAWS)
            )
        ]
    )
    error = values.std(axis=0, ddof=1) / np.sqrt(DRAWS)
    away = np.abs(values.mean(axis=0) - [truth[name].value for name in names])
    assert away[0] < 4 * error[0]
    assert away[1] > 10 * error[1]


def test_labels_may_go_missing_together(world):
    """Theorem 4.1 asks for the marginal propensities only: here one draw a row decides all of its labels."""
    complete, topk, p = world
    names = ["p@3", "dcg@3", "hamming"]
    truth = evaluate(complete, topk, names, confidence=None)
    rng = np.random.default_rng(5)
    row = np.repeat(np.arange(complete.shape[0]), np.diff(complete.indptr))
    values = {kind: np.empty((DRAWS, 3)) for kind in ("scored", "plain")}
    for draw in range(DRAWS):
        observed = complete.copy()
        observed.data = (rng.random(complete.shape[0])[row] < p[complete.indices]).astype(np.float32)
        found = evaluate(observed, topk, [*names, *(f"ps{n}" for n in names)], p, confidence=None, normalize=False)
        values["scored"][draw] = [found[f"ps{name}"].value for name in names]
        values["plain"][draw] = [found[name].value for name in names]
    wanted = np.array([truth[name].value for name in names])
    away = {
        kind: np.abs(v.mean(axis=0) - wanted) / (v.std(axis=0, ddof=1) / np.sqrt(DRAWS)) for kind, v in values.items()
    }
    assert (away["scored"] < 4).all() and (away["plain"] > 10).all()


@pytest.mark.parametrize("scored", ["psrecall@3", "psmrr", "psadg"])
def test_non_decomposable_metrics_need_the_number_of_relevant_labels(world, scored):
    """Theorem 4.2: with the true count they are unbiased (above); with the observed one they are not."""
    complete, topk, p = world
    truth = evaluate(complete, topk, scored[2:], confidence=None)[scored[2:]].value
    found = [
        evaluate(drop_labels(complete, p, seed), topk, scored, p, confidence=None, normalize=False)[scored].value
        for seed in range(100)
    ]
    assert abs(np.mean(found) - truth) > 10 * np.std(found, ddof=1) / np.sqrt(100)


@pytest.mark.parametrize(("scored", "n_labels"), [("psp@1", 1), ("psp@1", 30), ("pshamming", 3)])
def test_concentration_over_draws_of_missing_labels(scored, n_labels):
    """Theorems 4.3 and 4.4: the interval holds the truth as often as it says, and half of it would not.

    One label of propensity ½ is relevant in every row and named: the worst case, where a row's value is 0 or ρ.
    """
    n_rows, delta = 200, 0.05
    complete = sparse.csr_array(
        (np.ones(n_rows, np.float32), (np.arange(n_rows), np.zeros(n_rows, int))), (n_rows, n_labels)
    )
    labels, p = np.zeros((n_rows, 1), np.int32), np.full(n_labels, 0.5)
    truth = evaluate(complete, labels, scored[2:], confidence=None)[scored[2:]].value
    away, reach = np.empty(400), np.empty(400)
    for draw in range(400):
        seen = drop_labels(complete, p, draw)
        found = evaluate(seen, labels, scored, p, interval="hoeffding", confidence=1 - delta, normalize=False, n_jobs=1)
        away[draw], reach[draw] = abs(found[scored].value - truth), found[scored].high - found[scored].value
    scale = 100 if scored == "psp@1" else 1
    width = 2.0 if scored == "psp@1" else 2.0 * n_labels  # ρ, and Σ 1/p, which is at most ρ L
    assert reach == pytest.approx(np.full(400, scale * width * np.sqrt(np.log(2 / delta) / (2 * n_rows))))
    assert np.mean(away <= reach) >= 1 - delta
    if scored == "psp@1":  # whose width does not grow with the labels that are never relevant
        assert np.mean(away <= reach / 2) < 1 - delta


def test_pooled_recall_by_slice_is_consistent(world):
    """psrecall@k:slice needs no relevant counts: a ratio of unbiased sums, so its bias vanishes with the rows."""
    complete, topk, p = world
    tall, many = sparse.vstack([complete] * 30).tocsr(), np.tile(topk.labels, (30, 1))
    truth = evaluate(complete, topk, ["recall@5:all"], confidence=None)["recall@5:all"].value
    names = ["psrecall@5:all", "recall@5:all"]
    results = [evaluate(drop_labels(tall, p, seed), many, names, p, confidence=None) for seed in range(20)]
    scored, plain = (np.array([result[name].value for result in results]) for name in names)
    assert abs(scored.mean() - truth) < 4 * scored.std(ddof=1) / np.sqrt(20)
    assert abs(plain.mean() - truth) > 4 * plain.std(ddof=1) / np.sqrt(20)


@pytest.mark.parametrize("scored", ["psrecall@5", "psmrr", "psadg"])
def test_corollary_with_known_g(world, scored):
    """Labels kept with probability g_l / |y*|: g alone is enough, as propensity g / c with c relevant labels."""
    complete, topk, _ = world
    sizes = np.diff(complete.indptr)
    rng = np.random.default_rng(1)
    g = rng.uniform(0.3, 0.9, complete.shape[1])
    c = float(sizes.max())
    truth = evaluate(complete, topk, scored[2:], confidence=None)[scored[2:]].value
    values, wrong = np.empty(150), np.empty(150)
    for draw in range(values.size):
        observed = complete.copy()
        observed.data = (rng.random(complete.nnz) < g[complete.indices] / np.repeat(sizes, sizes)).astype(np.float32)
        counts = np.full(len(sizes), c)
        result = evaluate(observed, topk, scored, g / c, confidence=None, normalize=False, relevant_counts=counts)
        values[draw] = result[scored].value
        wrong[draw] = evaluate(observed, topk, scored[2:], confidence=None, relevant_counts=sizes)[scored[2:]].value
    assert abs(values.mean() - truth) < 4 * values.std(ddof=1) / np.sqrt(values.size)
    assert abs(wrong.mean() - truth) > 10 * wrong.std(ddof=1) / np.sqrt(wrong.size), "without g it is not"
