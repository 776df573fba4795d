"""Label trees of folders that have all places of a node in one form, with 16-bit weights: opened, and packed anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.solvers.problems import Weights
from tailwise.kernels.trees import layout
from tailwise.persistence.checks import check_indices
from tailwise.trees.explaining import features_by_place
from tailwise.trees.packing import Trained, join_trees, pack_nodes
from tailwise.trees.structure import LabelTree


class Chunks(NamedTuple):
    """As :class:`tailwise.kernels.trees.layout.Chunks`, but for what is described here."""

    roots: np.ndarray
    first_edge: np.ndarray
    target: np.ndarray
    bias: np.ndarray
    scale: np.ndarray
    bits: np.ndarray
    first_word: np.ndarray
    words: np.ndarray
    ranks: np.ndarray
    first_bucket: np.ndarray
    directory: np.ndarray
    first_feature: np.ndarray
    features: np.ndarray
    first_run: np.ndarray
    runs: np.ndarray
    """uint32: where each place's run starts, and where the last ends; nothing where each place has every child"""
    first_child: np.ndarray
    """(n_nodes + 1,) int64 into ``children``"""
    children: np.ndarray
    """uint16: the edges of a run, counted from the node's first"""
    first_weight: np.ndarray
    weights: np.ndarray
    """int16"""


def repack(old: Chunks, n_features: int) -> layout.Chunks:
    """The same trees as they are packed now; :func:`tailwise.trees.checks.check_chunks` looks at the rest."""

    def nodes() -> Iterator[list[Trained]]:
        for node in range(old.bits.size):
            edges = np.arange(*old.first_edge[node : node + 2])
            own = _unpack_node(old, node, n_features)
            features = own.indices.astype(np.int32)
            yield [(edges, Weights(own.indptr.astype(np.int64), features, own.data, old.bias[edges]))]

    nothing = np.empty(0, np.int64)
    shape = LabelTree(old.first_edge, old.target, nothing, nothing, nothing)
    return join_trees([[pack_nodes(shape, nodes(), n_features)]])._replace(roots=old.roots)


def _unpack_node(old: Chunks, node: int, n_features: int) -> sparse.csr_array:
    """The weights of the edges below ``node``: CSR (n_edges, n_features) float32. Indices out of range raise."""
    first, last = old.first_edge[node : node + 2]
    features = check_indices("features", features_by_place(old, node), n_features)
    runs = old.runs[slice(*old.first_run[node : node + 2])].astype(np.int64)
    values = old.weights[slice(*old.first_weight[node : node + 2])]
    if runs.size:
        child = old.children[slice(*old.first_child[node : node + 2])].astype(np.int64)
        place = np.repeat(np.arange(features.size), np.diff(runs))
    else:
        place, child = np.divmod(np.arange(values.size), max(1, last - first))
    used = np.flatnonzero(values)
    weights = values[used] * old.scale[first:last][child[used]]
    return sparse.csr_array((weights, (child[used], features[place[used]])), shape=(int(last - first), n_features))
