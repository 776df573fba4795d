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
from tailwise.validation import label_counts

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
        Nodes followed at each depth; with all nodes the search is exhaustive. May be changed after fitting, but the
        beam of training finds the negatives: a wider one brings rows that a label's classifier has never seen.
    loss, C, C_decay, weighting, propensity, tree, negatives, normalize, tol, prune, random_state, n_jobs
        As in :class:`tailwise.Bonsai`.

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
        C_decay: float | None = None,
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
        self.C_decay = C_decay
        self.weighting = weighting
        self.propensity = propensity
        self.tree = tree
        self.negatives = negatives
        self.normalize = normalize
        self.tol = tol
        self.prune = prune
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray, seeds: list[int]) -> list[LabelTree]:
        carried = np.flatnonzero(label_counts(Y))
        # Where nothing is split nobody asks what labels look like.
        nothing = sparse.csr_array((0, 0), dtype=np.float32)
        splits = carried.size > self.max_leaf
        return grow_trees(
            represent_labels(X, Y, weight=weight, n_jobs=self.n_jobs) if splits else nothing,
            carried,
            split_in_two,
            seeds,
            max_leaf=self.max_leaf,
            max_depth=_NO_LIMIT,
            n_jobs=self.n_jobs,
        )
