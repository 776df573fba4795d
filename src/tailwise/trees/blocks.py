"""How the training of label trees is cut into blocks: the same ones for every number of threads.

Nodes that cost little are many in a block, so that what a block prepares serves them all; a node that costs much is cut
into blocks of its edges.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.solvers.lanes import LANES
from tailwise.kernels.solvers.solve import sweeps_over
from tailwise.kernels.sparse.csr import spread
from tailwise.kernels.trees.nodes import Below
from tailwise.trees.packing import Trained
from tailwise.trees.structure import LabelTree

_BLOCKS = 128
"""So many blocks, about, would cost the same."""
_FEW_BLOCKS, _LEAST_COST = 16, float(1 << 18)
"""Where edges go on, which costs little, a block costs 2^18 visits of a row at least, unless there are 16 or fewer:
what each prepares was a tenth of an update."""
_LAST = 0.25
"""The last quarter of the cost is in smaller and smaller blocks, to a quarter of the others: nobody waits long for the
very last."""


class Part(NamedTuple):
    """Some of the edges below a node, ascending: its own, or those of a few levels."""

    node: int
    edges: np.ndarray
    above: np.ndarray | None
    """(n_edges,) int32: which of ``edges`` leads to an edge, -1 for the node's own; None where all are its own"""


class Block(NamedTuple):
    """Parts of a tree that are trained together, laid end to end."""

    tree: int
    nodes: np.ndarray
    """(n,) int64: the node of each part"""
    starts: np.ndarray
    """(n + 1,) int64: part i has the edges from ``starts[i]`` to before ``starts[i + 1]``"""
    edges: np.ndarray
    """int64"""
    above: np.ndarray
    """(n_edges,) int32: as in :class:`Part`"""
    costs: np.ndarray
    """(n,): what each part is expected to cost, in visits of a row"""

    def parts(self) -> list[Part]:
        """One by one."""
        levels = self.above >= 0
        return [
            Part(node, self.edges[first:last], self.above[first:last] if levels[first:last].any() else None)
            for node, (first, last) in zip(self.nodes.tolist(), pairwise(self.starts.tolist()), strict=True)
        ]

    def some(self, first: int, last: int) -> Block:
        """Parts ``first:last``."""
        own = slice(self.starts[first], self.starts[last])
        starts = self.starts[first : last + 1] - self.starts[first]
        return Block(
            self.tree, self.nodes[first:last], starts, self.edges[own], self.above[own], self.costs[first:last]
        )

    def in_pieces(self, size: int) -> list[Block]:
        """The one part, cut after every ``size`` edges."""
        n_edges = self.edges.size
        return [
            self._replace(
                starts=np.array([0, last - first]),
                edges=self.edges[first:last],
                above=self.above[first:last],
                costs=self.costs * _groups(last - first) / _groups(n_edges),
            )
            for first, last in pairwise([*range(0, n_edges, size), n_edges])
        ]


class Run(NamedTuple):
    """Nodes of a tree from ``first`` to before ``last``."""

    tree: int
    first: int
    last: int
    size: int
    """weights of all"""


def upper_parts(number: int, tree: LabelTree, own: Below, *, in_levels: bool) -> Block:
    """The edges to nodes of every node that has any.

    With ``in_levels`` a part has whole levels of edges below its node, as many as sixteen lanes serve: rows that lie
    below the node are then gathered and visited once for all of them.
    """
    done = np.zeros(tree.n_nodes, np.bool_)
    nodes, edges_of, above_of = [], [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for node in np.unique(_node_of(tree, np.flatnonzero(tree.target >= 0))).tolist():
        if done[node]:
            continue
        first, last = tree.edges(node)
        level = edges = first + np.flatnonzero(tree.target[first:last] >= 0)
        above = np.full(edges.size, -1, np.int32)
        while in_levels and level.size and edges.size < LANES:
            leads, starts = _edges_of(tree, tree.target[level])
            inner = tree.target[leads] >= 0
            below, starts = leads[inner], starts[inner]
            if edges.size + below.size > LANES:
                break
            above = np.append(above, edges.size - level.size + starts).astype(np.int32)
            done[tree.target[level]] = True
            edges, level = np.append(edges, below), below
        nodes.append(node)
        edges_of.append(edges)
        above_of.append(above)
    sizes = np.array([edges.size for edges in edges_of])
    at = np.array(nodes, np.int64)
    costs = _costs(_pairs_below(tree, own, at), sizes[1:])
    return Block(number, at, np.cumsum(sizes), np.concatenate(edges_of), np.concatenate(above_of), costs)


def label_parts(
    number: int, tree: LabelTree, own: Below, leaf: np.ndarray, chosen: np.ndarray, visitors: sparse.csr_array | None
) -> Block:
    """The ``chosen`` edges to labels of every node that has any; a leaf that has none is a part without edges."""
    edges = np.flatnonzero(chosen)
    sizes = np.bincount(_node_of(tree, edges), minlength=tree.n_nodes)
    nodes = np.flatnonzero(leaf | (sizes > 0))
    rows, sizes = _pairs_below(tree, own, nodes), sizes[nodes]
    if visitors is not None:
        rows += np.diff(visitors.indptr)[nodes]
    starts = np.append(0, np.cumsum(sizes))
    return Block(number, nodes, starts, edges, np.full(edges.size, -1, np.int32), _costs(rows, sizes))


def _node_of(tree: LabelTree, edges: np.ndarray) -> np.ndarray:
    return np.searchsorted(tree.first_edge, edges, side="right") - 1


def _edges_of(tree: LabelTree, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All edges below ``nodes``, and which of these each belongs to."""
    counts = tree.first_edge[nodes + 1] - tree.first_edge[nodes]
    return spread(tree.first_edge[nodes], counts)[1], np.repeat(np.arange(nodes.size), counts)


def _pairs_below(tree: LabelTree, own: Below, nodes: np.ndarray) -> np.ndarray:
    """How many pairs of a row and a label lie below each of ``nodes``."""
    if not tree.target.size:
        return np.zeros(nodes.size, np.int64)
    first, last = tree.first_edge[nodes], tree.first_edge[nodes + 1] - 1
    return own.indptr[own.stop[last]] - own.indptr[own.start[first]]


def _costs(rows: np.ndarray, n_edges: np.ndarray) -> np.ndarray:
    """In visits of a row: some sweeps over all rows of a node for every sixteen of its edges."""
    sweeps = np.array([sweeps_over(own, 7) for own in rows.tolist()], np.int64)
    return np.where(n_edges, rows * (2 + sweeps * _groups(n_edges)) + 100 * n_edges, 0).astype(np.float64)


def _groups(n_edges: Any) -> Any:
    return -(-n_edges // LANES)


def cut_parts(trees: list[Block], is_leaf: list[np.ndarray], least_edges: int, *, go_on: bool = False) -> list[Block]:
    """Blocks of about the same cost, and smaller ones: the same for every number of threads.

    ``trees`` has all parts of each tree. Nodes of labels are together in runs of neighbours, which can be packed at
    once. Other nodes may be cut. There are fewer blocks where edges ``go_on``.
    """
    left = total = sum(float(parts.costs.sum()) for parts in trees)
    n_blocks = min(_BLOCKS, max(_FEW_BLOCKS, int(total / _LEAST_COST))) if go_on else _BLOCKS
    limit = total / n_blocks
    blocks: list[Block] = []
    for parts in trees:
        leaf = is_leaf[parts.tree][parts.nodes]
        dear = ~leaf & (parts.costs > limit)
        together = (leaf[1:] == leaf[:-1]) & ~(leaf[1:] & (np.diff(parts.nodes) != 1)) & ~dear[1:] & ~dear[:-1]
        begins, filled, enough = [], 0.0, 0.0
        for part, (joins, cost) in enumerate(zip([False, *together.tolist()], parts.costs.tolist(), strict=False)):
            if not joins or filled >= enough:
                begins.append(part)
                filled, enough = 0.0, min(limit, max(_LAST * limit, left / (_LAST * n_blocks)))
            filled += cost
            left -= cost
        for first, last in pairwise([*begins, parts.nodes.size]):
            block = parts.some(first, last)
            if dear[first]:
                share = block.edges.size * limit / float(block.costs[0])
                blocks += block.in_pieces(LANES * max(1, least_edges // LANES, round(share / LANES)))
            else:
                blocks.append(block)
    return blocks


def cost_of(block: Block) -> float:
    """What a block is expected to cost, in visits of a row."""
    return float(round(block.costs.sum()))


def runs_of_neighbours(number: int, tree: LabelTree, trained: dict[int, list[Trained]]) -> list[Run]:
    """Runs of nodes that have edges to nodes, of about the same size; one that has labels too is alone."""
    sizes = {node: sum(weights.features.size for _, weights in trained[node]) for node in sorted(trained)}
    limit = sum(sizes.values()) / _BLOCKS
    alone = tree.labels_of_nodes() > 0
    runs: list[Run] = []
    for node, size in sizes.items():
        before = runs[-1] if runs else None
        joins = before is not None and before.last == node and before.size < limit
        if before is not None and joins and not alone[node] and not alone[before.first]:
            runs[-1] = before._replace(last=node + 1, size=before.size + size)
        else:
            runs.append(Run(number, node, node + 1, size))
    return runs


def size_of(run: Run) -> float:
    """The weights of a run."""
    return float(run.size)
