"""What Parabel and Bonsai share: everything but how a tree is grown."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.kernels.solvers.problems import LOGISTIC, SQUARED_HINGE, Options
from tailwise.kernels.solvers.solve import DEFAULT_C, solve_block
from tailwise.kernels.trees.chunks import Chunks
from tailwise.parallel import count_jobs
from tailwise.trees.searching import find_labels, find_visitors
from tailwise.trees.structure import LabelTree, tree_from_user
from tailwise.trees.training import join_trees, train_tree
from tailwise.trees.weighting import check_leaf_weighting, leaf_costs
from tailwise.validation import as_rng, check_choice, check_number, unit_rows

LOSSES = {"squared_hinge": SQUARED_HINGE, "logistic": LOGISTIC}
NEGATIVES = ("beam", "siblings")
PATH_WEIGHTS = {"beam": 0.3, "siblings": 1.0}
"""Exponent of a path's probability: classifiers that know the rows of other nodes need less of the path's word. On
validation rows 0.1 to 0.4 serve texts alike (EURLex-4K, bibtex, synthetic), where 1 loses 1 to 2 points of P@5;
delicious, of 500 features, would gain 1 point of P@1 by 1."""

EFFORT: dict[str, dict[str, Any]] = {
    "squared_hinge": {"max_rounds": 3, "max_sweeps": 5, "bias_centre": 0.0},
    "logistic": {"max_rounds": 20},
}
"""Bounds on the solver's work: in the upper nodes most rows are support vectors, and more work gains nothing there."""


class LabelTreeModel(XMCModel):
    """Linear classifiers at the edges of trees over labels; a subclass says how trees are grown.

    The probability of a label is that of its own edge times those of the edges above it to the power of
    ``path_weight_``, averaged over trees. An edge's margin ``s = w·x + b`` becomes the probability
    ``exp(-max(0, 1 - s)²)`` (squared hinge) or ``1/(1 + e^-s)`` (logistic). Prediction follows the ``beam`` most
    probable nodes of each depth.
    """

    scores_are_probabilities = True

    n_trees: int
    beam: int
    loss: str
    C: float | None
    leaf_weighting: Any
    propensity: Any
    tree: Any
    negatives: str
    normalize: bool
    tol: float
    prune: float
    random_state: Any
    n_jobs: int | None
    chunks_: Chunks
    path_weight_: float

    @abstractmethod
    def _grow(self, X: sparse.csr_array, Y: sparse.csr_array, seeds: list[int]) -> list[LabelTree]:
        """One tree a seed over the labels that have rows."""

    @abstractmethod
    def _check_growth(self) -> None:
        """Refuse parameters of :meth:`_grow` that make no sense."""

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        check_number("n_trees", self.n_trees, integer=True, low=1)
        check_number("beam", self.beam, integer=True, low=1)
        check_choice("loss", self.loss, LOSSES)
        C = DEFAULT_C[self.loss] if self.C is None else check_number("C", self.C, low=0, open_low=True)
        check_number("tol", self.tol, low=0, open_low=True)
        check_number("prune", self.prune, low=0)
        check_choice("negatives", self.negatives, NEGATIVES)
        check_choice("normalize", self.normalize, (True, False))
        check_leaf_weighting(self.leaf_weighting)
        self._check_growth()
        count_jobs(self.n_jobs)
        X = unit_rows(X) if self.normalize else X
        label_costs = C * leaf_costs(self.leaf_weighting, self.propensity, Y)
        if self.tree is None:
            seeds = as_rng(self.random_state).integers(2**31, size=self.n_trees).tolist()
            trees = self._grow(X, Y, seeds)
        else:
            trees = [tree_from_user(self.tree, self.label_counts_)]
        options = Options(loss=self.loss, tol=self.tol, prune=self.prune, **EFFORT[self.loss])
        self.path_weight_ = PATH_WEIGHTS[self.negatives]
        name = type(self).__name__
        trained = []
        for number, tree in enumerate(trees, start=1):
            at_label = tree.target < 0
            positive = np.full(tree.target.size, C)
            positive[at_label] = label_costs[~tree.target[at_label]]

            def visit(upper: Chunks, tree: LabelTree = tree) -> sparse.csr_array:
                beam = min(self.beam, tree.n_nodes)
                return find_visitors(upper, tree, X, LOSSES[self.loss], beam, n_jobs=self.n_jobs)

            trained.append(
                train_tree(
                    X,
                    Y,
                    tree,
                    (positive, np.full(tree.target.size, C)),
                    lambda rows, labels: solve_block(rows, labels, options),
                    visit=visit if self.negatives == "beam" else None,
                    n_jobs=self.n_jobs,
                    description=f"Training {name}, tree {number} of {len(trees)}",
                )
            )
        self.chunks_ = join_trees(trained)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        check_number("beam", self.beam, integer=True, low=1)
        beam = min(self.beam, self.chunks_.bits.shape[0])
        return find_labels(
            self.chunks_,
            X,
            k,
            LOSSES[self.loss],
            beam,
            self.path_weight_,
            normalize=self.normalize,
            n_jobs=self.n_jobs,
        )
