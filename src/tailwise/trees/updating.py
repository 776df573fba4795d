"""Label trees after an update: where new labels hang, and which classifiers stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.arrays import frozen, read_only
from tailwise.kernels.solvers.problems import Weights
from tailwise.kernels.trees.chunks import Chunks
from tailwise.kernels.trees.unpacking import unpack_edges
from tailwise.scoring import predict_topk_linear
from tailwise.trees.explaining import unpack_children
from tailwise.trees.packing import Change, Trained, end_to_end, repack
from tailwise.trees.representation import LabelVectors
from tailwise.trees.structure import LabelTree, prune, tree_from_edges, tree_from_nested

_KEEP = 64
"""Entries of a label's mean row that are compared: on EURLex-4K and English library records the cosine of what is found
is 0.2 and 0.6 % below that of the nearest, and the comparison costs a tenth and a quarter of what 512 do."""
_ROWS = 16
"""Of a label, at most, that its mean row is made of: for 90 and 96 % of new labels all rows find the same one there."""


class Kept(NamedTuple):
    """The classifiers of a tree before an update, and which of them stay as they are."""

    chunks: Chunks
    before: np.ndarray
    """(n_edges,) int64: what :func:`edges_before` says"""
    stays: np.ndarray
    """(n_edges,) bool: edges that stay as they are; the others are solved"""

    def weights(self, edges: np.ndarray) -> Iterator[tuple[np.ndarray, Weights]]:
        """What ``edges`` have had, those of one node after the other."""
        chunks, old = self.chunks, self.before[edges]
        node_of = np.searchsorted(chunks.first_edge, old, side="right") - 1
        for node in np.unique(node_of).tolist():
            place = np.flatnonzero(node_of == node)
            children = old[place] - chunks.first_edge[node]
            yield edges[place], Weights(*unpack_children(chunks, node, children), chunks.bias[old[place]])

    def began(self, edges: np.ndarray, bias: float) -> Weights:
        """What ``edges`` have had, in their order, and nothing but a ``bias`` for new ones."""
        old = self.before[edges]
        biases = np.where(old >= 0, self.chunks.bias[old], np.float32(bias))
        indptr, features, values = unpack_edges(self.chunks, read_only(old))
        return Weights(indptr, features, values, biases)

    def repacked(self, tree: LabelTree, nodes: np.ndarray, solved: list[Trained], n_features: int) -> Chunks | None:
        """The chunks of ``nodes``, neighbours in ``tree`` without nodes below, of which ``solved`` has what is new.

        None where what stays in one of them was in several nodes.
        """
        chunks, first_edge = self.chunks, tree.first_edge[nodes[0] : nodes[-1] + 2].astype(np.int64)
        first, last = int(first_edge[0]), int(first_edge[-1])
        node_of = np.repeat(np.arange(nodes.size), np.diff(first_edge))
        child, stays = np.arange(first, last) - first_edge[node_of], self.stays[first:last]
        old, home = self.before[first:last][stays], node_of[stays]
        place = np.searchsorted(chunks.first_edge, old, side="right") - 1
        was = np.zeros(nodes.size, np.int64)
        was[home] = place
        if (was[home] != place).any():
            return None
        begins = chunks.first_edge[was].astype(np.int64)
        first_number = np.append(0, np.cumsum(chunks.first_edge[was + 1] - begins))
        number = np.full(first_number[-1], -1, np.int64)
        number[first_number[home] + old - begins[home]] = child[stays]
        edges, weights = end_to_end(solved)
        bias = np.empty(last - first, np.float32)
        bias[stays], bias[edges - first] = chunks.bias[old], weights.bias
        first_solved = np.append(0, np.cumsum(np.bincount(node_of[edges - first], minlength=nodes.size)))
        change = Change(chunks, was, first_number, number, first_solved, frozen(weights), child[edges - first])
        return repack(change, tree.target[first:last], bias, n_features)


def edges_before(home: np.ndarray, chunks: Chunks, tree: int, new: LabelTree) -> np.ndarray:
    """For each edge of ``new``, which ``tree`` has become, the edge of ``chunks`` that it was, -1 for none: int64.

    ``home`` is what :func:`homes_of_labels` says. Edges between nodes are known again where no node has gone.
    """
    root, first, last = bounds(chunks, tree)
    target = chunks.target[first:last]
    before = np.full(new.target.size, -1, np.int64)
    before[new.target < 0] = home[~new.target[new.target < 0]]
    was, now = np.flatnonzero(target >= 0), np.flatnonzero(new.target >= 0)
    if np.array_equal(target[was] - root, new.target[now]):
        before[now] = first + was
    return before


def homes_of_labels(chunks: Chunks, tree: int, n_labels: int) -> np.ndarray:
    """The edge of ``chunks`` at which each label hangs in ``tree``, -1 for none: (n_labels,) int64."""
    _, first, last = bounds(chunks, tree)
    target = chunks.target[first:last]
    home = np.full(n_labels, -1, np.int64)
    home[~target[target < 0]] = first + np.flatnonzero(target < 0)
    return home


def bounds(chunks: Chunks, tree: int) -> tuple[int, int, int]:
    """The root of ``tree``, its first edge, and the first one after it."""
    ends = np.append(chunks.roots, chunks.bits.size)[tree : tree + 2]
    first, last = chunks.first_edge[ends]
    return int(ends[0]), int(first), int(last)


def regrow(chunks: Chunks, tree: int, beside: dict[int, int], counts: np.ndarray) -> LabelTree:
    """The shape of ``tree`` with the labels that have rows now: gone ones are left out, new ones hang with a neighbour.

    ``beside`` says for each new label which one that the tree holds is most like it, -1 for none: then it hangs at the
    root.
    """
    root, first, last = bounds(chunks, tree)
    target = chunks.target[first:last]
    if target.size and counts[~target[target < 0]].all():
        return _with_labels(chunks, tree, beside)
    ends = np.append(chunks.roots, chunks.bits.size)
    nodes: dict[int, list[Any]] = {node: [] for node in range(root, ends[tree + 1])}
    home = {-1: root}
    for node, items in nodes.items():
        for below in chunks.target[slice(*chunks.first_edge[node : node + 2])].tolist():
            items.append(nodes[below] if below >= 0 else ~below)
            if below < 0:
                home[~below] = node
    for label, neighbour in beside.items():
        nodes[home[neighbour]].append(label)
    return tree_from_nested(prune(nodes[root], counts))


def _with_labels(chunks: Chunks, tree: int, beside: dict[int, int]) -> LabelTree:
    """As :func:`regrow` where no label is left out: all nodes stay."""
    root, first, last = bounds(chunks, tree)
    end = np.append(chunks.roots, chunks.bits.size)[tree + 1]
    first_edge = chunks.first_edge[root : end + 1] - first
    target = chunks.target[first:last]
    node_of = np.repeat(np.arange(first_edge.size - 1), np.diff(first_edge))
    home = np.zeros(max([-1, *beside, *beside.values(), *(~target[target < 0])]) + 2, np.int64)
    home[~target[target < 0]] = node_of[target < 0]
    labels, node = np.array([*beside], np.int64), home[np.array([*beside.values()], np.int64)]
    target = np.insert(np.where(target >= 0, target - root, target), first_edge[node + 1], ~labels)
    first_edge = first_edge + np.append(0, np.cumsum(np.bincount(node, minlength=first_edge.size - 1)))
    return tree_from_edges(first_edge.astype(np.int32), target.astype(np.int32))


def neighbours(X: sparse.csr_array, Y: sparse.csr_array, held: np.ndarray, n_jobs: int | None) -> dict[int, int]:
    """For each label with rows that is not ``held`` the held one whose mean row has the largest cosine to its own."""
    new = np.flatnonzero(~held & (np.bincount(Y.indices, minlength=held.size) > 0))
    if not new.size:
        return {}
    means = LabelVectors(X, _some_rows(Y), "input", keep=_KEEP, n_jobs=n_jobs).of_all()
    bias = np.where(held, 0.0, -np.inf).astype(np.float32)
    top = predict_topk_linear(sparse.csr_array(means[new]), sparse.csr_array(means.T.tocsr()), bias, 1, n_jobs=n_jobs)
    return dict(zip(new.tolist(), top.labels[:, 0].tolist(), strict=True))


def _some_rows(Y: sparse.csr_array) -> sparse.csc_array:
    """Y with ``_ROWS`` rows of each label at most, evenly spread."""
    carried = sparse.csr_array(Y.T)
    counts = np.diff(carried.indptr)
    place = np.arange(carried.nnz) - np.repeat(carried.indptr[:-1], counts)
    stays = place % np.repeat(-(-counts // _ROWS), counts) == 0
    indptr = np.append(0, np.cumsum(stays))[carried.indptr]
    return sparse.csr_array((carried.data[stays], carried.indices[stays], indptr), shape=carried.shape).T
