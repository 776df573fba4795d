"""The problems of :mod:`tailwise.kernels.solvers.svm` over rows that lie on disk: the same bits, and few passes.

Hundreds of labels are solved together. Each pass reads the rows once, in order, and scores a block of them for sixteen
labels after the other; what may join a working set is noted as it comes. Before labels descend, the rows of their
working sets are copied together, in ascending order, for as many labels as there is memory for. Working sets of many
values are visited block by block, for all their labels at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import grown
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.blocks import _descend_by_blocks
from tailwise.kernels.solvers.lanes import LANES, dot_lanes, zero_lanes
from tailwise.kernels.solvers.problems import BYTES_A_VALUE
from tailwise.kernels.solvers.svm import (
    _BINS,
    _NEGATIVES_TO_START,
    _NEWCOMERS,
    _bin_of,
    _forget,
    _Lanes,
    _lowest_bin,
    _make_sets,
    _put_side_by_side,
    _room_for,
    _roomier,
    _Sets,
    _settle,
    _start,
    _take,
    _take_support,
)
from tailwise.kernels.solvers.sweeps import _copy_wanted, _count_blocks, _descend, _Near

_BYTES_A_MEMBER = 24
"""Of a working set and of what may join it: row, cost, α and turn, row and bin."""
_VALUES_A_BLOCK = 1 << 22
_LEAST_ROOM = 1 << 16
"""Values that are copied at once; a block of rows that has more gets more."""
_IDLE, _JUDGED, _DESCENDS, _SCANS = range(4)
"""What a lane waits for: a label, whether its label is solved, a descent, a scan."""


class _Found(NamedTuple):
    """Rows that may join the working sets of labels, as a scan comes to them."""

    rows: np.ndarray
    """(n_lanes, capacity) int32, ascending"""
    bins: np.ndarray
    """(n_lanes, capacity) uint8: by how much each violates its margin"""
    size: np.ndarray
    """(n_lanes,) int64"""
    counts: np.ndarray
    """(n_lanes, bins) int64: of all violators, also of those no longer among ``rows``"""
    worst: np.ndarray
    """(n_lanes,) float32: the largest violation"""


@njit(nogil=True, cache=True, boundscheck=False)
def solve_svm_in_passes(rows, starts, labels, options, memory):
    """As :func:`tailwise.kernels.solvers.svm.solve_svm`, for no old solutions and ``options.l1`` 0: the same bits.

    The values of row i are ``rows.indices[starts[i] :]`` and ``rows.data[starts[i] :]``, as many as ``rows.indptr``
    says. About ``memory`` bytes are taken: at most a quarter for weights and half for working sets, for the more labels
    descend together the fewer passes there are; what is left is for their rows. All arguments are only read.
    """
    n_labels = labels.indptr.shape[0] - 1
    n_rows, n_features = rows.squares.shape[0], rows.features.shape[0]
    group_bytes = n_features * LANES * 4 + n_rows * 2
    n_groups = max(1, min(-(-n_labels // LANES), memory // 4 // group_bytes))
    n_lanes = n_groups * LANES
    groups = _Lanes(
        np.zeros((n_lanes, n_features), np.float32),
        zero_lanes(n_features),
        np.zeros(n_lanes, np.float32),
        np.full(n_lanes, -1, np.int64),
        np.zeros(n_lanes, np.int64),
        np.zeros(n_lanes, np.int64),
        np.zeros(n_rows * n_groups, np.uint16),
        np.zeros(n_lanes, np.float32),
    )
    sets = _make_sets(n_lanes, _NEWCOMERS)
    found = _make_found(n_lanes, 3 * _NEWCOMERS)
    waits = np.full(n_lanes, _IDLE)
    most = memory // 2
    wanted = 0
    for label in range(n_labels):
        wanted += _bytes_of(labels, label)
    room = max((memory - n_groups * group_bytes - min(wanted, most)) // BYTES_A_VALUE, _LEAST_ROOM)
    near = _Near(
        starts,
        np.zeros(n_rows, np.int32),
        np.empty(n_rows + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.float32),
    )
    begin, count = np.zeros(n_labels, np.int64), np.zeros(n_labels, np.int64)
    bias = np.empty(n_labels, np.float32)
    features, values = np.empty(n_features, np.int32), np.empty(n_features, np.float32)
    first, n_support = np.zeros(n_labels, np.int64), np.zeros(n_labels, np.int64)
    positions, signed = np.empty(_NEWCOMERS, np.int32), np.empty(_NEWCOMERS, np.float32)
    next_label = done = used = kept = 0
    held = 0
    while True:
        waiting = 1
        while waiting:
            waiting = 0
            for at in range(n_lanes):
                label = groups.label[at]
                if _is_solved(groups, at, waits[at], options):
                    lanes, own = _group_of(groups, at, n_groups), _sets_of(sets, at)
                    features = grown(features, used, used + n_features)
                    values = grown(values, used, used + n_features)
                    count[label] = _take(lanes, at % LANES, options.prune, features, values, used)
                    begin[label], bias[label] = used, groups.bias[at]
                    used += count[label]
                    positions = grown(positions, kept, kept + groups.size[at])
                    signed = grown(signed, kept, kept + groups.size[at])
                    n_support[label] = _take_support(lanes, at % LANES, own, positions, signed, kept)
                    first[label] = kept
                    kept += n_support[label]
                    _forget(lanes, at % LANES, own)
                    groups.label[at] = -1
                    waits[at] = _IDLE
                    held -= _bytes_of(labels, label)
                    done += 1
                if waits[at] == _JUDGED:
                    waits[at] = _DESCENDS
                if waits[at] == _IDLE and next_label < n_labels:
                    wanted = _bytes_of(labels, next_label)
                    if held == 0 or held + wanted <= most:
                        label = next_label
                        next_label += 1
                        held += wanted
                        groups.label[at] = label
                        groups.rounds[at] = 0
                        groups.bias[at] = options.bias_centre
                        positives = labels.indptr[label + 1] - labels.indptr[label]
                        sets = _roomier(sets, groups.size, 2 * positives + _NEGATIVES_TO_START)
                        _start(rows, labels, label, _group_of(groups, at, n_groups), at % LANES, _sets_of(sets, at))
                        waits[at] = _DESCENDS
                waiting += waits[at] == _DESCENDS
            if waiting:
                near = _descend_some(rows, labels, groups, sets, waits, options, near)
        if done == n_labels:
            return begin, count, features, values, bias, first, n_support, positions, signed
        found = _cleared(found, 3 * _room_for(np.max(groups.size)))
        _scan(rows, starts, groups, n_groups, waits, found)
        for at in range(n_lanes):
            if waits[at] == _SCANS:
                newcomers = _room_for(groups.size[at])
                sets = _roomier(sets, groups.size, groups.size[at] + newcomers)
                lanes = _group_of(groups, at, n_groups)
                _join(rows, lanes, at, sets, found, labels.negative_costs[groups.label[at]], newcomers)
                waits[at] = _JUDGED


@njit(nogil=True, cache=True, boundscheck=False)
def _group_of(groups, at, n_groups):
    """The sixteen lanes that lane ``at`` of all belongs to."""
    group = at // LANES
    here = slice(group * LANES, (group + 1) * LANES)
    rows = groups.member.shape[0] // n_groups
    return _Lanes(
        groups.weights[here],
        groups.side_by_side,
        groups.bias[here],
        groups.label[here],
        groups.rounds[here],
        groups.size[here],
        groups.member[group * rows : (group + 1) * rows],
        groups.error[here],
    )


@njit(nogil=True, cache=True, boundscheck=False)
def _sets_of(sets, at):
    here = slice(at // LANES * LANES, (at // LANES + 1) * LANES)
    return _Sets(sets.rows[here], sets.costs[here], sets.alphas[here])


@njit(nogil=True, cache=True, boundscheck=False)
def _make_found(n_lanes, capacity):
    return _Found(
        np.empty((n_lanes, capacity), np.int32),
        np.empty((n_lanes, capacity), np.uint8),
        np.zeros(n_lanes, np.int64),
        np.zeros((n_lanes, _BINS), np.int64),
        np.zeros(n_lanes, np.float32),
    )


@njit(nogil=True, cache=True, boundscheck=False)
def _cleared(found, capacity):
    if found.rows.shape[1] < capacity:
        return _make_found(found.rows.shape[0], max(capacity, 2 * found.rows.shape[1]))
    found.size[:] = 0
    found.counts[:] = 0
    found.worst[:] = 0
    return found


@njit(nogil=True, cache=True, boundscheck=False)
def _bytes_of(labels, label):
    """About what the working set of a label takes, and what may join it."""
    return _BYTES_A_MEMBER * (6 * (labels.indptr[label + 1] - labels.indptr[label]) + 3 * _NEWCOMERS)


@njit(nogil=True, cache=True, boundscheck=False)
def _is_solved(lanes, lane, waits, options):
    if waits == _JUDGED:
        return lanes.error[lane] <= options.tol or lanes.rounds[lane] >= options.max_rounds
    return waits == _SCANS and lanes.rounds[lane] >= options.max_rounds


@njit(nogil=True, cache=True, boundscheck=False)
def _descend_some(rows, labels, groups, sets, waits, options, near):
    """Descend lanes that wait for it: as many as have their rows copied together at once, at least one.

    Lanes whose sets are visited by blocks come after all others, and then all of them.
    """
    room = near.data.shape[0]
    n_groups = waits.shape[0] // LANES
    values = n_chosen = 0
    chosen = np.empty(waits.shape[0], np.int64)
    for at in range(waits.shape[0]):
        if waits[at] == _DESCENDS and _count_blocks(rows, sets.rows[at], groups.size[at]) == 1:
            members, size = sets.rows[at], groups.size[at]
            more = _count_unmarked(rows, near, members, size)
            if n_chosen == 0 or values + more <= room:
                chosen[n_chosen] = at
                n_chosen += 1
                values += more
                for n in range(size):
                    near.places[members[n]] = -1
    if n_chosen > 0:
        unsoft = np.zeros(0, np.float32)
        near = _copy_wanted(rows, near, 0, near.places.shape[0])
        for at in chosen[:n_chosen]:
            lanes, own = _group_of(groups, at, n_groups), _sets_of(sets, at)
            _descend(rows, lanes, at % LANES, own, unsoft, options, near)
        near.places[:] = 0
    else:
        for at in range(waits.shape[0]):
            if waits[at] == _DESCENDS:
                chosen[n_chosen] = at
                n_chosen += 1
        near = _descend_by_blocks(rows, groups, sets, chosen[:n_chosen], options, near)
    for at in chosen[:n_chosen]:
        lanes, own = _group_of(groups, at, n_groups), _sets_of(sets, at)
        _settle(rows, lanes, at % LANES, own, labels.negative_costs[groups.label[at]])
        waits[at] = _SCANS
    return near


@njit(nogil=True, cache=True, boundscheck=False)
def _count_unmarked(rows, near, members, size):
    values = 0
    for n in range(size):
        row = members[n]
        if near.places[row] == 0:
            values += rows.indptr[row + 1] - rows.indptr[row]
    return values


@njit(nogil=True, cache=True, boundscheck=False)
def _scan(rows, starts, groups, n_groups, waits, found):
    """Read all rows once, a block at a time, and note what violates the margin of a label."""
    n_rows = starts.shape[0]
    scores = np.empty(LANES, np.float32)
    first = 0
    while first < n_rows:
        last = first + 1
        while last < n_rows and rows.indptr[last + 1] - rows.indptr[first] <= _VALUES_A_BLOCK:
            last += 1
        for group in range(n_groups):
            lanes = _group_of(groups, group * LANES, n_groups)
            if np.any(lanes.label >= 0):
                _put_side_by_side(lanes)
                for row in range(first, last):
                    for lane in range(LANES):
                        scores[lane] = lanes.bias[lane]
                    stop = starts[row] + rows.indptr[row + 1] - rows.indptr[row]
                    dot_lanes(lanes.side_by_side, rows.indices, rows.data, starts[row], stop, scores)
                    for lane in range(LANES):
                        if scores[lane] > -1 and lanes.label[lane] >= 0:
                            _note(lanes, lane, found, group * LANES + lane, row, scores[lane] + np.float32(1))
        first = last


@njit(nogil=True, cache=True, boundscheck=False)
def _note(lanes, lane, found, at, row, violation):
    if violation <= 0 or lanes.member[row] & np.uint16(1 << lane):
        return
    room = _room_for(lanes.size[lane])
    if found.size[at] == 3 * room:
        _drop_lowest(found, at, room)
    n, place = found.size[at], _bin_of(violation)
    found.rows[at, n], found.bins[at, n] = row, place
    found.counts[at, place] += 1
    found.worst[at] = max(found.worst[at], violation)
    found.size[at] = n + 1


@njit(nogil=True, cache=True, boundscheck=False)
def _drop_lowest(found, at, room):
    """Keep what may still join: at most twice ``room``.

    Of the bins that would be admitted now the lowest gives its first rows only; if more of higher bins come, it gives
    none, and otherwise these.
    """
    lowest, _ = _lowest_bin(found.counts[at], room)
    kept = passed = 0
    for n in range(found.size[at]):
        own = found.bins[at, n]
        if own > lowest or (own == lowest and passed < room):
            found.rows[at, kept], found.bins[at, kept] = found.rows[at, n], own
            kept += 1
        passed += own >= lowest
    found.size[at] = kept


@njit(nogil=True, cache=True, boundscheck=False)
def _join(rows, lanes, at, sets, found, cost, room):
    """What :func:`tailwise.kernels.solvers.svm._admit` does, from the rows that were noted."""
    lane = at % LANES
    lanes.error[lane] = max(found.worst[at], lanes.error[lane] if lanes.rounds[lane] > 1 else np.float32(np.inf))
    lowest, total = _lowest_bin(found.counts[at], room)
    size = lanes.size[lane]
    most = size + min(total, room)
    for n in range(found.size[at]):
        if size < most and found.bins[at, n] >= lowest:
            row = found.rows[at, n]
            sets.rows[at, size], sets.costs[at, size] = row, -cost * rows.weights[row]
            sets.alphas[at, size] = 0
            lanes.member[row] |= np.uint16(1 << lane)
            size += 1
    lanes.size[lane] = size
