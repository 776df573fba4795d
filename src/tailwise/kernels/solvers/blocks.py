"""Descents of many labels over rows on disk whose working sets are more than memory: side by side, block by block.

Each sweep reads the rows once, a block after the other, and every label visits its own rows of a block while these are
in memory. It is the order in which a label alone would visit them (:mod:`tailwise.kernels.solvers.sweeps`), and labels
exchange nothing: the bits are the same. As soon as what is left to visit fits into memory, it is read once and kept.
"""

from __future__ import annotations

import numpy as np

from tailwise.kernels.compilation import njit
from tailwise.kernels.random import shuffle_state
from tailwise.kernels.solvers.sweeps import (
    _LEAST,
    Course,
    WorkingSet,
    _begin,
    _begin_sweep,
    _blocks_of,
    _copy_wanted,
    _end_sweep,
    _most_of,
    _next_visits,
    _rows_of_block,
    _sweeps_of,
    _times_of,
    _visit,
)


@njit(nogil=True, cache=True, boundscheck=False)
def _descend_by_blocks(rows, groups, sets, chosen, options, near):
    """Descend the lanes ``chosen``, whose working sets are visited by blocks; returns what ``near`` is by then.

    No row is near before or after. Weights, biases, errors and α of these lanes are written.
    """
    n_chosen, n_blocks = chosen.shape[0], _blocks_of(rows)
    first = np.zeros(n_chosen + 1, np.int64)
    for n in range(n_chosen):
        first[n + 1] = first[n] + groups.size[chosen[n]]
    order = np.empty(first[n_chosen], np.int32)
    ends, active = np.empty((n_chosen, n_blocks + 1), np.int64), np.empty((n_chosen, 2), np.int64)
    bars, states = np.empty((n_chosen, 5), np.float64), np.empty((n_chosen, 1), np.uint64)
    going = np.ones(n_chosen, np.bool_)
    for n in range(n_chosen):
        _begin(Course(order[first[n] : first[n + 1]], ends[n], active[n], bars[n], states[n]), options)
    visits, ranks = np.arange(n_blocks), np.zeros(n_blocks, np.int64)
    state = shuffle_state(options.seed)
    unsoft = np.zeros(0, np.float32)
    sweep = 0
    while np.any(going):
        state = _next_visits(visits, ranks, state)
        for n in range(n_chosen):
            if going[n]:
                course = Course(order[first[n] : first[n + 1]], ends[n], active[n], bars[n], states[n])
                _begin_sweep(rows, _own(groups, sets, chosen[n]), course, ranks)
        near, together = _all_near(rows, groups, sets, chosen, going, order, first, active, near)
        for number in range(n_blocks):
            start, stop = _rows_of_block(rows, visits[number], n_blocks)
            if not together:
                for n in range(n_chosen):
                    if going[n]:
                        here = order[first[n] + ends[n, number] : first[n] + ends[n, number + 1]]
                        _mark(near, sets.rows[chosen[n]], here)
                near = _copy_wanted(rows, near, start, stop)
            copies = (near.indptr, near.indices, near.data, near.places)
            for n in range(n_chosen):
                if going[n]:
                    at = chosen[n]
                    course = Course(order[first[n] : first[n + 1]], ends[n], active[n], bars[n], states[n])
                    own, weights, bias = _own(groups, sets, at), groups.weights[at], groups.bias[at]
                    how = (_times_of(_sweeps_of(groups, at, options), n_blocks), _LEAST)
                    groups.bias[at] = _visit(rows, copies, own, course, number, weights, unsoft, bias, how, options)
            if not together:
                near.places[start:stop] = 0
        sweep += 1
        for n in range(n_chosen):
            if going[n]:
                course = Course(order[first[n] : first[n + 1]], ends[n], active[n], bars[n], states[n])
                most = _most_of(_sweeps_of(groups, chosen[n], options), n_blocks)
                going[n] = not _end_sweep(course, options) and sweep < most
                groups.error[chosen[n]] = bars[n, 4]
    near.places[:] = 0
    return near


@njit(nogil=True, cache=True, boundscheck=False)
def _own(groups, sets, at):
    size = groups.size[at]
    return WorkingSet(sets.rows[at, :size], sets.costs[at, :size], sets.alphas[at, :size])


@njit(nogil=True, cache=True, boundscheck=False)
def _all_near(rows, groups, sets, chosen, going, order, first, active, near):
    """Whether all rows that this sweep visits are copied together; they are made so if there is room, else none is."""
    missing = False
    for n in range(chosen.shape[0]):
        if going[n]:
            members = sets.rows[chosen[n]]
            for place in order[first[n] : first[n] + active[n, 0]]:
                if near.places[members[place]] <= 0:
                    missing = True
                    break
    if not missing:
        return near, True
    near.places[:] = 0
    values = 0
    for n in range(chosen.shape[0]):
        if going[n]:
            members = sets.rows[chosen[n]]
            for place in order[first[n] : first[n] + active[n, 0]]:
                row = members[place]
                if near.places[row] == 0:
                    near.places[row] = -1
                    values += rows.indptr[row + 1] - rows.indptr[row]
    if values <= near.data.shape[0]:
        return _copy_wanted(rows, near, 0, near.places.shape[0]), True
    near.places[:] = 0
    return near, False


@njit(nogil=True, cache=True, boundscheck=False)
def _mark(near, members, order):
    """Say that rows are wanted which are not there."""
    for place in order:
        near.places[members[place]] = -1
