"""Label trees after an update: where new labels hang, and which classifiers stay."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.solvers.problems import Weights
from tailwise.kernels.trees.chunks import Chunks
from tailwise.scoring import predict_topk_linear
from tailwise.trees.explaining import unpack_node
from tailwise.trees.representation import represent_labels
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


def regrow(chunks: Chunks, tree: int, beside: dict[int, int], counts: np.ndarray) -> LabelTree:
    """The shape of ``tree`` with the labels that have rows now: gone ones are left out, new ones hang with a neighbour.

    ``beside`` says for each new label which one that the tree holds is most like it, -1 for none: then it hangs at the
    root.
    """
    ends = np.append(chunks.roots, chunks.bits.size)
    nodes: dict[int, list[Any]] = {node: [] for node in range(ends[tree], ends[tree + 1])}
    home = {-1: int(ends[tree])}
    for node, items in nodes.items():
        for target in chunks.target[slice(*chunks.first_edge[node : node + 2])].tolist():
            items.append(nodes[target] if target >= 0 else ~target)
            if target < 0:
                home[~target] = node
    for label, neighbour in beside.items():
        nodes[home[neighbour]].append(label)
    return tree_from_nested(prune(nodes[int(ends[tree])], counts))


def neighbours(X: sparse.csr_array, Y: sparse.csr_array, held: np.ndarray, n_jobs: int | None) -> dict[int, int]:
    """For each label with rows that is not ``held`` the held one whose mean row has the largest cosine to its own."""
    new = np.flatnonzero(~held & (np.bincount(Y.indices, minlength=held.size) > 0))
    if not new.size:
        return {}
    means = represent_labels(X, Y, "input", n_jobs=n_jobs)
    bias = np.where(held, 0.0, -np.inf).astype(np.float32)
    top = predict_topk_linear(sparse.csr_array(means[new]), sparse.csr_array(means.T.tocsr()), bias, 1, n_jobs=n_jobs)
    return dict(zip(new.tolist(), top.labels[:, 0].tolist(), strict=True))


def held_labels(chunks: Chunks, tree: int, n_labels: int) -> np.ndarray:
    """Which labels ``tree`` holds: (n_labels,) bool."""
    ends = np.append(chunks.roots, chunks.bits.size)
    target = chunks.target[chunks.first_edge[ends[tree]] : chunks.first_edge[ends[tree + 1]]]
    held = np.zeros(n_labels, bool)
    held[~target[target < 0]] = True
    return held
