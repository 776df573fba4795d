"""Beam search through label trees, for many rows at once or for one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import grown, prefetch
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.problems import LOGISTIC
from tailwise.kernels.sparse.topk import push_any_order
from tailwise.kernels.trees.chunks import BITMAP, count_bits, hash_feature

_MAP_PAYS = 2
"""Rows whose entries outnumber a node's features so many times are scored through a dense map of the features."""


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
def _keep_found(places, x_data, values):
    """How many features the node has: their places, counted from 0, and values come first in both arrays."""
    n = np.uint64(0)
    for j in range(x_data.shape[0]):
        place = places[j]
        places[n], values[n] = place - np.uint32(1), x_data[j]
        n += np.uint64(place > 0)
    return n


@njit(nogil=True, cache=True, boundscheck=False)
def _add_runs(places, values, n, runs, children, weights, total):
    """``total[child] += Σ x·w`` in the order of the row's features."""
    for j in range(n):
        prefetch(runs, np.uint64(places[j]))
    for j in range(n):
        first = np.uint64(runs[np.uint64(places[j])])
        prefetch(children, first)
        prefetch(weights, first)
    for j in range(n):
        place, value = np.uint64(places[j]), values[j]
        for a in range(np.uint64(runs[place]), np.uint64(runs[place + np.uint64(1)])):
            total[np.uint64(children[a])] += value * np.float32(weights[a])


@njit(nogil=True, cache=True, boundscheck=False)
def _add_pairs(places, values, n, weights, total):
    """The same for a node of two children whose places have both weights."""
    left, right = np.float32(0), np.float32(0)
    for j in range(n):
        first = np.uint64(2) * np.uint64(places[j])
        left += values[j] * np.float32(weights[first])
        right += values[j] * np.float32(weights[first + np.uint64(1)])
    total[0], total[1] = left, right


@njit(nogil=True, cache=True, boundscheck=False)
def _add_dense(places, values, n, weights, total):
    """The same for any number of children."""
    width = np.uint64(total.shape[0])
    for j in range(n):
        prefetch(weights, width * np.uint64(places[j]))
    for j in range(n):
        value = values[j]
        first = width * np.uint64(places[j])
        for child in range(width):
            total[child] += value * np.float32(weights[first + child])


class _Scratch(NamedTuple):
    """What scoring a node writes besides its scores: an entry for each of a row's features."""

    places: np.ndarray
    ends: np.ndarray
    values: np.ndarray


@njit(nogil=True, cache=True, boundscheck=False)
def _score_level(chunks, loss, X, first_row, frontier, offsets, below, place_of):
    """Log-probabilities of the edges below the frontier, into ``below`` at each pair's offset.

    The pairs (row, node) are visited node by node, so that a chunk comes from memory once for all its rows.
    """
    n_rows, width = frontier.shape
    longest = 0
    for row in range(first_row, first_row + n_rows):
        longest = max(longest, X.indptr[row + 1] - X.indptr[row])
    scratch = _Scratch(np.empty(longest, np.uint32), np.empty(longest, np.uint32), np.empty(longest, np.float32))
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
    begin = np.zeros(max(0, high - low + 1) + 1, np.int64)
    for i in range(n_rows):
        for j in range(width):
            if frontier[i, j] >= 0:
                begin[frontier[i, j] - low + 1] += 1
    for node in range(high - low + 1):
        begin[node + 1] += begin[node]
    pairs = np.empty(begin[-1], np.int64)
    fill = begin.copy()
    for i in range(n_rows):
        for j in range(width):
            if frontier[i, j] >= 0:
                pairs[fill[frontier[i, j] - low]] = i * width + j
                fill[frontier[i, j] - low] += 1
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
        total[:] = 0
        found = _keep_found(places, data, scratch.values)
        if runs.shape[0] > 0:
            _add_runs(places, scratch.values, found, runs, children, weights, total)
        elif n_children == 2:
            _add_pairs(places, scratch.values, found, weights, total)
        else:
            _add_dense(places, scratch.values, found, weights, total)
        for child in range(n_children):
            margin = total[child] * chunks.scale[first_edge + child] + chunks.bias[first_edge + child]
            total[child] = _log_probability(margin, loss)
    if mapped:
        for place in range(features.shape[0]):
            place_of[np.uint64(features[place])] = 0


@njit(nogil=True, cache=True, boundscheck=False)
def descend(chunks, search, X, first_row, frontier, logs, below, place_of):
    """One level down: ``(below, offsets, next frontier, its logs)``.

    ``frontier`` (n, width) int32 are the nodes, -1 for none, that rows ``first_row``… of X (:class:`Csr`) have come to,
    ``logs`` (n, width) float32 their log-probabilities. ``below`` has the log-probabilities of the edges below
    ``frontier[i, j]`` from ``offsets[i, j]`` on. A row's next frontier are the ``search.beam`` most probable nodes
    there (ties: the lower node), -1 where there are fewer. Writes ``below`` (float32; a longer one is returned if that
    given is too short) and, while it runs, ``place_of`` (n_features,) uint32, which is zero before and after and needs
    no entries for a single row. The rest may be read-only.
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
    next_frontier = np.full((n_rows, min(widest, search.beam)), -1, np.int32)
    next_logs = np.full((n_rows, min(widest, search.beam)), -np.inf, np.float32)
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
    """
    path_weight = np.float32(search.path_weight)
    first_row, last_row = block
    n_rows = last_row - first_row
    n_trees = chunks.roots.shape[0]
    place_of = np.zeros(n_features if n_rows > 1 else 0, np.uint32)
    found_row = np.empty(1024, np.int32)
    found_label = np.empty(1024, np.int32)
    found_log = np.empty(1024, np.float32)
    n_found, n_first = np.int64(0), np.int64(0)
    below = np.empty(1024, np.float32)
    for tree in range(n_trees):
        frontier = np.full((n_rows, 1), chunks.roots[tree], np.int32)
        logs = np.zeros((n_rows, 1), np.float32)
        while frontier.shape[1] > 0:
            below, offsets, next_frontier, next_logs = descend(
                chunks, search, X, first_row, frontier, logs, below, place_of
            )
            room = n_found + below.shape[0]
            found_row, found_label = grown(found_row, n_found, room), grown(found_label, n_found, room)
            found_log = grown(found_log, n_found, room)
            for i in range(n_rows):
                for j in range(frontier.shape[1]):
                    if frontier[i, j] < 0:
                        continue
                    first_edge = chunks.first_edge[frontier[i, j]]
                    path = path_weight * logs[i, j]
                    for child in range(chunks.first_edge[frontier[i, j] + 1] - first_edge):
                        target = chunks.target[first_edge + child]
                        if target < 0:
                            found_row[n_found] = i
                            found_label[n_found] = ~target
                            found_log[n_found] = path + below[offsets[i, j] + child]
                            n_found += 1
            frontier, logs = next_frontier, next_logs
        if tree == 0:
            n_first = n_found
    found_row, found_label, found_log = found_row[:n_found], found_label[:n_found], found_log[:n_found]
    _merge_trees(n_rows, n_trees, n_first, found_row, found_label, found_log, labels[first_row:], scores[first_row:])


@njit(nogil=True, cache=True, boundscheck=False)
def _merge_trees(n_rows, n_trees, n_first, found_row, found_label, found_log, labels, scores):
    """Mean probability of each label of each row, then the best k. Pairs come by tree, ``n_first`` of the first.

    If the first tree's k-th best label has log-probability m, the k-th best mean is at least e^m / n_trees, which a
    label can only reach if some tree gives it m - ln n_trees or more: all other labels are passed over.
    """
    k = labels.shape[1]
    begin = np.zeros(n_rows + 1, np.int64)
    for row in found_row:
        begin[row + 1] += 1
    for i in range(n_rows):
        begin[i + 1] += begin[i]
    order = np.empty(found_row.shape[0], np.int64)
    fill = begin.copy()
    for a in range(found_row.shape[0]):
        order[fill[found_row[a]]] = a
        fill[found_row[a]] += 1
    share = np.float32(1) / np.float32(n_trees)
    slack = np.float32(np.log(np.float64(n_trees)) + 1e-3)
    slot_label = np.empty(16, np.int32)
    slot_sum = np.empty(16, np.float32)
    for i in range(n_rows):
        mine = order[begin[i] : begin[i + 1]]
        best, best_scores = labels[i], scores[i]
        best[:] = -1
        best_scores[:] = -np.inf
        for a in mine:
            if a >= n_first:
                break
            push_any_order(best, best_scores, found_label[a], found_log[a])
        bar = best_scores[k - 1] - slack
        best[:] = -1
        best_scores[:] = -np.inf
        hopeful = 0
        for a in mine:
            hopeful += found_log[a] >= bar
        bits = 4
        while (1 << bits) < 2 * hopeful:
            bits += 1
        if (1 << bits) > slot_label.shape[0]:
            slot_label = np.empty(1 << bits, np.int32)
            slot_sum = np.empty(1 << bits, np.float32)
        for slot in range(1 << bits):
            slot_label[slot] = -1
        for a in mine:
            if found_log[a] >= bar:
                slot = _slot_of(found_label[a], slot_label, bits)
                slot_label[slot] = found_label[a]
                slot_sum[slot] = 0
        for a in mine:
            slot = _slot_of(found_label[a], slot_label, bits)
            if slot_label[slot] >= 0:
                slot_sum[slot] += np.exp(found_log[a])
        for slot in range(1 << bits):
            if slot_label[slot] >= 0:
                push_any_order(best, best_scores, slot_label[slot], slot_sum[slot] * share)


@njit(nogil=True, cache=True, boundscheck=False)
def _slot_of(label, slot_label, bits):
    """Where a hash table of 2^bits slots holds the label, or the empty slot where it would."""
    slot = hash_feature(label) >> np.uint64(32 - bits)
    while slot_label[slot] != label and slot_label[slot] >= 0:
        slot = (slot + np.uint64(1)) & np.uint64((1 << bits) - 1)
    return slot
