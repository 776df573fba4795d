"""Forests of trees over rows: FastXML, its propensity-scored form PfastXML, and the re-ranked PfastreXML."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.errors import InvalidInput
from tailwise.forest.growth import grow_forest
from tailwise.forest.layout import Forest
from tailwise.forest.rows import feature_weights, weighted_rows
from tailwise.forest.tail_centroids import TailCentroids
from tailwise.kernels.forest.grow import GrowSettings
from tailwise.kernels.forest.predict import find_leaves, predict_forest, predict_reranked
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.parallel import map_blocks, row_blocks
from tailwise.propensity import resolve_propensity
from tailwise.validation import as_rng, check_choice, check_features, check_number

_ROWS_A_BLOCK = 64


class Vote(NamedTuple):
    """A tree whose leaf holds the label: ``share`` of the leaf's ``n_rows`` training rows (or, with propensities,
    of the rows that would have it had none been missing)."""

    tree: int
    leaf: int
    n_rows: int
    share: float


class Explanation(NamedTuple):
    """Why a row gets a label: the trees that voted, their mean share, and ln q of the tail classifier, if any."""

    label: int
    score: float
    forest: float
    tail: float | None
    votes: list[Vote]


class FastXML(XMCModel):
    """A forest whose nodes part the rows so that each side can rank its labels well (nDCG).

    A node alternates between the best label ranking of each side and the best side of each row, starting from a
    random parting, and then learns the parting with an L1-regularised logistic separator:
    ``min |w|₁ + C Σ_i c_i ln(1 + exp(-δ_i w·x_i)) - Σ_i nDCG(r_δi, y_i)``, where c_i makes both sides weigh the same.
    Features are weighted by idf and rows scaled to unit length first. A score is the share of rows with the label in
    the leaves that a row reaches, averaged over the trees. Growing costs O(n_trees · nnz(X) · depth); a prediction
    reads the weights on n_trees paths.

    Parameters
    ----------
    n_trees : int
        Trees, each grown on all rows from a random start of its own.
    max_leaf : int
        A node with at most so many rows is not split.
    labels_per_leaf : int
        How many labels a leaf keeps, the most frequent ones.
    C : float
        Weight of the logistic loss beside the L1 norm of a separator: more gives denser separators. The authors'
        program takes 1; less ranks the first label a little better and the rest worse.
    tol : float
        A separator is solved when its optimality violation has fallen to this share of that at zero.
    max_iter : int
        Newton steps for a separator at most.
    max_features : float
        Share of the features, drawn for each tree, that its separators may use. Trees that see different features err
        differently, which makes up for votes of great weight.
    idf : bool
        Weigh features by ``ln((1 + n) / (1 + rows that have it)) + 1``, so that rare features are cheaper to use for
        the L1 norm. Features that every row has are left as they are. False is the paper's.
    random_state : int, Generator or None
        Seed of the random partings.
    n_jobs : int or None
        Threads; None uses every core.

    Examples
    --------
    >>> X, Y = [[1.0, 0], [0.9, 0.1], [0, 1.0], [0.1, 0.9]], [[1, 0], [1, 0], [0, 1], [0, 1]]
    >>> FastXML(n_trees=3, max_leaf=2, C=10, random_state=0).fit(X, Y).predict_topk([[1.0, 0]], k=1).labels
    array([[0]], dtype=int32)
    """

    scores_are_probabilities = True

    forest_: Forest

    def __init__(
        self,
        n_trees: int = 50,
        max_leaf: int = 10,
        labels_per_leaf: int = 100,
        C: float = 3.0,
        tol: float = 0.1,
        max_iter: int = 10,
        max_features: float = 1.0,
        idf: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.max_leaf = max_leaf
        self.labels_per_leaf = labels_per_leaf
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.max_features = max_features
        self.idf = idf
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        for name in ("n_trees", "max_leaf", "labels_per_leaf", "max_iter"):
            check_number(name, getattr(self, name), integer=True, low=1)
        check_number("C", self.C, low=0, open_low=True)
        check_number("tol", self.tol, low=0, high=1)
        check_number("max_features", self.max_features, low=0, open_low=True, high=1)
        check_choice("idf", self.idf, (True, False))
        settings = GrowSettings(
            int(self.max_leaf), int(self.labels_per_leaf), float(self.C), float(self.tol), int(self.max_iter)
        )
        seeds = as_rng(self.random_state).integers(2**63, size=self.n_trees, dtype=np.uint64)
        self.feature_weights_ = feature_weights(X, self.idf)
        self.forest_ = grow_forest(
            weighted_rows(X, self.feature_weights_),
            Y,
            self._worth(Y),
            settings,
            seeds,
            max_features=self.max_features,
            n_jobs=self.n_jobs,
            description=f"Growing {type(self).__name__}",
        )

    def _worth(self, Y: sparse.csr_array) -> np.ndarray:
        """What a label is worth when it is ranked first."""
        return np.ones(Y.shape[1])

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        X = weighted_rows(X, self.feature_weights_)
        labels = np.empty((X.shape[0], k), np.int32)
        scores = np.empty((X.shape[0], k), np.float32)
        map_blocks(
            lambda block: self._predict_block(X, block, labels, scores),
            row_blocks(X.shape[0], _ROWS_A_BLOCK),
            n_jobs=self.n_jobs,
        )
        return TopK(labels, scores)

    def _predict_block(
        self, X: sparse.csr_array, block: tuple[int, int], labels: np.ndarray, scores: np.ndarray
    ) -> None:
        shape = (self.n_features_in_, self.n_labels_)
        predict_forest(csr_parts(X), block, self.forest_, shape, labels, scores)

    def explain(self, x: Any, label: int) -> Explanation:
        """Which trees and leaves voted for ``label`` on the one row ``x`` (1, n_features), largest share first."""
        self._check_is_fitted()
        x = check_features(x, n_features=self.n_features_in_)
        if x.shape[0] != 1:
            raise InvalidInput(f"x has {x.shape[0]:,} rows; pass the one row to explain: X[[i]]")
        check_number("label", label, integer=True, low=0, high=self.n_labels_ - 1)
        votes = self._votes(weighted_rows(x, self.feature_weights_), label)
        forest = sum(vote.share for vote in votes) / self.forest_.n_trees
        return self._explanation(x, int(label), forest, votes)

    def _votes(self, x: sparse.csr_array, label: int) -> list[Vote]:
        forest = self.forest_
        leaves = np.empty((1, forest.n_trees), np.int32)
        find_leaves(csr_parts(x), forest, self.n_features_in_, leaves)
        votes = []
        for tree, leaf in enumerate(leaves[0].tolist()):
            held = slice(forest.leaf_indptr[leaf], forest.leaf_indptr[leaf + 1])
            shares = forest.leaf_shares[held][forest.leaf_labels[held] == label]
            votes += [Vote(tree, leaf, int(forest.n_rows[leaf]), float(share)) for share in shares]
        return sorted(votes, key=lambda vote: (-vote.share, vote.tree))

    def _explanation(self, x: sparse.csr_array, label: int, forest: float, votes: list[Vote]) -> Explanation:
        return Explanation(label, forest if votes else -np.inf, forest, None, votes)


class PfastXML(FastXML):
    """FastXML on labels weighted by 1/p_l: its nDCG and its leaf shares are unbiased when labels are missing.

    A score estimates the share of rows for which the label is true though it may not have been recorded. It can
    exceed 1. One row with a rare label weighs much, so a tree errs more, and each sees other features.

    Parameters
    ----------
    n_trees, max_leaf, labels_per_leaf, C, tol, max_iter, max_features, idf, random_state, n_jobs
        As in :class:`FastXML`.
    propensity : Propensity, array of shape (n_labels,) or None
        Probability that a true label is recorded; None is ``JainPropensity()``.
    """

    scores_are_probabilities = False

    def __init__(
        self,
        n_trees: int = 50,
        max_leaf: int = 10,
        labels_per_leaf: int = 100,
        C: float = 3.0,
        tol: float = 0.1,
        max_iter: int = 10,
        max_features: float = 0.7,
        idf: bool = True,
        propensity: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(n_trees, max_leaf, labels_per_leaf, C, tol, max_iter, max_features, idf, random_state, n_jobs)
        self.propensity = propensity

    def _worth(self, Y: sparse.csr_array) -> np.ndarray:
        return 1.0 / resolve_propensity(self.propensity, Y)


class PfastreXML(PfastXML):
    """PfastXML, re-ranked by tail classifiers: ``score_l = α ln P_forest(l|x) + (1-α) ln q_l(x)``.

    q_l(x) is that of :class:`TailCentroids`. Only labels in the leaves that the row reaches are ranked; of these,
    those whose distance bound rules them out are never looked at.

    Parameters
    ----------
    n_trees, max_leaf, labels_per_leaf, C, tol, max_iter, max_features, idf, propensity, random_state, n_jobs
        As in :class:`PfastXML`. C is larger: denser separators gain behind the first label, and what they lose at the
        first the tail classifiers bring back.
    alpha : float
        Weight of the forest, in [0, 1].
    gamma : float
        How fast the tail classifiers fall with the distance.
    tail_shape : {"cone", "sphere"}
        ``shape`` of :class:`TailCentroids`; "sphere" is the paper's, "cone" gained precision on validation rows.
    """

    tail_: TailCentroids

    def __init__(
        self,
        n_trees: int = 50,
        max_leaf: int = 10,
        labels_per_leaf: int = 100,
        C: float = 6.0,
        tol: float = 0.1,
        max_iter: int = 10,
        max_features: float = 0.7,
        idf: bool = True,
        alpha: float = 0.8,
        gamma: float = 30.0,
        tail_shape: str = "cone",
        propensity: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_trees, max_leaf, labels_per_leaf, C, tol, max_iter, max_features, idf, propensity, random_state, n_jobs
        )
        self.alpha = alpha
        self.gamma = gamma
        self.tail_shape = tail_shape

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        check_number("alpha", self.alpha, low=0, high=1)
        self.tail_ = TailCentroids(self.gamma, self.tail_shape, self.idf, self.n_jobs).fit(X, Y)
        super()._fit(X, Y)

    def _predict_block(
        self, X: sparse.csr_array, block: tuple[int, int], labels: np.ndarray, scores: np.ndarray
    ) -> None:
        shape = (self.n_features_in_, self.n_labels_)
        centroids, alpha = self.tail_._compiled(), float(self.alpha)
        predict_reranked(csr_parts(X), block, self.forest_, centroids, alpha, shape, labels, scores)

    def _explanation(self, x: sparse.csr_array, label: int, forest: float, votes: list[Vote]) -> Explanation:
        tail = float(self.tail_.log_scores(x, np.array([[label]]))[0, 0])
        score = self.alpha * np.log(forest) + (1 - self.alpha) * tail if votes else -np.inf
        return Explanation(label, float(score), forest, tail, votes)
