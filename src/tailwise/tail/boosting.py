"""scikit-learn's histogram gradient boosting, kept as arrays: fitted by scikit-learn, evaluated and saved by us."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from tailwise.kernels.arrays import frozen
from tailwise.kernels.forest.boosting import sum_trees
from tailwise.parallel import map_blocks, row_blocks
from tailwise.persistence.checks import check_exact, check_finite, check_indices, check_range, check_that
from tailwise.validation import check_number

_PAIRS_A_BLOCK = 16_384
_L2 = 10.0


class BoostedTrees(NamedTuple):
    """The nodes of all trees, one after the other; a leaf has ``left`` = -1. ``baseline`` is the first log-odds."""

    baseline: float
    roots: np.ndarray
    split: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    value: np.ndarray

    @classmethod
    def fit(
        cls, features: np.ndarray, hits: np.ndarray, sample_weight: np.ndarray | None, **parameters: object
    ) -> BoostedTrees:
        """Fit ``HistGradientBoostingClassifier(**parameters)`` and take its trees over.

        Leaves are drawn to 0 unless ``l2_regularization`` says otherwise: a single hit among pairs of probability 0
        would make a leaf of any size.
        """
        unknown = np.isnan(features).all(axis=0)
        if unknown.any():  # which scikit-learn refuses
            features = np.where(unknown, np.float32(0), features)
        parameters = {"l2_regularization": _L2, "early_stopping": False, **parameters}
        if hits.all() or not hits.any():
            return cls._constant(float(hits.mean()) if hits.size else 0.0)
        from sklearn.ensemble import HistGradientBoostingClassifier

        # Its loops are so short that threads mostly wait for each other: on a busy machine 25 times longer than alone.
        with threadpool_limits(1, user_api="openmp"):
            model = HistGradientBoostingClassifier(**parameters).fit(features, hits, sample_weight=sample_weight)
        nodes = [tree[0].nodes for tree in model._predictors]
        if not nodes:
            return cls._constant(float(hits.mean()))
        sizes = np.array([len(part) for part in nodes])
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        shift = np.repeat(roots, sizes)
        whole = np.concatenate(nodes)
        leaf = whole["is_leaf"].astype(bool)
        return cls(
            baseline=float(np.ravel(model._baseline_prediction)[0]),
            roots=roots.astype(np.int32),
            split=whole["feature_idx"].astype(np.int32),
            threshold=whole["num_threshold"].astype(np.float64),
            left=np.where(leaf, -1, whole["left"] + shift).astype(np.int32),
            right=np.where(leaf, -1, whole["right"] + shift).astype(np.int32),
            missing_left=whole["missing_go_to_left"].astype(np.uint8),
            value=whole["value"].astype(np.float64),
        )

    @classmethod
    def _constant(cls, rate: float) -> BoostedTrees:
        rate = min(max(rate, 1e-6), 1 - 1e-6)
        empty = np.empty(0, np.int32)
        return cls(
            float(np.log(rate / (1 - rate))),
            empty,
            empty,
            np.empty(0),
            empty,
            empty,
            np.empty(0, np.uint8),
            np.empty(0),
        )

    def check(self, n_features: int) -> None:
        """Refuse trees that ask for more features, lead out of their arrays or back up, or hold NaN."""
        n = check_exact("left", self.left, np.int32, (None,)).size
        for name, dtype in (("split", np.int32), ("right", np.int32), ("threshold", np.float64), ("value", np.float64)):
            check_exact(name, getattr(self, name), dtype, (n,))
        check_exact("missing_left", self.missing_left, np.uint8, (n,))
        check_indices("roots", check_exact("roots", self.roots, np.int32, (None,)), n)
        check_indices("split", self.split, n_features)
        inner = self.left >= 0
        for name, child in (("left", self.left), ("right", self.right)):
            check_indices(name, child, n, missing=True)
            check_that((child > np.arange(n))[inner].all(), f"{name} leads back up a tree")
        check_range("threshold", self.threshold)
        check_finite("value", self.value)
        check_number("baseline", self.baseline)

    def contributions(self, features: np.ndarray) -> tuple[float, np.ndarray]:
        """The log-odds of one row of ``features`` (m,) as a start and what each feature moved them: float, (m,).

        On a tree's path every split moves the expected value from its node's to its child's, where a node's is the mean
        of its children's; the moves along a path sum to its leaf less the root.
        """
        start, moves = self.baseline, np.zeros(features.shape[0])
        expected = self.value.copy()
        for node in range(expected.size - 1, -1, -1):
            if self.left[node] >= 0:
                expected[node] = 0.5 * (expected[self.left[node]] + expected[self.right[node]])
        for root in self.roots:
            node = int(root)
            start += float(expected[node])
            while self.left[node] >= 0:
                value = features[self.split[node]]
                goes_left = bool(self.missing_left[node]) if np.isnan(value) else value <= self.threshold[node]
                child = int(self.left[node] if goes_left else self.right[node])
                moves[self.split[node]] += expected[child] - expected[node]
                node = child
        return start, moves

    def log_odds(self, features: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Of each row of ``features`` (n, m) float32: (n,) float64."""
        total = np.full(features.shape[0], self.baseline)
        trees = frozen(self)

        def add(block: tuple[int, int]) -> None:
            sum_trees(trees, features, block, total)

        map_blocks(add, row_blocks(features.shape[0], _PAIRS_A_BLOCK), n_jobs=n_jobs)
        return total

    def probabilities(self, features: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """P(hit) of each row of ``features`` (n, m) float32: (n,) float32."""
        return expit(self.log_odds(features, n_jobs)).astype(np.float32)
