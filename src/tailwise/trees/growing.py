"""Growing label trees: split the labels of a node, then the labels of its children, level by level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.arrays import frozen
from tailwise.kernels.solvers.problems import Rows, pack_rows
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.parallel import map_shards
from tailwise.trees.structure import MAX_CHILDREN, LabelTree, tree_from_nested

Split = Callable[[Rows, np.random.Generator], np.ndarray]


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
    n_jobs: int | None = None,
) -> list[LabelTree]:
    """One tree a seed over ``labels``, whose vectors are rows of ``vectors``.

    A node of more than ``max_leaf`` labels is split unless it lies ``max_depth`` levels below the root; a node that
    does not fall apart (all its vectors are equal) becomes a leaf. Every node draws from its own stream of random
    numbers, so trees do not depend on ``n_jobs``.
    """
    labels = np.sort(labels).astype(np.int32)
    rows = csr_parts(vectors)
    everything = _without_empty(rows, labels)
    roots: list[list[Any]] = [[] for _ in seeds]
    level = [_Growing(tree, 0, 0, labels, root) for tree, root in enumerate(roots)]

    def split_node(node: _Growing) -> list[np.ndarray]:
        if node.labels.size <= max_leaf or node.depth >= max_depth:
            return [node.labels]
        if node.depth == 0 and everything is not None:
            own = pack_rows(everything, vectors.shape[1])
        else:
            own = pack_rows(rows, vectors.shape[1], node.labels)
        rng = np.random.default_rng([seeds[node.tree], node.depth, node.number])
        assignment = split(own, rng)
        sizes = np.bincount(assignment)
        parts = np.split(node.labels[np.argsort(assignment, kind="stable")], np.cumsum(sizes)[:-1])
        return [part for part in parts if part.size]

    while level:
        below: list[_Growing] = []
        split_up = map_shards(split_node, level, n_jobs=n_jobs, weight=lambda node: node.labels.size)
        for node, parts in zip(level, split_up, strict=True):
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
