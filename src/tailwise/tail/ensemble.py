"""Combining models of different kinds: their calibrated probabilities, averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize, sparse

from tailwise.base import XMCModel
from tailwise.explanation import Explanation, Part, not_ranked
from tailwise.parameters import Choice
from tailwise.persistence.checks import check_exact, check_range
from tailwise.tail.calibrated import check_curves, fit_curve
from tailwise.tail.candidates import Candidates
from tailwise.tail.committee import Committee


class Ensemble(Committee):
    """Average the calibrated probabilities of several models.

    Each member's scores become probabilities by isotonic regression on its out-of-fold predictions; a label that
    a member does not name counts as improbable to it. Costs ``n_folds + 1`` trainings of each member.

    Parameters
    ----------
    members : list of XMCModel
        Models of any kind; they are cloned.
    weights : "equal" or "fitted"
        "fitted" finds the non-negative weights, summing to 1, that predict the out-of-fold labels best (least squares).
    n_candidates, n_folds : int
        Labels that each member names in a row, and folds.
    n_rows : int or None
        About how many rows are predicted out of fold: of far more rows not every fold is. None is all.
    random_state : int or None
        Draws the folds.
    n_jobs : int or None
        Threads of the members; None leaves them their own.

    Examples
    --------
    >>> from tailwise import Centroid, Popularity
    >>> X, Y = [[1.0, 0], [0.9, 0.2], [0, 1.0], [0.1, 0.9]], [[1, 0], [1, 0], [0, 1], [0, 1]]
    >>> model = Ensemble([Centroid(), Popularity()], n_folds=2, random_state=0).fit(X, Y)
    >>> model.predict_topk([[0.0, 2.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {"weights": Choice("equal", "fitted")}
    scores_are_probabilities = True

    def __init__(
        self,
        members: list[XMCModel],
        *,
        weights: str = "equal",
        n_candidates: int = 50,
        n_folds: int = 3,
        n_rows: int | None = 20_000,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.members = members
        self.weights = weights
        self.n_candidates = n_candidates
        self.n_folds = n_folds
        self.n_rows = n_rows
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        parts = list(self._fit_members(X, Y, weight))
        table = np.concatenate([part.candidates.scores for part in parts])
        hits = np.concatenate([part.candidates.are_hits(sparse.csr_array(Y[part.rows])) for part in parts])
        counted = np.ones(hits.size) if weight is None else weight[np.concatenate([part.pair_rows for part in parts])]
        self.curves_ = []
        for scores in table.T:
            named = ~np.isnan(scores)
            self.curves_.append(fit_curve(scores[named], hits[named], "isotonic", counted[named]))
        self.weights_ = np.full(len(self.members), 1.0 / len(self.members))
        if self.weights == "fitted":
            root = np.sqrt(counted)
            found, _ = optimize.nnls(self._probabilities(table) * root[:, None], hits * root)
            if found.sum() > 0:
                self.weights_ = found / found.sum()

    def _check_state(self) -> None:
        super()._check_state()
        n = len(self.members_)
        check_curves("curves_", self.curves_, n)
        check_range("weights_", check_exact("weights_", self.weights_, np.float64, (n,)), 0, 1)

    def _probabilities(self, table: np.ndarray) -> np.ndarray:
        """What each member's scores (n_pairs, n_members) mean."""
        columns: list[Any] = [
            np.where(np.isnan(scores), 0.0, curve(np.nan_to_num(scores)))
            for scores, curve in zip(table.T, self.curves_, strict=True)
        ]
        return np.stack(columns, axis=1) if columns else np.empty((0, 0))

    def _score(self, X: sparse.csr_array, candidates: Candidates) -> np.ndarray:
        # Column by column, so that a row's sum does not depend on how many rows there are.
        total = np.zeros(candidates.labels.size, np.float64)
        for weight, column in zip(self.weights_, self._probabilities(candidates.scores).T, strict=True):
            total += weight * column
        return total

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        candidates = self._candidates(x)
        parts = []
        for chosen in np.flatnonzero(candidates.labels == label):
            for m, (member, weight) in enumerate(zip(self.members_, self.weights_, strict=True)):
                score = candidates.scores[chosen, m]
                if not np.isnan(score):
                    value = float(weight) * float(self.curves_[m](score[None])[0])
                    name = f"{weight:.3g} × calibrated probability of {member.title}"
                    parts.append(Part(name, value, of=member.explain(x, label)))
        return Explanation.sum_of(label, parts) if parts else not_ranked(label, "no member names the label")
