"""How the weights of label trees are stored: all children of a node together, feature by feature.

A node's *chunk* holds the features that any of its children uses, each with a short run of (child, weight). One look-up
of a row's feature then serves all children (PECOS calls this masked sparse chunk multiplication). Features lie in
buckets of a multiplicative hash; a directory of 2^bits + 1 ends says where each bucket starts, so a look-up reads one
directory entry and about one feature. Weights are 16-bit integers times a scale of the edge: an error of at most
1/65,534 of the edge's largest weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

FULL_SCALE = 32767
_HASH = np.uint64(2654435769)
_WORD = np.uint64(0xFFFFFFFF)


class Chunks(NamedTuple):
    """Every node of every tree of a model; see :class:`tailwise.trees.structure.LabelTree` for the shape."""

    roots: np.ndarray
    """(n_trees,) int32"""
    first_edge: np.ndarray
    """(n_nodes + 1,) int32"""
    target: np.ndarray
    """(n_edges,) int32: a node, or ~label"""
    bias: np.ndarray
    """(n_edges,) float32"""
    scale: np.ndarray
    """(n_edges,) float32"""
    bits: np.ndarray
    """(n_nodes,) uint8"""
    first_bucket: np.ndarray
    """(n_nodes + 1,) int64 into ``directory``"""
    directory: np.ndarray
    """uint32: where each bucket of a node starts among the node's features; 2^bits + 1 a node"""
    first_feature: np.ndarray
    """(n_nodes + 1,) int64 into ``features``"""
    features: np.ndarray
    """int32"""
    runs: np.ndarray
    """uint32: where each feature's run starts among the node's entries; one more than the features a node"""
    first_entry: np.ndarray
    """(n_nodes + 1,) int64 into ``children`` and ``weights``"""
    children: np.ndarray
    """uint16: the edge, counted from the node's first"""
    weights: np.ndarray
    """int16"""


@njit(nogil=True, cache=True, boundscheck=False)
def hash_feature(feature):
    """A feature's 32 hash bits as uint64; its bucket in a node are the upper ``bits`` of them."""
    return (np.uint64(feature) * _HASH) & _WORD


@njit(nogil=True, cache=True, boundscheck=False)
def pack_chunk(indptr, features, values, n_features):
    """One node's chunk from its children's weights, a CSR of one row a child.

    Returns ``(scale, bits, directory, features, runs, children, weights)``.
    """
    n_children = indptr.shape[0] - 1
    scale = np.zeros(n_children, np.float32)
    count = np.zeros(n_features, np.int32)
    for child in range(n_children):
        largest = np.float32(0)
        for a in range(indptr[child], indptr[child + 1]):
            largest = max(largest, abs(values[a]))
            count[features[a]] += 1
        scale[child] = largest / np.float32(FULL_SCALE)
    n_used = 0
    for feature in range(n_features):
        n_used += count[feature] > 0
    bits = 0
    while (2 << bits) < n_used:
        bits += 1
    shift = np.uint64(32 - bits)
    directory = np.zeros((1 << bits) + 1, np.uint32)
    for feature in range(n_features):
        if count[feature] > 0:
            directory[np.int64(hash_feature(feature) >> shift) + 1] += np.uint32(1)
    for bucket in range(1 << bits):
        directory[bucket + 1] += directory[bucket]
    fill = directory.copy()
    used = np.empty(n_used, np.int32)
    for feature in range(n_features):
        if count[feature] > 0:
            bucket = np.int64(hash_feature(feature) >> shift)
            used[fill[bucket]] = feature
            fill[bucket] += np.uint32(1)
    runs = np.zeros(n_used + 1, np.uint32)
    for place in range(n_used):
        runs[place + 1] = runs[place] + np.uint32(count[used[place]])
        count[used[place]] = runs[place]
    children = np.empty(indptr[n_children], np.uint16)
    weights = np.empty(indptr[n_children], np.int16)
    for child in range(n_children):
        inverse = 1 / scale[child] if scale[child] > 0 else np.float32(0)
        for a in range(indptr[child], indptr[child + 1]):
            at = count[features[a]]
            count[features[a]] += 1
            children[at] = child
            weights[at] = np.int16(np.rint(values[a] * inverse))
    return scale, bits, directory, used, runs, children, weights
