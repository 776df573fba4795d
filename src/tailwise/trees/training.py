"""Training the classifiers of one label tree: each edge against its siblings, on the rows that reach their node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.arrays import frozen
from tailwise.kernels.solvers.problems import FarRows, Labels, Rows, Weights, pack_rows
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.trees.chunks import Chunks, pack_chunk
from tailwise.memory import memory_apart
from tailwise.parallel import count_jobs, map_shards
from tailwise.trees.structure import LabelTree
from tailwise.trees.updating import Leaves

Solve = Callable[[Rows | FarRows, Labels], Weights]
Visit = Callable[[Chunks], sparse.csr_array]

_EDGES_A_BLOCK = 32
_FEW_EDGES = 16
"""A block of a node that holds a good part of the labels: few such nodes, which all workers should share."""
_GOOD_PART = 0.05
_NOTHING = Weights(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.float32))


class _Block(NamedTuple):
    """Some of the edges below a node."""

    node: int
    edges: np.ndarray


def train_tree(
    X: sparse.csr_array,
    Y: sparse.csr_array,
    tree: LabelTree,
    edge_costs: tuple[np.ndarray, np.ndarray],
    solve: Solve,
    *,
    weight: np.ndarray | None = None,
    visit: Visit | None = None,
    old: Leaves | None = None,
    n_jobs: int | None = None,
    description: str = "",
) -> Chunks:
    """The classifiers of every edge of ``tree``, pruned and packed.

    An edge's positives are the rows with a label below the edge, its negatives the other rows with a label below its
    node. ``visit``, if given, gets the classifiers of the edges between nodes and returns a CSR (n_nodes, n_samples) of
    the rows that a search brings to each node: the edges to labels have these as negatives too. ``edge_costs`` gives C
    of the positives and of the negatives of each edge, times the row's ``weight``, if given. ``old``, if given, has
    edges to labels that stay. Memory: the result twice, and the rows of one node a thread.
    """
    rows_of = Y.T.tocsr()[tree.order]
    all_rows = csr_parts(X)
    counted = np.ones(X.shape[0]) if weight is None else weight
    memory = memory_apart(X, count_jobs(n_jobs))
    visitors: sparse.csr_array | None = None

    def rows_below(first: int, last: int) -> np.ndarray:
        return rows_of.indices[rows_of.indptr[tree.start[first]] : rows_of.indptr[tree.stop[last - 1]]]

    def train_block(block: _Block) -> Weights:
        first, last = tree.edges(block.node)
        rows = np.unique(rows_below(first, last))
        if visitors is not None:
            rows = np.union1d(rows, visitors.indices[slice(*visitors.indptr[block.node : block.node + 2])])
        chosen = None if rows.size == X.shape[0] else rows
        problem = pack_rows(all_rows, X.shape[1], chosen, counted[rows], memory)
        positions = [np.searchsorted(rows, np.unique(rows_below(edge, edge + 1))) for edge in block.edges]
        sizes = [own.size for own in positions]
        carrying = np.concatenate(positions).astype(np.int32)
        labels = Labels(
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            carrying,
            (np.repeat(edge_costs[0][block.edges], sizes) * counted[rows[carrying]]).astype(np.float32),
            edge_costs[1][block.edges].astype(np.float32),
        )
        return solve(problem, labels)

    def train(blocks: list[_Block], what: str) -> list[Weights]:
        return map_shards(
            train_block,
            blocks,
            n_jobs=n_jobs,
            description=f"{description}: {what}" if description else "",
            weight=lambda block: block.edges.size,
        )

    at_label = tree.target < 0
    solved = at_label.copy()
    if old is not None:
        solved[at_label] = old.again[~tree.target[at_label]]
    to_nodes, to_labels, staying = (_blocks(tree, chosen) for chosen in (~at_label, solved, at_label & ~solved))
    upper = train(to_nodes, "nodes")
    if visit is not None:
        visitors = visit(join_trees([_pack_tree(tree, to_nodes, upper, X.shape[1])]))
    kept = [] if old is None else [old.kept(~tree.target[block.edges]) for block in staying]
    return _pack_tree(tree, to_nodes + to_labels + staying, upper + train(to_labels, "labels") + kept, X.shape[1])


def _blocks(tree: LabelTree, chosen: np.ndarray) -> list[_Block]:
    """The ``chosen`` edges of every node, one or two dozen a block."""
    blocks = []
    for node in range(tree.n_nodes):
        first, last = tree.edges(node)
        edges = first + np.flatnonzero(chosen[first:last])
        below = tree.stop[last - 1] - tree.start[first] if last > first else 0
        size = _FEW_EDGES if below > _GOOD_PART * tree.order.size else _EDGES_A_BLOCK
        blocks += [_Block(node, edges[a : a + size]) for a in range(0, edges.size, size)]
    return blocks


def _pack_tree(tree: LabelTree, blocks: list[_Block], trained: list[Weights], n_features: int) -> Chunks:
    """The chunks of the edges in ``blocks``: all edges of the tree, or some."""
    parts: dict[int, list[tuple[np.ndarray, Weights]]] = {}
    for block, weights in zip(blocks, trained, strict=True):
        parts.setdefault(block.node, []).append((block.edges, weights))
    packed: list[tuple[Any, ...]] = []
    for node in range(tree.n_nodes):
        own, weights = _in_order(parts.pop(node, []))
        chunk = pack_chunk(weights, n_features)
        packed.append((own, weights.bias, *chunk))
    columns: list[list[Any]] = [list(column) for column in zip(*packed, strict=True)]
    packed.clear()
    edges, biases, scale, bits, words, ranks, directory, places, runs, children, entries = columns
    return Chunks(
        roots=np.zeros(1, np.int32),
        first_edge=_starts(edges).astype(np.int32),
        target=tree.target[np.concatenate(edges)],
        bias=np.concatenate(biases),
        scale=np.concatenate(scale),
        bits=np.array(bits, np.uint8),
        first_word=_starts(words),
        words=np.concatenate(words),
        ranks=np.concatenate(ranks),
        first_bucket=_starts(directory),
        directory=np.concatenate(directory),
        first_feature=_starts(places),
        features=np.concatenate(places),
        first_run=_starts(runs),
        runs=np.concatenate(runs),
        first_child=_starts(children),
        children=np.concatenate(children),
        first_weight=_starts(entries),
        weights=np.concatenate(entries),
    )


def _in_order(parts: list[tuple[np.ndarray, Weights]]) -> tuple[np.ndarray, Weights]:
    """The edges of a node, ascending, and their weights."""
    if not parts:
        return np.empty(0, np.int64), _NOTHING
    edges = np.concatenate([own for own, _ in parts])
    sizes = np.concatenate([np.diff(weights.indptr) for _, weights in parts])
    features, values, bias = (np.concatenate([weights[n] for _, weights in parts]) for n in (1, 2, 3))
    order = np.argsort(edges)
    entries = np.argsort(np.repeat(edges, sizes), kind="stable")
    indptr = np.concatenate([[0], np.cumsum(sizes[order])])
    return edges[order], Weights(indptr, features[entries], values[entries], bias[order])


def _starts(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([part.size for part in parts])]).astype(np.int64)


def join_trees(trees: list[Chunks]) -> Chunks:
    """Several trees as one set of chunks; nodes and edges are renumbered, the trees' arrays laid end to end.

    The arrays are read-only, as those of a mapped model are, so that one compiled search serves both.
    """
    if len(trees) == 1:
        return frozen(trees[0])
    nodes = np.cumsum([0] + [tree.bits.size for tree in trees])
    target = [
        np.where(tree.target >= 0, tree.target + shift, tree.target) for tree, shift in zip(trees, nodes, strict=False)
    ]
    joined = {
        "roots": nodes[:-1].astype(np.int32),
        "target": np.concatenate(target).astype(np.int32),
    }
    for name in (
        "first_edge",
        "first_word",
        "first_bucket",
        "first_feature",
        "first_run",
        "first_child",
        "first_weight",
    ):
        parts = [getattr(tree, name) for tree in trees]
        ends = np.cumsum([0] + [int(part[-1]) for part in parts])
        whole = np.concatenate([[0], *(part[1:] + end for part, end in zip(parts, ends, strict=False))])
        joined[name] = whole.astype(parts[0].dtype)
    for name in ("bias", "scale", "bits", "words", "ranks", "directory", "features", "runs", "children", "weights"):
        joined[name] = np.concatenate([getattr(tree, name) for tree in trees])
    return frozen(Chunks(**joined))
