"""Growing label trees: split the labels of a node, then the labels of its children, level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from tailwise.kernels.arrays import frozen
from tailwise.kernels.solvers.problems import Rows, pack_rows
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.parallel import map_shards
from tailwise.trees.clustering import Clusters, assign_labels
from tailwise.trees.structure import MAX_CHILDREN, LabelTree, tree_from_nested

Split = Callable[[Rows, np.random.Generator], np.ndarray | Clusters]
"""The cluster of each label; or clusters alone, where labels are so many that they are assigned in pieces."""

_LABELS_A_PIECE = 8192


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


def grow_trees(
    vectors: sparse.csr_array,
    labels: np.ndarray,
    split: Split,
    seeds: list[int],
    *,
    max_leaf: int,
    max_depth: int,
    split_on: Split | None = None,
    n_jobs: int | None = None,
) -> list[LabelTree]:
    """One tree a seed over ``labels``, whose vectors are rows of ``vectors``.

    A node of more than ``max_leaf`` labels is split, those that lie ``max_depth`` levels below the root or deeper by
    ``split_on``, if it is given; a node that does not fall apart (all its vectors are equal) becomes a leaf. Every node
    draws from its own stream of random numbers, so trees do not depend on ``n_jobs``.
    """
    labels = np.sort(labels).astype(np.int32)
    rows = csr_parts(vectors)
    everything = _without_empty(rows, labels)
    roots: list[list[Any]] = [[] for _ in seeds]
    level = [_Growing(tree, 0, 0, labels, root) for tree, root in enumerate(roots)]

    def how(node: _Growing) -> Split | None:
        if node.labels.size <= max_leaf:
            return None
        return split if node.depth < max_depth else split_on

    def split_node(node: _Growing) -> np.ndarray | Clusters:
        if node.depth == 0 and everything is not None:
            own = pack_rows(everything, vectors.shape[1])
        else:
            own = pack_rows(rows, vectors.shape[1], node.labels)
        rng = np.random.default_rng([seeds[node.tree], node.depth, node.number])
        found = cast("Split", how(node))(own, rng)
        return found._replace(features=own.features[found.features]) if isinstance(found, Clusters) else found

    def assign(nodes: list[_Growing], clusters: list[Clusters]) -> Iterator[np.ndarray]:
        """The cluster of each label of each node, found in pieces."""
        counts = [-(-node.labels.size // _LABELS_A_PIECE) for node in nodes]
        pieces = [_Piece(number, first, of) for number, of in enumerate(counts) for first in range(of)]

        def assign_piece(piece: _Piece) -> np.ndarray:
            labels = nodes[piece.node].labels[piece.first :: piece.of]
            return assign_labels(csr_parts(vectors[labels]), clusters[piece.node], vectors.shape[1])

        found = iter(map_shards(assign_piece, pieces, n_jobs=n_jobs))
        for node, of in zip(nodes, counts, strict=True):
            whole = np.empty(node.labels.size, np.int32)
            for first in range(of):
                whole[first::of] = next(found)
            yield whole

    while level:
        below: list[_Growing] = []
        nodes = [node for node in level if how(node) is not None]
        split_up = map_shards(split_node, nodes, n_jobs=n_jobs, weight=lambda node: node.labels.size) if nodes else []
        large = [number for number, found in enumerate(split_up) if isinstance(found, Clusters)]
        if large:
            for number, found in zip(
                large, assign([nodes[n] for n in large], [split_up[n] for n in large]), strict=True
            ):
                split_up[number] = found
        assignments = iter(split_up)
        for node in level:
            parts = [node.labels] if how(node) is None else _parts(node.labels, next(assignments))
            if len(parts) == 1:
                node.children.extend(_bounded(parts[0]))
                continue
            for part in parts:
                if part.size == 1:
                    node.children.append(int(part[0]))
                    continue
                children: list[Any] = []
                node.children.append(children)
                below.append(_Growing(node.tree, node.depth + 1, len(below), part, children))
        level = below
    return [tree_from_nested(root) for root in roots]


def _parts(labels: np.ndarray, assignment: np.ndarray) -> list[np.ndarray]:
    """The labels of each cluster that has any."""
    sizes = np.bincount(assignment)
    parts = np.split(labels[np.argsort(assignment, kind="stable")], np.cumsum(sizes)[:-1])
    return [part for part in parts if part.size]


def _without_empty(rows: Csr, labels: np.ndarray) -> Csr | None:
    """The rows of ``labels``, which ascend, uncopied, where all others are empty."""
    indptr = rows.indptr[np.append(labels, rows.indptr.size - 1)]
    lengths = rows.indptr[labels + 1] - indptr[:-1]
    return frozen(Csr(indptr, rows.indices, rows.data)) if lengths.sum() == rows.indices.size else None


def _bounded(labels: np.ndarray) -> list[Any]:
    """The children of a leaf: its labels, under further nodes where one node cannot hold so many."""
    if labels.size <= MAX_CHILDREN:
        return labels.tolist()
    return list(np.array_split(labels, -(-labels.size // MAX_CHILDREN)))
