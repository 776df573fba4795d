"""The problems of several nodes of a label tree that go on from where they stood, gathered at once."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, frozen, part, read_only, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.problems import FEW_TIMES, Labels, Rows, Several, Support, Weights
from tailwise.kernels.sparse.csr import Csr
from tailwise.kernels.trees.nodes import Below, Scratch, copy_rows

_LEAST_SHARE, _LEAST_BETWEEN_NODES = 0.4, 1.0
"""A known row shares what has changed where its part is so much, times the mean of those that have one: its α, of each
edge in the measure in which the rows of that are new."""
_HOLDS, _SHARES = -2, -3
"""In place of a row's place: it is a support vector; it shares."""


def gather_nodes(
    X: Csr,
    squares: np.ndarray,
    below: Below,
    spans: np.ndarray,
    edges: list[np.ndarray],
    visitors: list[np.ndarray] | None,
    stood: Support,
    began: Weights | None,
    is_fresh: np.ndarray,
    scratch: Scratch,
) -> tuple[np.ndarray, Rows, np.ndarray, np.ndarray, Several, Labels, Support, Weights | None]:
    """The rows of all nodes (int32), and what :func:`tailwise.kernels.solvers.solve.go_on_together` takes of them.

    A node's rows are, as in :func:`tailwise.kernels.trees.nodes.gather_node`, those below ``spans`` (n_nodes, 2) and
    its ``visitors``, with the ``edges`` of each node: of those that are not new (``is_fresh``, (n_samples,) bool) the
    ones alone that share. ``stood`` has the support vectors of the edges, by numbers of rows, and ``began`` the weights
    to begin from. Where there are none, because support vectors have to tell, all rows are there: support vectors are
    visitors too where there are ``visitors``, and are left out where they are not among the rows otherwise. ``squares``
    (n_samples,) are those of all rows. Rows are left where they are if most features occur in a node often; others are
    copied together, their features numbered anew. The fourth result, (n_rows,) bool, are rows that are new or share.
    """
    n_samples, n_features = scratch.place.size, scratch.local.size
    first_label = np.append(0, np.cumsum([own.size for own in edges]))
    every = np.concatenate(edges)
    came = visitors if visitors is not None else [np.empty(0, np.int32)] * len(edges)
    keys = _rows_of_nodes(
        below,
        np.ascontiguousarray(spans, np.int64),
        every,
        first_label,
        read_only(np.concatenate(came)),
        np.append(0, np.cumsum([own.size for own in came])),
        frozen(stood),
        is_fresh,
        (began is not None, visitors is not None),
        scratch.place,
    )
    keys.sort()
    shifts = n_samples * np.arange(len(edges) + 1, dtype=np.int64)
    shares, keys = (keys & 1).astype(np.bool_), keys >> 1
    first_row = np.searchsorted(keys, shifts)
    rows = (keys - np.repeat(shifts[:-1], np.diff(first_row))).astype(np.int32)
    first, places, costs, held = _places(below, every, first_label, rows, first_row, frozen(stood), scratch.place)
    labels = Labels(first, places, costs, below.negative_costs[every].astype(np.float32))
    starts, weights = X.indptr[rows], below.weights[rows].astype(np.float32)
    indptr = np.append(0, np.cumsum(X.indptr[rows + 1] - starts))
    first_feature, last_feature = np.zeros((2, len(edges)), np.int64)
    if indptr[-1] >= FEW_TIMES * n_features * len(edges):
        last_feature[:] = n_features
        every_feature = np.arange(n_features, dtype=np.int32)
        packed = Rows(indptr, X.indices, X.data, squares[rows], every_feature, weights)
    else:
        indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
        own_squares, starts = np.empty(rows.size, np.float32), indptr[:-1]
        old = np.zeros(every.size + 1, np.int64) if began is None else began.indptr
        old_features = np.empty(0, np.int32) if began is None else began.features.copy()
        features = np.empty(indptr[-1] + old_features.size + 1, np.int32)
        room = (indptr, indices, data, own_squares, features, first_feature, last_feature)
        used = _copy_nodes(X, rows, first_row, scratch.local, *room, first_label, old, old_features)
        packed = Rows(indptr, indices, data, own_squares, features[:used], weights)
        began = None if began is None else began._replace(features=old_features)
    several = Several(first_row, first_label, first_feature, last_feature)
    return (
        rows,
        frozen(packed),
        read_only(starts),
        read_only(shares),
        several,
        labels,
        stood._replace(positions=held),
        began,
    )


@njit(nogil=True, cache=True, boundscheck=False)
def _rows_of_nodes(below, spans, edges, first_label, visitors, first_visitor, stood, is_fresh, few_and_visited, place):
    """Each row of each node once, as ``2 * (node * n_samples + row)``, one more if it is new or shares, in no order.

    ``place`` is -1 before and after.
    """
    few, visited = few_and_visited
    n_samples, most, most_held = place.shape[0], visitors.shape[0] + stood.positions.shape[0], 0
    for node in range(spans.shape[0]):
        most += below.indptr[spans[node, 1]] - below.indptr[spans[node, 0]]
        most_held = max(most_held, stood.indptr[first_label[node + 1]] - stood.indptr[first_label[node]])
    keys, held = empty(most + 1, np.int64), empty(most_held + 1, np.int32)
    shares, used = zeros(n_samples, np.float32), 0
    for node in range(spans.shape[0]):
        first, shift = used, node * n_samples
        n_held, total = 0, np.float32(0)
        for n in range(first_label[node], first_label[node + 1]):
            changed = _share_of_new(below, edges[n], is_fresh)
            for a in range(stood.indptr[n], stood.indptr[n + 1]):
                row = np.uint64(stood.positions[a])
                held[n_held] = row
                n_held += place[row] == -1
                place[row] = _HOLDS
                part_of = changed * abs(stood.values[a])
                shares[row] += part_of
                total += part_of
        least = np.float32(_LEAST_SHARE if visited else _LEAST_BETWEEN_NODES) * total / max(1, n_held)
        for n in range(n_held):
            row = np.int64(held[n])
            place[row] = _SHARES if shares[row] > least else -1
            if (few and shares[row] > least) or (visited and not few):
                used = _join(row, place, keys, used, 2 * (shift + row) + (is_fresh[row] | (shares[row] > least)))
            shares[row] = 0
        for a in range(below.indptr[spans[node, 0]], below.indptr[spans[node, 1]]):
            row = np.int64(below.rows[a])
            if is_fresh[row] or not few:
                used = _join(row, place, keys, used, 2 * (shift + row) + (is_fresh[row] | (place[row] == _SHARES)))
        for a in range(first_visitor[node], first_visitor[node + 1]):
            row = np.int64(visitors[a])
            used = _join(row, place, keys, used, 2 * (shift + row) + is_fresh[row])
        for n in range(first, used):
            place[(keys[n] >> 1) - shift] = -1
        for n in range(n_held):
            place[held[n]] = -1
    return part(keys, 0, used)


@njit(nogil=True, cache=True, boundscheck=False)
def _share_of_new(below, edge, is_fresh):
    """Which part of the rows that carry what an edge leads to are new; and a little, for what comes to all."""
    first, last, n_fresh = below.indptr[below.start[edge]], below.indptr[below.stop[edge]], 0
    for a in range(first, last):
        n_fresh += is_fresh[np.uint64(below.rows[a])]
    return np.float32(0.1 + n_fresh / max(1, last - first))


@njit(nogil=True, cache=True, boundscheck=False, inline="always")
def _join(row, place, keys, used, key):
    keys[used] = key
    used += place[row] < 0
    place[row] = 0
    return used


@njit(nogil=True, cache=True, boundscheck=False)
def _places(below, edges, first_label, rows, first_row, stood, place):
    """Which rows carry what each edge leads to, as :class:`Labels` has it, and where support vectors are, -1 for none.

    Places are among the ``rows`` of a node; carriers that are not there are left out. ``place`` is -1 before and after.
    A row that carries several labels below an edge is there once.
    """
    most = 0
    for n in range(edges.shape[0]):
        most += below.indptr[below.stop[edges[n]]] - below.indptr[below.start[edges[n]]]
    indptr, positions, costs = (
        zeros(edges.shape[0] + 1, np.int64),
        empty(most + 1, np.int32),
        empty(most + 1, np.float32),
    )
    held = empty(stood.positions.shape[0], np.int32)
    last_edge = np.full(rows.shape[0], -1, np.int32)
    used = 0
    for node in range(first_label.shape[0] - 1):
        first_place = first_row[node]
        for at in range(first_place, first_row[node + 1]):
            place[rows[at]] = at - first_place
        for n in range(first_label[node], first_label[node + 1]):
            for a in range(below.indptr[below.start[edges[n]]], below.indptr[below.stop[edges[n]]]):
                row = below.rows[a]
                if place[row] >= 0:
                    at = first_place + place[row]
                    positions[used] = place[row]
                    costs[used] = below.positive_costs[edges[n]] * below.weights[row]
                    used += last_edge[at] != n
                    last_edge[at] = n
            indptr[n + 1] = used
            for a in range(stood.indptr[n], stood.indptr[n + 1]):
                held[a] = place[stood.positions[a]]
        for at in range(first_place, first_row[node + 1]):
            place[rows[at]] = -1
    return indptr, part(positions, 0, used), part(costs, 0, used), held


@njit(nogil=True, cache=True, boundscheck=False)
def _copy_nodes(
    X,
    rows,
    first_row,
    local,
    indptr,
    indices,
    data,
    squares,
    features,
    first_feature,
    last_feature,
    first_label,
    old,
    old_features,
):
    """As :func:`copy_rows` for one node after the other; writes where the features of each are, returns how many.

    Features that edges had weights for, ``old_features[old[n] : old[n + 1]]`` of edge n, are numbered behind those of
    rows, and written by these numbers.
    """
    used = 0
    for node in range(first_feature.shape[0]):
        first, last, begin = first_row[node], first_row[node + 1], used
        room = part(features, used, features.shape[0])
        first_feature[node] = used
        used += copy_rows(
            X,
            part(rows, first, last),
            local,
            part(indptr, first, last + 1),
            indices,
            data,
            part(squares, first, last),
            room,
        )
        for n in range(begin, used):
            local[features[n]] = n - begin
        for a in range(old[first_label[node]], old[first_label[node + 1]]):
            feature = np.uint64(old_features[a])
            is_new = local[feature] < 0
            number = used - begin if is_new else local[feature]
            features[used] = feature
            old_features[a] = local[feature] = number
            used += is_new
        for n in range(begin, used):
            local[features[n]] = -1
        last_feature[node] = used
    return used


def join_support(stood: Support, held: np.ndarray, found: Support) -> Support:
    """What is ``found`` of some rows, and what ``stood`` says of others, those of which ``held`` is -1; by row."""
    return Support(*_join_support(frozen(stood), read_only(held), frozen(found)))


@njit(nogil=True, cache=True, boundscheck=False)
def _join_support(stood, held, found):
    n = found.indptr.shape[0] - 1
    indptr, used = zeros(n + 1, np.int64), 0
    most = stood.positions.shape[0] + found.positions.shape[0]
    positions, values = empty(most + 1, np.int32), empty(most + 1, np.float32)
    for label in range(n):
        b, last = found.indptr[label], found.indptr[label + 1]
        for a in range(stood.indptr[label], stood.indptr[label + 1]):
            if held[a] < 0:
                while b < last and found.positions[b] < stood.positions[a]:
                    positions[used], values[used] = found.positions[b], found.values[b]
                    b, used = b + 1, used + 1
                positions[used], values[used] = stood.positions[a], stood.values[a]
                used += 1
        while b < last:
            positions[used], values[used] = found.positions[b], found.values[b]
            b, used = b + 1, used + 1
        indptr[label + 1] = used
    return indptr, part(positions, 0, used), part(values, 0, used)
