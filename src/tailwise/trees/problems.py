"""The problems of the nodes of label trees: each edge against its siblings, on the rows that reach their node."""

from __future__ import annotations

from collections.abc import Callable
from threading import BoundedSemaphore, Lock
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.dual_state import compact
from tailwise.kernels.arrays import frozen, read_only
from tailwise.kernels.solvers.problems import Labels, Rows, Weights, pack_rows
from tailwise.kernels.solvers.together import bytes_at_once
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.kernels.trees.chunks import Chunks
from tailwise.kernels.trees.nodes import Below, Scratch, gather_node, scratch_for
from tailwise.kernels.trees.standing import gather_nodes, join_support
from tailwise.memory import LARGE, memory_apart
from tailwise.parallel import count_jobs
from tailwise.runs import kept
from tailwise.trees.blocks import Part
from tailwise.trees.going_on import GoingOn, in_rows_of_all, split
from tailwise.trees.packing import Trained
from tailwise.trees.structure import LabelTree
from tailwise.trees.updating import Kept

Solve = Callable[..., Weights]
"""Of rows and labels, and where edges are of several levels; or of what :func:`gather_nodes` finds and new rows."""

_LEAST_EDGES = 16
"""Of a block: every block scans all rows of its node, and for sixteen edges at the price of one."""
_EDGES_A_PASS = 512
"""The same where rows are on disk: a pass over the rows then serves them all."""
_NOBODY = np.empty(0, np.int32)


class Planted(NamedTuple):
    """A tree to be trained."""

    tree: LabelTree
    positive_costs: np.ndarray
    """(n_edges,): C of the positives of each edge"""
    negative_costs: np.ndarray
    """(n_edges,): C of its negatives"""
    old: Kept | None = None
    """edges that stay as they are"""
    going_on: GoingOn | None = None
    """how edges go on from where their duals stood; None where all are solved from the start"""

    def solved(self) -> np.ndarray:
        """(n_edges,) bool: the edges that do not stay as they are."""
        return np.ones(self.tree.target.size, bool) if self.old is None else ~self.old.stays

    def staying(self, node: int) -> list[Trained]:
        """The node's edges to labels that stay as they are."""
        if self.old is None:
            return []
        first, last = self.tree.edges(node)
        return list(self.old.weights(first + np.flatnonzero(self.old.stays[first:last])))

    def repacked(self, nodes: np.ndarray, solved: list[Trained], n_features: int) -> Chunks | None:
        """What :meth:`Kept.repacked` says of nodes without nodes below them; None where none has been packed before."""
        return None if self.old is None else self.old.repacked(self.tree, nodes, solved, n_features)


class Problems:
    """What the nodes of all trees share, and how some of them are solved: by any number of threads at once.

    ``visitors``, once they are found, have for each tree a CSR (n_nodes, n_samples) of rows that come to each node
    beside those with a label below it. Duals are kept by numbers of rows, if they are.
    """

    def __init__(
        self,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        planted: list[Planted],
        solve: Solve,
        *,
        go_on: Solve | None,
        weight: np.ndarray | None,
        keeps_duals: bool,
        n_jobs: int | None,
    ) -> None:
        self._rows, (self._n_rows, self._n_features) = csr_parts(X), X.shape
        self._counted = np.ones(self._n_rows) if weight is None else np.asarray(weight, np.float64)
        self._planted, self._solve, self._go_on, self._keeps_duals = planted, solve, go_on, keeps_duals
        carried = Y.T.tocsr()
        self.below = [_below(one, carried, self._counted) for one in planted]
        self.visitors: list[sparse.csr_array] | None = None
        # Rows on disk are copied where those of a node fit into memory, and left there otherwise.
        memory, at_a_time = memory_apart(X, 1), count_jobs(n_jobs)
        if memory is not None:
            # The weights of edges between nodes stay in memory until they are packed.
            memory //= 2
            at_a_time = max(1, min(at_a_time, memory // bytes_at_once(self._n_rows, self._n_features)))
            memory //= at_a_time
        self._memory, self._turns = memory, BoundedSemaphore(at_a_time)
        # Blocks follow from it, and processes of a run may have other memories.
        far = X.data.nbytes >= LARGE and kept(lambda: memory is not None)
        self.least_edges = _EDGES_A_PASS if far else _LEAST_EDGES
        """of a block"""
        self._gathered = self._rows if memory is None else _without_values(self._rows)
        self._whole: Rows | None = None
        self._packing = Lock()

    def solve(self, tree: int, parts: list[Part]) -> list[Weights]:
        """The classifiers of some parts of a tree."""
        scratch = scratch_for(self._n_rows, self._n_features)
        going = self._planted[tree].going_on
        standing = [part for part in parts if going is not None and going.any_stood(part.edges)]
        gone_on = iter(self._go_on_with(tree, going, standing, scratch) if going is not None and standing else [])
        nodes = {part.node for part in standing}
        return [next(gone_on) if part.node in nodes else self._solve_part(tree, part, scratch) for part in parts]

    def _solve_part(self, tree: int, part: Part, scratch: Scratch) -> Weights:
        span, came = self._span_of(tree, part.node), self._came_to(tree, part.node)
        here, rows, labels = gather_node(self._gathered, self.below[tree], span, part.edges, came, scratch)
        levels = {} if part.above is None else {"above": part.above}
        with self._turns:
            if self._memory is not None:
                problem = pack_rows(self._rows, self._n_features, here, self._counted[here], self._memory)
            else:
                problem = self._all() if here.size == self._n_rows else frozen(Rows(*rows))
            found = self._solve(problem, Labels(*labels), **levels)
        return in_rows_of_all(found, here, self._n_rows) if self._keeps_duals else found._replace(support=None)

    def _go_on_with(self, tree: int, going: GoingOn, parts: list[Part], scratch: Scratch) -> list[Weights]:
        """Those of which some edges have stood before, all at once."""
        assert self._go_on is not None
        edges = [part.edges for part in parts]
        every, old = np.concatenate(edges), self._planted[tree].old
        stood = going.stood(every)
        began = None if old is None or going.restores else old.began(every, going.bias)
        here, rows, starts, shares, several, labels, held, began = gather_nodes(
            self._rows,
            self._all().squares,
            self.below[tree],
            np.array([self._span_of(tree, part.node) for part in parts]),
            edges,
            None if self.visitors is None else [self._came_to(tree, part.node) for part in parts],
            stood,
            began,
            going.is_fresh,
            scratch,
        )
        marks = read_only(np.stack([going.is_fresh[here], shares]))
        found = self._go_on(rows, starts, several, labels, held, began, marks)
        assert found.support is not None
        support = found.support._replace(positions=here[found.support.positions])
        if began is not None:
            support = join_support(stood, held.positions, support)
        return split(found._replace(support=compact(support, self._n_rows)), several.first_label)

    def _all(self) -> Rows:
        """All rows, made ready once."""
        with self._packing:
            if self._whole is None:
                self._whole = pack_rows(self._rows, self._n_features, weights=self._counted)
            return self._whole

    def _span_of(self, tree: int, node: int) -> tuple[int, int]:
        first, last = self._planted[tree].tree.edges(node)
        return int(self.below[tree].start[first]), int(self.below[tree].stop[last - 1])

    def _came_to(self, tree: int, node: int) -> np.ndarray:
        if self.visitors is None:
            return _NOBODY
        found = self.visitors[tree]
        return found.indices[found.indptr[node] : found.indptr[node + 1]]


def _without_values(X: Csr) -> Csr:
    return csr_parts(Csr(np.zeros_like(X.indptr), X.indices[:0], X.data[:0]))


def _below(one: Planted, carried: sparse.csr_array, counted: np.ndarray) -> Below:
    rows = carried[one.tree.order]
    return frozen(
        Below(
            one.tree.start.astype(np.int64),
            one.tree.stop.astype(np.int64),
            rows.indptr.astype(np.int64),
            rows.indices.astype(np.int32, copy=False),
            np.asarray(one.positive_costs, np.float64),
            np.asarray(one.negative_costs, np.float64),
            counted,
        )
    )
