"""The problem of one node of a label tree: the rows that come to it, and which of them carry what an edge leads to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty, part, prefetch, prefetch_row, zeros
from tailwise.kernels.bits import count_bits
from tailwise.kernels.compilation import njit

_AHEAD = 8
"""A row is asked for so many rows before its turn."""


class Below(NamedTuple):
    """What lies below each edge of a tree. Read-only."""

    start: np.ndarray
    """(n_edges,) int64"""
    stop: np.ndarray
    """(n_edges,) int64: edge e leads to the labels at places ``start[e]:stop[e]`` of the tree's order"""
    indptr: np.ndarray
    """(n_labels + 1,) int64"""
    rows: np.ndarray
    """int32: the label at place l is carried by rows ``rows[indptr[l] : indptr[l + 1]]``, ascending"""
    positive_costs: np.ndarray
    """(n_edges,) float64: C of a positive that counts once"""
    negative_costs: np.ndarray
    """(n_edges,) float64"""
    weights: np.ndarray
    """(n_samples,) float64: how often each row counts"""


class Scratch(NamedTuple):
    """What a node writes while it is gathered; as it was afterwards."""

    came: np.ndarray
    """(n_samples / 64,) uint64: 0"""
    place: np.ndarray
    """(n_samples,) int32: -1"""
    local: np.ndarray
    """(n_features,) int32: -1"""


def scratch_for(n_samples: int, n_features: int) -> Scratch:
    """Scratch that serves any number of nodes, one after the other."""
    words = np.zeros(-(-n_samples // 64), np.uint64)
    return Scratch(words, np.full(n_samples, -1, np.int32), np.full(n_features, -1, np.int32))


@njit(nogil=True, cache=True, boundscheck=False)
def gather_node(X, below, span, edges, visitors, scratch):
    """What :class:`Rows` and :class:`Labels` of a node are made of: ``(its rows, six arrays, four arrays)``.

    The rows (int32) are those that carry a label at places ``span[0]:span[1]``, and ``visitors`` (int32, any order),
    each once, ascending; the labels are ``edges`` (int64). Features are numbered in the order in which rows have them,
    so that frequent ones lie together. Where the rows are all of X nothing is copied: the six arrays are empty.
    ``X`` is a :class:`Csr`; all but ``scratch`` may be read-only. Time: the non-zeros of the rows, and a 64th of all
    rows.
    """
    came, place = scratch.came, scratch.place
    first, last = below.indptr[span[0]], below.indptr[span[1]]
    for a in range(first, last):
        _mark(came, below.rows[a])
    for visitor in visitors:
        _mark(came, visitor)
    rows = empty(min(last - first + visitors.shape[0], place.shape[0]), np.int32)
    rows = part(rows, 0, _take_marked(came, came.shape[0], rows, 0))
    for i in range(rows.shape[0]):
        place[rows[i]] = i
    labels = _find_carriers(below, edges, rows, place, came)
    for row in rows:
        place[row] = -1
    copied = part(rows, 0, 0) if rows.shape[0] == place.shape[0] else rows
    n, size = copied.shape[0], 0
    indptr = zeros(n + 1, np.int64)
    for i in range(n):
        size += X.indptr[copied[i] + 1] - X.indptr[copied[i]]
        indptr[i + 1] = size
    indices, data = empty(size, np.int32), empty(size, np.float32)
    squares, weights = empty(n, np.float32), empty(n, np.float32)
    features = empty(min(size, scratch.local.shape[0] + 1), np.int32)
    n_features = copy_rows(X, copied, scratch.local, indptr, indices, data, squares, features)
    for i in range(n):
        weights[i] = below.weights[copied[i]]
    return rows, (indptr, indices, data, squares, part(features, 0, n_features), weights), labels


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _mark(words, bit):
    words[np.uint64(bit) >> np.uint64(6)] |= np.uint64(1) << (np.uint64(bit) & np.uint64(63))


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _take_marked(words, n_words, taken, n):
    """Write the bits that are set, ascending, from ``n`` on, and clear them; returns their end."""
    one = np.uint64(1)
    for at in range(np.uint64(n_words)):
        word = words[at]
        while word:
            taken[n] = np.uint64(64) * at + count_bits((word - one) & ~word)
            word &= word - one
            n += 1
        words[at] = 0
    return n


@njit(nogil=True, cache=True, boundscheck=False)
def _find_carriers(below, edges, rows, place, came):
    """``(indptr, positions, costs of positives, costs of negatives)`` of the edges."""
    room = 0
    for edge in edges:
        room += min(rows.shape[0], below.indptr[below.stop[edge]] - below.indptr[below.start[edge]])
    indptr = zeros(edges.shape[0] + 1, np.int64)
    positions, costs = empty(room, np.int32), empty(room, np.float32)
    negative_costs = empty(edges.shape[0], np.float32)
    n = 0
    for number in range(edges.shape[0]):
        edge, before = edges[number], n
        carriers = part(below.rows, below.indptr[below.start[edge]], below.indptr[below.stop[edge]])
        if below.stop[edge] - below.start[edge] == 1:
            for row in carriers:
                positions[n] = place[row]
                n += 1
        else:
            # A row carries many of the labels that an edge leads to.
            for row in carriers:
                _mark(came, place[row])
            n = _take_marked(came, (rows.shape[0] + 63) // 64, positions, n)
        for a in range(before, n):
            costs[a] = below.positive_costs[edge] * below.weights[rows[positions[a]]]
        indptr[number + 1] = n
        negative_costs[number] = below.negative_costs[edge]
    return indptr, part(positions, 0, n), part(costs, 0, n), negative_costs


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def copy_rows(X, rows, local, indptr, indices, data, squares, features):
    """Copy ``rows`` of X to where ``indptr`` says, their features numbered as they come; returns how many these are.

    Writes ``indices``, ``data``, ``squares``, the sum of squares of each row, and ``features``, of each number that of
    X, with room for one more unless rows have fewer entries; ``local`` (n_features,) int32 is -1 before and after. The
    rest may be read-only.
    """
    n_local, last = 0, rows.shape[0] - 1
    for i in range(rows.shape[0]):
        at = indptr[i]
        square = 0.0
        prefetch(X.indptr, np.uint64(rows[min(i + 2 * _AHEAD, last)]))
        ahead = np.uint64(rows[min(i + _AHEAD, last)])
        prefetch_row(X.indices, X.data, X.indptr[ahead], X.indptr[ahead + np.uint64(1)])
        for a in range(np.uint64(X.indptr[rows[i]]), np.uint64(X.indptr[rows[i] + 1])):
            feature = np.uint64(X.indices[a])
            # Without a branch, that nobody could foresee.
            is_new = local[feature] < 0
            number = n_local if is_new else local[feature]
            indices[at] = local[feature] = number
            features[n_local] = feature
            n_local += is_new
            data[at] = X.data[a]
            square += np.float64(X.data[a]) * np.float64(X.data[a])
            at += 1
        squares[i] = square
    for number in range(n_local):
        local[features[number]] = -1
    return n_local
