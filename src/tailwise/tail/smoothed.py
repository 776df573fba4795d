"""Trees and a smooth surface over the same pairs, each of which errs where the other does not."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit

from tailwise.persistence.checks import check_exact, check_indices, check_kind
from tailwise.tail.boosting import BoostedTrees
from tailwise.tail.surface import Surface


class SmoothedTrees(NamedTuple):
    """``σ((t + f) / 2)``, t the log-odds by boosted trees, and f those by a surface over some of the features."""

    trees: BoostedTrees
    surface: Surface
    columns: np.ndarray
    """(n_inputs,) int64: the features that the surface has, those of the third degree first"""

    @classmethod
    def fit(
        cls,
        features: np.ndarray,
        hits: np.ndarray,
        sample_weight: np.ndarray | None,
        *,
        columns: np.ndarray,
        n_cubic: int,
        **parameters: object,
    ) -> Self:
        """Both learn from the same pairs; ``parameters`` are the trees'."""
        trees = BoostedTrees.fit(features, hits, sample_weight, **parameters)
        surface = Surface.fit(_inputs(features, columns), hits, sample_weight, n_cubic=n_cubic)
        return cls(trees, surface, columns)

    def check(self, n_features: int) -> None:
        """Refuse parts that ask for more features or do not belong together."""
        check_kind("trees of trees_", self.trees, BoostedTrees).check(n_features)
        check_indices("columns", check_exact("columns", self.columns, np.int64, (None,)), n_features)
        check_kind("surface of trees_", self.surface, Surface).check(self.columns.size)

    def probabilities(self, features: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """P(hit) of each row of ``features`` (n, m) float32: (n,) float32."""
        smooth = self.surface.log_odds(_inputs(features, self.columns))
        return expit((self.trees.log_odds(features, n_jobs) + smooth) / 2).astype(np.float32)

    def contributions(self, features: np.ndarray) -> tuple[float, np.ndarray]:
        """The log-odds of one row of ``features`` (m,) as a start and what each feature moved them: float, (m,).

        Of the surface: what each input adds when one after the other goes from its centre to its value.
        """
        start, moves = self.trees.contributions(features)
        value = _inputs(features[None], self.columns)[0]
        steps = np.where(np.tri(value.size + 1, value.size, -1, dtype=bool), value, self.surface.centre)
        odds = self.surface.log_odds(steps)
        moves = moves / 2
        np.add.at(moves, self.columns, np.diff(odds) / 2)
        return start / 2 + float(odds[0]) / 2, moves


def _inputs(features: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """What the surface sees: what is not known counts as the lowest that it has learnt from."""
    return np.nan_to_num(features[:, columns], nan=-np.inf, neginf=-np.inf)
