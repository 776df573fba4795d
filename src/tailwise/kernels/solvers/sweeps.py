"""Coordinate descent over one working set of :mod:`tailwise.kernels.solvers.svm`.

A set of many values is visited by *blocks*, ranges of rows: in every sweep in another order of the blocks, which is
the same for all labels, and within a block in another order of its rows. So rows that lie on disk can be read a block
at a time for all labels that descend (:mod:`tailwise.kernels.solvers.blocks`). How a set is visited depends on the rows
and on the set, never on the memory there is: rows in memory and on disk give the same bits.
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
_TIMES = 4
_LEAST = 1e-6
_BLOCK_VALUES = 1 << 22
"""Of a block of rows; one row may begin before the end."""
_WHOLE_VALUES = 1 << 18
"""Of a working set that is visited in one order, whatever the blocks."""
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


class Course(NamedTuple):
    """Where a descent stands, between sweeps or between the blocks of one."""

    order: np.ndarray
    """(size,) int32: the members of the working set, those that are visited first, in the order of their visits"""
    ends: np.ndarray
    """(n_blocks + 1,) int64: ``order[ends[b] : ends[b + 1]]`` are those of the block that is visited as number b"""
    active: np.ndarray
    """(2,) int64: how many members this sweep visits, and how many of them stay for the next, so far"""
    bars: np.ndarray
    """(5,) float64: the gradients from which members are left out, high and low; the highest and the lowest of this
    sweep so far; the error of the last"""
    state: np.ndarray
    """(1,) uint64: of the random order"""


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
    effort = (_sweeps_of(lanes, lane, options), _LEAST)
    bias, error = descend(rows, own, lanes.weights[lane], unsoft, lanes.bias[lane], effort, options, near)
    lanes.bias[lane], lanes.error[lane] = bias, error


@njit(nogil=True, cache=True, boundscheck=False)
def _sweeps_of(lanes, lane, options):
    return min(_SWEEPS, options.max_sweeps) if lanes.rounds[lane] < 2 else options.max_sweeps


@njit(nogil=True, cache=True, boundscheck=False)
def descend(rows, own, weights, unsoft, bias, effort, options, near):
    """Coordinate descent over one working set, with LIBLINEAR's shrinking; returns the bias and the error left.

    ``own`` is a :class:`WorkingSet`, ``weights`` (n_features,) and ``bias`` belong to its α, and with L1 ``unsoft`` is
    what :func:`sum_support` gives, all float32; α, ``weights`` and ``unsoft`` are written. ``effort`` is how many
    sweeps there are at most, and how far a row's gradient may be off without a step. ``near`` has copies of all rows of
    the set, or tells that they are visited where they lie.
    """
    sweeps, least = effort
    size = own.rows.shape[0]
    n_blocks = _count_blocks(rows, own.rows, size)
    course = Course(
        np.empty(size, np.int32),
        np.empty(n_blocks + 1, np.int64),
        np.empty(2, np.int64),
        np.empty(5, np.float64),
        np.empty(1, np.uint64),
    )
    _begin(course, options)
    how = (_times_of(sweeps, n_blocks), least)
    visits, ranks = np.arange(n_blocks), np.zeros(n_blocks, np.int64)
    state = shuffle_state(options.seed)
    for _ in range(_most_of(sweeps, n_blocks)):
        state = _next_visits(visits, ranks, state)
        _begin_sweep(rows, own, course, ranks)
        for number in range(n_blocks):
            if near.starts.shape[0] > 0:
                copies = (near.indptr, near.indices, near.data, near.places)
                bias = _visit(rows, copies, own, course, number, weights, unsoft, bias, how, options)
            else:
                themselves = (rows.indptr, rows.indices, rows.data, near.places)
                bias = _visit(rows, themselves, own, course, number, weights, unsoft, bias, how, options)
        if _end_sweep(course, options):
            break
    return bias, course.bars[4]


@njit(nogil=True, cache=True, boundscheck=False)
def _begin(course, options):
    size = course.order.shape[0]
    for n in range(size):
        course.order[n] = n
    course.active[0] = size
    course.bars[0], course.bars[1], course.bars[4] = np.inf, -np.inf, np.inf
    course.state[0] = shuffle_state(options.seed)


@njit(nogil=True, cache=True, boundscheck=False)
def _next_visits(visits, ranks, state):
    """The order of the blocks in the next sweep, the same for every label: ``ranks[visits[number]]`` is ``number``."""
    if visits.shape[0] > 1:
        state = shuffle(visits, visits.shape[0], state)
        for number in range(visits.shape[0]):
            ranks[visits[number]] = number
    return state


@njit(nogil=True, cache=True, boundscheck=False)
def _begin_sweep(rows, own, course, ranks):
    course.state[0] = shuffle(course.order, course.active[0], course.state[0])
    _sort_by_block(rows, own.rows, course, ranks)
    course.active[1] = 0
    course.bars[2], course.bars[3] = -np.inf, np.inf


@njit(nogil=True, cache=True, boundscheck=False)
def _times_of(sweeps, n_blocks):
    """How often the members of a block are visited before the next block is.

    Several times where there are many sweeps: so far fewer of them read all rows (Yu et al. 2010).
    """
    return 1 if n_blocks == 1 or sweeps <= _SWEEPS else _TIMES


@njit(nogil=True, cache=True, boundscheck=False)
def _most_of(sweeps, n_blocks):
    """How many sweeps over all blocks there are at most."""
    return -(-sweeps // _times_of(sweeps, n_blocks))


@njit(nogil=True, cache=True, boundscheck=False)
def _visit(rows, source, own, course, number, weights, unsoft, bias, how, options):
    """Visit the members of one block, by its number in this sweep, in ``source``: what :func:`_sweep` needs of rows.

    ``how`` is how often, and how far a gradient may be off without a step. The gradients of the first time count for
    the sweep; the block is left as soon as they are within ``options.tol``.
    """
    times, least = how
    first, last = course.ends[number], course.ends[number + 1]
    order, active = course.order, course.active[1]
    for time in range(times):
        if time > 0:
            course.state[0] = shuffle(order[first:last], last - first, course.state[0])
        bars = (course.bars[0], course.bars[1], -np.inf, np.inf, bias, least)
        last, highest, lowest, bias = _sweep(rows, source, own, order, first, last, weights, unsoft, options, bars)
        if time == 0:
            course.bars[2], course.bars[3] = max(course.bars[2], highest), min(course.bars[3], lowest)
        if highest - lowest <= options.tol:
            break
    for n in range(first, last):
        order[active], order[n] = order[n], order[active]
        active += 1
    course.active[1] = active
    return bias


@njit(nogil=True, cache=True, boundscheck=False)
def _end_sweep(course, options):
    """What the next sweep visits; True where there is none to be."""
    size, bars = course.order.shape[0], course.bars
    highest, lowest = bars[2], bars[3]
    bars[4] = highest - lowest
    course.active[0] = course.active[1]
    if bars[4] <= options.tol:
        if course.active[0] == size:
            return True
        course.active[0] = size
        bars[0], bars[1] = np.inf, -np.inf
    else:
        bars[0] = highest if highest > 0 else np.inf
        bars[1] = lowest if lowest < 0 else -np.inf
    return False


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
def _count_blocks(rows, members, size):
    return 1 if _count_values(rows, members, size) <= _WHOLE_VALUES else _blocks_of(rows)


@njit(nogil=True, cache=True, boundscheck=False)
def _blocks_of(rows):
    return max(0, rows.indptr[-1] - 1) // _BLOCK_VALUES + 1


@njit(nogil=True, cache=True, boundscheck=False)
def _rows_of_block(rows, block, n_blocks):
    """The half-open range of rows that begin in the block; empty ones after all values belong to the last."""
    starts = rows.indptr[:-1]
    first = np.searchsorted(starts, block * _BLOCK_VALUES)
    return first, starts.shape[0] if block == n_blocks - 1 else np.searchsorted(starts, (block + 1) * _BLOCK_VALUES)


@njit(nogil=True, cache=True, boundscheck=False)
def _sort_by_block(rows, members, course, ranks):
    """Put the active members in the order of their blocks' ranks, ``course.ends``; within a block as they were."""
    order, active, ends = course.order, course.active[0], course.ends
    n_blocks = ends.shape[0] - 1
    ends[:] = 0
    if n_blocks == 1:
        ends[1] = active
        return
    before = order[:active].copy()
    for at in before:
        ends[ranks[min(rows.indptr[members[at]] // _BLOCK_VALUES, n_blocks - 1)] + 1] += 1
    for number in range(n_blocks):
        ends[number + 1] += ends[number]
    used = ends[:-1].copy()
    for at in before:
        number = ranks[min(rows.indptr[members[at]] // _BLOCK_VALUES, n_blocks - 1)]
        order[used[number]] = at
        used[number] += 1


@njit(nogil=True, cache=True, boundscheck=False)
def _sweep(rows, source, own, order, first, last, weights, unsoft, options, bars):
    """Visit ``order[first:last]`` once, those that shrink put behind the others.

    Rows are those of ``source``: indptr, indices and data, by their places there unless these are empty. ``bars`` are
    the bounds of a gradient to shrink by, its highest and lowest so far, the bias, and how far off a gradient may be.
    Returns the new ``last``, highest and lowest gradient and bias.
    """
    indptr, indices, data, places = source
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
