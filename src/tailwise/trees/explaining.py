"""Reading packed trees back: the weights of a node's edges, and the path of edges that leads to a label."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.kernels.arrays import read_only
from tailwise.kernels.trees.layout import BITMAP, Chunks
from tailwise.kernels.trees.unpacking import unpack_chunk


def unpack_node(chunks: Chunks, node: int, n_features: int) -> sparse.csr_array:
    """The weights of the edges below ``node``: CSR (n_edges, n_features) float32."""
    n_edges = int(chunks.first_edge[node + 1] - chunks.first_edge[node])
    indptr, features, values = unpack_children(chunks, node, np.arange(n_edges))
    weights = sparse.csr_array((values, features, indptr), shape=(n_edges, n_features))
    weights.sort_indices()
    return weights


def unpack_children(chunks: Chunks, node: int, children: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weights of some of the edges below ``node``: indptr, features and values."""
    own = slice(*chunks.first_edge[node : node + 2])
    runs, weights = (
        getattr(chunks, name)[slice(*getattr(chunks, first)[node : node + 2])]
        for name, first in (("runs", "first_run"), ("weights", "first_weight"))
    )
    features = features_by_place(chunks, node).astype(np.int32, copy=False)
    parts = (read_only(part) for part in (chunks.scale[own], features, runs, weights))
    return unpack_chunk(*parts, np.asarray(children, np.int64))


def features_by_place(chunks: Any, node: int) -> np.ndarray:
    """The feature of each place of ``node``; ``chunks`` may be older ones."""
    if chunks.bits[node] != BITMAP:
        return chunks.features[slice(*chunks.first_feature[node : node + 2])]
    words = chunks.words[slice(*chunks.first_word[node : node + 2])]
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(words, "<u8").view(np.uint8), bitorder="little"))


def unpack_labels(chunks: Chunks, n_labels: int, n_features: int) -> sparse.csr_array:
    """The weights of the edges that end in labels, the mean over the trees: CSR (n_labels, n_features) float32."""
    labels, parts = [], []
    for node in range(chunks.bits.size):
        target = chunks.target[slice(*chunks.first_edge[node : node + 2])]
        at_label = np.flatnonzero(target < 0)
        if at_label.size:
            labels.append(~target[at_label])
            parts.append(unpack_node(chunks, node, n_features)[at_label])
    if not parts:
        return sparse.csr_array((n_labels, n_features), dtype=np.float32)
    stacked = sparse.csr_array(sparse.vstack(parts, format="csr"))
    own = np.concatenate(labels)
    share = np.full(own.size, 1 / chunks.roots.size, np.float32)
    gather = sparse.csr_array((share, (own, np.arange(own.size))), shape=(n_labels, own.size))
    return sparse.csr_array(gather @ stacked)


def path_to(chunks: Chunks, tree: int, label: int) -> list[tuple[int, int]]:
    """The edges from the root of ``tree`` down to ``label`` as (node, number among its edges); [] if there is none."""
    ends = np.append(chunks.roots, chunks.bits.size)
    node_of_edge = np.repeat(np.arange(chunks.bits.size), np.diff(chunks.first_edge))
    own = (node_of_edge >= ends[tree]) & (node_of_edge < ends[tree + 1])
    path: list[tuple[int, int]] = []
    edges = np.flatnonzero(own & (chunks.target == ~label))
    while edges.size:
        node = int(node_of_edge[edges[0]])
        path.append((node, int(edges[0] - chunks.first_edge[node])))
        edges = np.flatnonzero(own & (chunks.target == node)) if node != ends[tree] else edges[:0]
    return path[::-1]
