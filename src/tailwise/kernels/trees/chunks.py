"""Packing the weights of a node as :mod:`tailwise.kernels.trees.layout` says, and finding features there."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, part, zeros
from tailwise.kernels.bits import count_bits
from tailwise.kernels.compilation import njit
from tailwise.kernels.trees.layout import BITMAP, FULL_FROM, FULL_SCALE, NARROW, PADDING, Chunk, Chunks

__all__ = ["BITMAP", "Chunk", "Chunks", "hash_feature", "pack_chunk"]

_HASH = np.uint64(2654435769)
_WORD = np.uint64(0xFFFFFFFF)
_MOST_BYTES = (1 << 32) - PADDING


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
    scale = empty(n_children, np.float32)
    count, at = scratch[0], scratch[1]
    n_weights = solved.indptr[n_children]
    touched = empty(n_weights if n_weights < count.shape[0] else count.shape[0], np.int32)
    n_places = 0
    for child in range(n_children):
        largest = np.float32(0)
        for a in range(solved.indptr[child], solved.indptr[child + 1]):
            size = abs(solved.values[a])
            if size > largest:
                largest = size
            feature = np.uint64(solved.features[a])
            if count[feature] == 0:
                touched[n_places] = feature
                n_places += 1
            count[feature] += 1
        scale[child] = largest / np.float32(FULL_SCALE)
    bits, words, ranks, directory, own_features = _index(part(touched, 0, n_places), count.shape[0])
    entry = 2 + (n_children > NARROW)
    runs = empty(n_places + 1, np.uint32)
    size = runs[0] = 0
    for place in range(n_places):
        feature = np.uint64(own_features[place])
        at[feature] = size
        size += n_children if count[feature] * FULL_FROM >= n_children else count[feature] * entry
        runs[place + 1] = size
    if size > _MOST_BYTES:
        raise ValueError("the weights of a node take more than 4 GB: give it fewer children")
    weights = zeros(size + PADDING if n_places else 0, np.int8)
    for child in range(n_children):
        inverse = 1 / scale[child] if scale[child] > 0 else np.float32(0)
        for a in range(solved.indptr[child], solved.indptr[child + 1]):
            feature = np.uint64(solved.features[a])
            weight = np.int8(np.rint(solved.values[a] * inverse))
            if count[feature] * FULL_FROM >= n_children:
                weights[at[feature] + child] = weight
            else:
                weights[at[feature]], weights[at[feature] + 1] = weight, child & 255
                if entry > 2:
                    weights[at[feature] + 2] = child >> 8
                at[feature] += entry
    for place in range(n_places):
        count[own_features[place]] = at[own_features[place]] = 0
    features_kept = part(own_features, 0, 0 if bits == BITMAP else n_places)
    runs_kept = part(runs, 0, 0 if size == n_places * n_children else n_places + 1)
    return Chunk(scale, bits, words, ranks, directory, features_kept, runs_kept, weights)


@njit(nogil=True, cache=True, boundscheck=False)
def _index(used, n_features):
    """``(bits, words, ranks, directory, features by place)`` of the ``used`` features, which come in any order."""
    n_used = used.shape[0]
    bits = 0
    while (2 << bits) < n_used:
        bits += 1
    by_place = empty(n_used, np.int32)
    n_words = (n_features + 63) // 64
    one = np.uint64(1)
    if 12 * n_words <= 4 * (n_used + (1 << bits) + 1):
        words, ranks = zeros(n_words, np.uint64), empty(n_words, np.uint32)
        for feature in used:
            words[feature // 64] |= one << np.uint64(feature % 64)
        place = 0
        for word in range(n_words):
            ranks[word] = place
            left = words[word]
            while left:
                by_place[place] = 64 * word + np.int64(count_bits((left - one) & ~left))
                left &= left - one
                place += 1
        return BITMAP, words, ranks, empty(0, np.uint32), by_place
    shift, n_buckets = np.uint64(32 - bits), 1 << bits
    # While features are put in place, ``directory[bucket + 1]`` is where the next one of the bucket goes.
    directory = zeros(n_buckets + 2, np.uint32)
    for feature in used:
        directory[(hash_feature(feature) >> shift) + np.uint64(2)] += one
    for bucket in range(n_buckets):
        directory[bucket + 2] += directory[bucket + 1]
    for feature in used:
        next_one = (hash_feature(feature) >> shift) + one
        by_place[directory[next_one]] = feature
        directory[next_one] += one
    return bits, empty(0, np.uint64), empty(0, np.uint32), part(directory, 0, n_buckets + 1), by_place
