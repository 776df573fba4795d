"""The problem of one node of a label tree: the rows that come to it, and which of them carry what an edge leads to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.sorting import sort_keys

_GOOD_PART = 16
"""With more than one row in so many it is quicker to look at every row than to sort those that were found."""


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
    """What a node writes while it is gathered; all -1 before and after."""

    place: np.ndarray
    """(n_samples,) int32"""
    local: np.ndarray
    """(n_features,) int32"""


def scratch_for(n_samples: int, n_features: int) -> Scratch:
    """Scratch that serves any number of nodes, one after the other."""
    return Scratch(np.full(n_samples, -1, np.int32), np.full(n_features, -1, np.int32))


@njit(nogil=True, cache=True, boundscheck=False)
def gather_node(X, below, span, edges, visitors, scratch):
    """What :class:`Rows` and :class:`Labels` of a node are made of: ``(its rows, six arrays, four arrays)``.

    The rows (int32) are those that carry a label at places ``span[0]:span[1]``, and ``visitors`` (int32, any order),
    each once, ascending; the labels are ``edges`` (int64). Features are numbered in the order in which rows have them,
    so that frequent ones lie together. Where the rows are all of X nothing is copied: the six arrays are empty.
    ``X`` is a :class:`Csr`; all but ``scratch`` may be read-only. Time: the non-zeros of the rows.
    """
    place = scratch.place
    rows = _find_rows(below, span, visitors, place)
    labels = _find_carriers(below, edges, rows, place)
    for i in range(rows.shape[0]):
        place[rows[i]] = -1
    whole = rows.shape[0] == place.shape[0]
    return rows, _copy_rows(X, rows[:0] if whole else rows, below.weights, scratch.local), labels


@njit(nogil=True, cache=True, boundscheck=False)
def _find_rows(below, span, visitors, place):
    """The rows of the node; their places among them go to ``place``."""
    first, last = below.indptr[span[0]], below.indptr[span[1]]
    rows = np.empty(min(last - first + visitors.shape[0], place.shape[0]), np.int32)
    n = 0
    for a in range(first, last):
        row = below.rows[a]
        if place[row] < 0:
            place[row] = 0
            rows[n] = row
            n += 1
    for row in visitors:
        if place[row] < 0:
            place[row] = 0
            rows[n] = row
            n += 1
    rows = rows[:n]
    if n > place.shape[0] // _GOOD_PART:
        n = 0
        for row in range(place.shape[0]):
            if place[row] >= 0:
                rows[n] = row
                n += 1
    else:
        sort_keys(rows, n)
    for i in range(n):
        place[rows[i]] = i
    return rows


@njit(nogil=True, cache=True, boundscheck=False)
def _find_carriers(below, edges, rows, place):
    """``(indptr, positions, costs of positives, costs of negatives)`` of the edges."""
    indptr = np.zeros(edges.shape[0] + 1, np.int64)
    room = 0
    for edge in edges:
        room += min(below.indptr[below.stop[edge]] - below.indptr[below.start[edge]], rows.shape[0])
    positions = np.empty(room, np.int32)
    costs = np.empty(room, np.float32)
    negative_costs = np.empty(edges.shape[0], np.float32)
    last_seen = np.full(rows.shape[0], -1, np.int32)
    used = 0
    for e in range(edges.shape[0]):
        start, stop = below.start[edges[e]], below.stop[edges[e]]
        begin = used
        for a in range(below.indptr[start], below.indptr[stop]):
            position = place[below.rows[a]]
            if last_seen[position] != e:
                last_seen[position] = e
                positions[used] = position
                used += 1
        if stop - start > 1:
            if used - begin > rows.shape[0] // _GOOD_PART:
                used = begin
                for position in range(rows.shape[0]):
                    if last_seen[position] == e:
                        positions[used] = position
                        used += 1
            else:
                sort_keys(positions[begin:used], used - begin)
        for a in range(begin, used):
            costs[a] = below.positive_costs[edges[e]] * below.weights[rows[positions[a]]]
        negative_costs[e] = below.negative_costs[edges[e]]
        indptr[e + 1] = used
    return indptr, positions[:used], costs[:used], negative_costs


@njit(nogil=True, cache=True, boundscheck=False)
def _copy_rows(X, rows, weights, local):
    """``(indptr, indices, data, squares, features, weights)`` of some rows of X."""
    n = rows.shape[0]
    indptr = np.zeros(n + 1, np.int64)
    for i in range(n):
        indptr[i + 1] = indptr[i] + X.indptr[rows[i] + 1] - X.indptr[rows[i]]
    indices = np.empty(indptr[n], np.int32)
    data = np.empty(indptr[n], np.float32)
    squares = np.empty(n, np.float32)
    own_weights = np.empty(n, np.float32)
    features = np.empty(min(indptr[n], local.shape[0]), np.int32)
    n_local = 0
    for i in range(n):
        at = indptr[i]
        square = 0.0
        for a in range(np.uint64(X.indptr[rows[i]]), np.uint64(X.indptr[rows[i] + 1])):
            feature = np.uint64(X.indices[a])
            number = local[feature]
            if number < 0:
                number = local[feature] = n_local
                features[n_local] = feature
                n_local += 1
            indices[at] = number
            data[at] = X.data[a]
            square += np.float64(X.data[a]) * np.float64(X.data[a])
            at += 1
        squares[i] = square
        own_weights[i] = weights[rows[i]]
    for number in range(n_local):
        local[features[number]] = -1
    return indptr, indices, data, squares, features[:n_local].copy(), own_weights
