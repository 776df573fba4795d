"""Growing label trees: split the labels of a node, then the labels of its children, level by level."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from tailwise.parallel import map_blocks, map_shards, row_blocks
from tailwise.trees.clustering import Clusters, Vectors, assign_labels
from tailwise.trees.structure import MAX_CHILDREN, LabelTree, tree_from_nested

Split = Callable[[np.ndarray, Any, np.random.Generator], np.ndarray | Clusters]
"""Of labels and the vectors of all: the cluster of each label; or clusters alone, to which labels are still to be
assigned."""

_LABELS_A_PIECE = 2048
"""A node of more labels has them assigned to clusters in pieces."""
_VECTORS_A_PIECE = 256


class _Piece(NamedTuple):
    """Every ``of``-th label of a node, from the ``first`` on: alike whatever the order of labels means."""

    node: int
    first: int
    of: int


class _Growing(NamedTuple):
    """A node still to be split: its labels, and the list its children go to."""

    tree: int
    depth: int
    number: int
    labels: np.ndarray
    children: list[Any]


class _InPieces:
    """Vectors that all threads make, for a node that is split while no other one is."""

    def __init__(self, vectors: Vectors, n_jobs: int | None) -> None:
        self._vectors, self._n_jobs = vectors, n_jobs

    def __getitem__(self, labels: np.ndarray) -> sparse.csr_array:
        def make_vectors(block: tuple[int, int]) -> sparse.csr_array:
            return self._vectors[labels[slice(*block)]]

        found = map_blocks(make_vectors, row_blocks(labels.size, _VECTORS_A_PIECE), n_jobs=self._n_jobs)
        return sparse.csr_array(sparse.vstack(found, format="csr"))


def grow_trees(
    vectors: Vectors,
    labels: np.ndarray,
    split: Split,
    seeds: list[int],
    *,
    max_leaf: int,
    max_depth: int,
    split_on: Split | None = None,
    cost: Callable[[np.ndarray], float] = np.size,
    n_jobs: int | None = None,
) -> list[LabelTree]:
    """One tree a seed over ``labels``, whose vectors are those of ``vectors``.

    A node of more than ``max_leaf`` labels is split, those that lie ``max_depth`` levels below the root or deeper by
    ``split_on``, if it is given; a node that does not fall apart (all its vectors are equal) becomes a leaf. Every node
    draws from its own stream of random numbers, so trees do not depend on ``n_jobs``. ``cost`` is what splitting some
    labels is expected to take.
    """
    labels = np.sort(labels).astype(np.int32)
    roots: list[list[Any]] = [[] for _ in seeds]
    level = [_Growing(tree, 0, 0, labels, root) for tree, root in enumerate(roots)]
    by_all_threads = vectors if sparse.issparse(vectors) else _InPieces(vectors, n_jobs)

    def how(node: _Growing) -> Split | None:
        if node.labels.size <= max_leaf:
            return None
        return split if node.depth < max_depth else split_on

    def split_node(node: _Growing) -> np.ndarray | Clusters:
        rng = np.random.default_rng([seeds[node.tree], node.depth, node.number])
        found = cast("Split", how(node))(node.labels, vectors if len(level) > 1 else by_all_threads, rng)
        in_pieces = node.labels.size > _LABELS_A_PIECE
        return found if isinstance(found, np.ndarray) or in_pieces else assign_labels(vectors[node.labels], found)

    def split_nodes(nodes: list[_Growing]) -> list[np.ndarray]:
        """The cluster of each label of each node."""
        found = map_shards(split_node, nodes, n_jobs=n_jobs, weight=lambda node: cost(node.labels))
        pieces = [
            _Piece(number, first, of)
            for number, node in enumerate(nodes)
            if isinstance(found[number], Clusters)
            for of in [-(-node.labels.size // _LABELS_A_PIECE)]
            for first in range(of)
        ]

        def assign_piece(piece: _Piece) -> np.ndarray:
            clusters = cast("Clusters", found[piece.node])
            return assign_labels(vectors[nodes[piece.node].labels[piece.first :: piece.of]], clusters)

        whole = {piece.node: np.empty(nodes[piece.node].labels.size, np.int32) for piece in pieces}
        for piece, own in zip(pieces, map_shards(assign_piece, pieces, n_jobs=n_jobs) if pieces else [], strict=True):
            whole[piece.node][piece.first :: piece.of] = own
        return [own if isinstance(own, np.ndarray) else whole[number] for number, own in enumerate(found)]

    while level:
        nodes = [node for node in level if how(node) is not None]
        for node in level:
            if how(node) is None:
                node.children.extend(_bounded(node.labels))
        level, number = [], 0
        for node, assignment in zip(nodes, split_nodes(nodes) if nodes else [], strict=True):
            parts = _parts(node.labels, assignment)
            if len(parts) == 1:
                node.children.extend(_bounded(parts[0]))
                continue
            for part in parts:
                if part.size == 1:
                    node.children.append(int(part[0]))
                    continue
                child = _Growing(node.tree, node.depth + 1, number, part, [])
                number += 1
                if part.size <= MAX_CHILDREN and how(child) is None:
                    node.children.append(part)
                    continue
                node.children.append(child.children)
                level.append(child)
    return [tree_from_nested(root) for root in roots]


def _parts(labels: np.ndarray, assignment: np.ndarray) -> list[np.ndarray]:
    """The labels of each cluster that has any."""
    ends = np.append(0, np.cumsum(np.bincount(assignment))).tolist()
    # Two bytes, because these are sorted in linear time.
    ordered = labels[np.argsort(assignment.astype(np.uint16), kind="stable")]
    return [ordered[first:last] for first, last in pairwise(ends) if first < last]


def _bounded(labels: np.ndarray) -> list[Any]:
    """The children of a leaf: its labels, under further nodes where one node cannot hold so many."""
    if labels.size <= MAX_CHILDREN:
        return labels.tolist()
    return list(np.array_split(labels, -(-labels.size // MAX_CHILDREN)))
