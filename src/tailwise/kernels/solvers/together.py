"""Support vector machines of sixteen labels at once, by dual coordinate descent over all rows.

The problem is that of :mod:`tailwise.kernels.solvers.svm` with the squared hinge and without L1. Where most rows are
support vectors of most labels, as in the nodes of label trees, small working sets gain nothing: here every row is
visited once a sweep for sixteen labels, whose weights lie side by side, for little more than one label would cost.

Rows are visited by *blocks*, ranges of rows: in every sweep in another order of the blocks, and within a block in
another order of its rows or, where these are many, of runs of neighbours. So rows on disk can be read a block at a time
for all labels that there is memory for. The order depends on the rows alone: rows in memory and on disk give the same
bits.

A bias has a part in every row. With a ``bias_scale`` of 1 each step throws it about, and all rows that follow have to
make up for it: with 0.3 three sweeps over many rows come as near to the least objective as five do.
"""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, part, prefetch, prefetch_row, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import shuffle, shuffle_state
from tailwise.kernels.solvers.lanes import LANES, hinge_lanes, zero_lanes
from tailwise.kernels.solvers.taking import LEAST, take_duals, take_lanes

_BYTES_A_FEATURE, _BYTES_A_ROW = 64, 256
"""Of sixteen labels: their weights; where their duals stand, and these as they are taken."""
_BLOCK_VALUES = 1 << 22
"""Of a block of rows; one run may begin before the end."""
_IGNORED = 0.1
"""Times the tolerance: a gradient that is off by less moves nothing."""
_RUNS, _LONGEST_RUN = 1 << 10, 16
"""Rows are visited in runs of neighbours, sixteen at most, of which there are 1,024 at least: what does not fit into
the caches comes from memory in half the time. With a small ``bias_scale`` that costs nothing where rows are so many;
with one of 1 it cost four points of P@1 in a tree of 215,000 labels."""
_AHEAD = 4
"""A row is asked for so many rows before its turn."""
_NEAR_FEATURES = 1 << 14
"""Weights of sixteen labels and so many features are in the second cache: to ask for them early costs more than it
gains."""


def bytes_at_once(n_rows: int, n_features: int) -> int:
    """The memory that sixteen labels take."""
    return _BYTES_A_FEATURE * n_features + _BYTES_A_ROW * n_rows


@njit(nogil=True, cache=True, boundscheck=False)
def solve_svm_together(rows, starts, labels, above, options, at_once):
    """Solve every label of ``labels``, ``at_once`` times sixteen of them while a block of rows is in memory.

    ``rows`` begin at ``starts`` (n_rows,) int64 of their indices and data; the rest, and what is returned, is as in
    :func:`tailwise.kernels.solvers.svm.solve_svm`. ``options.max_sweeps`` bounds the sweeps over all rows. A label's
    result depends neither on the others nor on ``at_once``. ``above`` (n_labels,) int32, or nothing, is for sixteen
    labels at most: where it is not -1, only rows that carry the label of that number belong to the problem.
    """
    n_labels = labels.indptr.shape[0] - 1
    n_rows, n_features = rows.squares.shape[0], rows.features.shape[0]
    begin, count = empty(n_labels, np.int64), empty(n_labels, np.int64)
    bias = empty(n_labels, np.float32)
    features, values = empty(n_features, np.int32), empty(n_features, np.float32)
    first_support, n_support = zeros(n_labels, np.int64), zeros(n_labels, np.int64)
    positions, signed = empty(n_rows, np.int32), empty(n_rows, np.float32)
    # Of sixteen labels after the other. No array is written as a whole: each such line takes a tenth of a second to
    # compile.
    weights, biases = zero_lanes(n_features * at_once), empty(at_once * LANES, np.float32)
    halves = empty(at_once * n_rows * LANES, np.float32)
    alphas = empty(at_once * n_rows * LANES, np.float32)
    least = max(LEAST, np.float32(options.prune))
    used = held = 0
    for first in range(0, n_labels, LANES * at_once):
        in_use = min(LANES * at_once, n_labels - first)
        _fill(weights, np.float32(0))
        _fill(alphas, np.float32(0))
        _fill(biases, np.float32(options.bias_centre))
        for lane in range(0, in_use, LANES):
            _set_costs(rows, labels, first + lane, min(LANES, in_use - lane), _of(halves, lane // LANES, n_rows))
        for lane in range(above.shape[0]):
            if above[lane] >= 0:
                _leave_rows_out(halves, lane, above[lane])
        _descend(rows, starts, in_use, weights, biases, halves, alphas, options)
        for place in range(in_use):
            bias[first + place] = biases[place]
        for place in range(0, in_use, LANES):
            group, label, n = place // LANES, first + place, min(LANES, in_use - place)
            own = _of(weights, group, n_features)
            at = part(begin, label, label + n), part(count, label, label + n)
            features, values, used = take_lanes(own, n, least, features, values, used, *at)
            if options.keep_duals:
                own, signs = _of(alphas, group, n_rows), _of(halves, group, n_rows)
                at = part(first_support, label, label + n), part(n_support, label, label + n)
                positions, signed, held = take_duals(own, signs, n, positions, signed, held, *at)
    return begin, count, features, values, bias, first_support, n_support, positions, signed


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _fill(array, value):
    for n in range(array.shape[0]):
        array[n] = value


@njit(nogil=True, cache=True, boundscheck=False)
def _of(array, group, n):
    """What sixteen labels have of n things."""
    return part(array, group * n * LANES, (group + 1) * n * LANES)


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _set_costs(rows, labels, first, in_use, halves):
    """``z / 2C`` of every row and lane."""
    for row in range(rows.squares.shape[0]):
        for lane in range(LANES):
            cost = labels.negative_costs[first + min(lane, in_use - 1)] * rows.weights[row]
            halves[np.uint64(row * LANES + lane)] = np.float32(-0.5) / cost
    for lane in range(in_use):
        for a in range(labels.indptr[first + lane], labels.indptr[first + lane + 1]):
            halves[np.int64(labels.positions[a]) * LANES + lane] = np.float32(0.5) / labels.positive_costs[a]


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _leave_rows_out(halves, lane, above):
    """A lane without the rows that do not carry the label of another."""
    for row in range(halves.shape[0] // LANES):
        if not halves[np.uint64(row * LANES + above)] > 0:
            halves[np.uint64(row * LANES + lane)] = 0


@njit(nogil=True, cache=True, boundscheck=False)
def _descend(rows, starts, in_use, weights, biases, halves, alphas, options):
    """Sweeps over all rows; a lane whose last one was within tolerance rests."""
    n_groups, n_rows, n_features = (in_use + LANES - 1) // LANES, starts.shape[0], rows.features.shape[0]
    at_work = empty(n_groups * LANES, np.float32)
    for place in range(at_work.shape[0]):
        at_work[place] = place < in_use
    extremes = empty(2 * n_groups * LANES, np.float32)
    length = min(_LONGEST_RUN, max(1, n_rows // _RUNS))
    ends = _ends_of_blocks(rows, length)
    order, runs = empty(n_rows, np.int32), empty(-(-n_rows // length), np.int32)
    visits = empty(ends.shape[0] - 1, np.int64)
    for run in range(runs.shape[0]):
        runs[run] = run
    for block in range(visits.shape[0]):
        visits[block] = block
    state = shuffle_state(options.seed)
    for _ in range(options.max_sweeps):
        for n in range(extremes.shape[0]):
            extremes[n] = np.inf if n // LANES % 2 else -np.inf
        state = shuffle(visits, visits.shape[0], state)
        for block in visits:
            own_runs = part(runs, -(-ends[block] // length), -(-ends[block + 1] // length))
            state = shuffle(own_runs, own_runs.shape[0], state)
            own = part(order, ends[block], ends[block + 1])
            _rows_of_runs(own_runs, length, n_rows, own)
            for group in range(n_groups):
                working = _of(at_work, group, 1)
                if _any(working):
                    _visit(
                        rows,
                        starts,
                        own,
                        _of(weights, group, n_features),
                        _of(biases, group, 1),
                        (_of(halves, group, n_rows), _of(alphas, group, n_rows)),
                        working,
                        _of(extremes, group, 2),
                        options,
                        _IGNORED * options.tol,
                    )
        for place in range(in_use):
            highest = 2 * (place - place % LANES) + place % LANES
            if extremes[highest] - extremes[highest + LANES] <= options.tol:
                at_work[place] = 0
        if not _any(at_work):
            return


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _any(at_work):
    n_working = 0
    for lane in range(at_work.shape[0]):
        n_working += at_work[lane] > 0
    return n_working > 0


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _rows_of_runs(runs, length, n_rows, order):
    """Into ``order`` the rows of one run of ``length`` after the other, ascending within a run."""
    n = 0
    for run in runs:
        for row in range(run * length, min((run + 1) * length, n_rows)):
            order[n] = row
            n += 1


@njit(nogil=True, cache=True, boundscheck=False)
def _ends_of_blocks(rows, length):
    """Rows ``ends[b]:ends[b + 1]`` are those of block b, in whole runs of ``length``."""
    n_rows = rows.indptr.shape[0] - 1
    before = rows.indptr[0]
    n_blocks = max(0, rows.indptr[n_rows] - before - 1) // _BLOCK_VALUES + 1
    ends = empty(n_blocks + 1, np.int64)
    row = ends[0] = 0
    for block in range(1, n_blocks):
        while row < n_rows and rows.indptr[row] - before < block * _BLOCK_VALUES:
            row += length
        ends[block] = min(row, n_rows)
    ends[n_blocks] = n_rows
    return ends


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _visit(rows, starts, order, weights, biases, halves_and_alphas, at_work, extremes, options, least):
    """One coordinate after the other in ``order``, for sixteen labels; gradients off by ``least`` move nothing."""
    halves, alphas = halves_and_alphas
    scale_squared = np.float32(options.bias_scale * options.bias_scale)
    weights_are_far = rows.features.shape[0] > _NEAR_FEATURES
    last = order.shape[0] - 1
    for n in range(order.shape[0]):
        ahead = np.uint64(order[min(n + _AHEAD, last)])
        prefetch_row(rows.indices, rows.data, starts[ahead], starts[ahead] + _length(rows, ahead))
        prefetch(halves, ahead * np.uint64(LANES))
        prefetch(alphas, ahead * np.uint64(LANES))
        if weights_are_far:
            after = np.uint64(order[min(n + 1, last)])
            for a in range(np.uint64(starts[after]), np.uint64(starts[after] + _length(rows, after))):
                prefetch(weights, np.uint64(rows.indices[a]) * np.uint64(LANES))
        row = np.uint64(order[n])
        hinge_lanes(
            weights,
            rows.indices,
            rows.data,
            starts[row],
            starts[row] + _length(rows, row),
            biases,
            halves,
            alphas,
            row * np.uint64(LANES),
            rows.squares[row] + scale_squared,
            scale_squared,
            at_work,
            extremes,
            np.float32(least),
        )


@njit(nogil=True, cache=True, boundscheck=False, inline="always")
def _length(rows, row):
    return rows.indptr[row + np.uint64(1)] - rows.indptr[row]
