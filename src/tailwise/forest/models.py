"""Forests of trees over rows: FastXML, and its propensity-scored form PfastXML."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.explanation import Explanation, Part, not_ranked
from tailwise.forest.checks import check_forest
from tailwise.forest.growth import grow_forest
from tailwise.forest.layout import Forest
from tailwise.kernels.forest.grow import GrowSettings
from tailwise.kernels.forest.predict import find_leaves, predict_forest
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.parallel import map_blocks, row_blocks
from tailwise.parameters import Flag, Integer, Number
from tailwise.propensity import PropensityLike, resolve_propensity
from tailwise.ranges import Range, Ranges
from tailwise.rows import UNIT_LENGTH, RowView, idf_weights
from tailwise.validation import as_rng

ROWS_A_BLOCK = 64


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

    _parameters = {
        "n_trees": Integer(low=1),
        "max_leaf": Integer(low=1),
        "labels_per_leaf": Integer(low=1),
        "C": Number(low=0, open_low=True),
        "tol": Number(low=0, high=1),
        "max_iter": Integer(low=1),
        "max_features": Number(low=0, open_low=True, high=1),
        "idf": Flag(),
    }
    scores_are_probabilities = True

    forest_: Forest

    def __init__(
        self,
        n_trees: int = 50,
        *,
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

    def _ranges(self) -> Ranges:
        return {"C": Range.around(self.C, 8), "max_leaf": Range.around(self.max_leaf, 4, integer=True)}

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return UNIT_LENGTH._replace(weights=idf_weights(X) if self.idf else None)

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        settings = GrowSettings(
            int(self.max_leaf), int(self.labels_per_leaf), float(self.C), float(self.tol), int(self.max_iter)
        )
        seeds = as_rng(self.random_state).integers(2**63, size=self.n_trees, dtype=np.uint64)
        self.forest_ = grow_forest(
            X,
            Y,
            self._worth(Y),
            settings,
            seeds,
            weight=weight,
            max_features=self.max_features,
            n_jobs=self.n_jobs,
            description=f"Growing {type(self).__name__}",
        )

    def _worth(self, Y: sparse.csr_array) -> np.ndarray:
        """What a label is worth when it is ranked first."""
        return np.ones(Y.shape[1])

    def _check_state(self) -> None:
        super()._check_state()
        check_forest(self.forest_, self.n_features_in_, self.n_labels_)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        top = TopK(np.empty((X.shape[0], k), np.int32), np.empty((X.shape[0], k), np.float32))
        rows, shape = csr_parts(X), (self.n_features_in_, self.n_labels_)
        map_blocks(
            lambda block: predict_forest(rows, block, self.forest_, shape, *top),
            row_blocks(X.shape[0], ROWS_A_BLOCK),
            n_jobs=self.n_jobs,
        )
        return top

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        forest = self.forest_
        leaves = np.empty((1, forest.n_trees), np.int32)
        find_leaves(csr_parts(x), forest, self.n_features_in_, leaves)
        votes = []
        for tree, leaf in enumerate(leaves[0].tolist()):
            held = slice(forest.leaf_indptr[leaf], forest.leaf_indptr[leaf + 1])
            for share in forest.leaf_shares[held][forest.leaf_labels[held] == label]:
                name = f"tree {tree}: share {share:.4g} of the {forest.n_rows[leaf]:,} rows of leaf {leaf}"
                votes.append(Part(name, float(share) / forest.n_trees))
        return Explanation.sum_of(label, votes) if votes else not_ranked(label, "no leaf that the row reaches has it")


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

    _parameters = {"propensity": PropensityLike()}
    scores_are_probabilities = False

    def __init__(
        self,
        n_trees: int = 50,
        *,
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
        super().__init__(
            n_trees,
            max_leaf=max_leaf,
            labels_per_leaf=labels_per_leaf,
            C=C,
            tol=tol,
            max_iter=max_iter,
            max_features=max_features,
            idf=idf,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.propensity = propensity

    def _worth(self, Y: sparse.csr_array) -> np.ndarray:
        return 1.0 / resolve_propensity(self.propensity, Y)
