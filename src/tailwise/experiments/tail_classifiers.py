"""Experiment ``tail-classifiers``: what do PfastreXML's tail classifiers gain by maximum likelihood?

After section 6 of *Extreme Multi-label Loss Functions for Recommendation, Tagging, Ranking & Other Missing Label
Applications*. A tail classifier has one vector μ_l a label, ``q_l(x) = 1 / (1 + e^(γ/2 |x - μ_l|²))``, and observed
labels have the probability ``p_l q_l(x)``. The paper's likelihood is that of all rows; it sets the gradient to zero,
``μ_l = Σ_i u_i x_i / Σ_i u_i`` with u_i about 1 on rows that have the label and about 0 on others, and takes the mean
of the label's rows in its place, at a loss of 0.2 % of accuracy, it says. Here both are fitted, the likelihood by
gradient ascent from the mean with steps that are halved until they gain, and re-rank the same forest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from tailwise.data import Dataset, load_dataset, make_longtail
from tailwise.experiments.gain_by_frequency import published_pfastrexml
from tailwise.experiments.running import Record, Summary
from tailwise.forest import TailCentroids
from tailwise.metrics import evaluate
from tailwise.parallel import row_blocks
from tailwise.propensity import JainPropensity
from tailwise.tail.ranking import sort_topk
from tailwise.topk import TopK
from tailwise.validation import check_features, check_labels, label_counts

GAMMA = 30.0
ALPHA = 0.8
METRICS = ("p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5", "recall@5:tail")
WAYS = {
    "forest alone": "PfastXML",
    "means": "means of the label's rows, as published",
    "likelihood": "maximum likelihood",
    "cones": "angles to the means, our default",
}
_LABELS_A_BLOCK = 256
_CLOSE = 1e-5
_HALVINGS = 12


class Shared(NamedTuple):
    """What all cells share: the data, and (n_labels, n_features) vectors of each way."""

    settings: Record
    data: Dataset
    vectors: dict[str, sparse.csr_array]
    moved: Record
    """What the likelihood gained in training."""


def choose(size: str, options: Record) -> Record:
    """Data set, trees, seeds and steps of each size."""
    usual = {"dataset": "eurlex-4k", "trees": 50, "repeats": 3, "steps": 40}
    by_size: dict[str, Record] = {
        "quick": {"dataset": "synthetic", "trees": 5, "repeats": 2, "steps": 10},
        "default": {},
        "full": {"repeats": 5, "steps": 100},
    }
    return {**usual, **by_size[size], **({"dataset": options["data"]} if "data" in options else {})}


def cells(settings: Record) -> list[Record]:
    """One cell a forest, which every tail classifier re-ranks."""
    return [{"repeat": repeat} for repeat in range(settings["repeats"])]


def prepare(settings: Record, n_jobs: int | None) -> Shared:
    """The data, the means, and the vectors of greatest likelihood."""
    if settings["dataset"] == "synthetic":
        data = make_longtail(1_500, 600, 120, random_state=settings["seed"], n_jobs=n_jobs)
    else:
        data = load_dataset(settings["dataset"])
    X, Y = check_features(data.X_train), check_labels(data.Y_train)
    means = mean_vectors(X, Y)
    p = JainPropensity().fit(Y).propensity_
    likely, gained = climb_likelihood(X, Y, means, p, settings["steps"])
    moved = {"before": gained[:, 0].tolist(), "after": gained[:, 1].tolist()}
    return Shared(settings, data, {"means": means, "likelihood": likely}, moved)


def mean_vectors(X: sparse.csr_array, Y: sparse.csr_array) -> sparse.csr_array:
    """The mean of each label's rows: (n_labels, n_features); nothing for a label without rows."""
    scale = sparse.diags_array(1.0 / np.maximum(1, label_counts(Y)))
    return sparse.csr_array(scale @ (Y.T.tocsr() @ X))


def climb_likelihood(
    X: sparse.csr_array, Y: sparse.csr_array, start: sparse.csr_array, propensity: np.ndarray, steps: int
) -> tuple[sparse.csr_array, np.ndarray]:
    """The vectors of greatest likelihood, and (n_labels, 2) logarithms of it before and after.

    Only rows that have the label or lie so near that p q exceeds 0.00001 take part: the others have no weight.
    """
    by_label = Y.T.tocsr()
    found, gained = [], np.zeros((Y.shape[1], 2))
    for first, last in row_blocks(Y.shape[1], _LABELS_A_BLOCK):
        near = _log_q(squared_distances(X, start[first:last])) + np.log(propensity[first:last]) > np.log(_CLOSE)
        for label in range(first, last):
            own = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
            if not own.size:
                found.append(sparse.csr_array((1, X.shape[1]), dtype=np.float32))
                continue
            others = np.setdiff1d(np.flatnonzero(near[:, label - first]), own)
            rows = X[np.concatenate([own, others])]
            gram = (rows @ rows.T).toarray().astype(np.float64)
            shares, gained[label] = climb(gram, own.size, float(propensity[label]), steps)
            found.append(sparse.csr_array(sparse.csr_array(shares[None, :]) @ rows))
    return sparse.csr_array(sparse.vstack(found, format="csr", dtype=np.float32)), gained


def climb(gram: np.ndarray, n_own: int, p: float, steps: int) -> tuple[np.ndarray, tuple[float, float]]:
    """One label: the shares c of rows in ``μ = Σ c_i x_i``, and the log-likelihood at the mean and at the end.

    ``gram`` holds the products of the rows, of which the first ``n_own`` have the label.

    >>> shares, (before, after) = climb(np.array([[1, 0.9], [0.9, 1]]), 1, 0.5, 20)
    >>> shares[0] > 1 and shares[1] < 0 and after > before
    True
    """
    shares = np.zeros(len(gram))
    shares[:n_own] = 1 / n_own
    value, pull = _likelihood(gram, shares, n_own, p)
    first, length = value, 1.0
    for _ in range(steps):
        step = (pull - pull.sum() * shares) / pull[:n_own].sum()
        for _ in range(_HALVINGS):
            tried = shares + length * step
            better, its_pull = _likelihood(gram, tried, n_own, p)
            if better > value:
                break
            length /= 2
        else:
            break
        gain, shares, value, pull = better - value, tried, better, its_pull
        length = min(1.0, 2 * length)
        if gain < 1e-7 * abs(value):
            break
    return shares, (first, value)


def _likelihood(gram: np.ndarray, shares: np.ndarray, n_own: int, p: float) -> tuple[float, np.ndarray]:
    """The log-likelihood, and the weights u of rows in its gradient ``γ Σ u_i (x_i - μ)``."""
    along = gram @ shares
    t = 0.5 * GAMMA * np.maximum(gram.diagonal() - 2 * along + shares @ along, 0)
    q = expit(-t)
    value = -np.logaddexp(0, t[:n_own]).sum() + np.log1p(-p * q[n_own:]).sum()
    pull = 1 - q
    pull[n_own:] *= -p * q[n_own:] / (1 - p * q[n_own:])
    return float(value), pull


def squared_distances(X: sparse.csr_array, vectors: sparse.csr_array) -> np.ndarray:
    """``|x - μ|²`` of every row and every vector: (n_rows, n_vectors) float64; inf for a vector without entries."""
    lengths = np.asarray(vectors.multiply(vectors).sum(axis=1), np.float64).ravel()
    products = np.asarray(X @ vectors.T.toarray(), np.float64)
    squares = np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()
    found = np.maximum(squares[:, None] - 2 * products + lengths, 0)
    found[:, np.diff(vectors.indptr) == 0] = np.inf
    return found


def _log_q(distances: np.ndarray) -> np.ndarray:
    return -np.logaddexp(0, 0.5 * GAMMA * distances)


def compute(shared: Shared, cell: Record, n_jobs: int | None) -> Record:
    """Grow a forest, re-rank it in every way, and judge; how likely the test labels are under each way."""
    settings, data = shared.settings, shared.data
    X = check_features(data.X_test)
    model = published_pfastrexml(settings["trees"], settings["seed"] + cell["repeat"]).set_params(n_jobs=n_jobs)
    forest = model.fit(data.X_train, data.Y_train).forest_.predict_topk(X, data.n_labels)
    propensity = JainPropensity().fit(data.Y_train)
    tops = {"forest alone": TopK(forest.labels[:, :5], forest.scores[:, :5])}
    alone, likely = {}, {}
    for way, vectors in shared.vectors.items():
        log_q = _log_q(squared_distances(X, vectors))
        own = np.take_along_axis(log_q, np.maximum(forest.labels, 0).astype(np.int64), axis=1)
        tops[way], alone[way] = rerank(forest, own, ALPHA), rerank(forest, own, 0.0)
        likely[way] = _test_likelihood(log_q, check_labels(data.Y_test), propensity.propensity_)
    cones = TailCentroids(idf=False, n_jobs=n_jobs).fit(data.X_train, data.Y_train).log_scores(X, forest.labels)
    tops["cones"], alone["cones"] = rerank(forest, cones, ALPHA), rerank(forest, cones, 0.0)

    def judged(top: TopK) -> Record:
        found = evaluate(data.Y_test, top, METRICS, propensity, label_counts=data.label_counts, confidence=None)
        return {name: float(found[name].value) for name in METRICS}

    return {
        "reranked": {way: judged(top) for way, top in tops.items()},
        "alone": {way: judged(top) for way, top in alone.items()},
        "test likelihood": likely,
        "training likelihood": {name: sum(values) for name, values in shared.moved.items()},
        "gained": int(np.sum(np.array(shared.moved["after"]) > np.array(shared.moved["before"]))),
    }


def rerank(forest: TopK, log_q: np.ndarray, alpha: float) -> TopK:
    """The five best of ``α ln P(l|x) + (1 - α) ln q_l(x)`` among the labels that the forest proposes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        proposed = np.where(forest.labels >= 0, np.log(np.maximum(forest.scores, 0)), -np.inf)
        scores = (alpha * proposed if alpha else np.zeros_like(proposed)) + (1 - alpha) * log_q
    return sort_topk(forest.labels, np.where(forest.labels >= 0, scores, -np.inf), 5)


def _test_likelihood(log_q: np.ndarray, Y: sparse.csr_array, propensity: np.ndarray) -> float:
    """The mean over test rows of the log-likelihood of their observed labels; labels without training rows left out."""
    known = np.isfinite(log_q).all(axis=0)
    there = np.zeros(log_q.shape, bool)
    there[np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)), Y.indices] = True
    log_p = log_q + np.log(propensity)
    with np.errstate(invalid="ignore"):
        terms = np.where(there, log_p, np.log1p(-np.exp(log_p)))
    return float(terms[:, known].sum() / Y.shape[0])


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """A row a way, with the spread over forests, what the likelihood gained, and the plot."""
    rows = []
    for kind in ("reranked", "alone"):
        for way in results[0][kind]:
            share = 1.0 if way == "forest alone" else ALPHA if kind == "reranked" else 0.0
            row: Record = {"tail classifiers": WAYS[way], "forest's share": share}
            for name in METRICS:
                values = [r[kind][way][name] for r in results]
                row[name] = round(float(np.mean(values)), 3)
                row[f"{name} sd"] = round(float(np.std(values, ddof=1)), 3) if len(values) > 1 else 0.0
            rows.append(row)
    return Summary(rows, _findings(results), {"tail-classifiers": _plot(results)})


def _findings(results: list[Record]) -> list[str]:
    first = results[0]
    found = [
        f"Log-likelihood of the training labels {first['training likelihood']['before']:.0f} at the means, "
        f"{first['training likelihood']['after']:.0f} at its maximum, higher for {first['gained']:,} labels; of a test "
        f"row's labels {first['test likelihood']['means']:.2f} and {first['test likelihood']['likelihood']:.2f}."
    ]
    for kind, title in (("reranked", f"forest re-ranked, α = {ALPHA}"), ("alone", "by tail classifiers alone")):
        for way, other in (("likelihood", "means"), ("cones", "means")):
            parts = []
            for name in METRICS:
                gaps = [r[kind][way][name] - r[kind][other][name] for r in results]
                spread = float(np.std(gaps, ddof=1)) if len(gaps) > 1 else 0.0
                parts.append(f"{name} {np.mean(gaps):+.2f} ± {spread:.2f}")
            found.append(f"{title}: {WAYS[way]} less means: {', '.join(parts)}.")
    return found


def _plot(results: list[Record]) -> Any:
    from tailwise.experiments.plotting import line, make_figure

    figure, axes = make_figure(1, 2, width=4.6)
    shown = [name for name in METRICS if name.startswith("p")]
    for axis, kind in zip(axes[0], ("reranked", "alone"), strict=True):
        for i, way in enumerate(results[0][kind]):
            values = np.array([[r[kind][way][name] for name in shown] for r in results])
            spread = values.std(axis=0, ddof=1) if len(values) > 1 else None
            line(axis, i, range(len(shown)), values.mean(axis=0), spread, label=WAYS[way])
        axis.set_xticks(range(len(shown)), [name.upper() for name in shown], fontsize=8)
        axis.set(title=f"forest's share {ALPHA if kind == 'reranked' else 0:g}", ylabel="%")
        axis.legend(frameon=False, fontsize=7)
    return figure
