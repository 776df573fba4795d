"""Parabel: balanced binary label trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.trees.clustering import split_in_two
from tailwise.trees.growing import grow_trees
from tailwise.trees.model import LabelTreeModel
from tailwise.trees.representation import represent_labels
from tailwise.trees.structure import LabelTree

_NO_LIMIT = 64


class Parabel(LabelTreeModel):
    """Balanced binary trees over labels with a linear classifier at every edge (Prabhu et al., 2018).

    Labels are split in two halves of similar training rows by balanced 2-means, again and again until ``max_leaf``
    labels are left. Training costs O(n_samples · log n_labels · features a row), prediction a few dozen sparse
    products whatever the number of labels; a saved model is mapped into memory, not read.

    Parameters
    ----------
    n_trees : int
        Trees, each from other random starts; their probabilities are averaged.
    max_leaf : int
        Labels at most in a node that is not split.
    beam : int
        Nodes followed at each depth; may be changed after fitting. With all nodes the search is exhaustive.
    loss : {"squared_hinge", "logistic"}
        Loss of the edge classifiers, and with it the form of their probabilities.
    C : float or None
        Cost of an error against the penalty ½|w|²; None is 1 for the squared hinge and 16 for the logistic loss.
    weighting : {"none", "tail", "convex", "steep"} or callable
        Weight of a label's positives at its leaf, for the sake of rare labels: 1, ``1/p - 1``, ``2/p - 1``,
        ``(1/p - 1)^1.5`` or a function of the propensities, scaled to a mean of 1 over all positives.
    propensity : Propensity, array of shape (n_labels,) or None
        For ``weighting``; None is ``JainPropensity()``.
    tree : array of parents, nested lists of labels, or None
        A tree of your own instead of grown ones: either the parent of each label, -1 at the top, followed by the
        parents of nodes that are not labels; or groups such as ``[[0, 2], [1, [3, 4]]]`` with each label once.
    negatives : {"beam", "siblings"}
        Rows without a label that its classifier learns from: all that the beam brings to its node, as it will in
        prediction; or, as in the paper, only those with another label of the node.
    normalize : bool
        Scale rows to unit length, in training and in prediction.
    tol : float
        Accuracy of the solver.
    prune : float
        Weights of smaller magnitude are dropped.
    random_state : int, Generator or None
    n_jobs : int or None
        Threads; None uses every core. The result does not depend on it.

    Examples
    --------
    >>> X, Y = np.eye(4), np.eye(4)
    >>> Parabel(n_trees=1, max_leaf=2, random_state=0).fit(X, Y).predict_topk(X, k=1).labels.ravel()
    array([0, 1, 2, 3], dtype=int32)
    """

    def __init__(
        self,
        n_trees: int = 3,
        *,
        max_leaf: int = 100,
        beam: int = 10,
        loss: str = "squared_hinge",
        C: float | None = None,
        weighting: Any = "none",
        propensity: Any = None,
        tree: Any = None,
        negatives: str = "beam",
        normalize: bool = True,
        tol: float = 0.1,
        prune: float = 0.05,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.max_leaf = max_leaf
        self.beam = beam
        self.loss = loss
        self.C = C
        self.weighting = weighting
        self.propensity = propensity
        self.tree = tree
        self.negatives = negatives
        self.normalize = normalize
        self.tol = tol
        self.prune = prune
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow(self, X: sparse.csr_array, Y: sparse.csr_array, seeds: list[int]) -> list[LabelTree]:
        return grow_trees(
            represent_labels(X, Y, n_jobs=self.n_jobs),
            np.flatnonzero(self.label_counts_),
            split_in_two,
            seeds,
            max_leaf=self.max_leaf,
            max_depth=_NO_LIMIT,
            n_jobs=self.n_jobs,
        )
