"""The problems of :mod:`tailwise.kernels.solvers.svm` over many rows, in memory or on disk: the same bits, few passes.

Rows are cut into *blocks* of some millions of values. A pass comes to one block after the other, and while a block is
there it is scored for all labels that are solved together, sixteen at a time; then each label descends, several times,
over those of its rows that lie in the block and over those that violate its margin (Yu et al. 2010). So a pass is a
scan and some sweeps of all labels at once, and the gradients on the way say which labels are solved.

Rows of one block find their balance soon, and rows of two blocks hardly ever: a block's rows can take over what those
of another should carry at almost no cost. So a block is made of strips from all over the rows, of other strips in each
pass. With the same blocks in each pass the objective was off by 0.7 % after 20 passes, with others by 0.01 % after six.

What a block is follows from the rows and the seed, never from the memory there is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import ask_for_pages, empty, read_around, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import shuffle, shuffle_state
from tailwise.kernels.solvers.lanes import LANES, dot_lanes, zero_lanes
from tailwise.kernels.solvers.svm import (
    _BINS,
    _NEGATIVES_TO_START,
    _NEWCOMERS,
    _bin_of,
    _Lanes,
    _lowest_bin,
    _make_sets,
    _put_side_by_side,
    _room_for,
    _roomier,
    _take,
    _take_support,
)
from tailwise.kernels.solvers.sweeps import _LEAST, WorkingSet, _sweep
from tailwise.kernels.sparse.sorting import index_of, sort_keys

_STRIPS = 32
"""Of a block."""
_BYTES_A_WEIGHT = 12
"""While a label is solved, and then with its feature."""
_BYTES_A_MEMBER = 24
"""Of a set: row, cost and α, twice."""


class Plan(NamedTuple):
    """How rows are cut, and how often they are visited."""

    block: int = 1 << 22
    """values of a block"""
    times: int = 4
    """how often a label visits its rows of a block before the next block"""
    passes: int = 20
    """at most"""


class _Blocks(NamedTuple):
    """The rows of a pass."""

    turns: np.ndarray
    """(n_rows,) int32: the rows in the order of their blocks, ascending within one"""
    ends: np.ndarray
    """(n_blocks + 1,) int64: block b has ``turns[ends[b] : ends[b + 1]]``"""
    places: np.ndarray
    """(n_rows,) int32: where each row is in ``turns``"""


class _Course(NamedTuple):
    """Where labels stand within a pass, (n_lanes,) each."""

    opened: np.ndarray
    """bool: whether the label has visited a row yet"""
    read: np.ndarray
    """int64: members of its set that were visited in this pass"""
    written: np.ndarray
    """int64: members of the set to come"""
    highest: np.ndarray
    """float64: the highest gradient so far"""
    lowest: np.ndarray
    """float64"""
    state: np.ndarray
    """uint64: of the random order"""


class _Hits(NamedTuple):
    """Rows of a block that violate the margins of labels which do not have them in their sets."""

    rows: np.ndarray
    """(n,) int32"""
    bins: np.ndarray
    """(n + 1, 16) uint8: by how much, for each lane; 0 for not at all. The last is of the row that is looked at"""
    counts: np.ndarray
    """(16, bins) int64: how many rows of the block, for each lane"""


@njit(nogil=True, cache=True, boundscheck=False)
def solve_svm_in_passes(rows, starts, labels, options, plan, memory):
    """As :func:`tailwise.kernels.solvers.svm.solve_svm`, for no old solutions and ``options.l1`` 0.

    The values of row i are ``rows.indices[starts[i] :]`` and ``rows.data[starts[i] :]``, as many as ``rows.indptr``
    says. As many labels are solved together as have their weights and sets in about ``memory`` bytes, sixteen at least:
    for rows on disk it says how often these are read, and 0 says that they are in memory. The result does not depend on
    it. There are at most ``options.max_rounds`` passes after the first, and ``plan.passes`` in all. All arguments are
    only read.
    """
    n_labels = labels.indptr.shape[0] - 1
    begin, count = zeros(n_labels, np.int64), zeros(n_labels, np.int64)
    bias = empty(n_labels, np.float32)
    features, values = empty(0, np.int32), empty(0, np.float32)
    first, n_support = zeros(n_labels, np.int64), zeros(n_labels, np.int64)
    positions, signed = empty(0, np.int32), empty(0, np.float32)
    used = kept = start = 0
    while start < n_labels:
        stop = _last_of(rows, labels, start, memory)
        if memory > 0:
            read_around(rows.indices, False)
            read_around(rows.data, False)
        lanes, sets = _solve_together(rows, starts, labels, start, stop, options, plan, memory > 0)
        more = _count_weights(lanes, stop - start, options.prune)
        features, values = _longer(features, used, more), _longer(values, used, more)
        more = np.sum(lanes.size[: stop - start])
        positions, signed = _longer(positions, kept, more), _longer(signed, kept, more)
        for at in range(stop - start):
            label = start + at
            count[label] = _take(lanes, at, options.prune, features, values, used)
            begin[label], bias[label] = used, lanes.bias[at]
            used += count[label]
            n_support[label] = _take_support(lanes, at, sets, positions, signed, kept)
            first[label] = kept
            kept += n_support[label]
        start = stop
    if memory > 0:
        read_around(rows.indices, True)
        read_around(rows.data, True)
    return begin, count, features, values, bias, first, n_support, positions, signed


@njit(nogil=True, cache=True, boundscheck=False)
def _count_weights(lanes, n_lanes, prune):
    """How many weights lanes keep; without weights whose magnitude is 0."""
    total = 0
    for lane in range(n_lanes):
        for weight in lanes.weights[lane]:
            total += abs(weight) >= prune and weight != 0
    return total


@njit(nogil=True, cache=True, boundscheck=False)
def _longer(array, used, more):
    """A copy with so many more entries and not one beyond: what labels are solved to may be most of the memory."""
    longer = empty(used + more, array.dtype)
    longer[:used] = array[:used]
    return longer


@njit(nogil=True, cache=True, boundscheck=False)
def _last_of(rows, labels, start, memory):
    """The labels from ``start`` to before this one are solved together: so many sixteens as memory serves."""
    n_labels = labels.indptr.shape[0] - 1
    weights = LANES * _BYTES_A_WEIGHT * rows.features.shape[0] + 2 * rows.squares.shape[0]
    taken, stop = 0, start
    while stop < n_labels:
        last = min(stop + LANES, n_labels)
        members = 2 * (labels.indptr[last] - labels.indptr[stop]) + LANES * 4 * _NEWCOMERS
        taken += weights + _BYTES_A_MEMBER * members
        if stop > start and taken > memory:
            break
        stop = last
    return stop


@njit(nogil=True, cache=True, boundscheck=False)
def _solve_together(rows, starts, labels, start, stop, options, plan, far):
    """The labels from ``start`` to before ``stop``, one a lane: their lanes and sets in the end."""
    n_rows, n_features = rows.squares.shape[0], rows.features.shape[0]
    n_groups = -(-(stop - start) // LANES)
    n_lanes = n_groups * LANES
    groups = _Lanes(
        zeros((n_lanes, n_features), np.float32),
        zero_lanes(n_features),
        np.full(n_lanes, options.bias_centre, np.float32),
        np.full(n_lanes, -1, np.int64),
        zeros(n_lanes, np.int64),
        zeros(n_lanes, np.int64),
        zeros(n_rows * n_groups, np.uint16),
        np.full(n_lanes, np.inf, np.float32),
    )
    course = _Course(
        zeros(n_lanes, np.bool_),
        zeros(n_lanes, np.int64),
        zeros(n_lanes, np.int64),
        zeros(n_lanes, np.float64),
        zeros(n_lanes, np.float64),
        np.full(n_lanes, shuffle_state(options.seed)),
    )
    sets, coming = _make_sets(n_lanes, _NEWCOMERS), _make_sets(n_lanes, _NEWCOMERS)
    for at in range(stop - start):
        groups.label[at] = start + at
        sets = _roomier(sets, groups.size, labels.indptr[start + at + 1] - labels.indptr[start + at])
        _begin(labels, groups, at, n_groups, sets)
    most = min(options.max_rounds + 1, plan.passes)
    number = 0
    while number < most and np.any(groups.label >= 0):
        blocks = _cut_rows(rows.indptr, plan.block, number, options.seed)
        for at in range(n_lanes):
            if groups.label[at] >= 0:
                _sort(sets, at, groups.size[at], blocks.places)
                course.read[at] = course.written[at] = 0
                course.highest[at] = course.lowest[at] = 0
        if far:
            _ask_for_block(rows, starts, blocks, 0)
        most_rows = np.max(np.diff(blocks.ends))
        hits = _Hits(
            empty(most_rows, np.int32),
            empty((most_rows + 1, LANES), np.uint8),
            zeros((LANES, _BINS), np.int64),
        )
        for block in range(blocks.ends.shape[0] - 1):
            if far:
                _ask_for_block(rows, starts, blocks, block + 1)
            for group in range(n_groups):
                here = slice(group * LANES, (group + 1) * LANES)
                if np.any(groups.label[here] >= 0):
                    lanes = _group_of(groups, group, n_groups)
                    n_hits = _score(rows, starts, lanes, blocks, block, hits)
                    for at in range(group * LANES, (group + 1) * LANES):
                        if groups.label[at] >= 0:
                            coming, end = _gather(
                                rows, labels, lanes, at, sets, coming, course, blocks, block, hits, n_hits
                            )
                            cost = labels.negative_costs[groups.label[at]]
                            _visit(rows, starts, lanes, at, coming, end, cost, course, options, plan)
        number += 1
        for at in range(n_lanes):
            if groups.label[at] >= 0:
                size = course.written[at]
                groups.size[at] = 0
                sets = _roomier(sets, groups.size, size)
                groups.size[at] = size
                sets.rows[at, :size] = coming.rows[at, :size]
                sets.costs[at, :size] = coming.costs[at, :size]
                sets.alphas[at, :size] = coming.alphas[at, :size]
                groups.error[at] = course.highest[at] - course.lowest[at]
                if number > 1 and groups.error[at] <= options.tol:
                    groups.label[at] = -1
    return groups, sets


@njit(nogil=True, cache=True, boundscheck=False)
def _begin(labels, groups, at, n_groups, sets):
    """The first set of a label: its positives."""
    lane, member = at % LANES, _group_of(groups, at // LANES, n_groups).member
    first, last = labels.indptr[groups.label[at]], labels.indptr[groups.label[at] + 1]
    for n in range(last - first):
        row = labels.positions[first + n]
        member[row] |= np.uint16(1 << lane)
        sets.rows[at, n], sets.costs[at, n], sets.alphas[at, n] = row, labels.positive_costs[first + n], 0
    groups.size[at] = last - first


@njit(nogil=True, cache=True, boundscheck=False)
def _group_of(groups, group, n_groups):
    """Sixteen of the lanes."""
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
def _cut_rows(indptr, values, number, seed):
    """The blocks of pass ``number``, of about so many values each."""
    n_rows = indptr.shape[0] - 1
    strip = max(1, values // _STRIPS)
    n_strips = indptr[-1] // strip + 1
    order = np.arange(n_strips)
    state = shuffle_state(seed)
    for _ in range(number + 1):
        state = shuffle(order, n_strips, state)
    block_of = empty(n_strips, np.int64)
    for n in range(n_strips):
        block_of[order[n]] = n // _STRIPS
    ends = zeros((n_strips - 1) // _STRIPS + 2, np.int64)
    for row in range(n_rows):
        ends[block_of[indptr[row] // strip] + 1] += 1
    for block in range(ends.shape[0] - 1):
        ends[block + 1] += ends[block]
    turns, places, used = empty(n_rows, np.int32), empty(n_rows, np.int32), ends[:-1].copy()
    for row in range(n_rows):
        block = block_of[indptr[row] // strip]
        turns[used[block]], places[row] = row, used[block]
        used[block] += 1
    return _Blocks(turns, ends, places)


@njit(nogil=True, cache=True, boundscheck=False)
def _ask_for_block(rows, starts, blocks, block):
    """Have a block, if there is such a one, come from disk while others are visited."""
    if block >= blocks.ends.shape[0] - 1:
        return
    first, last = np.int64(0), np.int64(0)
    for n in range(blocks.ends[block], blocks.ends[block + 1]):
        row = blocks.turns[n]
        if starts[row] != last:
            ask_for_pages(rows.indices, first, last)
            ask_for_pages(rows.data, first, last)
            first = starts[row]
        last = starts[row] + rows.indptr[row + 1] - rows.indptr[row]
    ask_for_pages(rows.indices, first, last)
    ask_for_pages(rows.data, first, last)


@njit(nogil=True, cache=True, boundscheck=False)
def _sort(sets, at, size, places):
    """Put the set of a lane in the order in which its rows come."""
    keys = empty(size, np.int64)
    for n in range(size):
        keys[n] = (np.int64(places[sets.rows[at, n]]) << np.int64(32)) | n
    sort_keys(keys, size)
    rows, costs, alphas = sets.rows[at, :size].copy(), sets.costs[at, :size].copy(), sets.alphas[at, :size].copy()
    for n in range(size):
        m = index_of(keys[n])
        sets.rows[at, n], sets.costs[at, n], sets.alphas[at, n] = rows[m], costs[m], alphas[m]


@njit(nogil=True, cache=True, boundscheck=False)
def _score(rows, starts, lanes, blocks, block, hits):
    """Score the rows of a block for sixteen labels; returns how many ``hits`` there are."""
    _put_side_by_side(lanes)
    scores = empty(LANES, np.float32)
    hits.counts[:] = 0
    count = 0
    for n in range(blocks.ends[block], blocks.ends[block + 1]):
        row = blocks.turns[n]
        for lane in range(LANES):
            scores[lane] = lanes.bias[lane]
        stop = starts[row] + rows.indptr[row + 1] - rows.indptr[row]
        dot_lanes(lanes.side_by_side, rows.indices, rows.data, starts[row], stop, scores)
        member, any_hit = lanes.member[row], False
        for lane in range(LANES):
            hit = scores[lane] > -1 and lanes.label[lane] >= 0 and not member & np.uint16(1 << lane)
            place = min(_bin_of(scores[lane] + np.float32(1)), _BINS - 2) + 1 if hit else 0
            hits.bins[count, lane] = place
            hits.counts[lane, place] += 1
            any_hit |= hit
        if any_hit:
            hits.rows[count] = row
            count += 1
    return count


@njit(nogil=True, cache=True, boundscheck=False)
def _gather(rows, labels, lanes, at, sets, coming, course, blocks, block, hits, n_hits):
    """Lay the rows of a block that a label visits behind its set to come; returns that, and where they end.

    These are the members of its set and the worst hits. It begins in the first block that has a positive, with
    negatives spread evenly over the block at the cost of all.
    """
    lane = at % LANES
    label, size = lanes.label[lane], lanes.size[lane]
    cost = labels.negative_costs[label]
    first = n = course.written[at]
    read, last = course.read[at], course.read[at]
    while last < size and blocks.places[sets.rows[at, last]] < blocks.ends[block + 1]:
        last += 1
    start, n_here = blocks.ends[block], blocks.ends[block + 1] - blocks.ends[block]
    opens = not course.opened[at] and (last > read or size == 0)
    wanted = min(last - read + _NEGATIVES_TO_START, n_here) if opens else n_hits if course.opened[at] else 0
    coming = _roomier(coming, course.written, first + last - read + wanted)
    for m in range(read, last):
        coming.rows[at, n], coming.costs[at, n] = sets.rows[at, m], sets.costs[at, m]
        coming.alphas[at, n] = sets.alphas[at, m]
        n += 1
    course.read[at] = last
    lowest, _ = _lowest_bin(hits.counts[lane], _room_for(first))
    lowest = max(lowest, 1)
    for m in range(wanted):
        row = blocks.turns[start + m * n_here // wanted] if opens else hits.rows[m]
        if not lanes.member[row] & np.uint16(1 << lane) if opens else hits.bins[m, lane] >= lowest:
            coming.rows[at, n], coming.alphas[at, n] = row, 0
            coming.costs[at, n] = -cost * rows.weights[row] * np.float32(n_here / wanted if opens else 1)
            n += 1
    course.opened[at] = course.opened[at] or opens
    return coming, n


@njit(nogil=True, cache=True, boundscheck=False)
def _visit(rows, starts, lanes, at, coming, end, cost, course, options, plan):
    """Descend over the rows of a block that were gathered for a label, and keep positives and support vectors.

    The gradients of the first time count for the pass; the block is left as soon as they are within ``options.tol``.
    """
    lane, first = at % LANES, course.written[at]
    own = WorkingSet(coming.rows[at, first:end], coming.costs[at, first:end], coming.alphas[at, first:end])
    order = np.arange(end - first).astype(np.int32)
    last = end - first
    weights, bias, state = lanes.weights[lane], lanes.bias[lane], course.state[at]
    high_bar, low_bar = np.inf, -np.inf
    for time in range(min(plan.times, options.max_sweeps)):
        state = shuffle(order, last, state)
        bars = (high_bar, low_bar, bias, _LEAST)
        last, highest, lowest, bias = _sweep(rows, starts, own, order, last, weights, None, options, bars)
        if time == 0:
            course.highest[at] = max(course.highest[at], highest)
            course.lowest[at] = min(course.lowest[at], lowest)
        if highest - lowest <= options.tol:
            break
        high_bar = highest if highest > 0 else np.inf
        low_bar = lowest if lowest < 0 else -np.inf
    lanes.bias[lane], course.state[at] = bias, state
    bit, others = np.uint16(1 << lane), np.uint16(0xFFFF ^ (1 << lane))
    kept = 0
    for n in range(own.rows.shape[0]):
        row = own.rows[n]
        if own.alphas[n] > 0 or own.costs[n] > 0:
            own.rows[kept], own.alphas[kept] = row, own.alphas[n]
            own.costs[kept] = own.costs[n] if own.costs[n] > 0 else -cost * rows.weights[row]
            lanes.member[row] |= bit
            kept += 1
        else:
            lanes.member[row] &= others
    course.written[at] = first + kept
