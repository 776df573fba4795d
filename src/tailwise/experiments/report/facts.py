"""What a report shows, computed once for each model from its best candidates: numbers only, no HTML."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.tail.candidates import is_hit

SLICES = ("head", "torso", "tail")


class Deciles(NamedTuple):
    """Precision by label frequency: deciles of the labels seen in training, most frequent first."""

    rows_from: list[int]
    rows_to: list[int]
    precision: dict[int, np.ndarray]
    """k → (10,) contribution of each decile to P@k in percent; sums to P@k."""
    scored: dict[int, np.ndarray]
    """k → (10,) contribution of each decile to PSP@k in percent; sums to PSP@k."""
    recall: np.ndarray
    """(10,) recall within the decile at the largest k, in percent."""


def frequency_groups(counts: np.ndarray, n_groups: int = 10) -> np.ndarray:
    """The frequency group of each label, 0 the most frequent; -1 for labels without training rows.

    >>> frequency_groups(np.array([5, 0, 9, 1]), 3)
    array([ 1, -1,  0,  2])
    """
    order = np.lexsort((np.arange(counts.size), -counts))
    seen = order[counts[order] > 0]
    groups = np.full(counts.size, -1)
    groups[seen] = np.arange(seen.size) * n_groups // max(seen.size, 1)
    return groups


def by_decile(Y: sparse.csr_array, topk: TopK, counts: np.ndarray, inverse: np.ndarray, ks: tuple[int, ...]) -> Deciles:
    """P@k and PSP@k split by the frequency decile of the label that earned them."""
    groups = frequency_groups(counts)
    correct = is_hit(topk.labels, Y)
    present = [counts[groups == g] for g in range(10)]
    precision, scored = {}, {}
    for k in ks:
        earned = topk.labels[:, :k][correct[:, :k]]
        best = _best_possible(Y, inverse, k)
        seen = groups[earned] >= 0
        precision[k] = 100 * np.bincount(groups[earned][seen], minlength=10) / (Y.shape[0] * k)
        scored[k] = 100 * np.bincount(groups[earned][seen], inverse[earned][seen], minlength=10) / best
    relevant = np.bincount(groups[Y.indices][groups[Y.indices] >= 0], minlength=10)
    return Deciles(
        [int(p.max(initial=0)) for p in present],
        [int(p.min(initial=p.max(initial=0))) for p in present],
        precision,
        scored,
        np.divide(100 * precision[ks[-1]] / 100 * Y.shape[0] * ks[-1], relevant, out=np.zeros(10), where=relevant > 0),
    )


def _best_possible(Y: sparse.csr_array, inverse: np.ndarray, k: int) -> float:
    """``Σ_rows Σ of the k largest 1/p among the row's labels``: what PSP@k is divided by."""
    gains = inverse[Y.indices]
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    order = np.lexsort((-gains, rows))
    rank = np.arange(rows.size) - Y.indptr[rows]
    return float(gains[order][rank < k].sum()) or 1.0


def coverage_curve(Y: sparse.csr_array, candidates: TopK, ks: list[int]) -> list[float]:
    """Coverage@k in percent: distinct labels found in some row's top k, of the distinct labels of the rows."""
    correct = is_hit(candidates.labels, Y)
    there = max(1, np.unique(Y.indices).size)
    return [100 * np.unique(candidates.labels[:, :k][correct[:, :k]]).size / there for k in ks]


class Reliability(NamedTuple):
    """Observed precision by score, in bins of equal size."""

    score: np.ndarray
    observed: np.ndarray
    size: np.ndarray
    error: float | None
    """Expected calibration error in percent; None where scores are not probabilities."""


def reliability(Y: sparse.csr_array, topk: TopK, probabilities: bool, n_bins: int = 12) -> Reliability:
    """How often predictions of a score are right."""
    present = topk.labels >= 0
    scores = topk.scores[present].astype(float)
    right = is_hit(topk.labels, Y)[present].astype(float)
    order = np.argsort(scores, kind="stable")
    bins = [part for part in np.array_split(order, n_bins) if part.size]
    score = np.array([scores[b].mean() for b in bins])
    observed = np.array([right[b].mean() for b in bins])
    size = np.array([b.size for b in bins])
    error = float(100 * np.average(np.abs(score - observed), weights=size)) if probabilities and size.size else None
    return Reliability(score, observed, size, error)


class Norms(NamedTuple):
    """Weight norms of the label classifiers by training frequency: geometric bins of the frequency."""

    frequency: np.ndarray
    low: np.ndarray
    median: np.ndarray
    high: np.ndarray


def norms_by_frequency(norms: np.ndarray, counts: np.ndarray, n_bins: int = 14) -> Norms:
    """Median norm with its 10 % and 90 % quantiles in bins of similar frequency."""
    seen = np.flatnonzero(counts > 0)
    if not seen.size:
        empty = np.zeros(0)
        return Norms(empty, empty, empty, empty)
    edges = np.unique(np.geomspace(1, counts.max() + 1, n_bins + 1))
    place = np.digitize(counts[seen], edges)
    rows = []
    for b in np.unique(place):
        members = seen[place == b]
        rows.append((np.exp(np.log(counts[members]).mean()), *np.quantile(norms[members], [0.1, 0.5, 0.9])))
    return Norms(*np.array(rows).T)


class WorstLabel(NamedTuple):
    """A label that the model finds badly, with rows that show it."""

    label: int
    training_rows: int
    test_rows: int
    found: int
    suggested: int
    missed: list[int]
    """Some rows that carry the label and did not get it."""


def worst_labels(
    Y: sparse.csr_array, topk: TopK, counts: np.ndarray, members: np.ndarray, n_labels: int = 4, n_rows: int = 2
) -> list[WorstLabel]:
    """The labels among ``members`` (bool) with the lowest F1, the most frequent in the test rows first."""
    correct = is_hit(topk.labels, Y)
    size = counts.size
    support = np.bincount(Y.indices, minlength=size)
    found = np.bincount(topk.labels[correct], minlength=size)
    suggested = np.bincount(topk.labels[topk.labels >= 0], minlength=size)
    usable = np.flatnonzero(members & (counts > 0) & (support > 0))
    enough = usable[support[usable] >= min(5, np.quantile(support[usable], 0.75))] if usable.size else usable
    f1 = 2 * found[enough] / (support[enough] + suggested[enough])
    order = enough[np.lexsort((enough, -support[enough], f1))][:n_labels]
    columns = Y.tocsc()
    worst = []
    for label in order:
        rows = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
        missed = [int(row) for row in rows if label not in topk.labels[row]][:n_rows]
        figures = (int(counts[label]), int(support[label]), int(found[label]), int(suggested[label]))
        worst.append(WorstLabel(int(label), *figures, missed))
    return worst
