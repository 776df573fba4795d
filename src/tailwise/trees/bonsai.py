"""Bonsai: shallow label trees of many branches, without a balance constraint."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, isqrt
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.kernels.solvers.lanes import LANES
from tailwise.parameters import Choice, Integer, OrNone
from tailwise.trees.clustering import MAX_SHARE, SAMPLE, Clusters, Vectors, find_clusters
from tailwise.trees.growing import grow_trees
from tailwise.trees.model import LabelTreeModel
from tailwise.trees.representation import KEEP, REPRESENTATIONS, LabelVectors
from tailwise.trees.structure import MAX_CHILDREN, LabelTree
from tailwise.validation import label_counts

_LABELS_A_CLUSTER = 28
"""Clusters have so many labels on average at least: with smaller ones a beam comes to fewer labels. Of ten labels P@1
is 0.2 lower in the mean of twelve data sets than of twenty."""

_ARITY = 100
"""Clusters below a node, unless told otherwise, where these are enough."""

_LABELS_A_SQUARE = 5
"""Times the square of its clusters: a node of more labels has more. A row is at the root once, but in ten of the nodes
that hold labels, so that it costs less to make these smaller, and they tell labels better apart."""

_LABELS_IN_REACH = 10
"""Times the square of ``arity``: trees of more labels spend a quarter of all time on clusters. They have multiples of
sixteen, 96 for 100, since a hundredth edge costs what sixteen cost, and find them from shorter vectors."""

_KEEP_OF_MANY = 64
"""Entries of a label vector there (215,000 labels: P@1 61.9, P@3 34.1 and P@5 22.1 in 0.87 of the time that 128 take,
with 60.1, 33.1 and 21.3)."""


class Bonsai(LabelTreeModel):
    """Shallow, wide and diverse trees over labels (Khandagale, Xiao, Babbar, 2020).

    A node's labels are split into ``arity`` clusters by k-means without a balance constraint, so that a rare label is
    not forced into a foreign cluster, and a path has few edges on which to go astray. More accurate than
    :class:`Parabel`, above all for rare labels, for about the same work.

    Parameters
    ----------
    n_trees : int
        Trees, each from other random starts; their probabilities are averaged.
    arity : int or None
        Clusters at most below a node; fewer where they would have less than 28 labels on average. None is 100, or
        ``√(labels/5)`` below a node where that is more; of more than 100,000 labels the nearest multiple of 16, 96 for
        100.
    max_depth : int
        Levels of classifiers on the path to a label, as long as the nodes of the last one hold ``max_leaf`` labels at
        most; those that hold more are split on, into as few clusters as serve.
    max_leaf : int
        A node of at most so many labels is not split.
    representation : {"input", "output", "joint"}
        What makes labels similar: the features of their rows, the labels they occur with, or both.
    beam : int
        Nodes followed at each depth; with all nodes the search is exhaustive. May be changed after fitting, but the
        beam of training finds the negatives: a wider one brings rows that a label's classifier has never seen.
    loss : {"squared_hinge", "logistic"}
        Loss of the edge classifiers, and with it the form of their probabilities.
    C : float or None
        Cost of an error against the penalty ½|w|², for labels of one row; None is 1 for the
        squared hinge and 16 for the logistic loss.
    C_decay : float or None
        A label of n rows has ``C · n^-C_decay``: more rows have more noise to fit. An edge between nodes has a quarter
        of that exponent. 0 gives all the same C; None is 0.2 for the squared hinge with the beam's negatives and
        without a ``weighting``, 0 otherwise.
    weighting : {"none", "mild", "tail", "convex", "steep"} or callable
        Weight of a label's positives at its leaf, for the sake of rare labels: 1, ``(1/p - 1)^0.5``, ``1/p - 1``,
        ``2/p - 1``, ``(1/p - 1)^1.5`` or a function of the propensities, scaled to a mean of 1 over all positives.
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
    >>> model = Bonsai(n_trees=1, arity=2, max_leaf=2, random_state=0).fit(X, Y)
    >>> model.predict_topk(X, k=1).labels.ravel()
    array([0, 1, 2, 3], dtype=int32)
    """

    _parameters = {
        "arity": OrNone(Integer(low=2, high=MAX_CHILDREN)),
        "max_depth": Integer(low=1),
        "representation": Choice(*REPRESENTATIONS),
    }

    def __init__(
        self,
        n_trees: int = 3,
        *,
        arity: int | None = None,
        max_depth: int = 3,
        max_leaf: int = 100,
        representation: str = "input",
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
        self.arity = arity
        self.max_depth = max_depth
        self.max_leaf = max_leaf
        self.representation = representation
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
        in_reach = carried.size <= _LABELS_IN_REACH * (self.arity or _ARITY) ** 2
        keep = KEEP if in_reach else _KEEP_OF_MANY
        how_many = partial(self._how_many, in_lanes=not in_reach)
        vectors = LabelVectors(X, Y, self.representation, weight=weight, keep=keep, n_jobs=self.n_jobs)
        entries = vectors.expected_entries()

        def cost(labels: np.ndarray) -> float:
            return float(entries[labels].mean()) * min(labels.size, SAMPLE * how_many(labels.size, labels.size))

        return grow_trees(
            vectors.once_or_when_asked_for(),
            carried,
            partial(self._split, how_many=how_many),
            seeds,
            max_leaf=self.max_leaf,
            max_depth=self.max_depth - 1,
            split_on=partial(self._split_on, how_many=how_many),
            cost=cost,
            n_jobs=self.n_jobs,
        )

    def _how_many(self, n_labels: int, wanted: int, *, in_lanes: bool) -> int:
        """Clusters below a node of so many labels; ``in_lanes`` asks for edges that fill whole lanes of sixteen."""
        if self.arity is not None:
            return min(self.arity, wanted)
        found = min(max(_ARITY, isqrt(n_labels // _LABELS_A_SQUARE)), wanted)
        return LANES * round(found / LANES) if in_lanes and found >= LANES else found

    def _split(
        self, labels: np.ndarray, vectors: Vectors, rng: np.random.Generator, *, how_many: Callable[[int, int], int]
    ) -> np.ndarray | Clusters:
        wanted = max(2, labels.size // _LABELS_A_CLUSTER)
        return find_clusters(labels, vectors, how_many(labels.size, wanted), rng)

    def _split_on(
        self, labels: np.ndarray, vectors: Vectors, rng: np.random.Generator, *, how_many: Callable[[int, int], int]
    ) -> np.ndarray | Clusters:
        """Clusters of two thirds of ``max_leaf`` labels on average and ``max_leaf`` at most, if ``arity`` serves."""
        wanted = max(2, ceil(labels.size / (self.max_leaf / MAX_SHARE)))
        return find_clusters(labels, vectors, how_many(labels.size, wanted), rng)
