"""Label trees after an update: where new labels hang, and which classifiers stay."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.kernels.solvers.problems import Weights
from tailwise.kernels.trees.chunks import Chunks
from tailwise.trees.explaining import unpack_node
from tailwise.trees.structure import LabelTree, prune, tree_from_nested


class Leaves(NamedTuple):
    """The classifiers of one tree's labels, and which of them to keep."""

    weights: sparse.csr_array
    """(n_labels, n_features) float32"""
    bias: np.ndarray
    """(n_labels,) float32"""
    again: np.ndarray
    """(n_labels,) bool: labels to solve again; the others stay as they are"""

    def kept(self, labels: np.ndarray) -> Weights:
        """What ``labels`` have had."""
        own = sparse.csr_array(self.weights[labels])
        own.sort_indices()
        return Weights(own.indptr.astype(np.int64), own.indices.astype(np.int32), own.data, self.bias[labels])


def read_leaves(chunks: Chunks, tree: int, again: np.ndarray, n_features: int) -> Leaves:
    """The classifiers of labels in ``tree``; labels that it does not hold have nothing, and are to be solved."""
    ends = np.append(chunks.roots, chunks.bits.size)
    labels, parts = [np.empty(0, np.int64)], []
    bias, again = np.zeros(again.size, np.float32), again.copy()
    missing = np.ones(again.size, bool)
    for node in range(ends[tree], ends[tree + 1]):
        own = slice(*chunks.first_edge[node : node + 2])
        at_label = np.flatnonzero(chunks.target[own] < 0)
        if at_label.size:
            labels.append((~chunks.target[own][at_label]).astype(np.int64))
            bias[labels[-1]] = chunks.bias[own][at_label]
            parts.append(unpack_node(chunks, node, n_features)[at_label])
    found = np.concatenate(labels)
    missing[found] = False
    place = (np.ones(found.size, np.float32), (found, np.arange(found.size)))
    gather = sparse.csr_array(place, shape=(again.size, found.size))
    stacked = sparse.vstack(parts, format="csr") if parts else sparse.csr_array((0, n_features), dtype=np.float32)
    return Leaves(sparse.csr_array(gather @ stacked, dtype=np.float32), bias, again | missing)


def regrow(chunks: Chunks, tree: int, top: TopK, rows_of: sparse.csr_array, counts: np.ndarray) -> LabelTree:
    """The shape of ``tree`` with the labels that have rows now: gone ones are left out, new ones hang where theirs end.

    ``rows_of`` (n_labels, n) says which rows each label has that the tree does not hold, and ``top`` holds the label
    that the tree finds for each of these rows: a new label goes to the node where most of its rows end.
    """
    ends = np.append(chunks.roots, chunks.bits.size)
    nodes: dict[int, list[Any]] = {node: [] for node in range(ends[tree], ends[tree + 1])}
    home = np.full(counts.size, ends[tree], np.int64)
    for node, items in nodes.items():
        for target in chunks.target[slice(*chunks.first_edge[node : node + 2])].tolist():
            items.append(nodes[target] if target >= 0 else ~target)
            if target < 0:
                home[~target] = node
    for label in np.flatnonzero(np.diff(rows_of.indptr)).tolist():
        found = top.labels[rows_of.indices[slice(*rows_of.indptr[label : label + 2])], 0]
        ending = home[found[found >= 0]]
        nodes[int(np.bincount(ending).argmax()) if ending.size else int(ends[tree])].append(label)
    return tree_from_nested(prune(nodes[int(ends[tree])], counts))


def held_labels(chunks: Chunks, tree: int, n_labels: int) -> np.ndarray:
    """Which labels ``tree`` holds: (n_labels,) bool."""
    ends = np.append(chunks.roots, chunks.bits.size)
    target = chunks.target[chunks.first_edge[ends[tree]] : chunks.first_edge[ends[tree + 1]]]
    held = np.zeros(n_labels, bool)
    held[~target[target < 0]] = True
    return held
