"""Beam search through label trees, for many rows at once or for one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import grown, prefetch
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.lanes import LANES, sum_lanes
from tailwise.kernels.solvers.problems import LOGISTIC
from tailwise.kernels.sparse.topk import push_any_order
from tailwise.kernels.trees.chunks import BITMAP, count_bits, hash_feature

_LOW = np.uint64(0xFFFFFFFF)
_MAP_PAYS = 2
"""Rows whose entries outnumber a node's features so many times are scored through a dense map of the features."""

_TILE_PAYS = 4
"""Rows whose entries outnumber a node's places so many times are scored with all children's weights side by side."""
_ZEROS_A_WEIGHT, _LARGEST_TILE = 16, 1 << 21
"""But not where that would be more zeros for each weight than a vector has lanes, or take more than 4 MB."""


class Search(NamedTuple):
    """How to search: a label's log-probability is its own edge's plus ``path_weight`` times the sum of those above."""

    loss: int
    """of the edges, ``SQUARED_HINGE`` or ``LOGISTIC``"""
    beam: int
    """nodes that a row keeps at each depth"""
    path_weight: float


@njit(nogil=True, cache=True, boundscheck=False)
def _log_probability(margin, loss):
    if loss == LOGISTIC:
        return -np.log1p(np.exp(-margin)) if margin > 0 else margin - np.log1p(np.exp(margin))
    short = max(np.float32(0), np.float32(1) - margin)
    return -short * short


@njit(nogil=True, cache=True, boundscheck=False)
def _locate_in_table(table, x_indices, places):
    """``places[j]``: the place of the row's j-th feature, counted from 1; 0 where the node lacks it."""
    for j in range(x_indices.shape[0]):
        places[j] = table[np.uint64(x_indices[j])]


@njit(nogil=True, cache=True, boundscheck=False)
def _locate_in_bitmap(words, ranks, x_indices, places):
    """The same through a node's bitmap."""
    one = np.uint64(1)
    for j in range(x_indices.shape[0]):
        feature = np.uint64(x_indices[j])
        word, bit = words[feature >> np.uint64(6)], feature & np.uint64(63)
        before = np.uint64(ranks[feature >> np.uint64(6)]) + count_bits(word & ((one << bit) - one))
        places[j] = ((word >> bit) & one) * (before + one)


@njit(nogil=True, cache=True, boundscheck=False)
def _locate_hashed(directory, features, bits, x_indices, places, ends):
    """The same through a node's buckets; writes ``ends`` too."""
    shift = np.uint64(32 - bits)
    for j in range(x_indices.shape[0]):
        bucket = hash_feature(x_indices[j]) >> shift
        places[j] = directory[bucket]
        ends[j] = directory[bucket + np.uint64(1)]
        prefetch(features, np.uint64(places[j]))
    for j in range(x_indices.shape[0]):
        feature = x_indices[j]
        place, last = np.uint64(places[j]), np.uint64(ends[j])
        while place < last and features[place] != feature:
            place += np.uint64(1)
        places[j] = np.uint32(place + np.uint64(1)) if place < last else np.uint32(0)


@njit(nogil=True, cache=True, boundscheck=False)
def _keep_found(places, n_values, found):
    """How many of the row's features the node has; of each, ``found`` is the place + 2³² × its number in the row."""
    n = np.uint64(0)
    for j in range(np.uint64(n_values)):
        place = np.uint64(places[j])
        found[n] = (place - np.uint64(1)) & _LOW | j << np.uint64(32)
        n += np.uint64(place > 0)
    return np.int64(n)


@njit(nogil=True, cache=True, boundscheck=False)
def _add_runs(found, n, x_data, runs, children, weights, total):
    """``total[child] = Σ x·w`` in the order of the row's features."""
    for child in range(total.shape[0]):
        total[child] = 0
    for j in range(n):
        prefetch(runs, found[j] & _LOW)
    for j in range(n):
        first = np.uint64(runs[found[j] & _LOW])
        prefetch(children, first)
        prefetch(weights, first)
    for j in range(n):
        place, value = found[j] & _LOW, x_data[found[j] >> np.uint64(32)]
        for a in range(np.uint64(runs[place]), np.uint64(runs[place + np.uint64(1)])):
            total[np.uint64(children[a])] += value * np.float32(weights[a])


@njit(nogil=True, cache=True, boundscheck=False)
def _add_dense(found, n, x_data, weights, total):
    """The same for a node whose places have the weights of all children."""
    width = total.shape[0]
    for j in range(n):
        prefetch(weights, (found[j] & _LOW) * np.uint64(width))
    last = width - LANES
    if last < 0:
        _add_narrow(found, n, x_data, weights, total)
    elif last <= LANES:
        # Lanes that two parts share come to the same in both.
        sum_lanes(weights, width, found, x_data, n, (0, last), total)
    else:
        for a in range(0, width, 4 * LANES):
            b, c, d = a + LANES, a + 2 * LANES, a + 3 * LANES
            offsets = (min(a, last), min(b, last), min(c, last), min(d, last))
            sum_lanes(weights, width, found, x_data, n, offsets, total)


@njit(nogil=True, cache=True, boundscheck=False)
def _add_narrow(found, n, x_data, weights, total):
    """The same for fewer children than there are lanes."""
    width = np.uint64(total.shape[0])
    for child in range(width):
        total[child] = 0
    for j in range(n):
        first, value = (found[j] & _LOW) * width, x_data[found[j] >> np.uint64(32)]
        for child in range(width):
            total[child] += value * np.float32(weights[first + child])


@njit(nogil=True, cache=True, boundscheck=False)
def _spread_runs(runs, children, weights, width, tile):
    """``tile``: the weights of all children at each place."""
    for a in range((runs.shape[0] - 1) * width):
        tile[a] = 0
    for place in range(runs.shape[0] - 1):
        first = np.uint64(place * width)
        for a in range(np.uint64(runs[place]), np.uint64(runs[place + 1])):
            tile[first + np.uint64(children[a])] = weights[a]


class _Scratch(NamedTuple):
    """What scoring a node writes besides its scores; but for the last, an entry for each of a row's features."""

    places: np.ndarray
    ends: np.ndarray
    found: np.ndarray
    tile: np.ndarray


@njit(nogil=True, cache=True, boundscheck=False)
def _score_level(chunks, loss, X, first_row, frontier, offsets, below, place_of):
    """Log-probabilities of the edges below the frontier, into ``below`` at each pair's offset.

    The pairs (row, node) are visited node by node, so that a chunk comes from memory once for all its rows.
    """
    n_rows, width = frontier.shape
    longest = 0
    for row in range(first_row, first_row + n_rows):
        longest = max(longest, X.indptr[row + 1] - X.indptr[row])
    places, ends, found = np.empty(longest, np.uint32), np.empty(longest, np.uint32), np.empty(longest, np.uint64)
    scratch = _Scratch(places, ends, found, np.empty(_LARGEST_TILE if n_rows > 1 else 0, np.int16))
    if n_rows == 1:
        mine = np.empty(1, np.int64)
        for j in range(width):
            if frontier[0, j] >= 0:
                mine[0] = j
                node = np.int64(frontier[0, j])
                _score_node(chunks, loss, X, first_row, node, mine, offsets, below, place_of, scratch)
        return
    low, high = chunks.bits.shape[0], -1
    for i in range(n_rows):
        for j in range(width):
            if frontier[i, j] >= 0:
                low = min(low, frontier[i, j])
                high = max(high, frontier[i, j])
    # While pairs are put in place, ``begin[node - low + 1]`` is where the next one of the node goes.
    n_nodes = max(0, high - low + 1)
    begin = np.empty(n_nodes + 2, np.int64)
    for node in range(n_nodes + 2):
        begin[node] = 0
    for i in range(n_rows):
        for j in range(width):
            if frontier[i, j] >= 0:
                begin[frontier[i, j] - low + 2] += 1
    for node in range(n_nodes):
        begin[node + 2] += begin[node + 1]
    pairs = np.empty(begin[n_nodes + 1], np.int64)
    for i in range(n_rows):
        for j in range(width):
            if frontier[i, j] >= 0:
                place = frontier[i, j] - low + 1
                pairs[begin[place]] = i * width + j
                begin[place] += 1
    for node in range(low, high + 1):
        mine = pairs[begin[node - low] : begin[node - low + 1]]
        if mine.shape[0] > 0:
            _score_node(chunks, loss, X, first_row, node, mine, offsets, below, place_of, scratch)


@njit(nogil=True, cache=True, boundscheck=False)
def _score_node(chunks, loss, X, first_row, node, mine, offsets, below, place_of, scratch):
    """Log-probabilities of one node's edges for the pairs (row, place in the frontier) that have come to it."""
    width = offsets.shape[1]
    entries = 0
    for pair in mine:
        row = first_row + pair // width
        entries += X.indptr[row + 1] - X.indptr[row]
    places = scratch.places
    bits = chunks.bits[node]
    words = chunks.words[chunks.first_word[node] : chunks.first_word[node + 1]]
    ranks = chunks.ranks[chunks.first_word[node] : chunks.first_word[node + 1]]
    directory = chunks.directory[chunks.first_bucket[node] : chunks.first_bucket[node + 1]]
    features = chunks.features[chunks.first_feature[node] : chunks.first_feature[node + 1]]
    mapped = bits != BITMAP and mine.shape[0] > 1 and entries > _MAP_PAYS * features.shape[0]
    if mapped:
        for place in range(features.shape[0]):
            place_of[np.uint64(features[place])] = place + 1
    runs = chunks.runs[chunks.first_run[node] : chunks.first_run[node + 1]]
    children = chunks.children[chunks.first_child[node] : chunks.first_child[node + 1]]
    weights = chunks.weights[chunks.first_weight[node] : chunks.first_weight[node + 1]]
    first_edge = chunks.first_edge[node]
    n_children = chunks.first_edge[node + 1] - first_edge
    size = (runs.shape[0] - 1) * n_children
    if entries > _TILE_PAYS * runs.shape[0] > 0 and size <= min(_ZEROS_A_WEIGHT * weights.shape[0], _LARGEST_TILE):
        _spread_runs(runs, children, weights, n_children, scratch.tile)
        runs, weights = runs[:0], scratch.tile[:size]
    for pair in mine:
        row = first_row + pair // width
        indices = X.indices[X.indptr[row] : X.indptr[row + 1]]
        data = X.data[X.indptr[row] : X.indptr[row + 1]]
        if bits == BITMAP:
            _locate_in_bitmap(words, ranks, indices, places)
        elif mapped:
            _locate_in_table(place_of, indices, places)
        else:
            _locate_hashed(directory, features, bits, indices, places, scratch.ends)
        total = below[offsets[pair // width, pair % width] :][:n_children]
        n_found = _keep_found(places, data.shape[0], scratch.found)
        if runs.shape[0] > 0:
            _add_runs(scratch.found, n_found, data, runs, children, weights, total)
        else:
            _add_dense(scratch.found, n_found, data, weights, total)
        for child in range(n_children):
            margin = total[child] * chunks.scale[first_edge + child] + chunks.bias[first_edge + child]
            total[child] = _log_probability(margin, loss)
    if mapped:
        for place in range(features.shape[0]):
            place_of[np.uint64(features[place])] = 0


@njit(nogil=True, cache=True, boundscheck=False)
def _start_beam(n_rows, width, node, log):
    """``(nodes, logs)`` (n_rows, width), all alike."""
    nodes, logs = np.empty((n_rows, width), np.int32), np.empty((n_rows, width), np.float32)
    for i in range(n_rows):
        for j in range(width):
            nodes[i, j], logs[i, j] = node, log
    return nodes, logs


@njit(nogil=True, cache=True, boundscheck=False)
def _descend(chunks, search, X, first_row, frontier, logs, below, place_of):
    """One level down: ``(below, offsets, next frontier, its logs)``.

    ``frontier`` (n, width) are the nodes, -1 for none, that rows ``first_row``… of X have come to, ``logs`` their
    log-probabilities. ``below`` has the log-probabilities of the edges below ``frontier[i, j]`` from ``offsets[i, j]``
    on; it is grown where it is too short. ``place_of`` (n_features,), or nothing for a single row, is zero.
    """
    n_rows, width = frontier.shape
    offsets = np.empty((n_rows, width), np.int64)
    size = widest = 0
    for i in range(n_rows):
        inner = 0
        for j in range(width):
            offsets[i, j] = size
            node = frontier[i, j]
            if node >= 0:
                size += chunks.first_edge[node + 1] - chunks.first_edge[node]
                for edge in range(chunks.first_edge[node], chunks.first_edge[node + 1]):
                    inner += chunks.target[edge] >= 0
        widest = max(widest, inner)
    below = grown(below, 0, size)
    _score_level(chunks, search.loss, X, first_row, frontier, offsets, below, place_of)
    next_frontier, next_logs = _start_beam(n_rows, min(widest, search.beam), -1, -np.inf)
    if next_frontier.shape[1] > 0:
        for i in range(n_rows):
            for j in range(width):
                if frontier[i, j] >= 0:
                    first_edge = chunks.first_edge[frontier[i, j]]
                    for child in range(chunks.first_edge[frontier[i, j] + 1] - first_edge):
                        target = chunks.target[first_edge + child]
                        if target >= 0:
                            log = logs[i, j] + below[offsets[i, j] + child]
                            push_any_order(next_frontier[i], next_logs[i], target, log)
    return below, offsets, next_frontier, next_logs


@njit(nogil=True, cache=True, boundscheck=False)
def search_trees(chunks, search, X, n_features, block, labels, scores):
    """Top-k labels of rows ``block[0]:block[1]`` by the mean over trees of their probabilities.

    At each depth of a tree a row keeps its ``search.beam`` most probable nodes (ties: the lower node). A label that no
    beam reaches has probability 0 in that tree; one that no tree reaches is not predicted. All inputs may be read-only.
    Writes the block's rows of ``labels`` (n, k) int32 and ``scores`` (n, k) float32. A row's result does not depend on
    the others.

    With k = 0 it returns the nodes that the rows have come to, int32, level by level and there row by row, and where
    each row's begin and, after the last, end, int64 (n_rows + 1 numbers a level): training and prediction share one
    compiled search.
    """
    visiting = labels.shape[1] == 0
    path_weight = np.float32(search.path_weight)
    first_row, last_row = block
    n_rows = last_row - first_row
    n_trees = chunks.roots.shape[0]
    place_of = np.zeros(n_features if n_rows > 1 else 0, np.uint32)
    found = _Found(np.empty(1024, np.int32), np.empty(1024, np.float32), np.empty(8 * (n_rows + 1), np.int64))
    n_found, n_levels, n_first = np.int64(0), np.int64(0), np.int64(0)
    below = np.empty(1024, np.float32)
    for tree in range(n_trees):
        frontier, logs = _start_beam(n_rows, 1, chunks.roots[tree], 0.0)
        while frontier.shape[1] > 0:
            below, offsets, next_frontier, next_logs = _descend(
                chunks, search, X, first_row, frontier, logs, below, place_of
            )
            room, place = n_found + max(below.shape[0], frontier.size), n_levels * (n_rows + 1)
            found = _Found(
                grown(found.labels, n_found, room),
                grown(found.logs, n_found, room),
                grown(found.begin, place, place + n_rows + 1),
            )
            for i in range(n_rows):
                found.begin[place + i] = n_found
                for j in range(frontier.shape[1]):
                    if frontier[i, j] < 0:
                        continue
                    if visiting:
                        found.labels[n_found] = frontier[i, j]
                        n_found += 1
                        continue
                    first_edge = chunks.first_edge[frontier[i, j]]
                    path = path_weight * logs[i, j]
                    for child in range(chunks.first_edge[frontier[i, j] + 1] - first_edge):
                        target = chunks.target[first_edge + child]
                        if target < 0:
                            found.labels[n_found] = ~target
                            found.logs[n_found] = path + below[offsets[i, j] + child]
                            n_found += 1
            found.begin[place + n_rows] = n_found
            n_levels += 1
            frontier, logs = next_frontier, next_logs
        if tree == 0:
            n_first = n_levels
    if not visiting:
        _merge_trees(n_rows, n_trees, n_levels, n_first, found, labels[first_row:], scores[first_row:])
        n_found = n_levels = 0
    return found.labels[:n_found], found.begin[: n_levels * (n_rows + 1)]


class _Found(NamedTuple):
    """Labels that were found, level by level of tree after tree, and there row by row."""

    labels: np.ndarray
    logs: np.ndarray
    begin: np.ndarray
    """where each row's begin and, after the last, end: n_rows + 1 numbers a level"""


@njit(nogil=True, cache=True, boundscheck=False)
def _merge_trees(n_rows, n_trees, n_levels, n_first, found, labels, scores):
    """Mean probability of each label of each row, then the best k. The first tree has ``n_first`` levels.

    If the first tree's k-th best label has log-probability m, the k-th best mean is at least e^m / n_trees, which a
    label can only reach if some tree gives it m - ln n_trees or more: all other labels are passed over.
    """
    k = labels.shape[1]
    share = np.float32(1) / np.float32(n_trees)
    slack = np.float32(np.log(np.float64(n_trees)) + 1e-3)
    own_labels, own_logs = np.empty(1024, np.int32), np.empty(1024, np.float32)
    slot_label, slot_sum = np.empty(64, np.int32), np.empty(64, np.float32)
    for i in range(n_rows):
        best, best_scores = labels[i], scores[i]
        _clear(best, best_scores)
        n = 0
        for level in range(n_levels):
            place = level * (n_rows + 1) + i
            begin, end = found.begin[place], found.begin[place + 1]
            own_labels, own_logs = grown(own_labels, n, n + end - begin), grown(own_logs, n, n + end - begin)
            for a in range(begin, end):
                own_labels[n], own_logs[n] = found.labels[a], found.logs[a]
                if level < n_first:
                    push_any_order(best, best_scores, found.labels[a], found.logs[a])
                n += 1
        bar = best_scores[k - 1] - slack
        _clear(best, best_scores)
        hopeful = 0
        for a in range(n):
            hopeful += own_logs[a] >= bar
        bits = 4
        while (1 << bits) < 2 * hopeful:
            bits += 1
        slot_label, slot_sum = grown(slot_label, 0, 1 << bits), grown(slot_sum, 0, 1 << bits)
        for slot in range(1 << bits):
            slot_label[slot] = -1
        for a in range(n):
            if own_logs[a] >= bar:
                slot = _slot_of(own_labels[a], slot_label, bits)
                slot_label[slot] = own_labels[a]
                slot_sum[slot] = 0
        for a in range(n):
            slot = _slot_of(own_labels[a], slot_label, bits)
            if slot_label[slot] >= 0:
                slot_sum[slot] += np.exp(own_logs[a])
        for slot in range(1 << bits):
            if slot_label[slot] >= 0:
                push_any_order(best, best_scores, slot_label[slot], slot_sum[slot] * share)


@njit(nogil=True, cache=True, boundscheck=False)
def _clear(labels, scores):
    for j in range(labels.shape[0]):
        labels[j], scores[j] = -1, -np.inf


@njit(nogil=True, cache=True, boundscheck=False)
def _slot_of(label, slot_label, bits):
    """Where a hash table of 2^bits slots holds the label, or the empty slot where it would."""
    slot = hash_feature(label) >> np.uint64(32 - bits)
    while slot_label[slot] != label and slot_label[slot] >= 0:
        slot = (slot + np.uint64(1)) & np.uint64((1 << bits) - 1)
    return slot
