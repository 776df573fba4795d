"""Label trees after an update: where new labels hang, and which classifiers stay."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.solvers.problems import Start, Weights
from tailwise.kernels.trees.chunks import Chunks
from tailwise.scoring import predict_topk_linear
from tailwise.trees.explaining import unpack_node
from tailwise.trees.representation import represent_labels
from tailwise.trees.structure import LabelTree, prune, tree_from_nested


class OldEdges(NamedTuple):
    """The classifiers that the edges of a tree had before an update."""

    weights: sparse.csr_array
    """(n_edges, n_features) float32"""
    bias: np.ndarray
    """(n_edges,) float32; -inf for edges that begin anew"""
    again: np.ndarray
    """(n_edges,) bool: edges to solve again; the others stay as they are"""
    n_known: np.ndarray
    """(n_edges,) int64: how many rows there were when each was solved"""
    costs: np.ndarray
    """(n_edges,) float32: what positives cost then, as a share of what they cost now"""

    @property
    def resumed(self) -> np.ndarray:
        """(n_edges,) bool: edges to solve again from what they had."""
        return self.again & ~np.isneginf(self.bias)

    def kept(self, edges: np.ndarray) -> Weights:
        """What ``edges`` have had."""
        own = self._own(edges)
        return Weights(own.indptr.astype(np.int64), own.indices.astype(np.int32), own.data, self.bias[edges])

    def start(self, edges: np.ndarray, rows: np.ndarray) -> Start:
        """The same to begin from, over the rows numbered by ``rows``, ascending."""
        own = self._own(edges)
        n_known = np.searchsorted(rows, self.n_known[edges])
        return Start(own.indptr, own.indices, own.data, self.bias[edges], n_known, self.costs[edges])

    def _own(self, edges: np.ndarray) -> sparse.csr_array:
        own = sparse.csr_array(self.weights[edges])
        own.sort_indices()
        return own


class Standing(NamedTuple):
    """What an update leaves of the labels: (n_labels,) arrays."""

    again: np.ndarray
    """bool: labels to solve again"""
    anew: np.ndarray
    """bool: those of them whose old classifier is no start, because known rows have other labels now"""
    solved: np.ndarray
    """int64: how many rows there were when each was solved"""
    costs: np.ndarray
    """what their rows cost then, as a share of what they cost now"""


def read_edges(
    chunks: Chunks, number: int, tree: LabelTree, labels: Standing, n_known: int, n_features: int
) -> OldEdges:
    """The classifiers of tree ``number``, in the places of the edges of ``tree``, which is that tree regrown.

    Edges to labels go by the label. Edges between nodes are all solved again: from what they had, if the nodes are the
    same and no label below begins anew.
    """
    first, last = np.append(chunks.roots, chunks.bits.size)[number : number + 2]
    place_of = np.full(labels.again.size, -1, np.int64)
    at_label = tree.target < 0
    place_of[~tree.target[at_label]] = np.flatnonzero(at_label)
    bias = np.full(tree.target.size, -np.inf, np.float32)
    places, parts = [np.empty(0, np.int64)], []
    for node in range(first, last):
        own = slice(*chunks.first_edge[node : node + 2])
        old = chunks.target[own]
        place = np.where(old < 0, place_of[np.where(old < 0, ~old, 0)], -1)
        if last - first == tree.n_nodes:
            edges = np.arange(*tree.edges(node - first))
            inner = edges[tree.target[edges] >= 0]
            if np.array_equal(tree.target[inner], old[old >= 0] - first):
                place[old >= 0] = inner
        here = np.flatnonzero(place >= 0)
        places.append(place[here])
        bias[place[here]] = chunks.bias[own][here]
        parts.append(unpack_node(chunks, node, n_features)[here])
    found = np.concatenate(places)
    gather = sparse.csr_array(
        (np.ones(found.size, np.float32), (found, np.arange(found.size))), shape=(bias.size, found.size)
    )
    stacked = sparse.vstack(parts, format="csr") if parts else sparse.csr_array((0, n_features), dtype=np.float32)
    below = np.concatenate([[0], np.cumsum(labels.anew[tree.order])])
    known = np.full(bias.size, n_known, np.int64)
    known[at_label] = labels.solved[~tree.target[at_label]]
    costs = np.ones(bias.size, np.float32)
    costs[at_label] = labels.costs[~tree.target[at_label]]
    again = ~at_label | np.isneginf(bias)
    again[at_label] |= labels.again[~tree.target[at_label]]
    bias[below[tree.stop] > below[tree.start]] = -np.inf
    return OldEdges(sparse.csr_array(gather @ stacked, dtype=np.float32), bias, again, known, costs)


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
