"""Beam search through label trees, for many rows at once or for one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty, grown, part, read_only, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.topk import push_any_order
from tailwise.kernels.trees.layout import NARROW, PADDING
from tailwise.kernels.trees.scoring import LARGEST_TILE, score_node

_LEAST_ROOM, _MOST_ROOM = PADDING + NARROW, PADDING + NARROW * NARROW
NO_LEVELS = read_only(np.empty(0, np.int8))
"""Every edge is its node's own."""


class Search(NamedTuple):
    """How to search: a label's log-probability is its own edge's plus ``path_weight`` times the sum of those above."""

    loss: int
    """of the edges, ``SQUARED_HINGE`` or ``LOGISTIC``"""
    beams: np.ndarray
    """(n,) int64: nodes that a row keeps at each depth below the root; the last one serves all that are deeper"""
    path_weight: float
    above: np.ndarray = NO_LEVELS
    """(n_edges,) int8 where nodes have whole levels of edges: which one before it leads to an edge, or -1.
    Such a search finds nodes, not labels; an edge that leads to edges of its node has a negative target."""


@njit(nogil=True, cache=True, boundscheck=False)
def search_trees(chunks, search, X, n_features, block, visiting):
    """What a beam finds in each tree for rows ``block[0]:block[1]``: labels or, if ``visiting``, nodes.

    At each depth of a tree a row keeps its most probable nodes, as many as ``search.beams`` has (ties: the lower node).
    A label that no beam reaches has probability 0 in that tree. All inputs may be read-only. A row's result does not
    depend on the others.

    Returns ``(found, logs, begin, levels of the first tree)``: labels with their log-probabilities, or the nodes that
    the rows have come to, int32, level by level of tree after tree and there row by row; and where each row's begin
    and, after the last, end, int32 (n_rows + 1 numbers a level). Training looks for nodes and prediction for labels,
    which :func:`~tailwise.kernels.trees.merging.merge_trees` takes on: they share one compiled search.

    The frontier has ``width`` nodes a row, -1 for none, with their log-probabilities ``logs``. ``below`` has the
    log-probabilities of the edges below ``frontier[pair]`` from ``offsets[pair]`` on.
    """
    first_edge, target = chunks.first_edge, chunks.target
    first_row, last_row = block
    n_rows = last_row - first_row
    longest = 0
    for row in range(first_row, last_row):
        size = X.indptr[row + 1] - X.indptr[row]
        if size > longest:
            longest = size
    found, full = empty(longest, np.uint64), empty(longest, np.uint64)
    table = zeros(n_features if n_rows > 1 else 0, np.uint32)
    listed = empty(table.shape[0], np.int32)
    tile = empty(LARGEST_TILE + _MOST_ROOM if n_rows > 1 else 0, np.int8)
    total, below = empty(_LEAST_ROOM, np.float32), empty(1024, np.float32)
    met, met_logs, begin = empty(1024, np.int32), empty(1024, np.float32), empty(1024, np.int32)
    n_met = n_levels = n_first = 0
    for tree in range(chunks.roots.shape[0]):
        width, before = 1, n_levels
        frontier, logs = _start_beam(n_rows, chunks.roots[tree], np.float32(0))
        while width > 0:
            n_pairs = n_rows * width
            offsets, rows, starts = empty(n_pairs, np.int64), empty(n_pairs, np.int64), empty(n_pairs, np.int64)
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
                if first_edge[node] == first_edge[node + 1]:
                    continue
                own = part(rows, 0, n)
                score_node(chunks, search.loss, X, node, own, starts, below, found, full, total, table, tile, listed)
            next_width = min(inner, search.beams[min(n_levels - before, search.beams.shape[0] - 1)])
            next_frontier, next_logs = _start_beam(n_rows * next_width, np.int32(-1), np.float32(-np.inf))
            place = n_levels * (n_rows + 1)
            met, met_logs = grown(met, n_met, n_met + size + n_pairs), grown(met_logs, n_met, n_met + size)
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
    return part(met, 0, n_met), met_logs, part(begin, 0, n_levels * (n_rows + 1)), n_first


@njit(nogil=True, cache=True, boundscheck=False)
def _start_beam(n, node, log):
    """``(nodes, logs)``, all alike."""
    nodes, logs = empty(n, np.int32), empty(n, np.float32)
    for pair in range(n):
        nodes[pair], logs[pair] = node, log
    return nodes, logs


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _survey(first_edge, target, frontier, width, offsets):
    """``(all edges below the frontier, a row's most edges to nodes, a node's most edges)``; writes ``offsets``."""
    size = most = widest = inner = 0
    for pair in range(frontier.shape[0]):
        offsets[pair] = size
        if pair % width == 0:
            inner = 0
        node = frontier[pair]
        if node >= 0:
            first, last = first_edge[node], first_edge[node + 1]
            size += last - first
            if last - first > widest:
                widest = last - first
            for edge in range(first, last):
                inner += target[edge] >= 0
            if inner > most:
                most = inner
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
            if node < low:
                low = node
            if node > high:
                high = node
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


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
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
