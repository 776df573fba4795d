"""Probabilities that rare labels can trust: what a score means, given what else speaks for the label."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.changes import Change
from tailwise.explanation import Explanation
from tailwise.forest import TailCentroids
from tailwise.parameters import Flag
from tailwise.persistence.checks import check_kind
from tailwise.runs import kept, share
from tailwise.tail.candidates import is_hit
from tailwise.tail.evidence import Evidence
from tailwise.tail.folds import N_FOLDS, N_ROWS, split_folds
from tailwise.tail.nearness import Nearness
from tailwise.tail.ranking import N_CANDIDATES, rank_candidates
from tailwise.tail.surface import Surface
from tailwise.tail.wrapper import Wrapper, log_odds
from tailwise.validation import label_counts

_OWN = 3
"""Inputs of the model itself: score, distance to the row's best, frequency."""
_INPUTS = _OWN + 2
"""Without those of the nearest rows."""


class TailCalibrated(Wrapper):
    """Turn one model's scores into probabilities by all that is known of a pair, learned out of fold.

    ``P(l | x) = σ(f(s, d, ln(1 + n), ln q, g))``, f a polynomial of degree 3, of

    * s, the wrapped model's score of the label (its log-odds, where it is a probability), and d, how far it is below
      the best of the row;
    * n, the number of training rows with the label;
    * q, how near the row is to the mean of the label's rows (:class:`TailCentroids`);
    * ``g = Σ_m T_lm (s_m - s_last)``: how high the label's companions stand in the row's ranking, above its last
      candidate, ``T_lm`` being the share of m among all labels on rows with l.

    The same score says less for a label of two rows than for one of two hundred, and such a label's mean and companions
    say what its few rows could not teach. With ``nearest=True`` f has five more inputs: how much less
    alike (cosine) the row is to the nearest training row with the label than to the nearest of all, how much of the
    votes of all training rows the label has, by those very alike and by those somewhat alike, and its votes of the 128
    nearest rows where what these have in common counts once (kernel ridge regression), also less those of the row's
    best candidate; f has products of two of these. The model then keeps its training rows.

    One curve for all labels is :class:`Calibrated`. Put it inside :class:`Sublinear` where rows are damped, and inside
    :class:`PropensityReranker` or :class:`TradeOff` for PSP@k.

    Parameters
    ----------
    base : XMCModel
        The model; it is cloned and trained ``n_folds + 1`` times.
    n_folds, n_candidates : int
        Folds of the out-of-fold predictions and labels considered in each row.
    n_rows : int or None
        Rows that are predicted out of fold: of far more rows not every fold is. None is all.
    nearest : bool
        Compare rows with the training rows themselves, too.
    random_state : int, Generator or None
        Draws the folds.
    n_jobs : int or None
        Threads, of the wrapped model too; None leaves it its own.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> X = [[1.0, 0], [0.9, 0.2], [0, 1.0], [0.1, 0.9]]
    >>> model = TailCalibrated(Centroid(), n_folds=2, random_state=0).fit(X, [[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> model.predict_topk([[0.9, 0.1]], k=1).labels
    array([[0]], dtype=int32)
    """

    _parameters = {"n_folds": N_FOLDS, "n_rows": N_ROWS, "n_candidates": N_CANDIDATES, "nearest": Flag()}
    scores_are_probabilities = True

    centroids_: TailCentroids
    companions_: sparse.csr_array
    nearest_: Nearness | None = None
    surface_: Surface

    def __init__(
        self,
        base: XMCModel,
        *,
        n_folds: int = 3,
        n_rows: int | None = 20_000,
        n_candidates: int = 50,
        nearest: bool = False,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.base = base
        self.n_folds = n_folds
        self.n_rows = n_rows
        self.n_candidates = n_candidates
        self.nearest = nearest
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        folds = split_folds(Y, self.n_folds, self.random_state, self.n_rows)
        part = 1 / (folds.counts.shape[0] + 1)
        with share(part):
            self.base_ = kept(partial(self._fresh_base().fit, X, Y, weight))
        self.centroids_, self.companions_, self.nearest_ = self._evidence_of(X, Y, weight)
        inputs, hits, counted = [], [], []
        for held_out, rest in folds.parts():
            own = None if weight is None else weight[rest]
            with share(part):
                base = kept(partial(self.base_.fit_part, X[rest], Y[rest], rest, own))
            known = _Known(base, self._evidence_of(X[rest], Y[rest], own), label_counts(Y[rest]))
            top, described = known.describe(X[held_out], self._width, self.n_jobs)
            named = top.labels >= 0
            inputs.append(described[named])
            hits.append(is_hit(top.labels, sparse.csr_array(Y[held_out]))[named])
            counted.append((np.ones(X.shape[0]) if weight is None else weight)[held_out][np.nonzero(named)[0]])
        self.surface_ = Surface.fit(
            np.concatenate(inputs), np.concatenate(hits), np.concatenate(counted), n_cubic=_INPUTS
        )

    def _update(self, change: Change) -> int:
        # What a pair's numbers mean changes slowly: the surface stays.
        self.centroids_, self.companions_, self.nearest_ = self._evidence_of(change.X, change.Y, None)
        return self._update_base(change)

    def _evidence_of(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> Evidence:
        return Evidence.of(X, Y, weight, nearest=self.nearest, n_jobs=self.n_jobs)

    @property
    def _width(self) -> int:
        return min(self.n_candidates, self.n_labels_)

    def _check_state(self) -> None:
        super()._check_state()
        self._known().evidence.check(self._n_seen, self.n_labels_)
        check_kind("surface_", self.surface_, Surface).check(self._known().n_inputs)

    def _known(self) -> _Known:
        evidence = Evidence(self.centroids_, self.companions_, self.nearest_)
        return _Known(self.base_, evidence, self.label_counts_)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        top, described = self._known().describe(X, self._width, self.n_jobs)
        probabilities = np.full(top.labels.shape, -np.inf, np.float32)
        named = top.labels >= 0
        probabilities[named] = self.surface_(described[named])
        if k <= self.n_candidates:
            return rank_candidates(top.labels, probabilities, self.n_candidates, k)
        # The others follow in the wrapped model's order, as improbable as it takes.
        labels = self.base_.predict_topk(X, k).labels
        behind = np.where(labels[:, self._width :] >= 0, np.inf, -np.inf).astype(np.float32)
        return rank_candidates(labels, np.concatenate([probabilities, behind], axis=1), self.n_candidates, k)

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        top = self._predict_topk(x, self._width)
        if label not in top.labels:
            top = self._predict_topk(x, self.n_labels_)
        named = top.labels == label
        probability = float(top.scores[named][0]) if named.any() else -np.inf
        return self.base_.explain(x, label).then(
            "probability by the score, and by the label's frequency, mean row and companions", probability
        )


class _Known(NamedTuple):
    """A model, and what else is known of its labels."""

    model: XMCModel
    evidence: Evidence
    counts: np.ndarray

    @property
    def n_inputs(self) -> int:
        """How many numbers describe a pair."""
        return _OWN + self.evidence.n_inputs

    def describe(self, X: sparse.csr_array, width: int, n_jobs: int | None) -> tuple[TopK, np.ndarray]:
        """The best ``width`` labels of each row, and the surface's inputs (n, width, n_inputs); absent: anything."""
        top = self.model.predict_topk(X, width)
        scores = log_odds(np.where(top.labels >= 0, top.scores, 0.0), self.model)
        inputs = np.empty((*scores.shape, self.n_inputs), np.float32)
        inputs[..., 0] = scores
        inputs[..., 1] = scores[:, :1] - scores
        inputs[..., 2] = np.log1p(self.counts)[top.labels]
        inputs[..., _OWN:] = self.evidence.describe(X, top.labels, scores, n_jobs)
        return top, inputs
