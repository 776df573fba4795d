"""Coordinate descent over one working set of :mod:`tailwise.kernels.solvers.svm`.

A set of very many values is visited in *chunks*, ranges of rows one after the other, each in an order of its own: then
rows that lie on disk are read in ascending order and copied together a chunk at a time, and rows in memory stay in the
caches. How a set is cut depends on the set alone, so that rows in memory and on disk give the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import grown, prefetch
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import shuffle, shuffle_state
from tailwise.kernels.solvers.problems import SQUARED_HINGE

_FAST = {"contract", "nsz", "reassoc", "arcp"}
_SWEEPS = 5
_LEAST = 1e-6
_CHUNK_VALUES = 1 << 22
_AHEAD = 3
"""A row is asked for so many rows before its turn: working sets of many rows lie outside of the caches."""
_LINES, _A_LINE = 4, 16


class _Near(NamedTuple):
    """Rows that were copied together; without ``starts`` rows are visited where they lie, and the rest is empty."""

    starts: np.ndarray
    """(n_rows,) int64: where each row begins in ``Rows.indices`` and ``Rows.data``"""
    places: np.ndarray
    """(n_rows,) int32: 1 + which of the copied rows it is, 0 for a row that is not there, -1 for one that is wanted"""
    indptr: np.ndarray
    """(n_rows + 1,) int64: where each of the copied rows begins"""
    indices: np.ndarray
    """(room,) int32"""
    data: np.ndarray
    """(room,) float32"""


class WorkingSet(NamedTuple):
    """Rows of one label, and where their dual stands; (size,) each."""

    rows: np.ndarray
    """int32"""
    costs: np.ndarray
    """float32: +C of a positive, -C of a negative"""
    alphas: np.ndarray
    """float32"""


@njit(nogil=True, cache=True, boundscheck=False)
def _where_they_lie():
    nothing = np.empty(0, np.int64)
    return _Near(nothing, np.empty(0, np.int32), nothing, np.empty(0, np.int32), np.empty(0, np.float32))


@njit(nogil=True, cache=True, boundscheck=False)
def _copy_wanted(rows, near, first, last):
    """Copy the wanted rows of ``first <= row < last`` together, in their order; those of before are gone."""
    count = used = 0
    indices, data = near.indices, near.data
    for row in range(first, last):
        if near.places[row] < 0:
            near.indptr[count] = used
            start, length = near.starts[row], rows.indptr[row + 1] - rows.indptr[row]
            indices, data = grown(indices, used, used + length), grown(data, used, used + length)
            for a in range(length):
                indices[used + a] = rows.indices[start + a]
                data[used + a] = rows.data[start + a]
            used += length
            count += 1
            near.places[row] = count
    near.indptr[count] = used
    return _Near(near.starts, near.places, near.indptr, indices, data)


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _dot(weights, indices, data, start, stop):
    total = np.float32(0)
    for a in range(np.uint64(start), np.uint64(stop)):
        total += data[a] * weights[np.uint64(indices[a])]
    return total


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _add(weights, indices, data, start, stop, step):
    for a in range(np.uint64(start), np.uint64(stop)):
        weights[np.uint64(indices[a])] += step * data[a]


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _add_soft(weights, unsoft, l1, indices, data, start, stop, step):
    for a in range(np.uint64(start), np.uint64(stop)):
        feature = np.uint64(indices[a])
        moved = unsoft[feature] + step * data[a]
        unsoft[feature] = moved
        weights[feature] = max(moved - l1, np.float32(0)) + min(moved + l1, np.float32(0))


@njit(nogil=True, cache=True, boundscheck=False)
def _ask_for(indptr, indices, data, row):
    """Have the start of a row come from memory; what follows comes by itself."""
    start = indptr[row]
    for a in range(start, min(start + _LINES * _A_LINE, indptr[row + 1]), _A_LINE):
        prefetch(indices, np.uint64(a))
        prefetch(data, np.uint64(a))


@njit(nogil=True, cache=True, boundscheck=False)
def _descend(rows, lanes, lane, sets, unsoft, options, near):
    """Coordinate descent over the working set of a lane; its first one, before a scan, is short."""
    size = lanes.size[lane]
    own = WorkingSet(sets.rows[lane, :size], sets.costs[lane, :size], sets.alphas[lane, :size])
    if options.l1 > 0:
        sum_support(rows, own, unsoft)
    sweeps = min(_SWEEPS, options.max_sweeps) if lanes.rounds[lane] < 2 else options.max_sweeps
    bias, error = descend(rows, own, lanes.weights[lane], unsoft, lanes.bias[lane], (sweeps, _LEAST), options, near)
    lanes.bias[lane], lanes.error[lane] = bias, error


@njit(nogil=True, cache=True, boundscheck=False)
def descend(rows, own, weights, unsoft, bias, effort, options, near):
    """Coordinate descent over one working set, with LIBLINEAR's shrinking; returns the bias and the error left.

    ``own`` is a :class:`WorkingSet`, ``weights`` (n_features,) and ``bias`` belong to its α, and with L1 ``unsoft`` is
    what :func:`sum_support` gives, all float32; α, ``weights`` and ``unsoft`` are written. ``effort`` is how many
    sweeps there are at most, and how far a row's gradient may be off without a step. Rows that lie far are those that
    ``near`` has, or else copied chunk by chunk, sweep by sweep.
    """
    sweeps, least = effort
    size = active = own.rows.shape[0]
    order = np.arange(size)
    n_rows = rows.squares.shape[0]
    n_chunks = _count_chunks(rows, own.rows, size)
    ends = np.empty(n_chunks + 1, np.int64)
    far = near.starts.shape[0] > 0
    together = far and size > 0 and near.places[own.rows[0]] > 0
    state = shuffle_state(options.seed)
    error = np.inf
    high_bar, low_bar = np.inf, -np.inf
    for _ in range(sweeps):
        highest, lowest = -np.inf, np.inf
        state = shuffle(order, active, state)
        _sort_by_chunk(order, active, own.rows, n_rows, ends)
        active = 0
        for chunk in range(n_chunks):
            first, last = ends[chunk], ends[chunk + 1]
            bars = (high_bar, low_bar, highest, lowest, bias, least)
            if not far:
                places = near.places
                found = _sweep(
                    rows,
                    rows.indptr,
                    rows.indices,
                    rows.data,
                    places,
                    own,
                    order,
                    first,
                    last,
                    weights,
                    unsoft,
                    options,
                    bars,
                )
            else:
                if not together:
                    _mark(near, own.rows, order, first, last, -1)
                    near = _copy_wanted(rows, near, *_chunk_rows(chunk, n_chunks, n_rows))
                found = _sweep(
                    rows,
                    near.indptr,
                    near.indices,
                    near.data,
                    near.places,
                    own,
                    order,
                    first,
                    last,
                    weights,
                    unsoft,
                    options,
                    bars,
                )
                if not together:
                    _mark(near, own.rows, order, first, last, 0)
            last, highest, lowest, bias = found
            for n in range(first, last):
                order[active], order[n] = order[n], order[active]
                active += 1
        error = highest - lowest
        if error <= options.tol and active == size:
            break
        if error <= options.tol:
            active = size
            high_bar, low_bar = np.inf, -np.inf
        else:
            high_bar = highest if highest > 0 else np.inf
            low_bar = lowest if lowest < 0 else -np.inf
    return bias, error


@njit(nogil=True, cache=True, boundscheck=False)
def sum_support(rows, own, total):
    """``total = Σ α_i z_i x_i`` over a :class:`WorkingSet`; writes ``total`` (n_features,)."""
    for feature in range(total.shape[0]):
        total[feature] = 0
    size = own.rows.shape[0]
    for n in range(size):
        _ask_for(rows.indptr, rows.indices, rows.data, own.rows[min(n + _AHEAD, size - 1)])
        row, step = own.rows[n], own.alphas[n] if own.costs[n] > 0 else -own.alphas[n]
        if step != 0:
            _add(total, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], step)


@njit(nogil=True, cache=True, boundscheck=False)
def _count_values(rows, members, size):
    values = 0
    for n in range(size):
        values += rows.indptr[members[n] + 1] - rows.indptr[members[n]]
    return values


@njit(nogil=True, cache=True, boundscheck=False)
def _count_chunks(rows, members, size):
    return 1 + _count_values(rows, members, size) // _CHUNK_VALUES


@njit(nogil=True, cache=True, boundscheck=False)
def _chunk_rows(chunk, n_chunks, n_rows):
    """The half-open range of rows whose ``row * n_chunks // n_rows`` is ``chunk``."""
    return (chunk * n_rows + n_chunks - 1) // n_chunks, ((chunk + 1) * n_rows + n_chunks - 1) // n_chunks


@njit(nogil=True, cache=True, boundscheck=False)
def _sort_by_chunk(order, active, members, n_rows, ends):
    """Put the first ``active`` of ``order`` in the order of their chunks, which end at ``ends``; else as they were."""
    n_chunks = ends.shape[0] - 1
    ends[:] = 0
    if n_chunks == 1:
        ends[1] = active
        return
    before = order[:active].copy()
    for at in before:
        ends[members[at] * n_chunks // n_rows + 1] += 1
    for chunk in range(n_chunks):
        ends[chunk + 1] += ends[chunk]
    used = ends[:-1].copy()
    for at in before:
        chunk = members[at] * n_chunks // n_rows
        order[used[chunk]] = at
        used[chunk] += 1


@njit(nogil=True, cache=True, boundscheck=False)
def _mark(near, members, order, first, last, mark):
    for n in range(first, last):
        near.places[members[order[n]]] = mark


@njit(nogil=True, cache=True, boundscheck=False)
def _sweep(rows, indptr, indices, data, places, own, order, first, last, weights, unsoft, options, bars):
    """Visit ``order[first:last]`` once, those that shrink put behind the others.

    Rows are those of ``indptr``, ``indices`` and ``data``, by ``places`` unless that is empty. ``bars`` are the bounds
    of a gradient to shrink by, its highest and lowest so far, the bias, and how far off a gradient may be. Returns the
    new ``last``, highest and lowest gradient and bias.
    """
    high_bar, low_bar, highest, lowest, bias, least = bars
    scale_squared = np.float32(options.bias_scale * options.bias_scale)
    squared = options.loss == SQUARED_HINGE
    l1 = np.float32(options.l1)
    copied = places.shape[0] > 0
    n = first
    while n < last:
        ahead = own.rows[order[min(n + _AHEAD, last - 1)]]
        _ask_for(indptr, indices, data, places[ahead] - 1 if copied else ahead)
        at = order[n]
        row, cost, alpha = own.rows[at], own.costs[at], own.alphas[at]
        place = places[row] - 1 if copied else row
        start, stop = indptr[place], indptr[place + 1]
        sign = np.float32(1) if cost > 0 else np.float32(-1)
        gradient = sign * (_dot(weights, indices, data, start, stop) + bias) - np.float32(1)
        curvature = rows.squares[row] + scale_squared
        upper = abs(cost)
        if squared:
            half = np.float32(0.5) / upper
            gradient += half * alpha
            curvature += half
            upper = np.float32(np.inf)
        projected = gradient
        if alpha <= 0:
            projected = min(gradient, np.float32(0))
        elif alpha >= upper:
            projected = max(gradient, np.float32(0))
        if (alpha <= 0 and gradient > high_bar) or (alpha >= upper and gradient < low_bar):
            last -= 1
            order[n], order[last] = order[last], order[n]
            continue
        n += 1
        highest, lowest = max(highest, projected), min(lowest, projected)
        if abs(projected) > least and curvature > 0:
            own.alphas[at] = min(max(alpha - gradient / curvature, np.float32(0)), upper)
            step = (own.alphas[at] - alpha) * sign
            if l1 > 0:
                _add_soft(weights, unsoft, l1, indices, data, start, stop, step)
            else:
                _add(weights, indices, data, start, stop, step)
            bias += step * scale_squared
    return last, highest, lowest, bias
