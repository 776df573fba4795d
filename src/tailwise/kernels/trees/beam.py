"""Beam search through label trees, for many rows at once or for one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty, grown, part, read_only, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.topk import push_any_order
from tailwise.kernels.trees.layout import NARROW, PADDING
from tailwise.kernels.trees.merging import merge_trees
from tailwise.kernels.trees.scoring import LARGEST_TILE, score_node

_LEAST_ROOM, _MOST_ROOM = PADDING + NARROW, PADDING + NARROW * NARROW
NO_LEVELS = read_only(np.empty(0, np.int8))
"""Every edge is its node's own."""


class Search(NamedTuple):
    """How to search: a label's log-probability is its own edge's plus ``path_weight`` times the sum of those above."""

    loss: int
    """of the edges, ``SQUARED_HINGE`` or ``LOGISTIC``"""
    beam: int
    """nodes that a row keeps at each depth"""
    path_weight: float
    above: np.ndarray = NO_LEVELS
    """(n_edges,) int8 where nodes have whole levels of edges: which one before it leads to an edge, or -1.
    Such a search finds nodes, not labels; an edge that leads to edges of its node has a negative target."""


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

    The frontier has ``width`` nodes a row, -1 for none, with their log-probabilities ``logs``. ``below`` has the
    log-probabilities of the edges below ``frontier[pair]`` from ``offsets[pair]`` on.
    """
    first_edge, target, n_trees = chunks.first_edge, chunks.target, chunks.roots.shape[0]
    visiting, (first_row, last_row) = labels.shape[1] == 0, block
    n_rows = last_row - first_row
    longest = 0
    for row in range(first_row, last_row):
        longest = max(longest, X.indptr[row + 1] - X.indptr[row])
    found, full = empty(longest, np.uint64), empty(longest, np.uint64)
    table = zeros(n_features if n_rows > 1 else 0, np.uint32)
    tile = empty(LARGEST_TILE + _MOST_ROOM if n_rows > 1 else 0, np.int8)
    total, below = empty(_LEAST_ROOM, np.float32), empty(1024, np.float32)
    met, met_logs = empty(1024, np.int32), empty(1024, np.float32)
    begin = empty(8 * (n_rows + 1), np.int64)
    n_met, n_levels, n_first = 0, 0, 0
    for tree in range(n_trees):
        width = 1
        frontier, logs = _start_beam(n_rows, chunks.roots[tree], np.float32(0))
        while width > 0:
            n_pairs = n_rows * width
            offsets = empty(n_pairs, np.int64)
            rows, starts = empty(n_pairs, np.int64), empty(n_pairs, np.int64)
            size, inner, widest = _survey(first_edge, target, frontier, width, offsets)
            below = grown(below, 0, size)
            # Whatever number an entry has for its child, there is room for it.
            total = grown(total, 0, _LEAST_ROOM if widest <= NARROW else _MOST_ROOM)
            pairs = _by_node(frontier, n_rows > 1)
            at = 0
            while at < pairs.shape[0]:
                node, n = np.int64(frontier[pairs[at]]), 0
                while at < pairs.shape[0] and frontier[pairs[at]] == node:
                    rows[n], starts[n] = first_row + pairs[at] // width, offsets[pairs[at]]
                    n += 1
                    at += 1
                own = part(rows, 0, n)
                score_node(chunks, search.loss, X, node, own, starts, below, found, full, total, table, tile)
            next_width = min(inner, search.beam)
            next_frontier, next_logs = _start_beam(n_rows * next_width, np.int32(-1), np.float32(-np.inf))
            met = grown(met, n_met, n_met + max(size, n_pairs))
            met_logs = grown(met_logs, n_met, n_met + size)
            place = n_levels * (n_rows + 1)
            begin = grown(begin, place, place + n_rows + 1)
            n_met = _go_down(
                (first_edge, target, frontier, logs, offsets, below),
                (next_frontier, next_logs),
                (met, met_logs, part(begin, place, place + n_rows + 1)),
                n_met,
                np.float32(search.path_weight),
                search.above,
                visiting,
            )
            frontier, logs, width = next_frontier, next_logs, next_width
            n_levels += 1
        if tree == 0:
            n_first = n_levels
    met, begin = part(met, 0, n_met), part(begin, 0, n_levels * (n_rows + 1))
    if visiting:
        return met, begin
    merge_trees(met, met_logs, begin, n_first, n_trees, block, labels, scores)
    return part(met, 0, 0), part(begin, 0, 0)


@njit(nogil=True, cache=True, boundscheck=False)
def _start_beam(n, node, log):
    """``(nodes, logs)``, all alike."""
    nodes, logs = empty(n, np.int32), empty(n, np.float32)
    for pair in range(n):
        nodes[pair], logs[pair] = node, log
    return nodes, logs


@njit(nogil=True, cache=True, boundscheck=False)
def _survey(first_edge, target, frontier, width, offsets):
    """``(all edges below the frontier, a row's most edges to nodes, a node's most edges)``; writes ``offsets``."""
    size = most = widest = inner = 0
    for pair in range(frontier.shape[0]):
        offsets[pair] = size
        if pair % width == 0:
            inner = 0
        if frontier[pair] >= 0:
            first, last = first_edge[frontier[pair]], first_edge[frontier[pair] + 1]
            size += last - first
            widest = max(widest, last - first)
            for edge in range(first, last):
                inner += target[edge] >= 0
            most = max(most, inner)
    return size, most, widest


@njit(nogil=True, cache=True, boundscheck=False)
def _by_node(frontier, sort):
    """The pairs (row, node) of a frontier; sorted by node, so that a chunk comes from memory once for all its rows."""
    low, high, n = np.int64(1 << 31), np.int64(-1), 0
    pairs = empty(frontier.shape[0], np.int64)
    for pair in range(frontier.shape[0]):
        node = np.int64(frontier[pair])
        if node >= 0:
            pairs[n] = pair
            n += 1
            low, high = min(low, node), max(high, node)
    pairs = part(pairs, 0, n)
    if not sort or n == 0:
        return pairs
    # While pairs are put in place, ``begin[node - low + 1]`` is where the next one of the node goes.
    n_nodes = high - low + 1
    begin = zeros(n_nodes + 2, np.int64)
    for pair in pairs:
        begin[frontier[pair] - low + 2] += 1
    for node in range(n_nodes):
        begin[node + 2] += begin[node + 1]
    by_node = empty(n, np.int64)
    for pair in pairs:
        place = frontier[pair] - low + 1
        by_node[begin[place]] = pair
        begin[place] += 1
    return by_node


@njit(nogil=True, cache=True, boundscheck=False)
def _go_down(here, there, found, n_met, path_weight, above, visiting):
    """Fill the next frontier, and note what every row has met: labels or, if ``visiting``, nodes.

    ``here`` are the trees' edges and targets, the frontier, its logs, offsets and what is below; ``there`` the next
    frontier and its logs, ``found`` what was met, its logs and where each row's begins. Returns how much that is.
    """
    first_edge, target, frontier, logs, offsets, below = here
    next_frontier, next_logs = there
    met, met_logs, begin = found
    n_rows = begin.shape[0] - 1
    for row in range(n_rows):
        begin[row] = n_met
        width, next_width = frontier.shape[0] // n_rows, next_frontier.shape[0] // n_rows
        nodes = part(next_frontier, row * next_width, (row + 1) * next_width)
        their_logs = part(next_logs, row * next_width, (row + 1) * next_width)
        for pair in range(row * width, (row + 1) * width):
            if frontier[pair] < 0:
                continue
            first, last = first_edge[frontier[pair]], first_edge[frontier[pair] + 1]
            if visiting:
                met[n_met] = frontier[pair]
                n_met += 1
            path, place = path_weight * logs[pair], offsets[pair] - first
            for edge in range(first, last):
                log = below[place + edge]
                if above.shape[0] > 0 and above[edge] >= 0:
                    log += below[place + first + above[edge]]
                    below[place + edge] = log
                if target[edge] >= 0:
                    log += logs[pair]
                    if log >= their_logs[next_width - 1]:
                        push_any_order(nodes, their_logs, target[edge], log)
                elif not visiting:
                    met[n_met], met_logs[n_met] = ~target[edge], path + log
                    n_met += 1
    begin[n_rows] = n_met
    return n_met
