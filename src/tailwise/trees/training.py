"""Training the classifiers of label trees: each edge against its siblings, on the rows that reach their node.

Nodes that cost little are trained many in a block, so that what a block prepares serves them all; a node that costs
much is cut into blocks of its edges. The blocks of all trees are one site: first those of edges between nodes, then
those of edges to labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.arrays import frozen
from tailwise.kernels.solvers.problems import FarRows, Labels, Rows, Weights, pack_rows
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.kernels.trees.chunks import Chunks
from tailwise.kernels.trees.nodes import Below, gather_node, scratch_for
from tailwise.memory import memory_apart
from tailwise.parallel import count_jobs, map_shards
from tailwise.runs import kept
from tailwise.trees.packing import Trained, join_nodes, join_trees, pack_nodes
from tailwise.trees.structure import LabelTree
from tailwise.trees.updating import Leaves

Solve = Callable[[Rows | FarRows, Labels], Weights]
Visit = Callable[[list[Chunks]], list[sparse.csr_array]]

_BLOCKS = 128
"""So many blocks, about, that cost the same: enough for the last ones not to be waited for."""
_LEAST_EDGES = 8
"""Of a block: every block scans all rows of its node, for sixteen edges at the price of one."""
_EDGES_A_PASS = 512
"""The same where rows are on disk: a pass over the rows then serves them all."""
_LARGE = 1 << 26
"""Bytes of values below which blocks are those of rows in memory."""
_NOBODY = np.empty(0, np.int32)


class Planted(NamedTuple):
    """A tree to be trained."""

    tree: LabelTree
    positive_costs: np.ndarray
    """(n_edges,): C of the positives of each edge"""
    negative_costs: np.ndarray
    """(n_edges,): C of its negatives"""
    old: Leaves | None = None
    """edges to labels that stay as they are"""


class _Part(NamedTuple):
    """Some of the edges below a node."""

    tree: int
    node: int
    edges: np.ndarray
    cost: float


Block = list[_Part]


def train_trees(
    X: sparse.csr_array,
    Y: sparse.csr_array,
    planted: list[Planted],
    solve: Solve,
    *,
    weight: np.ndarray | None = None,
    visit: Visit | None = None,
    n_jobs: int | None = None,
    description: str = "",
) -> list[Chunks]:
    """The classifiers of every edge of each tree, pruned and packed.

    An edge's positives are the rows with a label below the edge, its negatives the other rows with a label below its
    node. ``visit``, if given, gets the classifiers of the edges between nodes and returns for each tree a CSR
    (n_nodes, n_samples) of the rows that a search brings to each node: the edges to labels have these as negatives too.
    Costs are times the row's ``weight``, if given. Memory: the result twice, and the rows of one node a thread.
    """
    all_rows, n_features = csr_parts(X), X.shape[1]
    counted = np.ones(X.shape[0]) if weight is None else np.asarray(weight, np.float64)
    carried = Y.T.tocsr()
    below = [_below(one, carried, counted) for one in planted]
    trees = [one.tree for one in planted]
    visitors: list[sparse.csr_array] | None = None

    # Rows on disk are copied where those of a node fit into memory, and left there otherwise.
    memory = memory_apart(X, count_jobs(n_jobs))
    # Blocks follow from it, and processes of a run may have other memories.
    far = X.data.nbytes >= _LARGE and kept(lambda: memory is not None)
    least_edges = _EDGES_A_PASS if far else _LEAST_EDGES
    gathered = all_rows if memory is None else _without_values(all_rows)

    @cache
    def whole() -> Rows:
        return pack_rows(all_rows, n_features, weights=counted)

    def train_parts(block: Block) -> list[Weights]:
        scratch = scratch_for(X.shape[0], n_features)
        solved = []
        for part in block:
            first, last = trees[part.tree].edges(part.node)
            span = (int(below[part.tree].start[first]), int(below[part.tree].stop[last - 1]))
            came = _NOBODY if visitors is None else _visitors_of(visitors[part.tree], part.node)
            n, rows, labels = gather_node(gathered, below[part.tree], span, part.edges, came, scratch)
            if memory is not None:
                problem = pack_rows(all_rows, n_features, *_far_rows(below[part.tree], span, came), memory)
            else:
                problem = whole() if n == X.shape[0] else frozen(Rows(*rows))
            solved.append(solve(problem, Labels(*labels)))
        return solved

    def train_leaves(block: Block) -> Chunks | list[Weights]:
        """Nodes of labels are packed where they were trained; others wait for their edges to nodes."""
        tree = block[0].tree
        if not is_leaf[tree][block[0].node]:
            return train_parts(block)
        some = [part for part in block if part.edges.size]
        solved = dict(zip((part.node for part in some), train_parts(some), strict=True))
        nodes = ([(part.edges, solved[part.node])] if part.edges.size else [] for part in block)
        stays = (_staying(planted[tree], part.node) for part in block)
        return pack_nodes(trees[tree], (own + kept for own, kept in zip(nodes, stays, strict=True)), n_features)

    def train(function: Callable[[Block], Any], blocks: list[Block], what: str) -> list[Any]:
        return map_shards(
            function,
            blocks,
            n_jobs=n_jobs,
            description=f"{description}: {what}" if description else "",
            weight=_cost_of,
        )

    is_leaf = [_holds_labels_alone(tree) for tree in trees]
    upper_blocks = _cut(
        [part for number, own in enumerate(below) for part in _upper_parts(number, trees[number], own)],
        is_leaf,
        least_edges,
    )
    upper: list[dict[int, list[Trained]]] = [{} for _ in trees]
    for block, found in zip(upper_blocks, train(train_parts, upper_blocks, "nodes"), strict=True):
        for part, weights in zip(block, found, strict=True):
            upper[part.tree].setdefault(part.node, []).append((part.edges, weights))
    if visit is not None:
        visitors = visit([_upper_chunks(tree, own, n_features) for tree, own in zip(trees, upper, strict=True)])
    leaf_blocks = _cut(
        [
            part
            for number, one in enumerate(planted)
            for part in _label_parts(
                number, one, below[number], is_leaf[number], None if visitors is None else visitors[number]
            )
        ],
        is_leaf,
        least_edges,
    )
    runs: list[dict[int, Chunks]] = [{} for _ in trees]
    for block, found in zip(leaf_blocks, train(train_leaves, leaf_blocks, "labels"), strict=True):
        tree = block[0].tree
        if is_leaf[tree][block[0].node]:
            runs[tree][block[0].node] = found
            continue
        for part, weights in zip(block, found, strict=True):
            upper[tree].setdefault(part.node, []).append((part.edges, weights))
    for one, own_runs, own_upper, leaf in zip(planted, runs, upper, is_leaf, strict=True):
        for node in np.flatnonzero(~leaf).tolist():
            trained = own_upper.get(node, []) + _staying(one, node)
            own_runs[node] = pack_nodes(one.tree, [trained], n_features)
    return [join_nodes([own[node] for node in sorted(own)]) for own in runs]


def _without_values(X: Csr) -> Csr:
    return csr_parts(Csr(np.zeros_like(X.indptr), X.indices[:0], X.data[:0]))


def _far_rows(below: Below, span: tuple[int, int], visitors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a node, ascending, and how often each counts."""
    carriers = below.rows[below.indptr[span[0]] : below.indptr[span[1]]]
    rows = np.union1d(carriers, visitors).astype(np.int64)
    return rows, below.weights[rows]


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


def _visitors_of(visitors: sparse.csr_array, node: int) -> np.ndarray:
    return visitors.indices[visitors.indptr[node] : visitors.indptr[node + 1]]


def _holds_labels_alone(tree: LabelTree) -> np.ndarray:
    """(n_nodes,) bool"""
    node_of = np.repeat(np.arange(tree.n_nodes), np.diff(tree.first_edge))
    return np.bincount(node_of, tree.target >= 0, minlength=tree.n_nodes) == 0


def _staying(one: Planted, node: int) -> list[Trained]:
    """The node's edges to labels that stay as they are."""
    if one.old is None:
        return []
    first, last = one.tree.edges(node)
    target = one.tree.target[first:last]
    edges = first + np.flatnonzero((target < 0) & ~one.old.again[~np.minimum(target, -1)])
    return [(edges, one.old.kept(~one.tree.target[edges]))] if edges.size else []


def _predicted(own: Below, first: int, last: int, edges: np.ndarray, n_visitors: int) -> float:
    """The cost of some edges of a node, in rows looked at: scans of all rows, then descents over working sets."""
    rows = own.indptr[own.stop[last - 1]] - own.indptr[own.start[first]] + n_visitors
    positives = (own.indptr[own.stop[edges]] - own.indptr[own.start[edges]]).sum()
    return float(rows * (4 + edges.size / 4) + 40 * positives + 500 * edges.size)


def _upper_parts(number: int, tree: LabelTree, own: Below) -> Iterator[_Part]:
    for node in range(tree.n_nodes):
        first, last = tree.edges(node)
        edges = first + np.flatnonzero(tree.target[first:last] >= 0)
        if edges.size:
            yield _Part(number, node, edges, _predicted(own, first, last, edges, 0))


def _label_parts(
    number: int, one: Planted, own: Below, leaf: np.ndarray, visitors: sparse.csr_array | None
) -> Iterator[_Part]:
    chosen = one.tree.target < 0
    if one.old is not None:
        chosen[chosen] = one.old.again[~one.tree.target[chosen]]
    came = np.zeros(one.tree.n_nodes, np.int64) if visitors is None else np.diff(visitors.indptr)
    for node in range(one.tree.n_nodes):
        first, last = one.tree.edges(node)
        edges = first + np.flatnonzero(chosen[first:last])
        if edges.size:
            yield _Part(number, node, edges, _predicted(own, first, last, edges, int(came[node])))
        elif leaf[node]:
            yield _Part(number, node, edges, 0.0)


def _cut(parts: list[_Part], is_leaf: list[np.ndarray], least_edges: int) -> list[Block]:
    """Blocks of about the same cost: the same ones for every number of threads.

    Nodes of labels are together in runs of neighbours, which can be packed at once. Other nodes may be cut.
    """
    limit = sum(part.cost for part in parts) / _BLOCKS
    blocks: list[Block] = []
    filled = np.inf
    for part in parts:
        leaf = is_leaf[part.tree][part.node]
        if not leaf and part.cost > limit:
            size = max(least_edges, int(part.edges.size * limit / part.cost))
            pieces = np.array_split(part.edges, -(-part.edges.size // size))
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


def _cost_of(block: Block) -> float:
    return float(round(sum(part.cost for part in block)))


def _upper_chunks(tree: LabelTree, trained: dict[int, list[Trained]], n_features: int) -> Chunks:
    """The edges between nodes alone, for a search."""
    nodes = (trained.get(node, []) for node in range(tree.n_nodes))
    return join_trees([pack_nodes(tree, nodes, n_features)])
