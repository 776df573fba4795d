"""Training the classifiers of one label tree: each edge against its siblings, on the rows that reach their node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.chunks import Chunks, pack_chunk
from tailwise.kernels.problems import Labels, Rows, Weights, pack_rows
from tailwise.parallel import map_blocks
from tailwise.trees.structure import LabelTree

Solve = Callable[[Rows, Labels], Weights]

_EDGES_A_BLOCK = 32
_NOTHING = Weights(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.float32))


class _Block(NamedTuple):
    """Some of the edges below a node."""

    node: int
    first: int
    last: int


def train_tree(
    X: sparse.csr_array,
    Y: sparse.csr_array,
    tree: LabelTree,
    edge_costs: tuple[np.ndarray, np.ndarray],
    solve: Solve,
    *,
    n_jobs: int | None = None,
    description: str = "",
) -> Chunks:
    """The classifiers of every edge of ``tree``, pruned and packed.

    The rows that reach a node are those with a label below it. An edge's positives are the rows with a label below
    the edge, its negatives the other rows that reach the node. ``edge_costs`` gives C of the positives and of the
    negatives of each edge. Memory: the result twice, and the rows of one node a thread.
    """
    rows_of = Y.T.tocsr()[tree.order]
    blocks = [
        _Block(node, first, min(first + _EDGES_A_BLOCK, tree.edges(node)[1]))
        for node in range(tree.n_nodes)
        for first in range(*tree.edges(node), _EDGES_A_BLOCK)
    ]

    def rows_below(first: int, last: int) -> np.ndarray:
        return rows_of.indices[rows_of.indptr[tree.start[first]] : rows_of.indptr[tree.stop[last - 1]]]

    def train_block(block: _Block) -> Weights:
        first, last = tree.edges(block.node)
        rows = np.unique(rows_below(first, last))
        problem = pack_rows(X.indptr, X.indices, X.data, X.shape[1], None if rows.size == X.shape[0] else rows)
        positions, sizes = [], []
        for edge in range(block.first, block.last):
            own = np.searchsorted(rows, np.unique(rows_below(edge, edge + 1)))
            positions.append(own)
            sizes.append(own.size)
        edges = slice(block.first, block.last)
        labels = Labels(
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate(positions).astype(np.int32),
            np.repeat(edge_costs[0][edges], sizes).astype(np.float32),
            edge_costs[1][edges].astype(np.float32),
        )
        return solve(problem, labels)

    trained = map_blocks(
        train_block, blocks, n_jobs=n_jobs, description=description, weight=lambda block: block.last - block.first
    )
    return _pack_tree(tree, blocks, trained, X.shape[1])


def _pack_tree(tree: LabelTree, blocks: list[_Block], trained: list[Weights], n_features: int) -> Chunks:
    parts: dict[int, list[Weights]] = {}
    for block, weights in zip(blocks, trained, strict=True):
        parts.setdefault(block.node, []).append(weights)
    trained.clear()
    packed: list[tuple[Any, ...]] = []
    for node in range(tree.n_nodes):
        # A root without labels has no block.
        own = parts.pop(node, [_NOTHING])
        indptr = np.cumsum(np.concatenate([[0], *(np.diff(part.indptr) for part in own)]))
        features, values, bias = (np.concatenate([part[n] for part in own]) for n in (1, 2, 3))
        packed.append((bias, *pack_chunk(indptr, features, values, n_features)))
    columns: list[list[Any]] = [list(column) for column in zip(*packed, strict=True)]
    packed.clear()
    biases, scale, bits, words, ranks, directory, places, runs, children, entries = columns
    return Chunks(
        roots=np.zeros(1, np.int32),
        first_edge=tree.first_edge,
        target=tree.target,
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


def _starts(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([part.size for part in parts])]).astype(np.int64)


def join_trees(trees: list[Chunks]) -> Chunks:
    """Several trees as one set of chunks; nodes and edges are renumbered, the trees' arrays laid end to end.

    The arrays are read-only, as those of a mapped model are, so that one compiled search serves both.
    """
    if len(trees) == 1:
        return Chunks(*map(read_only, trees[0]))
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
    return Chunks(**{name: read_only(part) for name, part in joined.items()})


def read_only(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
