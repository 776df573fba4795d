"""How the training of label trees is cut into blocks: the same ones for every number of threads.

Nodes that cost little are many in a block, so that what a block prepares serves them all; a node that costs much is cut
into blocks of its edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.solvers.lanes import LANES
from tailwise.kernels.solvers.solve import sweeps_over
from tailwise.kernels.sparse.csr import spread
from tailwise.kernels.trees.nodes import Below
from tailwise.trees.packing import Trained
from tailwise.trees.structure import LabelTree

_BLOCKS = 128
"""So many blocks, about, that cost the same: enough for the last ones not to be waited for."""


class Part(NamedTuple):
    """Some of the edges below a node, ascending: its own, or those of a few levels."""

    tree: int
    node: int
    edges: np.ndarray
    cost: float
    above: np.ndarray | None = None
    """(n_edges,) int32: which of ``edges`` leads to an edge, -1 for the node's own; None where all are its own"""


class Run(NamedTuple):
    """Nodes of a tree from ``first`` to before ``last``."""

    tree: int
    first: int
    last: int
    size: int
    """weights of all"""


Block = list[Part]


def _predicted(own: Below, first: int, last: int, edges: np.ndarray, n_visitors: int) -> float:
    """The cost of some edges of a node, in visits of a row: some sweeps over all rows for every sixteen edges."""
    rows = own.indptr[own.stop[last - 1]] - own.indptr[own.start[first]] + n_visitors
    return float(rows * (2 + sweeps_over(int(rows), 7) * -(-edges.size // LANES)) + 100 * edges.size)


def upper_parts(number: int, tree: LabelTree, own: Below, *, in_levels: bool) -> Iterator[Part]:
    """The edges to nodes of every node that has any.

    With ``in_levels`` a part has whole levels of edges below its node, as many as sixteen lanes serve: rows that lie
    below the node are then gathered and visited once for all of them.
    """
    done = np.zeros(tree.n_nodes, np.bool_)
    for node in range(tree.n_nodes):
        first, last = tree.edges(node)
        level = edges = first + np.flatnonzero(tree.target[first:last] >= 0)
        if done[node] or not edges.size:
            continue
        above = np.full(edges.size, -1, np.int32)
        while in_levels and level.size:
            nodes = tree.target[level]
            leads, starts = _edges_of(tree, nodes)
            inner = tree.target[leads] >= 0
            below, starts = leads[inner], starts[inner]
            if edges.size + below.size > LANES:
                break
            above = np.append(above, edges.size - level.size + starts).astype(np.int32)
            edges, level = np.append(edges, below), below
            done[nodes] = True
        cost = _predicted(own, first, last, edges, 0)
        yield Part(number, node, edges, cost, above if (above >= 0).any() else None)


def _edges_of(tree: LabelTree, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All edges below ``nodes``, and which of these each belongs to."""
    counts = tree.first_edge[nodes + 1] - tree.first_edge[nodes]
    return spread(tree.first_edge[nodes], counts)[1], np.repeat(np.arange(nodes.size), counts)


def label_parts(
    number: int, tree: LabelTree, own: Below, leaf: np.ndarray, chosen: np.ndarray, visitors: sparse.csr_array | None
) -> Iterator[Part]:
    """The ``chosen`` edges to labels of every node that has any; a leaf that has none is a part without edges."""
    came = np.zeros(tree.n_nodes, np.int64) if visitors is None else np.diff(visitors.indptr)
    for node in range(tree.n_nodes):
        first, last = tree.edges(node)
        edges = first + np.flatnonzero(chosen[first:last])
        if edges.size:
            yield Part(number, node, edges, _predicted(own, first, last, edges, int(came[node])))
        elif leaf[node]:
            yield Part(number, node, edges, 0.0)


def cut_parts(parts: list[Part], is_leaf: list[np.ndarray], least_edges: int) -> list[Block]:
    """Blocks of about the same cost: the same ones for every number of threads.

    Nodes of labels are together in runs of neighbours, which can be packed at once. Other nodes may be cut.
    """
    limit = sum(part.cost for part in parts) / _BLOCKS
    blocks: list[Block] = []
    filled = np.inf
    for part in parts:
        leaf = is_leaf[part.tree][part.node]
        if not leaf and part.cost > limit:
            # Sixteen edges cost what one costs.
            size = LANES * max(1, least_edges // LANES, round(part.edges.size * limit / part.cost / LANES))
            pieces = np.split(part.edges, range(size, part.edges.size, size))
            blocks += [[part._replace(edges=own, cost=part.cost * own.size / part.edges.size)] for own in pieces]
            filled = np.inf
            continue
        before = blocks[-1][-1] if blocks else part
        neighbours = before.tree == part.tree and is_leaf[before.tree][before.node] == leaf
        if filled >= limit or not neighbours or (leaf and part.node != before.node + 1):
            blocks.append([])
            filled = 0.0
        blocks[-1].append(part)
        filled += part.cost
    return blocks


def cost_of(block: Block) -> float:
    """What a block is expected to cost, in visits of a row."""
    return float(round(sum(part.cost for part in block)))


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
