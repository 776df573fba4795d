"""Scores that mean what they say: calibration on out-of-fold predictions, for all labels or by label frequency."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from tailwise.base import TopK, XMCModel
from tailwise.metrics import label_slices
from tailwise.tail.wrapper import Wrapper, is_hit, out_of_fold, sort_topk, split_folds
from tailwise.validation import check_choice, check_number

METHODS = ("isotonic", "platt")
GROUPINGS = ("model", "frequency-bin")


class Curve(NamedTuple):
    """A monotone map from score to probability: linear between the points, constant outside."""

    scores: np.ndarray
    probabilities: np.ndarray

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of ``scores``; an absent label (-inf) stays absent."""
        mapped = np.interp(scores, self.scores, self.probabilities).astype(np.float32)
        return np.where(np.isneginf(scores), -np.inf, mapped)


class Pairs(NamedTuple):
    """Out-of-fold candidates: row, label, how often the model saw it, score, whether it was observed."""

    rows: np.ndarray
    labels: np.ndarray
    seen: np.ndarray
    scores: np.ndarray
    hits: np.ndarray

    def where(self, chosen: np.ndarray) -> Pairs:
        """The chosen entries."""
        return Pairs(*(part[chosen] for part in self))


def fit_curve(scores: np.ndarray, hits: np.ndarray, method: str) -> Curve:
    """Fit P(hit | score) by isotonic regression or by Platt's logistic curve (kept as 512 points).

    Isotonic regression gives steps; the curve joins the steps' middles, so that no two scores within the training
    range become equal and the model's own order is kept.
    """
    scores = scores.astype(np.float64)
    if scores.size == 0 or hits.all() or not hits.any():
        rate = float(hits.mean()) if hits.size else 0.0
        return Curve(np.zeros(1), np.full(1, rate))
    if method == "isotonic":
        fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(scores, hits)
        steps, first = np.unique(fitted.y_thresholds_, return_index=True)
        last = np.append(first[1:], fitted.y_thresholds_.size) - 1
        middles = (fitted.X_thresholds_[first] + fitted.X_thresholds_[last]) / 2
        middles[0], middles[-1] = fitted.X_thresholds_[last[0]], fitted.X_thresholds_[first[-1]]
        return Curve(middles, steps)
    points = np.unique(np.quantile(scores, np.linspace(0, 1, 512)))
    scale = scores.std() or 1.0
    fitted = LogisticRegression(C=1e6).fit((scores / scale)[:, None], hits)
    return Curve(points, fitted.predict_proba((points / scale)[:, None])[:, 1])


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
    random_state : int, Generator or None
        Draws the folds.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> X = [[1.0, 0], [0.9, 0.2], [0, 1.0], [0.1, 0.9]]
    >>> model = Calibrated(Centroid(), n_folds=2, random_state=0).fit(X, [[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> bool(model.predict_topk(X, 1).scores.max() <= 1)
    True
    """

    scores_are_probabilities = True

    def __init__(
        self,
        base: XMCModel,
        method: str = "isotonic",
        per: str = "model",
        n_bins: int = 5,
        n_folds: int = 3,
        n_candidates: int = 50,
        random_state: int | None = None,
    ) -> None:
        self.base = base
        self.method = method
        self.per = per
        self.n_bins = n_bins
        self.n_folds = n_folds
        self.n_candidates = n_candidates
        self.random_state = random_state

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        check_choice("method", self.method, METHODS)
        check_choice("per", self.per, GROUPINGS)
        check_number("n_bins", self.n_bins, integer=True, low=1)
        check_number("n_candidates", self.n_candidates, integer=True, low=1)
        self._fit_base(X, Y)
        width = min(self.n_candidates, self.n_labels_)
        folds = split_folds(Y, self.n_folds, self.random_state)
        top = out_of_fold(self.base, X, Y, width, folds)
        rows, columns = np.nonzero(top.labels >= 0)
        labels = top.labels[rows, columns]
        # Bins go by what the out-of-fold model has seen of a label, which is less than its count in all rows.
        pairs = Pairs(
            rows,
            labels,
            folds.counts_seen(rows, labels),
            top.scores[rows, columns],
            is_hit(top.labels, Y)[rows, columns],
        )
        self.bin_edges_ = self._choose_edges(pairs.seen)
        self.curves_ = self._fit_curves(pairs)
        self.calibration_error_ = self._report(pairs)

    def _choose_edges(self, seen: np.ndarray) -> np.ndarray:
        if self.per == "model" or not seen.size:
            return np.empty(0)
        return np.unique(np.quantile(seen, np.linspace(0, 1, self.n_bins + 1)[1:-1]))

    def _fit_curves(self, pairs: Pairs) -> list[Curve]:
        groups = np.searchsorted(self.bin_edges_, pairs.seen, side="right")
        parts = [pairs.where(groups == g) for g in range(self.bin_edges_.size + 1)]
        return [fit_curve(part.scores, part.hits, self.method) for part in parts]

    def _calibrate(self, seen: np.ndarray, scores: np.ndarray, curves: list[Curve]) -> np.ndarray:
        groups = np.searchsorted(self.bin_edges_, seen, side="right")
        probabilities = np.empty(scores.shape, np.float32)
        for g, curve in enumerate(curves):
            probabilities[groups == g] = curve(scores[groups == g])
        return probabilities

    def _report(self, pairs: Pairs) -> dict[str, dict[str, float]]:
        # Curves look perfect on the rows they were fitted on: fit on half of the rows, measure on the other half.
        after = np.empty(pairs.scores.shape, np.float32)
        for half in (0, 1):
            fitted = self._fit_curves(pairs.where(pairs.rows % 2 == half))
            other = pairs.rows % 2 != half
            after[other] = self._calibrate(pairs.seen[other], pairs.scores[other], fitted)
        sources = {"before": pairs.scores} if self.base_.scores_are_probabilities else {}
        sources["after"] = after
        slices = {"all": np.ones(self.n_labels_, bool), **label_slices(self.label_counts_)}
        return {
            name: {
                when: expected_calibration_error(values[chosen], pairs.hits[chosen]) for when, values in sources.items()
            }
            for name, chosen in ((name, members[pairs.labels]) for name, members in slices.items())
        }

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        top = self.base_.predict_topk(X, max(k, self.n_candidates))
        return sort_topk(top.labels, self._calibrate(self.label_counts_[top.labels], top.scores, self.curves_), k)
