"""Sparse entries by column, and how rows or labels are turned into them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty, zeros
from tailwise.kernels.compilation import njit

_PAGE = 128


class Columns(NamedTuple):
    """A sparse matrix by columns: entries ``indptr[j] : indptr[j + 1]`` of ``rows`` and ``values`` are column j."""

    indptr: np.ndarray
    """(n_columns + 1,) int64"""
    rows: np.ndarray
    """(nnz,) int32"""
    values: np.ndarray
    """(nnz,) float32"""


@njit(nogil=True, cache=True, boundscheck=False)
def to_columns(rows, n_columns):
    """:class:`Columns` of CSR rows, in O(non-zeros): within a column the rows ascend.

    ``rows`` (anything with indptr, indices and data) may be read-only and its indices in any order. Writes nothing.
    """
    indptr = zeros(n_columns + 1, np.int64)
    for a in range(rows.indices.shape[0]):
        indptr[rows.indices[a] + 1] += 1
    for j in range(n_columns):
        indptr[j + 1] += indptr[j]
    place = indptr[:-1].copy()
    members = empty(rows.indices.shape[0], np.int32)
    values = empty(rows.indices.shape[0], np.float32)
    for row in range(rows.indptr.shape[0] - 1):
        for a in range(rows.indptr[row], rows.indptr[row + 1]):
            j = rows.indices[a]
            members[place[j]], values[place[j]] = row, rows.data[a]
            place[j] += 1
    return Columns(indptr, members, values)


@njit(nogil=True, cache=True, boundscheck=False)
def turn_by_feature(starts, labels, keys, values, n_features):
    """Turn weights by label into weights by feature, in place; returns the indptr of the features.

    The weights of ``labels[n]`` are entries ``starts[n] : starts[n + 1]``, ``starts`` ascending. ``keys`` holds the
    feature of each entry and becomes its label, in no order within a feature. Each entry is read once and written once,
    where it belongs (a cycle of displaced entries at a time): a copy would double the memory of a large model.
    ``starts`` and ``labels`` may be read-only; ``keys`` and ``values`` are overwritten.
    """
    indptr = zeros(n_features + 1, np.int64)
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
def copy_by_feature(starts, stops, labels, keys, values, n_features):
    """As :func:`turn_by_feature`, copied: twice as quick, in twice the memory; returns indptr, labels and values.

    The weights of ``labels[n]`` are entries ``starts[n] : stops[n]``; within a feature they come in the order of
    ``labels``. Inputs are only read.
    """
    indptr = zeros(n_features + 1, np.int64)
    for a in range(keys.shape[0]):
        indptr[keys[a] + 1] += 1
    for feature in range(n_features):
        indptr[feature + 1] += indptr[feature]
    place = indptr[:-1].copy()
    turned, moved = empty(keys.shape[0], np.int32), empty(keys.shape[0], np.float32)
    for n in range(labels.shape[0]):
        for a in range(starts[n], stops[n]):
            at = place[np.uint64(keys[a])]
            turned[at], moved[at] = labels[n], values[a]
            place[np.uint64(keys[a])] = at + 1
    return indptr, turned, moved


@njit(nogil=True, cache=True, boundscheck=False)
def merge_columns(old, new, stays):
    """Row by row the entries of ``old`` in columns that stay, and all of ``new``: indptr, indices and data.

    Both are CSR with ascending indices; ``old`` may have fewer rows, and what stays of it has no entries in ``new``.
    ``stays`` is (n_columns of old,) bool. Inputs are only read.
    """
    n_rows, n_old = new.indptr.shape[0] - 1, old.indptr.shape[0] - 1
    indptr = zeros(n_rows + 1, np.int64)
    size = new.indices.shape[0]
    for column in old.indices:
        size += stays[np.uint64(column)]
    indices, data = empty(size, np.int32), empty(size, np.float32)
    used = 0
    for row in range(n_rows):
        b, last = new.indptr[row], new.indptr[row + 1]
        if row < n_old:
            for a in range(old.indptr[row], old.indptr[row + 1]):
                column = old.indices[a]
                if stays[np.uint64(column)]:
                    while b < last and new.indices[b] < column:
                        indices[used], data[used] = new.indices[b], new.data[b]
                        used += 1
                        b += 1
                    indices[used], data[used] = column, old.data[a]
                    used += 1
        while b < last:
            indices[used], data[used] = new.indices[b], new.data[b]
            used += 1
            b += 1
        indptr[row + 1] = used
    return indptr, indices, data


@njit(nogil=True, cache=True, boundscheck=False)
def _find_label(starts, guide, at):
    """The last n with ``starts[n] <= at``, from that of the first entry of its page."""
    n = guide[at // _PAGE]
    while n + 1 < starts.shape[0] and starts[n + 1] <= at:
        n += 1
    return n
