"""What Parabel and Bonsai share: everything but how a tree is grown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.changes import Change, check_solved_rows, labels_to_solve, solved_rows
from tailwise.dual_state import DualState, DualStore, check_dual
from tailwise.explanation import Explanation, Part, margin_explanation, not_ranked
from tailwise.kernels.arrays import frozen, read_only
from tailwise.kernels.solvers.problems import (
    LOGISTIC,
    SQUARED_HINGE,
    FarRows,
    Labels,
    Options,
    Rows,
    Several,
    Support,
    Weights,
)
from tailwise.kernels.solvers.solve import (
    DEFAULT_C,
    DEFAULT_DECAY,
    go_on_together,
    rounds_to_go,
    solve_block,
    solve_together,
)
from tailwise.kernels.trees.chunks import Chunks
from tailwise.parameters import Choice, Constraint, Flag, Integer, Number, OrNone
from tailwise.propensity import WEIGHTING, PropensityLike
from tailwise.ranges import OneOf, Range, Ranges
from tailwise.rows import AS_THEY_ARE, UNIT_LENGTH, RowView, few_rows, unit_rows
from tailwise.trees import old_folders
from tailwise.trees.checks import check_chunks
from tailwise.trees.explaining import path_to, unpack_labels, unpack_node
from tailwise.trees.going_on import GoingOn
from tailwise.trees.problems import Planted
from tailwise.trees.searching import find_labels, find_visitors
from tailwise.trees.structure import LabelTree, tree_from_user
from tailwise.trees.training import train_trees
from tailwise.trees.updating import Kept, edges_before, homes_of_labels, neighbours, regrow
from tailwise.trees.visiting import Upper
from tailwise.trees.weighting import leaf_costs
from tailwise.validation import as_rng, check_number, label_counts

LOSSES = {"squared_hinge": SQUARED_HINGE, "logistic": LOGISTIC}
PATH_WEIGHTS = {"beam": 0.15, "siblings": 1.0}
"""Exponent of a path's probability: classifiers that know the rows of other nodes need less of the path's word. By
``python -m benchmarks generality trees --folds 2`` 0.1 gains in PSP@5 what it loses in P@1, and 0.3 loses in all."""

EFFORT: dict[str, dict[str, Any]] = {
    "squared_hinge": {"max_sweeps": 4, "bias_centre": -1.0, "bias_scale": 0.3},
    "logistic": {"max_rounds": 4},
}
"""Bounds on the solver's work, and for the hinge a bias that moves little: each step of one that moves freely has to be
made up for by all other rows. On the mean of eleven data sets, inside training rows, four sweeps have the accuracy of
seven with a bias of scale 1 (P@1 +0.1, all else within 0.05); three lose 0.04 of P@3 and P@5. For the logistic loss
four have that of twenty on the mean of six (P@1 -0.1, all else 0.0 to +0.2): what is left by then, the length of the
weights and the bias, is solved for at the end."""
_SWEEPS_WEIGHTED = 6
"""The same where labels weigh differently: after four sweeps PSP@5 is 0.1 lower on the mean of six data sets."""

_DECAY_BETWEEN_NODES = 0.25
"""Times that of labels. Thousands of rows go along an edge between nodes: where C falls with them as for labels,
short rows are sent the wrong way, and a beam does not come back. Without any fall most data lose a little."""
_MOST_DUALS = 1 << 18
"""Edges of a model that keeps their duals: those of more take gigabytes, as much as the weights do, and twice that
while they are gathered."""


class LabelTreeModel(XMCModel):
    """Linear classifiers at the edges of trees over labels; a subclass says how trees are grown.

    The probability of a label is that of its own edge times those of the edges above it to the power of
    ``path_weight_``, averaged over trees. An edge's margin ``s = w·x + b`` becomes the probability
    ``exp(-max(0, 1 - s)²)`` (squared hinge) or ``1/(1 + e^-s)`` (logistic). Prediction follows the ``beam`` most
    probable nodes of each depth. An update goes on where the dual of each edge stood; labels without new rows keep
    their bits, and a new label hangs beside the one whose mean row is nearest. Where no dual is kept, it solves the
    edges between nodes, and labels that have new rows to speak of or rows that changed.
    """

    _parameters = {
        "n_trees": Integer(low=1),
        "max_leaf": Integer(low=1),
        "beam": Integer(low=1),
        "loss": Choice(*LOSSES),
        "C": OrNone(Number(low=0, open_low=True)),
        "C_decay": OrNone(Number(low=0)),
        "weighting": WEIGHTING,
        "propensity": PropensityLike(),
        "tree": Constraint(),
        "negatives": Choice(*PATH_WEIGHTS),
        "normalize": Flag(),
        "tol": Number(low=0, open_low=True),
        "prune": Number(low=0),
    }
    scores_are_probabilities = True

    n_trees: int
    beam: int
    loss: str
    C: float | None
    C_decay: float | None
    weighting: Any
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
    solved_rows_: np.ndarray | None = None
    dual_: DualState | None = None
    """Where the dual of every edge stands; None for the logistic loss, after training with weights of rows, and where
    there are more than 2^18 edges."""

    @abstractmethod
    def _grow(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray, seeds: list[int]) -> list[LabelTree]:
        """One tree a seed over the labels that have rows; rows of X have unit length and count ``weight`` times."""

    def _ranges(self) -> Ranges:
        return {"C": Range.around(self._cost(), 16), "negatives": OneOf(tuple(PATH_WEIGHTS), self.negatives)}

    def _cost(self) -> float:
        """C of negatives."""
        return DEFAULT_C[self.loss] if self.C is None else self.C

    def _decay(self) -> float:
        """How C falls with the rows of a label: siblings alone leave so few that it gains nothing, and what a weighting
        takes from frequent labels it would take once more."""
        if self.C_decay is None:
            return DEFAULT_DECAY[self.loss] if self.negatives == "beam" and self.weighting == "none" else 0.0
        return self.C_decay

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return UNIT_LENGTH if self.normalize else AS_THEY_ARE

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        weighted = weight is not None
        weight = np.ones(X.shape[0]) if weight is None else weight
        if self.tree is None:
            seeds = as_rng(self.random_state).integers(2**31, size=self.n_trees).tolist()
            trees = self._grow(X if self.normalize else unit_rows(X), Y, weight, seeds)
        else:
            trees = [tree_from_user(self.tree, label_counts(Y))]
        self.path_weight_ = PATH_WEIGHTS[self.negatives]
        self.solved_rows_ = None
        self.chunks_, self.dual_ = self._train(X, Y, weight, trees, [None] * len(trees))
        if weighted:
            # Rows of weight 0 were left out, and whoever updates numbers them all.
            self.dual_ = None

    def _update(self, change: Change) -> int:
        n_labels, n_trees = change.Y.shape[1], self.chunks_.roots.size
        dual = self.dual_ if self.dual_ is not None and self.dual_.n_rows == change.n_known else None
        n_rows, fresh = change.Y.shape[0], change.fresh
        solved = solved_rows(self.solved_rows_, change)
        again = labels_to_solve(change, solved) if dual is None else change.touched
        chunks = frozen(self.chunks_)
        homes = [homes_of_labels(chunks, tree, n_labels) for tree in range(n_trees)]
        unit = change.X if self.normalize else unit_rows(change.X)
        beside = neighbours(unit, change.Y, homes[0] >= 0, self.n_jobs)
        trees = [regrow(chunks, tree, beside, self.label_counts_) for tree in range(n_trees)]
        chosen = np.zeros(n_labels, bool)
        chosen[again] = True
        old = []
        for number, (home, tree) in enumerate(zip(homes, trees, strict=True)):
            before, at_label = edges_before(home, chunks, number, tree), tree.target < 0
            stays = at_label & ~chosen[~np.minimum(tree.target, -1)]
            old.append(Kept(chunks, before, stays & (before >= 0)))
        weight, going = np.ones(n_rows), []
        if dual is not None:
            is_fresh = np.zeros(n_rows, bool)
            is_fresh[fresh] = True
            # What a row that was replaced had part in is in no weights that are made anew.
            restores = change.replaced.size > 0 or rounds_to_go(fresh.size, change.n_known) > 1
            bias = EFFORT[self.loss]["bias_centre"]
            going = [GoingOn(dual, own.before, read_only(is_fresh), bias, restores) for own in old]
        looking = None if dual is None else fresh
        self.chunks_, self.dual_ = self._train(change.X, change.Y, weight, trees, old, going, looking, change.n_known)
        if dual is None:
            solved[again] = n_rows
            self.solved_rows_ = solved
        return again.size

    def _train(
        self,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        weight: np.ndarray,
        trees: list[LabelTree],
        old: Sequence[Kept | None],
        going: Sequence[GoingOn | None] = (),
        fresh: np.ndarray | None = None,
        n_known: int = 0,
    ) -> tuple[Chunks, DualState | None]:
        """The classifiers of ``trees``, but for those of labels that stay as they are in ``old``, and their duals.

        Where these go on from their duals, ``fresh`` rows alone look for their nodes: others are known by their α.
        """
        C, decay, often = self._cost(), self._decay(), weight @ Y
        negative_costs = C * np.maximum(often, 1.0) ** -decay
        positive_costs = negative_costs * leaf_costs(self.weighting, self.propensity, Y, weight)
        n_edges = sum(tree.target.size for tree in trees)
        duals = DualStore(X.shape[0], n_edges) if n_edges <= _MOST_DUALS else None
        effort = EFFORT[self.loss]
        options = Options(loss=self.loss, tol=self.tol, prune=self.prune, keep_duals=duals is not None, **effort)
        if self.weighting != "none":
            options = options._replace(max_sweeps=max(options.max_sweeps, _SWEEPS_WEIGHTED))
        planted = []
        for tree, leaves, goes in zip(trees, old, going or [None] * len(trees), strict=True):
            before = np.append(0, np.cumsum(often[tree.order]))
            carried = np.maximum(before[tree.stop] - before[tree.start], 1.0)
            costs = np.tile(C * carried ** (-_DECAY_BETWEEN_NODES * decay), (2, 1))
            at_label = tree.target < 0
            labels = ~tree.target[at_label]
            costs[:, at_label] = positive_costs[labels], negative_costs[labels]
            planted.append(Planted(tree, costs[0], costs[1], leaves, goes))

        def visit(upper: list[Upper]) -> list[sparse.csr_array]:
            rows = X if fresh is None else few_rows(X, fresh)
            found = find_visitors(upper, trees, rows, LOSSES[self.loss], int(self.beam), n_jobs=self.n_jobs)
            return found if fresh is None else [_among_all(own, fresh, X.shape[0]) for own in found]

        little = options._replace(max_sweeps=rounds_to_go(0 if fresh is None else fresh.size, n_known))

        def solve(rows: Rows | FarRows, labels: Labels, above: np.ndarray | None = None) -> Weights:
            if self.loss == "logistic":
                return solve_block(rows, labels, options)
            return solve_together(rows, labels, options, above)

        def go_on(
            rows: Rows,
            starts: np.ndarray,
            several: Several,
            labels: Labels,
            stood: Support,
            began: Weights | None,
            marks: np.ndarray,
        ) -> Weights:
            return go_on_together(rows, starts, several, labels, stood, began, marks, little)

        trained = train_trees(
            X,
            Y,
            planted,
            solve,
            weight=weight,
            visit=visit if self.negatives == "beam" else None,
            duals=duals,
            in_levels=self.loss != "logistic" and not going,
            go_on=go_on,
            n_jobs=self.n_jobs,
            description=f"Training {type(self).__name__}",
        )
        return trained, None if duals is None else duals.finish(self.n_jobs)

    def _check_state(self) -> None:
        super()._check_state()
        if isinstance(self.chunks_, old_folders.Chunks):
            self.chunks_ = old_folders.repack(self.chunks_, self._n_seen)
        check_chunks(self.chunks_, self._n_seen, self.n_labels_)
        check_number("path_weight_", self.path_weight_, low=0)
        check_solved_rows(self.solved_rows_, self.n_labels_)
        check_dual(self.dual_, self.chunks_.target.size)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        check_number("beam", self.beam, integer=True, low=1)
        return self._search(self.chunks_, X, k)

    def _search(self, chunks: Chunks, X: sparse.csr_array, k: int) -> TopK:
        beam = min(int(self.beam), chunks.bits.shape[0])
        return find_labels(chunks, X, k, LOSSES[self.loss], beam, self.path_weight_, n_jobs=self.n_jobs)

    def _label_weights(self) -> sparse.csr_array:
        return unpack_labels(self.chunks_, self.n_labels_, self.n_features_in_)

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        if not self.label_counts_[label]:
            return not_ranked(label, "no training row has the label")
        n_trees = self.chunks_.roots.size
        parts = []
        for tree in range(n_trees):
            alone = self.chunks_._replace(roots=self.chunks_.roots[tree : tree + 1])
            found = self._search(alone, x, self.n_labels_)
            if label in found.labels:
                probability = float(found.scores[found.labels == label][0])
                name = f"probability by tree {tree}, one of {n_trees}"
                parts.append(Part(name, probability / n_trees, of=self._explain_path(x, tree, label)))
        return Explanation.sum_of(label, parts) if parts else not_ranked(label, "no tree's beam reaches the label")

    def _explain_path(self, x: sparse.csr_array, tree: int, label: int) -> Explanation:
        """The log-probability of a label in one tree: its own edge, and what the edges above count for."""
        parts = []
        path = path_to(self.chunks_, tree, label)
        for node, child in reversed(path):
            weights = unpack_node(self.chunks_, node, self.n_features_in_)[[child]].toarray().ravel()
            edge = int(self.chunks_.first_edge[node]) + child
            margin = margin_explanation(label, x, weights[x.indices], self.chunks_.bias[edge])
            target = int(self.chunks_.target[edge])
            name, share = "the label's own edge", 1.0
            if target >= 0:
                name, share = f"the edge to node {target}", self.path_weight_
            value = share * _log_probability(margin.score, self.loss)
            parts.append(Part(f"log-probability of {name}", value, of=margin))
        return Explanation.sum_of(label, parts)


def _among_all(visitors: sparse.csr_array, rows: np.ndarray, n_rows: int) -> sparse.csr_array:
    """The same of all rows, of which ``visitors`` has those of ``rows``."""
    indices = rows[visitors.indices].astype(np.int32)
    return sparse.csr_array((visitors.data, indices, visitors.indptr), shape=(visitors.shape[0], n_rows))


def _log_probability(margin: float, loss: str) -> float:
    return float(-np.logaddexp(0.0, -margin) if loss == "logistic" else -(max(0.0, 1.0 - margin) ** 2))
