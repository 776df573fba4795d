"""The problems of several nodes of a label tree that go on from where their duals stood, gathered at once."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, frozen, part, read_only, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.problems import FEW_TIMES, Labels, Rows, Several, Support
from tailwise.kernels.sparse.csr import Csr
from tailwise.kernels.trees.nodes import Below, Scratch, copy_rows


def gather_nodes(
    X: Csr,
    squares: np.ndarray,
    below: Below,
    spans: np.ndarray,
    edges: list[np.ndarray],
    visitors: list[np.ndarray] | None,
    stood: Support,
    scratch: Scratch,
) -> tuple[np.ndarray, Rows, np.ndarray, Several, Labels, Support]:
    """The rows of all nodes (int32), and what :func:`tailwise.kernels.solvers.solve.go_on_together` takes of them.

    As :func:`tailwise.kernels.trees.nodes.gather_node` for ``spans`` (n_nodes, 2) and the ``edges`` of each node.
    ``stood`` has the support vectors of these, by numbers of rows: they are visitors too where there are ``visitors``,
    and are left out where they are not among the rows otherwise. ``squares`` (n_samples,) are those of all rows. Rows
    are left where they are if most features occur in a node often; others are copied together, their features numbered
    anew.
    """
    n_samples, n_features = scratch.place.size, scratch.local.size
    first_label = np.append(0, np.cumsum([own.size for own in edges]))
    every = np.concatenate(edges)
    came = visitors if visitors is not None else [np.empty(0, np.int32)] * len(edges)
    first_visitor = np.append(0, np.cumsum([own.size for own in came]))
    keys = _rows_of_nodes(
        below,
        np.ascontiguousarray(spans, np.int64),
        read_only(np.concatenate(came)),
        first_visitor,
        frozen(stood) if visitors is not None else frozen(Support(0 * stood.indptr, stood.positions, stood.values)),
        first_label,
        scratch.place,
    )
    keys.sort()
    shifts = n_samples * np.arange(len(edges) + 1, dtype=np.int64)
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
        own_squares, features = np.empty(rows.size, np.float32), np.empty(indptr[-1], np.int32)
        starts = indptr[:-1]
        used = _copy_nodes(
            X, rows, first_row, scratch.local, indptr, indices, data, own_squares, features, first_feature, last_feature
        )
        packed = Rows(indptr, indices, data, own_squares, features[:used], weights)
    several = Several(first_row, first_label, first_feature, last_feature)
    return rows, frozen(packed), read_only(starts), several, labels, stood._replace(positions=held)


@njit(nogil=True, cache=True, boundscheck=False)
def _rows_of_nodes(below, spans, visitors, first_visitor, stood, first_label, place):
    """Each row of each node once, as ``node * n_samples + row``, in no order; ``place`` is -1 before and after."""
    n_samples, most = place.shape[0], visitors.shape[0] + stood.indptr[first_label[spans.shape[0]]]
    for node in range(spans.shape[0]):
        most += below.indptr[spans[node, 1]] - below.indptr[spans[node, 0]]
    keys = empty(most, np.int64)
    used = 0
    for node in range(spans.shape[0]):
        first, shift = used, node * n_samples
        for a in range(below.indptr[spans[node, 0]], below.indptr[spans[node, 1]]):
            used = _join(below.rows[a], place, keys, used, shift)
        for a in range(first_visitor[node], first_visitor[node + 1]):
            used = _join(visitors[a], place, keys, used, shift)
        for a in range(stood.indptr[first_label[node]], stood.indptr[first_label[node + 1]]):
            used = _join(stood.positions[a], place, keys, used, shift)
        for n in range(first, used):
            place[keys[n] - shift] = -1
    return part(keys, 0, used)


@njit(nogil=True, cache=True, boundscheck=False, inline="always")
def _join(row, place, keys, used, shift):
    keys[used] = shift + row
    used += place[row] < 0
    place[row] = 0
    return used


@njit(nogil=True, cache=True, boundscheck=False)
def _places(below, edges, first_label, rows, first_row, stood, place):
    """Which rows carry what each edge leads to, as :class:`Labels` has it, and where support vectors are, -1 for none.

    Places are among the ``rows`` of a node. ``place`` is -1 before and after. A row that carries several labels below
    an edge is there once.
    """
    most = 0
    for n in range(edges.shape[0]):
        most += below.indptr[below.stop[edges[n]]] - below.indptr[below.start[edges[n]]]
    indptr, positions, costs = zeros(edges.shape[0] + 1, np.int64), empty(most, np.int32), empty(most, np.float32)
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
def _copy_nodes(X, rows, first_row, local, indptr, indices, data, squares, features, first_feature, last_feature):
    """As :func:`copy_rows` for one node after the other; writes where the features of each are, returns how many."""
    used = 0
    for node in range(first_feature.shape[0]):
        first, last = first_row[node], first_row[node + 1]
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
        last_feature[node] = used
    return used
