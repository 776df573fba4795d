"""What is known of a row and a label beside a model's score: the label's mean row, its companions, rows alike."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.forest import TailCentroids
from tailwise.persistence.checks import check_kind, check_matrix, check_range
from tailwise.tail.candidates import Candidates
from tailwise.tail.companions import companions, company
from tailwise.tail.nearness import Nearness


class Evidence(NamedTuple):
    """Numbers about a row x and a label l, from training rows:

    * ``ln q``, how near x is to the mean of the label's rows (:class:`TailCentroids`);
    * ``g = Σ_m T_lm (s_m - s_last)``: how high the label's companions stand in the row's ranking;
    * with ``nearest``, what :class:`Nearness` says of the training rows themselves.
    """

    centroids: TailCentroids
    companions: sparse.csr_array
    nearest: Nearness | None

    @classmethod
    def of(
        cls,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        weight: np.ndarray | None = None,
        *,
        nearest: bool,
        n_jobs: int | None = None,
    ) -> Self:
        """What these training rows tell."""
        centroids = TailCentroids(n_jobs=n_jobs).fit(X, Y, weight)
        idf = centroids.rows_.weights
        rows = Nearness.of(centroids.rows_(X), Y, idf) if nearest and idf is not None else None
        return cls(centroids, companions(Y, weight), rows)

    @property
    def names(self) -> list[str]:
        """What each number is."""
        found = ["nearness to the mean of the label's rows", "standing of the label's companions"]
        if self._compares_means:
            found.append("nearness to the mean below the row's best")
        if self.nearest is not None:
            votes = ["votes of rows very alike", "votes of rows somewhat alike"]
            found += ["distance of the nearest row with the label to the nearest of all", *votes]
            found += ["votes of the nearest rows, solved", "these below the row's best"]
        return found[: self.n_inputs]

    @property
    def n_inputs(self) -> int:
        """How many numbers describe a pair."""
        return 2 + self._compares_means + (0 if self.nearest is None else self.nearest.n_inputs)

    @property
    def _compares_means(self) -> bool:
        """Whether ln q below the row's best is an input: as it was before training rows had votes."""
        return self.nearest is not None and self.nearest.idf is None

    def describe(
        self, X: sparse.csr_array, labels: np.ndarray, scores: np.ndarray, n_jobs: int | None = None
    ) -> np.ndarray:
        """For rows ``X`` and candidates ``labels`` (n, k) with scores: (n, k, n_inputs) float32, of a -1 anything."""
        named = labels >= 0
        found = np.empty((*labels.shape, self.n_inputs), np.float32)
        near = self.centroids.log_scores(X, labels)
        last = np.where(named, scores, np.inf).min(axis=1, initial=np.inf, keepdims=True)
        above = TopK(labels, np.where(named, scores - last, -np.inf).astype(np.float32))
        found[..., 0] = near
        found[..., 1] = company(above, self.companions, n_jobs)
        if self._compares_means:
            best = np.where(named, near, -np.inf).max(axis=1, initial=-np.inf, keepdims=True)
            found[..., 2] = near - np.where(np.isfinite(best), best, 0.0)
        if self.nearest is not None:
            found[..., -self.nearest.n_inputs :] = self.nearest(self.centroids.rows_(X), labels, n_jobs)
        return found

    def describe_pairs(self, X: sparse.csr_array, candidates: Candidates, n_jobs: int | None = None) -> np.ndarray:
        """For rows ``X`` and their candidates, filled, by the first member's scores: (n_pairs, n_inputs) float32.

        What a label without rows has not is NaN.
        """
        rows = candidates.rows
        labels, column = candidates.grid()
        scores = np.zeros(labels.shape)
        scores[rows, column] = np.nan_to_num(candidates.scores[:, 0])
        found = self.describe(X, labels, scores, n_jobs)[rows, column]
        return np.where(np.isfinite(found), found, np.float32(np.nan))

    def check(self, n_features: int, n_labels: int) -> None:
        """Refuse what does not describe rows of ``n_features`` and ``n_labels`` labels."""
        check_kind("centroids_", self.centroids, TailCentroids)._check_is_fitted()
        self.centroids.check_agrees(n_features, n_labels)
        shares = check_matrix("companions_", self.companions, (n_labels, n_labels))
        check_range("companions_.data", shares.data, 0, 1)
        if self.nearest is not None:
            check_kind("nearest_", self.nearest, Nearness).check(n_features, n_labels)
