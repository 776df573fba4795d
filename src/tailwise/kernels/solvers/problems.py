"""What every solver of one-vs-rest problems takes and returns. Plain NamedTuples of numpy arrays.

A problem is a set of rows and, for each label, the positions of the rows that carry it; all other rows are
negatives. ``linear`` solves over all rows; ``trees`` over the rows that reach a node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

_PAGE = 128


class Rows(NamedTuple):
    """Rows to learn from, features renumbered so that only those in use take room. Read-only for solvers."""

    indptr: np.ndarray
    """(n_rows + 1,) int64"""
    indices: np.ndarray
    """(nnz,) int32 local feature numbers"""
    data: np.ndarray
    """(nnz,) float32"""
    squares: np.ndarray
    """(n_rows,) float32, the squared length of each row"""
    features: np.ndarray
    """(n_local,) int32, ascending: the feature of X that a local number stands for"""


class Labels(NamedTuple):
    """One binary problem a label: its positives and what an error costs."""

    indptr: np.ndarray
    """(n_labels + 1,) int64"""
    positions: np.ndarray
    """(nnz,) int32: which of ``Rows`` carry the label; ascending within a label"""
    positive_costs: np.ndarray
    """(nnz,) float32 > 0: C of each positive"""
    negative_costs: np.ndarray
    """(n_labels,) float32 > 0: C of every negative of the label"""


class Weights(NamedTuple):
    """Pruned solutions, one sparse vector a label."""

    indptr: np.ndarray
    """(n_labels + 1,) int64"""
    features: np.ndarray
    """(nnz,) int32 features of X, ascending within a label"""
    values: np.ndarray
    """(nnz,) float32, all with magnitude >= ``prune``"""
    bias: np.ndarray
    """(n_labels,) float32"""


def pack_rows(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n_features: int, rows: np.ndarray | None = None
) -> Rows:
    """The rows of a CSR matrix (or those numbered by ``rows``) made ready for solvers.

    With ``rows=None`` nothing is copied and all ``n_features`` are kept; otherwise the chosen rows are copied
    with their features renumbered, in O(their non-zeros + n_features).

    >>> packed = pack_rows(np.array([0, 1, 3]), np.array([4, 1, 9]), np.ones(3), 10, rows=np.array([1]))
    >>> packed.indices, packed.features
    (array([0, 1], dtype=int32), array([1, 9], dtype=int32))
    """
    indices = indices.astype(np.int32, copy=False)
    data = data.astype(np.float32, copy=False)
    if rows is None:
        indptr = indptr.astype(np.int64, copy=False)
        parts = (indptr, indices, data, _squares(indptr, data), np.arange(n_features, dtype=np.int32))
    else:
        given = read_only(indptr), read_only(indices), read_only(data)
        parts = _gather(*given, n_features, rows.astype(np.int64, copy=False))
    return Rows(*(read_only(part) for part in parts))


@njit(nogil=True, cache=True, boundscheck=False)
def turn_by_feature(starts, labels, keys, values, n_features):
    """Turn weights by label into weights by feature, in place; returns the indptr of the features.

    The weights of ``labels[n]`` are entries ``starts[n] : starts[n + 1]``, ``starts`` ascending. ``keys`` holds the
    feature of each entry and becomes its label, in no order within a feature. Each entry is read once and written once,
    where it belongs (a cycle of displaced entries at a time): a copy would double the memory of a large model.
    """
    indptr = np.zeros(n_features + 1, np.int64)
    for a in range(keys.shape[0]):
        indptr[keys[a] + 1] += 1
    for feature in range(n_features):
        indptr[feature + 1] += indptr[feature]
    place = indptr[:-1].copy()
    guide = np.searchsorted(starts, np.arange(0, keys.shape[0], _PAGE), side="right") - 1
    for feature in range(n_features):
        while place[feature] < indptr[feature + 1]:
            first = at = place[feature]
            key, value = keys[at], values[at]
            label = labels[_find_label(starts, guide, at)]
            while key != feature:
                at = place[key]
                place[key] = at + 1
                key, keys[at] = keys[at], label
                value, values[at] = values[at], value
                label = labels[_find_label(starts, guide, at)]
            keys[first], values[first] = label, value
            place[feature] = first + 1
    return indptr


@njit(nogil=True, cache=True, boundscheck=False)
def _find_label(starts, guide, at):
    """The last n with ``starts[n] <= at``, from that of the first entry of its page."""
    n = guide[at // _PAGE]
    while n + 1 < starts.shape[0] and starts[n + 1] <= at:
        n += 1
    return n


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view: solvers then compile once for the arrays of memory and those of mapped files."""
    view = array.view()
    view.setflags(write=False)
    return view


@njit(nogil=True, cache=True, boundscheck=False)
def _squares(indptr, data):
    squares = np.zeros(indptr.shape[0] - 1, np.float32)
    for row in range(squares.shape[0]):
        total = 0.0
        for a in range(indptr[row], indptr[row + 1]):
            total += np.float64(data[a]) * np.float64(data[a])
        squares[row] = total
    return squares


@njit(nogil=True, cache=True, boundscheck=False)
def _gather(indptr, indices, data, n_features, rows):
    new_indptr = np.zeros(rows.shape[0] + 1, np.int64)
    used = np.zeros(n_features, np.bool_)
    for i in range(rows.shape[0]):
        start, stop = indptr[rows[i]], indptr[rows[i] + 1]
        new_indptr[i + 1] = new_indptr[i] + stop - start
        for a in range(start, stop):
            used[np.uint64(indices[a])] = True
    features = np.flatnonzero(used).astype(np.int32)
    local = np.empty(n_features, np.int32)
    for number in range(features.shape[0]):
        local[features[number]] = number
    new_indices = np.empty(new_indptr[-1], np.int32)
    new_data = np.empty(new_indptr[-1], np.float32)
    for i in range(rows.shape[0]):
        shift = new_indptr[i] - indptr[rows[i]]
        for a in range(indptr[rows[i]], indptr[rows[i] + 1]):
            new_indices[a + shift] = local[np.uint64(indices[a])]
            new_data[a + shift] = data[a]
    return new_indptr, new_indices, new_data, _squares(new_indptr, new_data), features
