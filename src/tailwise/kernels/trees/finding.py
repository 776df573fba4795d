"""Finding a row's features among those of a node: where in the node's chunk their weights begin.

What is found is a uint64: the place, or where its weights begin, + 2³² × the feature's number in the row.
"""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import prefetch
from tailwise.kernels.bits import count_bits
from tailwise.kernels.compilation import njit
from tailwise.kernels.trees.chunks import hash_feature
from tailwise.kernels.trees.layout import BITMAP, NARROW

LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(0xFFFFFFFF << 32)
_FEW = np.uint64(1 << 31)


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def find_in_node(bits, words, ranks, directory, features, runs, weights, n_children, x_indices, found, full):
    """How many of the row's features have a full place in the node, and how many another one.

    Where the weights of the first begin goes to ``full``, the places of the others to ``found``, in the order of the
    row's features; both have room for all of these. The node's arrays are as :class:`Chunk` has them.
    """
    if bits == BITMAP:
        n = _find_in_bitmap(words, ranks, x_indices, found)
    else:
        n = _find_hashed(directory, features, bits, x_indices, found)
    one, width = np.uint64(1), np.uint64(n_children)
    if runs.shape[0] == 0:
        for j in range(n):
            first = (found[j] & LOW) * width
            full[j] = first | found[j] & _HIGH
            prefetch(weights, first)
        return np.int64(n), 0
    for j in range(n):
        prefetch(runs, found[j] & LOW)
    n_full = n_few = np.uint64(0)
    for j in range(n):
        pair = found[j]
        first, last = np.uint64(runs[pair & LOW]), np.uint64(runs[(pair & LOW) + one])
        prefetch(weights, first)
        is_full = np.uint64(last - first == width)
        full[n_full], found[n_few] = first | pair & _HIGH, pair
        n_full += is_full
        n_few += one - is_full
    return np.int64(n_full), np.int64(n_few)


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _find_in_bitmap(words, ranks, x_indices, found):
    """How many of the row's features the node has; their places go to ``found``."""
    one, six, n = np.uint64(1), np.uint64(6), np.uint64(0)
    for j in range(np.uint64(x_indices.shape[0])):
        feature = np.uint64(x_indices[j])
        word, bit = words[feature >> six], feature & np.uint64(63)
        place = ranks[feature >> six] + count_bits(word & ((one << bit) - one))
        found[n] = place | j << np.uint64(32)
        n += (word >> bit) & one
    return n


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _find_hashed(directory, features, bits, x_indices, found):
    """The same through a node's buckets."""
    one, half, shift = np.uint64(1), np.uint64(32), np.uint64(32 - bits)
    n_features = np.uint64(x_indices.shape[0])
    for j in range(n_features):
        bucket = hash_feature(x_indices[j]) >> shift
        first = np.uint64(directory[bucket])
        found[j] = first | np.uint64(directory[bucket + one]) << half
        prefetch(features, first)
    n = np.uint64(0)
    for j in range(n_features):
        feature = x_indices[j]
        place, last = found[j] & LOW, found[j] >> half
        while place < last and features[place] != feature:
            place += one
        found[n] = place | j << half
        n += np.uint64(place < last)
    return n


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def find_in_table(table, x_indices, full, few):
    """As :func:`find_in_node` by the table of :func:`spread_node`; ``few`` has where places begin in the tile."""
    n_full = n_few = np.uint64(0)
    for j in range(np.uint64(x_indices.shape[0])):
        entry = np.uint64(table[np.uint64(x_indices[j])])
        is_few = entry >> np.uint64(31)
        full[n_full] = few[n_few] = ((entry & ~_FEW) - np.uint64(1)) | j << np.uint64(32)
        n_full += np.uint64(entry > 0) - is_few
        n_few += is_few
    return np.int64(n_full), np.int64(n_few)


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def spread_node(words, features, runs, weights, n_children, listed, table, tile):
    """Write where each feature's weights begin to ``table``, and to ``tile`` those of places that are not full.

    ``table`` (n_features,) uint32 has where a place begins, counted from 1, or 0; 2³¹ is added to those of the tile,
    which has the weights of all children side by side. ``listed`` (n_places,) int32 becomes the feature of each place.
    """
    one, width, size = np.uint64(1), np.uint64(n_children), np.uint64(2 + (n_children > NARROW))
    _list_features(words, features, listed)
    n_spread = np.uint64(0)
    for place in range(np.uint64(listed.shape[0])):
        feature = np.uint64(listed[place])
        first, last = place * width, (place + one) * width
        if runs.shape[0] > 0:
            first, last = np.uint64(runs[place]), np.uint64(runs[place + one])
        if last - first == width:
            table[feature] = first + one
            continue
        table[feature] = n_spread + one | _FEW
        for a in range(n_spread, n_spread + width):
            tile[a] = 0
        while first < last:
            tile[n_spread + child_of(weights, first, n_children)] = weights[first]
            first += size
        n_spread += width


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _list_features(words, features, listed):
    """The feature of each place, from a bitmap or as ``features`` have it."""
    for place in range(features.shape[0]):
        listed[place] = features[place]
    one, n = np.uint64(1), np.uint64(0)
    for at in range(np.uint64(words.shape[0])):
        word = words[at]
        while word:
            listed[n] = np.uint64(64) * at + count_bits((word - one) & ~word)
            word &= word - one
            n += one


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def child_of(weights, entry, n_children):
    """The child (uint64) of a place's entry at ``entry`` (uint64) of a node of ``n_children``."""
    child = np.uint64(np.uint8(weights[entry + np.uint64(1)]))
    if n_children > NARROW:
        child |= np.uint64(np.uint8(weights[entry + np.uint64(2)])) << np.uint64(8)
    return child
