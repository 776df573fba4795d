"""What a report shows beside metrics, from each model's best candidates: numbers only, no HTML."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.errors import Unsupported
from tailwise.judging import Judged, Trial, predict_in_blocks
from tailwise.metrics import evaluate, label_table
from tailwise.tail import classifier_norms, expected_calibration_error
from tailwise.tail.candidates import is_hit
from tailwise.tail.wrapper import as_probabilities


class Candidates(NamedTuple):
    """The labels that a trade-off ranks anew: as predicted, and their scores on the scale [0, 1]."""

    topk: TopK
    chances: np.ndarray


def candidates_of(trial: Trial, judged: Judged) -> Candidates:
    """What ``judged`` predicted before any ranking by propensity."""
    model, topk = judged.tagger.model_.before_propensity(), judged.topk
    if model is not judged.tagger.model_:
        X, k = judged.tagger.rows(trial.rows), topk.labels.shape[1]
        topk = judged.in_trial(predict_in_blocks(model, X, k, f"Candidates of {judged.name}"))
    return Candidates(topk, as_probabilities(topk.scores, model))


def norms_of(trial: Trial, judged: Judged) -> np.ndarray | None:
    """(n_labels,) norm of each label's weights in the trial's space of labels; None where the model is not linear."""
    try:
        norms = classifier_norms(judged.tagger.model_)
    except Unsupported:
        return None
    spread = np.zeros(trial.counts.size)
    spread[judged.columns[:-1]] = norms
    return spread


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
    error = expected_calibration_error(scores, right, n_bins) if probabilities and size.size else None
    return Reliability(score, observed, size, error)


def reliability_of(trial: Trial, judged: Judged, k: int) -> Reliability:
    """How often the first ``k`` predictions of a model are right, by score."""
    probabilities = judged.tagger is not None and judged.tagger.model_.scores_are_probabilities
    return reliability(trial.Y, judged.topk.padded(k), probabilities)


def coverage_ks(trial: Trial) -> list[int]:
    """At which k coverage is shown, as far as predictions go."""
    return [k for k in (1, 2, 3, 4, 5, 7, 10, 15, 20) if k <= trial.models[0].topk.labels.shape[1]]


def coverage_of(trial: Trial, judged: Judged, ks: list[int]) -> list[float]:
    """Coverage at each k in percent, NaN beyond what is predicted: a file may hold fewer labels than are asked for."""
    found = evaluate(trial.Y, judged.topk, [f"coverage@{k}" for k in ks], confidence=None)
    deepest = int((judged.topk.labels >= 0).sum(axis=1).max(initial=0))
    return [found[f"coverage@{k}"].value if k <= deepest else np.nan for k in ks]


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
    table = label_table(Y, topk, topk.labels.shape[1])
    support, f1 = table["true"], table["f1"]
    usable = np.flatnonzero(members & (support > 0))
    enough = usable[support[usable] >= min(5, np.quantile(support[usable], 0.75))] if usable.size else usable
    order = enough[np.lexsort((enough, -support[enough], f1[enough]))][:n_labels]
    columns = Y.tocsc()
    worst = []
    for label in order:
        rows = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
        missed = [int(row) for row in rows if label not in topk.labels[row]][:n_rows]
        true, correct, predicted = (int(table[name][label]) for name in ("true", "correct", "predicted"))
        worst.append(WorstLabel(int(label), int(counts[label]), true, correct, predicted, missed))
    return worst
