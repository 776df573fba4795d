"""Scoring the edges of a node, for all rows that a beam has brought to it."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import part, prefetch, prefetch_row
from tailwise.kernels.bits import count_bits
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.lanes import LANES, sum_lanes
from tailwise.kernels.solvers.problems import LOGISTIC
from tailwise.kernels.trees.finding import LOW, child_of, find_in_node, find_in_table, spread_node
from tailwise.kernels.trees.layout import NARROW, PADDING

LARGEST_TILE = 1 << 22
_SPREADING_PAYS = 4
"""Rows whose entries outnumber a node's places so many times find them in a table, which leads to weights of all
children side by side at every place."""
_ZEROS_A_BYTE = 32
"""But not where that would take so many times the room of the weights, or more bytes than ``LARGEST_TILE``."""
_AHEAD = 4
"""A row is asked for so many rows before its turn."""


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def score_node(chunks, loss, X, node, rows, offsets, below, found, full, total, table, tile, listed):
    """Log-probabilities of one node's edges for ``rows`` of X, into ``below`` from ``offsets`` on.

    ``found`` and ``full`` (uint64) have room for all features of a row, ``total`` (float32) for whatever number an
    entry may have for its child. ``tile`` (int8) has room for ``LARGEST_TILE`` and as many bytes as ``total`` has
    numbers, or for nothing: then no table is made. ``table`` (n_features,) uint32 is zero before and after, and
    ``listed`` (n_features,) int32 is room.
    """
    first, last = chunks.first_word[node], chunks.first_word[node + 1]
    words, ranks = part(chunks.words, first, last), part(chunks.ranks, first, last)
    features = part(chunks.features, chunks.first_feature[node], chunks.first_feature[node + 1])
    directory = part(chunks.directory, chunks.first_bucket[node], chunks.first_bucket[node + 1])
    runs = part(chunks.runs, chunks.first_run[node], chunks.first_run[node + 1])
    weights = part(chunks.weights, chunks.first_weight[node], chunks.first_weight[node + 1])
    first_edge, last_edge = chunks.first_edge[node], chunks.first_edge[node + 1]
    n_children = np.int64(last_edge - first_edge)
    scale, bias = part(chunks.scale, first_edge, last_edge), part(chunks.bias, first_edge, last_edge)
    n_places = 0
    if tile.shape[0] > 0:
        n_places = _places_to_spread(words, ranks, features, n_children, weights.shape[0], X.indptr, rows)
    if n_places > 0:
        spread_node(words, features, runs, weights, n_children, part(listed, 0, n_places), table, tile)
    last_row = rows.shape[0] - 1
    for n in range(rows.shape[0]):
        prefetch(X.indptr, np.uint64(rows[min(n + 2 * _AHEAD, last_row)]))
        ahead = np.uint64(rows[min(n + _AHEAD, last_row)])
        prefetch_row(X.indices, X.data, X.indptr[ahead], X.indptr[ahead + np.uint64(1)])
        start, stop = X.indptr[rows[n]], X.indptr[rows[n] + 1]
        indices, data = part(X.indices, start, stop), part(X.data, start, stop)
        for child in range(np.uint64(n_children + PADDING)):
            total[child] = 0
        if n_places > 0:
            n_full, n_few = find_in_table(table, indices, full, found)
        else:
            n_full, n_few = find_in_node(
                chunks.bits[node], words, ranks, directory, features, runs, weights, n_children, indices, found, full
            )
        _add_full(weights, full, data, n_full, n_children, total)
        if n_places > 0:
            _add_full(tile, found, data, n_few, n_children, total)
        else:
            _add_few(weights, runs, found, data, n_few, n_children, total)
        _log_probabilities(total, scale, bias, loss, part(below, offsets[n], offsets[n] + n_children))
    for place in range(n_places):
        table[np.uint64(listed[place])] = 0


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _places_to_spread(words, ranks, features, n_children, n_weights, indptr, rows):
    """How many places a node has, where spreading them pays; else 0."""
    n_places = features.shape[0]
    if words.shape[0] > 0:
        last = words.shape[0] - 1
        n_places += np.int64(ranks[last]) + np.int64(count_bits(words[last]))
    entries = 0
    for n in range(rows.shape[0]):
        entries += indptr[rows[n] + 1] - indptr[rows[n]]
    size = n_places * n_children
    if entries <= _SPREADING_PAYS * n_places or size > _ZEROS_A_BYTE * n_weights or size > LARGEST_TILE:
        return 0
    return n_places


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _add_full(weights, full, x_data, n, n_children, total):
    """``total[child] += Σ x·w`` in the order of the row's features; all lanes of a last vector are written."""
    for a in range(0, n_children, 4 * LANES):
        b, c, d = a + LANES, a + 2 * LANES, a + 3 * LANES
        if b >= n_children:
            sum_lanes(weights, full, x_data, n, (a,), total)
        elif c >= n_children:
            sum_lanes(weights, full, x_data, n, (a, b), total)
        else:
            sum_lanes(weights, full, x_data, n, (a, b, c, d), total)


@njit(nogil=True, cache=True, boundscheck=False, borrows=True, fastmath={"contract"})
def _add_few(weights, runs, found, x_data, n, n_children, total):
    """The same for places that are not full; rounded as vector instructions do."""
    one, size = np.uint64(1), np.uint64(2 + (n_children > NARROW))
    for j in range(n):
        place, value = found[j] & LOW, x_data[found[j] >> np.uint64(32)]
        entry, last = np.uint64(runs[place]), np.uint64(runs[place + one])
        while entry < last:
            total[child_of(weights, entry, n_children)] += value * np.float32(weights[entry])
            entry += size


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _log_probabilities(total, scale, bias, loss, logs):
    """``logs`` of edges with the sums ``total``."""
    for child in range(np.uint64(logs.shape[0])):
        margin = total[child] * scale[child] + bias[child]
        if loss == LOGISTIC:
            log = np.log1p(np.exp(-abs(margin)))
            logs[child] = -log if margin > 0 else margin - log
        else:
            short = np.float32(1) - margin
            if short < 0:
                short = np.float32(0)
            logs[child] = -short * short
