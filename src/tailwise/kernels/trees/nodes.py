"""The problem of one node of a label tree: the rows that come to it, and which of them carry what an edge leads to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.csr import Csr, spread

_FEW = 32
"""Where more than one in so many of all rows come to a node, to mark them costs less than to sort them: of a root, a
hundredth."""


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


def gather_node(
    X: Csr, below: Below, span: tuple[int, int], edges: np.ndarray, visitors: np.ndarray, scratch: Scratch
) -> tuple[np.ndarray, tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """What :class:`Rows` and :class:`Labels` of a node are made of: ``(its rows, six arrays, four arrays)``.

    The rows (int32) are those that carry a label at places ``span[0]:span[1]``, and ``visitors`` (int32, any order),
    each once, ascending; the labels are ``edges`` (int64). Features are numbered in the order in which rows have them,
    so that frequent ones lie together. Where the rows are all of X nothing is copied: the six arrays are empty.
    ``X`` is a :class:`Csr`; all but ``scratch`` may be read-only. Time: the non-zeros of the rows.
    """
    carriers = below.rows[below.indptr[span[0]] : below.indptr[span[1]]]
    rows = _each_once(np.concatenate((carriers, visitors)), scratch.place)
    scratch.place[rows] = np.arange(rows.size, dtype=np.int32)
    labels = _find_carriers(below, edges, rows, scratch.place)
    scratch.place[rows] = -1
    return rows, _copy_rows(X, rows[:0] if rows.size == scratch.place.size else rows, below.weights, scratch), labels


def _each_once(rows: np.ndarray, place: np.ndarray) -> np.ndarray:
    """``np.unique(rows)``; ``place`` (n_samples,) is -1 before and after."""
    if rows.size * _FEW < place.size:
        return np.unique(rows)
    place[rows] = 0
    found = np.flatnonzero(place == 0).astype(rows.dtype)
    place[found] = -1
    return found


def _find_carriers(
    below: Below, edges: np.ndarray, rows: np.ndarray, place: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """``(indptr, positions, costs of positives, costs of negatives)`` of the edges."""
    start, stop = below.start[edges], below.stop[edges]
    first, last = below.indptr[start], below.indptr[stop]
    if (stop - start > 1).any():
        # A row carries many of the labels that an edge leads to.
        carriers = [np.unique(place[below.rows[a:b]]) for a, b in zip(first, last, strict=True)]
        counts = np.array([own.size for own in carriers], np.int64)
        positions = np.concatenate(carriers)
    else:
        counts = last - first
        positions = place[below.rows[spread(first, counts)[1]]]
    costs = np.repeat(below.positive_costs[edges], counts)
    costs *= below.weights[rows[positions]]
    negative_costs = below.negative_costs[edges].astype(np.float32)
    return np.append(0, np.cumsum(counts)), positions, costs.astype(np.float32), negative_costs


def _copy_rows(X: Csr, rows: np.ndarray, weights: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, ...]:
    """``(indptr, indices, data, squares, features, weights)`` of some rows of X."""
    indptr = np.append(0, np.cumsum(X.indptr[rows + 1] - X.indptr[rows]))
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    squares = np.empty(rows.size, np.float32)
    features = np.empty(min(indptr[-1], scratch.local.size), np.int32)
    n_features = copy_rows(X, rows, scratch.local, indptr, indices, data, squares, features)
    return indptr, indices, data, squares, features[:n_features].copy(), weights[rows].astype(np.float32)


@njit(nogil=True, cache=True, boundscheck=False)
def copy_rows(X, rows, local, indptr, indices, data, squares, features):
    """Copy ``rows`` of X to where ``indptr`` says, their features numbered as they come; returns how many these are.

    Writes ``indices``, ``data``, ``squares``, the sum of squares of each row, and ``features``, of each number that of
    X; ``local`` (n_features,) int32 is -1 before and after. The rest may be read-only.
    """
    n_local = 0
    for i in range(rows.shape[0]):
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
    for number in range(n_local):
        local[features[number]] = -1
    return n_local
