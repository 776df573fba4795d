"""Combining models of different kinds: their calibrated probabilities, averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize, sparse
from sklearn.base import clone

from tailwise.base import TopK, XMCModel
from tailwise.errors import InvalidInput
from tailwise.tail.calibrated import fit_curve
from tailwise.tail.candidates import Candidates, unite_candidates
from tailwise.tail.wrapper import Folds, check_model, out_of_fold, split_folds
from tailwise.validation import check_choice, check_number


class Committee(XMCModel):
    """What models made of several members share: fitting them, and their candidates out of fold and for new rows."""

    members: list[XMCModel]
    n_candidates: int
    n_folds: int
    random_state: int | None
    members_: list[XMCModel]

    @property
    def needs_nonnegative_features(self) -> bool:  # type: ignore[override]
        """Whether any member needs them."""
        return any(getattr(m, "needs_nonnegative_features", False) for m in self.members or [])

    def _fit_members(self, X: sparse.csr_array, Y: sparse.csr_array) -> tuple[Candidates, Folds]:
        """Fit every member on all rows, and return their out-of-fold candidates with the folds."""
        if not self.members:
            raise InvalidInput(f"members={self.members!r} is empty; pass a list of models")
        check_number("n_candidates", self.n_candidates, integer=True, low=1)
        width = min(self.n_candidates, self.n_labels_)
        # The same folds for each member: a pair's scores then come from models that saw the same rows.
        folds = split_folds(Y, self.n_folds, self.random_state)
        tops = []
        for i, member in enumerate(self.members):
            check_model(f"members[{i}]", member)
            tops.append(out_of_fold(member, X, Y, width, folds))
        self.members_ = [clone(member).fit(X, Y) for member in self.members]
        return unite_candidates(tops, self.n_labels_), folds

    def _candidates(self, X: sparse.csr_array, k: int) -> Candidates:
        width = max(k, self.n_candidates)
        return unite_candidates([m.predict_topk(X, width) for m in self.members_], self.n_labels_)


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
    random_state : int or None
        Draws the folds.

    Examples
    --------
    >>> from tailwise import Centroid, Popularity
    >>> X, Y = [[1.0, 0], [0.9, 0.2], [0, 1.0], [0.1, 0.9]], [[1, 0], [1, 0], [0, 1], [0, 1]]
    >>> model = Ensemble([Centroid(), Popularity()], n_folds=2, random_state=0).fit(X, Y)
    >>> model.predict_topk([[0.0, 2.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    scores_are_probabilities = True

    def __init__(
        self,
        members: list[XMCModel],
        weights: str = "equal",
        n_candidates: int = 50,
        n_folds: int = 3,
        random_state: int | None = None,
    ) -> None:
        self.members = members
        self.weights = weights
        self.n_candidates = n_candidates
        self.n_folds = n_folds
        self.random_state = random_state

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        check_choice("weights", self.weights, ("equal", "fitted"))
        candidates, _ = self._fit_members(X, Y)
        hits = candidates.are_observed(Y)
        self.curves_ = []
        for scores in candidates.scores.T:
            named = ~np.isnan(scores)
            self.curves_.append(fit_curve(scores[named], hits[named], "isotonic"))
        self.weights_ = np.full(len(self.members), 1.0 / len(self.members))
        if self.weights == "fitted":
            found, _ = optimize.nnls(self._probabilities(candidates).astype(np.float64), hits.astype(np.float64))
            if found.sum() > 0:
                self.weights_ = found / found.sum()

    def _probabilities(self, candidates: Candidates) -> np.ndarray:
        columns: list[Any] = [
            np.where(np.isnan(scores), 0.0, curve(np.nan_to_num(scores)))
            for scores, curve in zip(candidates.scores.T, self.curves_, strict=True)
        ]
        return np.stack(columns, axis=1) if columns else np.empty((0, 0))

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        candidates = self._candidates(X, k)
        # Column by column, so that a row's sum does not depend on how many rows there are.
        total = np.zeros(candidates.labels.size, np.float64)
        for weight, column in zip(self.weights_, self._probabilities(candidates).T, strict=True):
            total += weight * column
        return candidates.best(total, k)
