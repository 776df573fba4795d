"""Support vector machines of sixteen labels at once that go on from where their duals stood.

The problem is that of :mod:`tailwise.kernels.solvers.together`. Rows that are new come first, twice: their α are far
from where they belong, all others near. Then sweeps over all rows share what has changed among them.
"""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, grown, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import shuffle, shuffle_state
from tailwise.kernels.solvers.lanes import LANES, add_lanes, zero_lanes
from tailwise.kernels.solvers.together import _descend, _fill, _set_costs, _take, _take_support, _visit

_FRESH_SWEEPS = 2
"""Over new rows alone: with one the sweep over all rows finds them too far off, and a third gains nothing."""


@njit(nogil=True, cache=True, boundscheck=False)
def resume_svm_together(rows, labels, support, fresh, options):
    """Go on with every label of ``labels``; returns what :func:`tailwise.kernels.solvers.svm.solve_svm` returns.

    ``support`` (:class:`Support`) is where the dual of each label stood, nothing for a new one; a row that has changed
    sides begins with α = 0. ``fresh`` (n,) int32 are the new rows, ascending. ``options.max_sweeps`` bounds the sweeps
    over all rows. Inputs are only read; a label's result does not depend on the others.
    """
    n_labels = labels.indptr.shape[0] - 1
    n_rows, n_features = rows.squares.shape[0], rows.features.shape[0]
    starts = rows.indptr[:-1]
    begin, count = zeros(n_labels, np.int64), zeros(n_labels, np.int64)
    bias = empty(n_labels, np.float32)
    features, values = empty(n_features, np.int32), empty(n_features, np.float32)
    first_support, n_support = zeros(n_labels, np.int64), zeros(n_labels, np.int64)
    positions, signed = empty(n_rows, np.int32), empty(n_rows, np.float32)
    weights, biases = zero_lanes(n_features), empty(LANES, np.float32)
    halves, alphas = empty(n_rows * LANES, np.float32), empty(n_rows * LANES, np.float32)
    used = held = 0
    for first in range(0, n_labels, LANES):
        in_use = min(LANES, n_labels - first)
        _fill(weights, 0)
        _fill(alphas, 0)
        _fill(biases, options.bias_centre)
        _set_costs(rows, labels, first, in_use, halves)
        _restore(rows, support, first, in_use, weights, biases, halves, alphas, options)
        _visit_fresh(rows, starts, fresh, in_use, weights, biases, halves, alphas, options)
        _descend(rows, starts, in_use, weights, biases, halves, alphas, options)
        for lane in range(in_use):
            label = first + lane
            features, values = grown(features, used, used + n_features), grown(values, used, used + n_features)
            begin[label], bias[label] = used, biases[lane]
            used = _take(weights, lane, options.prune, features, values, used)
            count[label] = used - begin[label]
            positions, signed = grown(positions, held, held + n_rows), grown(signed, held, held + n_rows)
            first_support[label] = held
            held = _take_support(halves, alphas, lane, positions, signed, held)
            n_support[label] = held - first_support[label]
    return begin, count, features, values, bias, first_support, n_support, positions, signed


@njit(nogil=True, cache=True, boundscheck=False)
def _restore(rows, support, first, in_use, weights, biases, halves, alphas, options):
    """The α of support vectors that are on the same side as before, and weights and biases that belong to them."""
    scale_squared = np.float32(options.bias_scale * options.bias_scale)
    for lane in range(in_use):
        for a in range(support.indptr[first + lane], support.indptr[first + lane + 1]):
            at, value = np.int64(support.positions[a]) * LANES + lane, support.values[a]
            if value * halves[at] > 0:
                alphas[at] = abs(value)
                biases[lane] += scale_squared * value
    steps = empty(LANES, np.float32)
    for row in range(rows.squares.shape[0]):
        total = np.float32(0)
        for lane in range(LANES):
            at = np.uint64(row * LANES + lane)
            total += alphas[at]
            steps[lane] = alphas[at] if halves[at] > 0 else -alphas[at]
        if total > 0:
            add_lanes(weights, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], steps)


@njit(nogil=True, cache=True, boundscheck=False)
def _visit_fresh(rows, starts, fresh, in_use, weights, biases, halves, alphas, options):
    """Visit the new rows, in another order each time; nobody asks for the extremes of their gradients."""
    at_work, extremes = zeros(LANES, np.float32), zeros(2 * LANES, np.float32)
    for lane in range(in_use):
        at_work[lane] = 1
    order, state = fresh.copy(), shuffle_state(options.seed)
    for _ in range(_FRESH_SWEEPS):
        state = shuffle(order, order.shape[0], state)
        _visit(rows, starts, order, weights, biases, (halves, alphas), at_work, extremes, options)
