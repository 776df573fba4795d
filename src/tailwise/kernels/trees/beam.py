"""Beam search through label trees, for many rows at once or for one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import grown, prefetch
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.lanes import LANES, sum_lanes
from tailwise.kernels.solvers.problems import LOGISTIC
from tailwise.kernels.sparse.topk import push_any_order
from tailwise.kernels.trees.chunks import count_bits, hash_feature
from tailwise.kernels.trees.layout import BITMAP, NARROW, PADDING

_LOW, _HIGH = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFF << 32)
_FEW = np.uint64(1 << 31)
_SPREADING_PAYS = 4
"""Rows whose entries outnumber a node's places so many times find them in a table, which leads to weights of all
children side by side at every place."""
_ZEROS_A_BYTE, _LARGEST_TILE = 32, 1 << 22
"""But not where that would take so many times the room of the weights, or more bytes than this."""


class Search(NamedTuple):
    """How to search: a label's log-probability is its own edge's plus ``path_weight`` times the sum of those above."""

    loss: int
    """of the edges, ``SQUARED_HINGE`` or ``LOGISTIC``"""
    beam: int
    """nodes that a row keeps at each depth"""
    path_weight: float


@njit(nogil=True, cache=True, boundscheck=False)
def _find_in_bitmap(words, ranks, x_indices, found):
    """How many of the row's features the node has; of each, ``found`` is the place + 2³² × its number in the row."""
    one, n = np.uint64(1), np.uint64(0)
    for j in range(np.uint64(x_indices.shape[0])):
        feature = np.uint64(x_indices[j])
        word, bit = words[feature >> np.uint64(6)], feature & np.uint64(63)
        place = np.uint64(ranks[feature >> np.uint64(6)]) + count_bits(word & ((one << bit) - one))
        found[n] = place | j << np.uint64(32)
        n += (word >> bit) & one
    return np.int64(n)


@njit(nogil=True, cache=True, boundscheck=False)
def _find_hashed(directory, features, bits, x_indices, found):
    """The same through a node's buckets."""
    shift = np.uint64(32 - bits)
    for j in range(np.uint64(x_indices.shape[0])):
        bucket = hash_feature(x_indices[j]) >> shift
        first, last = np.uint64(directory[bucket]), np.uint64(directory[bucket + np.uint64(1)])
        found[j] = first | last << np.uint64(32)
        prefetch(features, first)
    n = np.uint64(0)
    for j in range(np.uint64(x_indices.shape[0])):
        feature = x_indices[j]
        place, last = found[j] & _LOW, found[j] >> np.uint64(32)
        while place < last and features[place] != feature:
            place += np.uint64(1)
        found[n] = place | j << np.uint64(32)
        n += np.uint64(place < last)
    return np.int64(n)


@njit(nogil=True, cache=True, boundscheck=False)
def _part_found(found, n, runs, n_children, weights, full):
    """Where the weights of full places begin goes to ``full``, as in ``found``, where the other places stay.

    Returns how many there are of both.
    """
    one, width = np.uint64(1), np.uint64(n_children)
    if runs.shape[0] == 0:
        for j in range(n):
            full[j] = (found[j] & _LOW) * width | found[j] & _HIGH
            prefetch(weights, full[j] & _LOW)
        return n, 0
    for j in range(n):
        prefetch(runs, found[j] & _LOW)
    n_full = n_few = np.uint64(0)
    for j in range(n):
        pair = found[j]
        first, last = np.uint64(runs[pair & _LOW]), np.uint64(runs[(pair & _LOW) + one])
        prefetch(weights, first)
        is_full = np.uint64(last - first == width)
        full[n_full], found[n_few] = first | pair & _HIGH, pair
        n_full += is_full
        n_few += one - is_full
    return np.int64(n_full), np.int64(n_few)


@njit(nogil=True, cache=True, boundscheck=False)
def _find_in_table(table, x_indices, full, few):
    """As finding and parting, but ``few`` has where a place that is not full begins in the tile.

    ``table`` has for every feature where its place begins, counted from 1, or 0; ``_FEW`` is added to those of a tile.
    """
    n_full = n_few = np.uint64(0)
    for j in range(np.uint64(x_indices.shape[0])):
        entry = np.uint64(table[np.uint64(x_indices[j])])
        is_few = entry >> np.uint64(31)
        full[n_full] = few[n_few] = ((entry & ~_FEW) - np.uint64(1)) | j << np.uint64(32)
        n_full += np.uint64(entry > 0) - is_few
        n_few += is_few
    return np.int64(n_full), np.int64(n_few)


@njit(nogil=True, cache=True, boundscheck=False)
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


@njit(nogil=True, cache=True, boundscheck=False)
def _spread(listed, runs, weights, n_children, table, tile):
    """Fill ``table``, and ``tile`` with the weights of all children at the places that are not full."""
    one, width, size = np.uint64(1), np.uint64(n_children), np.uint64(2 + (n_children > NARROW))
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
            child = np.uint64(np.uint8(weights[first + one])) if n_children <= NARROW else _wide_child(weights, first)
            tile[n_spread + child] = weights[first]
            first += size
        n_spread += width


@njit(nogil=True, cache=True, boundscheck=False)
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


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract"})
def _add_few(weights, runs, found, x_data, n, n_children, total):
    """The same for places that are not full; rounded as vector instructions do."""
    one, two = np.uint64(1), np.uint64(2)
    for j in range(n):
        place, value = found[j] & _LOW, x_data[found[j] >> np.uint64(32)]
        entry, last = np.uint64(runs[place]), np.uint64(runs[place + one])
        if n_children <= NARROW:
            while entry < last:
                total[np.uint64(np.uint8(weights[entry + one]))] += value * np.float32(weights[entry])
                entry += two
        else:
            while entry < last:
                total[_wide_child(weights, entry)] += value * np.float32(weights[entry])
                entry += two + one


@njit(nogil=True, cache=True, boundscheck=False)
def _wide_child(weights, entry):
    low, high = weights[entry + np.uint64(1)], weights[entry + np.uint64(2)]
    return np.uint64(np.uint8(low)) | np.uint64(np.uint8(high)) << np.uint64(8)


@njit(nogil=True, cache=True, boundscheck=False)
def _log_probabilities(total, scale, bias, loss, logs):
    """``logs`` of edges with the sums ``total``."""
    for child in range(np.uint64(logs.shape[0])):
        logs[child] = total[child] * scale[child] + bias[child]
    if loss == LOGISTIC:
        for child in range(np.uint64(logs.shape[0])):
            margin = logs[child]
            logs[child] = -np.log1p(np.exp(-margin)) if margin > 0 else margin - np.log1p(np.exp(margin))
    else:
        for child in range(np.uint64(logs.shape[0])):
            short = max(np.float32(0), np.float32(1) - logs[child])
            logs[child] = -short * short


class _Scratch(NamedTuple):
    """What scoring a node writes."""

    found: np.ndarray
    full: np.ndarray
    """an entry for each of a row's features, as ``found``"""
    total: np.ndarray
    """a sum for each child"""
    tile: np.ndarray


@njit(nogil=True, cache=True, boundscheck=False)
def _score_level(chunks, loss, X, first_row, frontier, offsets, below, table):
    """Log-probabilities of the edges below the frontier, into ``below`` at each pair's offset.

    The pairs (row, node) are visited node by node, so that a chunk comes from memory once for all its rows.
    """
    n_rows, width = frontier.shape
    longest, widest = 0, 0
    for row in range(first_row, first_row + n_rows):
        longest = max(longest, X.indptr[row + 1] - X.indptr[row])
    for i in range(n_rows):
        for j in range(width):
            if frontier[i, j] >= 0:
                widest = max(widest, chunks.first_edge[frontier[i, j] + 1] - chunks.first_edge[frontier[i, j]])
    found, full = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    # Whatever number an entry has for its child, there is room for it.
    room = PADDING + (NARROW if widest <= NARROW else NARROW * NARROW)
    tile = np.empty(_LARGEST_TILE + room if n_rows > 1 else 0, np.int8)
    scratch = _Scratch(found, full, np.empty(room, np.float32), tile)
    if n_rows == 1:
        mine = np.empty(1, np.int64)
        for j in range(width):
            if frontier[0, j] >= 0:
                mine[0] = j
                node = np.int64(frontier[0, j])
                _score_node(chunks, loss, X, first_row, node, mine, offsets, below, table, scratch)
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
            _score_node(chunks, loss, X, first_row, node, mine, offsets, below, table, scratch)


@njit(nogil=True, cache=True, boundscheck=False)
def _score_node(chunks, loss, X, first_row, node, mine, offsets, below, table, scratch):
    """Log-probabilities of one node's edges for the pairs (row, place in the frontier) that have come to it."""
    width = offsets.shape[1]
    entries = 0
    for pair in mine:
        row = first_row + pair // width
        entries += X.indptr[row + 1] - X.indptr[row]
    bits = chunks.bits[node]
    words = chunks.words[chunks.first_word[node] : chunks.first_word[node + 1]]
    ranks = chunks.ranks[chunks.first_word[node] : chunks.first_word[node + 1]]
    directory = chunks.directory[chunks.first_bucket[node] : chunks.first_bucket[node + 1]]
    features = chunks.features[chunks.first_feature[node] : chunks.first_feature[node + 1]]
    runs = chunks.runs[chunks.first_run[node] : chunks.first_run[node + 1]]
    weights = chunks.weights[chunks.first_weight[node] : chunks.first_weight[node + 1]]
    first_edge, last_edge = chunks.first_edge[node], chunks.first_edge[node + 1]
    n_children = last_edge - first_edge
    scale, bias = chunks.scale[first_edge:last_edge], chunks.bias[first_edge:last_edge]
    found, full, total, tile = scratch.found, scratch.full, scratch.total, scratch.tile
    n_places = features.shape[0]
    if words.shape[0] > 0:
        n_places += np.int64(ranks[ranks.shape[0] - 1]) + np.int64(count_bits(words[words.shape[0] - 1]))
    most = min(_ZEROS_A_BYTE * weights.shape[0], _LARGEST_TILE) if tile.shape[0] > 0 else 0
    spread = entries > _SPREADING_PAYS * n_places > 0 and n_places * n_children <= most
    listed = np.empty(n_places if spread else 0, np.int32)
    if spread:
        _list_features(words, features, listed)
        _spread(listed, runs, weights, n_children, table, tile)
    for pair in mine:
        row = first_row + pair // width
        indices = X.indices[X.indptr[row] : X.indptr[row + 1]]
        data = X.data[X.indptr[row] : X.indptr[row + 1]]
        for child in range(np.uint64(n_children + PADDING)):
            total[child] = 0
        if spread:
            n_full, n_few = _find_in_table(table, indices, full, found)
        else:
            if bits == BITMAP:
                n = _find_in_bitmap(words, ranks, indices, found)
            else:
                n = _find_hashed(directory, features, bits, indices, found)
            n_full, n_few = _part_found(found, n, runs, n_children, weights, full)
        _add_full(weights, full, data, n_full, n_children, total)
        if spread:
            _add_full(tile, found, data, n_few, n_children, total)
        else:
            _add_few(weights, runs, found, data, n_few, n_children, total)
        first = offsets[pair // width, pair % width]
        _log_probabilities(total, scale, bias, loss, below[first : first + n_children])
    for feature in listed:
        table[np.uint64(feature)] = 0


@njit(nogil=True, cache=True, boundscheck=False)
def _start_beam(n_rows, width, node, log):
    """``(nodes, logs)`` (n_rows, width), all alike."""
    nodes, logs = np.empty((n_rows, width), np.int32), np.empty((n_rows, width), np.float32)
    for i in range(n_rows):
        for j in range(width):
            nodes[i, j], logs[i, j] = node, log
    return nodes, logs


@njit(nogil=True, cache=True, boundscheck=False)
def _descend(chunks, search, X, first_row, frontier, logs, below, table):
    """One level down: ``(below, offsets, next frontier, its logs)``.

    ``frontier`` (n, width) are the nodes, -1 for none, that rows ``first_row``… of X have come to, ``logs`` their
    log-probabilities. ``below`` has the log-probabilities of the edges below ``frontier[i, j]`` from ``offsets[i, j]``
    on; it is grown where it is too short. ``table`` (n_features,), or nothing for a single row, is zero.
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
    _score_level(chunks, search.loss, X, first_row, frontier, offsets, below, table)
    next_frontier, next_logs = _start_beam(n_rows, min(widest, search.beam), np.int32(-1), -np.inf)
    last = next_frontier.shape[1] - 1
    if last >= 0:
        for i in range(n_rows):
            for j in range(width):
                if frontier[i, j] >= 0:
                    first_edge = chunks.first_edge[frontier[i, j]]
                    for child in range(chunks.first_edge[frontier[i, j] + 1] - first_edge):
                        target = chunks.target[first_edge + child]
                        if target >= 0:
                            log = logs[i, j] + below[offsets[i, j] + child]
                            if log >= next_logs[i, last]:
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
    table = np.zeros(n_features if n_rows > 1 else 0, np.uint32)
    found = _Found(np.empty(1024, np.int32), np.empty(1024, np.float32), np.empty(8 * (n_rows + 1), np.int64))
    n_found, n_levels, n_first = np.int64(0), np.int64(0), np.int64(0)
    below = np.empty(1024, np.float32)
    for tree in range(n_trees):
        frontier, logs = _start_beam(n_rows, 1, chunks.roots[tree], 0.0)
        while frontier.shape[1] > 0:
            below, offsets, next_frontier, next_logs = _descend(
                chunks, search, X, first_row, frontier, logs, below, table
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
    slot_label, slot_sum = np.empty(64, np.int32), np.empty(64, np.float32)
    for i in range(n_rows):
        best, best_scores = labels[i], scores[i]
        _clear(best, best_scores)
        for level in range(n_first):
            begin, end = _of_row(found, level, i, n_rows)
            for a in range(begin, end):
                if found.logs[a] >= best_scores[k - 1]:
                    push_any_order(best, best_scores, found.labels[a], found.logs[a])
        bar = best_scores[k - 1] - slack
        _clear(best, best_scores)
        hopeful = 0
        for level in range(n_levels):
            begin, end = _of_row(found, level, i, n_rows)
            for a in range(begin, end):
                hopeful += found.logs[a] >= bar
        bits = 4
        while (1 << bits) < 2 * hopeful:
            bits += 1
        slot_label, slot_sum = grown(slot_label, 0, 1 << bits), grown(slot_sum, 0, 1 << bits)
        for slot in range(1 << bits):
            slot_label[slot] = -1
        for level in range(n_levels):
            begin, end = _of_row(found, level, i, n_rows)
            for a in range(begin, end):
                if found.logs[a] >= bar:
                    slot = _slot_of(found.labels[a], slot_label, bits)
                    slot_label[slot] = found.labels[a]
                    slot_sum[slot] = 0
        for level in range(n_levels):
            begin, end = _of_row(found, level, i, n_rows)
            for a in range(begin, end):
                slot = _slot_of(found.labels[a], slot_label, bits)
                if slot_label[slot] >= 0:
                    slot_sum[slot] += np.exp(found.logs[a])
        for slot in range(1 << bits):
            if slot_label[slot] >= 0 and slot_sum[slot] * share >= best_scores[k - 1]:
                push_any_order(best, best_scores, slot_label[slot], slot_sum[slot] * share)


@njit(nogil=True, cache=True, boundscheck=False)
def _of_row(found, level, i, n_rows):
    """Where what a row found at a level begins and ends."""
    place = np.uint64(level * (n_rows + 1) + i)
    return np.uint64(found.begin[place]), np.uint64(found.begin[place + np.uint64(1)])


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
