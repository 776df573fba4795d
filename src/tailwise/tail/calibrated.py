"""Scores that mean what they say: calibration on out-of-fold predictions, for all labels or by label frequency."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.changes import Change
from tailwise.explanation import Explanation
from tailwise.metrics import label_slices
from tailwise.parameters import Choice, Integer
from tailwise.persistence.checks import (
    check_exact,
    check_finite,
    check_kind,
    check_monotone,
    check_range,
    check_that,
)
from tailwise.runs import share
from tailwise.tail.candidates import Candidates, gather_candidates
from tailwise.tail.folds import N_FOLDS, N_ROWS, out_of_fold, split_folds
from tailwise.tail.ranking import N_CANDIDATES, rank_candidates
from tailwise.tail.wrapper import Wrapper


class Curve(NamedTuple):
    """A monotone map from score to probability: linear between the points, constant outside."""

    scores: np.ndarray
    probabilities: np.ndarray

    def check(self) -> None:
        """Refuse points that are no curve."""
        scores = check_exact("scores of a curve", self.scores, np.float64, (None,))
        check_that(scores.size, "a curve has no point")
        check_finite("scores of a curve", check_monotone("scores of a curve", scores))
        probabilities = check_exact("probabilities of a curve", self.probabilities, np.float64, scores.shape)
        check_range("probabilities of a curve", probabilities, 0, 1)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of ``scores``; an absent label (-inf) stays absent."""
        mapped = np.interp(scores, self.scores, self.probabilities).astype(np.float32)
        return np.where(np.isneginf(scores), -np.inf, mapped)


def check_curves(name: str, curves: Any, n: int) -> None:
    """Refuse what is no list of ``n`` curves."""
    check_that(len(check_kind(name, curves, list)) == n, f"{name} has {len(curves)} curves, not {n}")
    for curve in curves:
        check_kind(f"an entry of {name}", curve, Curve).check()


def fit_curve(scores: np.ndarray, hits: np.ndarray, method: str, weight: np.ndarray | None = None) -> Curve:
    """Fit P(hit | score) by isotonic regression or by Platt's logistic curve (kept as 512 points).

    Isotonic regression gives steps; the curve joins the steps' middles, so that no two scores within the training
    range become equal and the model's own order is kept. ``weight`` is how often each score counts; None is once.
    """
    weight = np.ones(scores.size) if weight is None else weight
    scores, hits, weight = scores[weight > 0].astype(np.float64), hits[weight > 0], weight[weight > 0]
    if scores.size == 0 or hits.all() or not hits.any():
        rate = float(hits.mean()) if hits.size else 0.0
        return Curve(np.zeros(1), np.full(1, rate))
    if method == "isotonic":
        from sklearn.isotonic import IsotonicRegression

        fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(scores, hits, weight)
        steps, first = np.unique(fitted.y_thresholds_, return_index=True)
        last = np.append(first[1:], fitted.y_thresholds_.size) - 1
        middles = (fitted.X_thresholds_[first] + fitted.X_thresholds_[last]) / 2
        middles[0], middles[-1] = fitted.X_thresholds_[last[0]], fitted.X_thresholds_[first[-1]]
        return Curve(middles, steps)
    points = np.unique(np.quantile(scores, np.linspace(0, 1, 512)))
    scale = scores.std() or 1.0
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=1e6).fit((scores / scale)[:, None], hits, weight)
    return Curve(points, fitted.predict_proba((points / scale)[:, None])[:, 1])


def frequency_edges(seen: np.ndarray, n_bins: int) -> np.ndarray:
    """Where ``n_bins`` groups of pairs part by how often their labels were ``seen``; the groups are about equal."""
    return np.unique(np.quantile(seen, np.linspace(0, 1, n_bins + 1)[1:-1])) if seen.size else np.empty(0)


def fit_curves(
    edges: np.ndarray,
    seen: np.ndarray,
    scores: np.ndarray,
    hits: np.ndarray,
    method: str,
    weight: np.ndarray | None = None,
) -> list[Curve]:
    """A curve for each group of pairs between ``edges``; ``weight`` is how often each pair counts, None is once."""
    groups = np.searchsorted(edges, seen, side="right")
    weight = np.ones(scores.size) if weight is None else weight
    members = [groups == g for g in range(edges.size + 1)]
    return [fit_curve(scores[own], hits[own], method, weight[own]) for own in members]


def calibrate(edges: np.ndarray, curves: list[Curve], seen: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Probabilities of ``scores`` by the curve of each pair's group: float32, of the shape of ``scores``."""
    groups = np.searchsorted(edges, seen, side="right")
    probabilities = np.empty(scores.shape, np.float32)
    for g, curve in enumerate(curves):
        probabilities[groups == g] = curve(scores[groups == g])
    return probabilities


def expected_calibration_error(probabilities: np.ndarray, hits: np.ndarray, n_bins: int = 15) -> float:
    """Mean gap between the probability and the share of hits, over ``n_bins`` equal-height bins, in percent.

    >>> expected_calibration_error(np.array([0.5, 0.5]), np.array([True, False]), n_bins=1)
    0.0
    """
    if not probabilities.size:
        return float("nan")
    order = np.argsort(probabilities, kind="stable")
    bins = [part for part in np.array_split(order, n_bins) if part.size]
    gaps = [abs(float(probabilities[b].mean()) - float(hits[b].mean())) * b.size for b in bins]
    return 100.0 * sum(gaps) / probabilities.size


class Calibrated(Wrapper):
    """Turn any model's scores into probabilities, learned from its out-of-fold predictions.

    ``calibration_error_`` holds the expected calibration error in percent, before (where the scores already were
    probabilities) and after, over all candidates and by head, torso and tail.

    Parameters
    ----------
    base : XMCModel
        The model to calibrate; it is cloned and trained ``n_folds + 1`` times.
    method : "isotonic" or "platt"
        A free monotone curve, or a logistic one.
    per : "model" or "frequency-bin"
        One curve for all labels, or one for each of ``n_bins`` groups of labels of similar training frequency.
    n_bins : int
        Groups for ``per="frequency-bin"``; the groups hold about equally many candidates.
    n_folds, n_candidates : int
        Folds of the out-of-fold predictions and labels considered in each row.
    n_rows : int or None
        Rows that are predicted out of fold: of far more rows not every fold is, and the model is then trained twice and
        not ``n_folds + 1`` times. None is all.
    random_state : int, Generator or None
        Draws the folds.
    n_jobs : int or None
        Threads of the wrapped model; None leaves it its own.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> X = [[1.0, 0], [0.9, 0.2], [0, 1.0], [0.1, 0.9]]
    >>> model = Calibrated(Centroid(), n_folds=2, random_state=0).fit(X, [[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> bool(model.predict_topk(X, 1).scores.max() <= 1)
    True
    """

    _parameters = {
        "method": Choice("isotonic", "platt"),
        "per": Choice("model", "frequency-bin"),
        "n_bins": Integer(low=1),
        "n_folds": N_FOLDS,
        "n_rows": N_ROWS,
        "n_candidates": N_CANDIDATES,
    }
    scores_are_probabilities = True

    def __init__(
        self,
        base: XMCModel,
        *,
        method: str = "isotonic",
        per: str = "model",
        n_bins: int = 5,
        n_folds: int = 3,
        n_rows: int | None = 20_000,
        n_candidates: int = 50,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.base = base
        self.method = method
        self.per = per
        self.n_bins = n_bins
        self.n_folds = n_folds
        self.n_rows = n_rows
        self.n_candidates = n_candidates
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        with share(1 / (self.n_folds + 1)):
            self.base_ = self._fresh_base().fit(X, Y, weight)
        width = min(self.n_candidates, self.n_labels_)
        folds = split_folds(Y, self.n_folds, self.random_state, self.n_rows)
        top = out_of_fold(self.base_, X, Y, width, folds, weight, knows_all=True)
        candidates = gather_candidates([top], self.n_labels_)
        hits = candidates.are_hits(Y)
        # Bins go by what the out-of-fold model has seen of a label, which is less than its count in all rows.
        seen = folds.counts_seen(candidates.rows, candidates.labels)
        scores = candidates.scores[:, 0]
        self.bin_edges_ = frequency_edges(seen, 1 if self.per == "model" else self.n_bins)
        counted = np.ones(scores.size) if weight is None else weight[candidates.rows]
        self.curves_ = fit_curves(self.bin_edges_, seen, scores, hits, self.method, counted)
        self.calibration_error_ = self._report(candidates, seen, hits, counted)

    def _update(self, change: Change) -> int:
        # What a score means changes slowly: the curves stay, and labels move to the bin of their new frequency.
        return self._update_base(change)

    def _report(
        self, candidates: Candidates, seen: np.ndarray, hits: np.ndarray, counted: np.ndarray
    ) -> dict[str, dict[str, float]]:
        # Curves look perfect on the rows they were fitted on: fit on half of the rows, measure on the other half.
        scores, half = candidates.scores[:, 0], candidates.rows % 2
        after = np.empty(scores.shape, np.float32)
        for own in (0, 1):
            parts = seen[half == own], scores[half == own], hits[half == own]
            fitted = fit_curves(self.bin_edges_, *parts, self.method, counted[half == own])
            after[half != own] = calibrate(self.bin_edges_, fitted, seen[half != own], scores[half != own])
        sources = {"before": scores} if self.base_.scores_are_probabilities else {}
        sources["after"] = after
        slices = {"all": np.ones(self.n_labels_, bool), **label_slices(self.label_counts_)}
        return {
            name: {when: expected_calibration_error(values[chosen], hits[chosen]) for when, values in sources.items()}
            for name, chosen in ((name, members[candidates.labels]) for name, members in slices.items())
        }

    def _check_state(self) -> None:
        super()._check_state()
        check_monotone("bin_edges_", check_finite("bin_edges_", self.bin_edges_))
        check_curves("curves_", self.curves_, self.bin_edges_.size + 1)
        check_kind("calibration_error_", self.calibration_error_, dict)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        top = self.base_.predict_topk(X, max(k, min(self.n_candidates, self.n_labels_)))
        probabilities = calibrate(self.bin_edges_, self.curves_, self.label_counts_[top.labels], top.scores)
        return rank_candidates(top.labels, probabilities, self.n_candidates, k)

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        why = self.base_.explain(x, label)
        probability = calibrate(self.bin_edges_, self.curves_, self.label_counts_[[label]], np.array([why.score]))
        return why.then(f"probability by the {self.method} curve", float(probability[0]))
