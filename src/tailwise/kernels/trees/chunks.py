"""How the weights of label trees are stored: all children of a node together, feature by feature.

A node's *chunk* holds the features that any of its children uses. One look-up of a row's feature then serves all
children (PECOS calls this masked sparse chunk multiplication). Each part is kept in one of two forms, the index in
whichever takes less room, the weights side by side where that takes at most twice the room of runs, for vector
instructions add them in a fraction of the time:

- the index, from a feature to its *place* in the chunk: a bit for every feature of X, with the number of bits set
  before each word, so that a look-up counts bits and never branches; or, for nodes of few features, buckets of a
  multiplicative hash with a directory of 2^bits + 1 starts;
- the weights of a place: one of every child, or a run of (child, weight).

Weights are 16-bit integers times a scale of the edge: an error of at most 1/65,534 of the edge's largest weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from tailwise.kernels.compilation import njit

FULL_SCALE = 32767
BITMAP = 255
"""In place of ``bits``: the index is a bitmap."""

_DENSE_ROOM = 2
"""One of every child may take so many times the room of runs."""
_HASH = np.uint64(2654435769)
_WORD = np.uint64(0xFFFFFFFF)


class Chunks(NamedTuple):
    """Every node of every tree of a model; :class:`tailwise.trees.structure.LabelTree` explains the shape.

    ``first_…[v] : first_…[v + 1]`` is what belongs to node v.
    """

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
    first_word: np.ndarray
    """(n_nodes + 1,) int64 into ``words`` and ``ranks``"""
    words: np.ndarray
    """uint64: bit f % 64 of a bitmap node's word f // 64 tells whether feature f has a place"""
    ranks: np.ndarray
    """uint32: how many places come before each word"""
    first_bucket: np.ndarray
    """(n_nodes + 1,) int64 into ``directory``"""
    directory: np.ndarray
    """uint32: where each bucket of a hashed node starts among its features"""
    first_feature: np.ndarray
    """(n_nodes + 1,) int64 into ``features``"""
    features: np.ndarray
    """int32: the feature of each place of a hashed node"""
    first_run: np.ndarray
    """(n_nodes + 1,) int64 into ``runs``"""
    runs: np.ndarray
    """uint32: where each place's run starts, and where the last ends; nothing where each place has every child"""
    first_child: np.ndarray
    """(n_nodes + 1,) int64 into ``children``"""
    children: np.ndarray
    """uint16: the edges of a run, counted from the node's first"""
    first_weight: np.ndarray
    """(n_nodes + 1,) int64 into ``weights``"""
    weights: np.ndarray
    """int16"""


class Chunk(NamedTuple):
    """What :class:`Chunks` has of one node: the same names and types."""

    scale: np.ndarray
    bits: int
    words: np.ndarray
    ranks: np.ndarray
    directory: np.ndarray
    features: np.ndarray
    runs: np.ndarray
    children: np.ndarray
    weights: np.ndarray


@intrinsic
def count_bits(typing_context, word):
    """How many bits of a uint64 are set, as uint64."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@njit(nogil=True, cache=True, boundscheck=False)
def hash_feature(feature):
    """A feature's 32 hash bits as uint64; its bucket in a node are the upper ``bits`` of them. Writes nothing."""
    return (np.uint64(feature) * _HASH) & _WORD


@njit(nogil=True, cache=True, boundscheck=False)
def pack_chunk(solved, scratch):
    """One node's :class:`Chunk` from the :class:`Weights` of its children, which may be read-only.

    The arrays are the chunk's own. ``scratch`` (2, n_features) int64 is written; it is zero before and after, so that
    it serves many nodes in time O(weights), and O(n_features / 64) for those that have a bitmap.
    """
    n_children = solved.indptr.shape[0] - 1
    scale = np.zeros(n_children, np.float32)
    count, at = scratch[0], scratch[1]
    touched = np.empty(min(solved.indptr[n_children], count.shape[0]), np.int32)
    n_places = 0
    for child in range(n_children):
        largest = np.float32(0)
        for a in range(solved.indptr[child], solved.indptr[child + 1]):
            largest = max(largest, abs(solved.values[a]))
            feature = np.uint64(solved.features[a])
            if count[feature] == 0:
                touched[n_places] = feature
                n_places += 1
            count[feature] += 1
        scale[child] = largest / np.float32(FULL_SCALE)
    bits, words, ranks, directory, own_features = _index(touched[:n_places], count.shape[0])
    dense = 2 * n_places * n_children <= _DENSE_ROOM * (4 * solved.indptr[n_children] + 4 * (n_places + 1))
    runs = np.zeros(0 if dense else n_places + 1, np.uint32)
    children = np.empty(0 if dense else solved.indptr[n_children], np.uint16)
    weights = np.zeros(n_places * n_children if dense else solved.indptr[n_children], np.int16)
    for place in range(n_places):
        feature = np.uint64(own_features[place])
        if dense:
            at[feature] = place * n_children
        else:
            at[feature] = runs[place]
            runs[place + 1] = runs[place] + np.uint32(count[feature])
    for child in range(n_children):
        inverse = 1 / scale[child] if scale[child] > 0 else np.float32(0)
        for a in range(solved.indptr[child], solved.indptr[child + 1]):
            feature = np.uint64(solved.features[a])
            weight = np.int16(np.rint(solved.values[a] * inverse))
            if dense:
                weights[at[feature] + child] = weight
            else:
                weights[at[feature]] = weight
                children[at[feature]] = child
                at[feature] += 1
    for place in range(n_places):
        count[own_features[place]] = at[own_features[place]] = 0
    features_kept = own_features[: 0 if bits == BITMAP else n_places]
    return Chunk(scale, bits, words, ranks, directory, features_kept, runs, children, weights)


@njit(nogil=True, cache=True, boundscheck=False)
def _index(used, n_features):
    """``(bits, words, ranks, directory, features by place)`` of the ``used`` features, which come in any order."""
    n_used = used.shape[0]
    bits = 0
    while (2 << bits) < n_used:
        bits += 1
    by_place = np.empty(n_used, np.int32)
    n_words = (n_features + 63) // 64
    one = np.uint64(1)
    if 12 * n_words <= 4 * (n_used + (1 << bits) + 1):
        words = np.zeros(n_words, np.uint64)
        ranks = np.zeros(n_words, np.uint32)
        for feature in used:
            words[feature // 64] |= one << np.uint64(feature % 64)
        place = 0
        for word in range(n_words):
            ranks[word] = place
            for bit in range(64 if words[word] else 0):
                if words[word] >> np.uint64(bit) & one:
                    by_place[place] = 64 * word + bit
                    place += 1
        return BITMAP, words, ranks, np.zeros(0, np.uint32), by_place
    shift = np.uint64(32 - bits)
    directory = np.zeros((1 << bits) + 1, np.uint32)
    for feature in used:
        directory[np.int64(hash_feature(feature) >> shift) + 1] += np.uint32(1)
    for bucket in range(1 << bits):
        directory[bucket + 1] += directory[bucket]
    fill = directory.copy()
    for feature in used:
        bucket = np.int64(hash_feature(feature) >> shift)
        by_place[fill[bucket]] = feature
        fill[bucket] += np.uint32(1)
    return bits, np.zeros(0, np.uint64), np.zeros(0, np.uint32), directory, by_place
