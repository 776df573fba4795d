"""Support vector machines of sixteen labels at once that go on from where their duals stood.

The problem is that of :mod:`tailwise.kernels.solvers.together`. Rows that are new come first, twice: their α are far
from where they belong, all others near. Then one sweep over those on which most of it falls, or several over all rows,
share what has changed among them.
"""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, part, prefetch, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import shuffle, shuffle_state
from tailwise.kernels.solvers.lanes import LANES, add_lanes, zero_lanes
from tailwise.kernels.solvers.problems import Rows
from tailwise.kernels.solvers.sweeps import _FAST
from tailwise.kernels.solvers.taking import LEAST, take_duals, take_lanes
from tailwise.kernels.solvers.together import _AHEAD, _descend, _fill, _set_costs, _visit

_FRESH_SWEEPS = 2
"""Over new rows alone: with one the sweep over all rows finds them too far off, and a third gains nothing."""

_LEAST_SHARE = 0.4
"""A known row is visited once more where its part in what is shared is so much, times the mean of those that have one:
its α, of each label that is solved in the measure in which it has changed. To visit others gained nothing."""
_A_LINE = 16


@njit(nogil=True, cache=True, boundscheck=False)
def resume_svm_together(rows, starts, several, labels, support, is_fresh, options):
    """Go on with every label of ``labels``; returns what :func:`tailwise.kernels.solvers.svm.solve_svm` returns.

    ``several`` (:class:`Several`) says which ``rows``, labels and features each of the problems has, and ``starts``
    (n_rows,) int64 where a row begins in indices and data. Positions are among the rows of a problem, those that are
    returned among all; features are those of X. ``support`` (:class:`Support`) is where the dual of each label stood,
    nothing for a new one; a row that has changed sides begins with α = 0, and one at a negative position is none.
    ``is_fresh`` (n_rows,) bool are the new rows. ``options.max_sweeps`` bounds the sweeps over all rows; where it is
    one, rows are left out of which those who are solved together have little, unless one of them is a new label.
    Inputs are only read.
    """
    n_labels, n_problems = labels.indptr.shape[0] - 1, several.first_feature.shape[0]
    most_rows = most_features = 0
    for problem in range(n_problems):
        most_rows = max(most_rows, several.first_row[problem + 1] - several.first_row[problem])
        most_features = max(most_features, several.last_feature[problem] - several.first_feature[problem])
    begin, count = zeros(n_labels, np.int64), zeros(n_labels, np.int64)
    bias = empty(n_labels, np.float32)
    features, values = empty(most_features, np.int32), empty(most_features, np.float32)
    first_support, n_support = zeros(n_labels, np.int64), zeros(n_labels, np.int64)
    positions, signed = empty(most_rows, np.int32), empty(most_rows, np.float32)
    all_weights, biases = zero_lanes(most_features), empty(LANES, np.float32)
    all_halves, all_alphas = empty(most_rows * LANES, np.float32), empty(most_rows * LANES, np.float32)
    stood, shares = empty(LANES, np.float32), empty(most_rows, np.float32)
    order, least = empty(most_rows, np.int32), max(LEAST, np.float32(options.prune))
    used = held = 0
    for problem in range(n_problems):
        first_row, last_row = several.first_row[problem], several.first_row[problem + 1]
        n_rows = last_row - first_row
        own_features = part(rows.features, several.first_feature[problem], several.last_feature[problem])
        own = Rows(
            part(rows.indptr, first_row, last_row + 1),
            rows.indices,
            rows.data,
            part(rows.squares, first_row, last_row),
            own_features,
            part(rows.weights, first_row, last_row),
        )
        own_starts = part(starts, first_row, last_row)
        weights = part(all_weights, 0, own_features.shape[0] * LANES)
        halves, alphas = part(all_halves, 0, n_rows * LANES), part(all_alphas, 0, n_rows * LANES)
        last_label = several.first_label[problem + 1]
        for first in range(several.first_label[problem], last_label, LANES):
            in_use = min(LANES, last_label - first)
            _fill(weights, 0)
            _fill(alphas, 0)
            _fill(biases, options.bias_centre)
            _set_costs(own, labels, first, in_use, halves)
            _fill(stood, 0)
            _restore(own, own_starts, support, first, in_use, weights, biases, halves, alphas, stood, options)
            fresh = part(order, 0, _fresh_rows(is_fresh, first_row, last_row, order))
            _visit_often(own, own_starts, fresh, in_use, weights, biases, (halves, alphas), _FRESH_SWEEPS, options)
            if options.max_sweeps > 1:
                _descend(own, own_starts, in_use, weights, biases, halves, alphas, options)
            elif options.max_sweeps == 1:
                own_fresh = part(is_fresh, first_row, last_row)
                everyone = _any_new(support, first, in_use)
                _change(alphas, fresh, stood)
                sharing = part(order, 0, _rows_that_share(alphas, own_fresh, stood, everyone, shares, order))
                _visit_often(own, own_starts, sharing, in_use, weights, biases, (halves, alphas), 1, options)
            for lane in range(in_use):
                bias[first + lane] = biases[lane]
            before = used, held
            at = part(begin, first, first + in_use), part(count, first, first + in_use)
            features, values, used = take_lanes(weights, in_use, least, features, values, used, *at)
            at = part(first_support, first, first + in_use), part(n_support, first, first + in_use)
            positions, signed, held = take_duals(alphas, halves, in_use, positions, signed, held, *at)
            for n in range(before[0], used):
                features[n] = own_features[features[n]]
            for n in range(before[1], held):
                positions[n] += first_row
    return begin, count, features, values, bias, first_support, n_support, positions, signed


@njit(nogil=True, cache=True, boundscheck=False)
def _restore(rows, starts, support, first, in_use, weights, biases, halves, alphas, stood, options):
    """The α of support vectors that are on the same side as before, their sums, and weights and biases made of them."""
    scale_squared = np.float32(options.bias_scale * options.bias_scale)
    for lane in range(in_use):
        for a in range(support.indptr[first + lane], support.indptr[first + lane + 1]):
            at, value = np.int64(support.positions[a]) * LANES + lane, support.values[a]
            if at >= 0 and value * halves[at] > 0:
                alphas[at] = abs(value)
                biases[lane] += scale_squared * value
                stood[lane] += abs(value)
    steps, last = empty(LANES, np.float32), rows.squares.shape[0] - 1
    for row in range(rows.squares.shape[0]):
        ahead = np.uint64(min(row + _AHEAD, last))
        stop = starts[ahead] + rows.indptr[ahead + np.uint64(1)] - rows.indptr[ahead]
        for a in range(starts[ahead], stop, _A_LINE):
            prefetch(rows.indices, np.uint64(a))
            prefetch(rows.data, np.uint64(a))
        n_lanes = 0
        for lane in range(LANES):
            at = np.uint64(row * LANES + lane)
            steps[lane] = alphas[at] if halves[at] > 0 else -alphas[at]
            n_lanes += alphas[at] > 0
        if n_lanes > 0:
            start = starts[row]
            stop = start + rows.indptr[row + 1] - rows.indptr[row]
            add_lanes(weights, rows.indices, rows.data, start, stop, steps)


@njit(nogil=True, cache=True, boundscheck=False)
def _fresh_rows(is_fresh, first, last, order):
    """Into ``order`` the new ones of rows ``first:last``, by their numbers among these; returns how many."""
    n_fresh = 0
    for row in range(first, last):
        order[n_fresh] = row - first
        n_fresh += is_fresh[row]
    return n_fresh


@njit(nogil=True, cache=True, boundscheck=False)
def _any_new(support, first, in_use):
    """Whether a label goes on from nothing: all rows are new to it."""
    n_new = 0
    for label in range(first, first + in_use):
        n_new += support.indptr[label] == support.indptr[label + 1]
    return n_new > 0


@njit(nogil=True, cache=True, boundscheck=False)
def _change(alphas, fresh, stood):
    """Into ``stood``, the α that each lane has had in all, how much of all that it has now is that of new rows."""
    new = zeros(LANES, np.float32)
    for row in fresh:
        for lane in range(LANES):
            new[lane] += alphas[np.uint64(row * LANES + lane)]
    for lane in range(LANES):
        stood[lane] = new[lane] / (new[lane] + stood[lane]) if new[lane] > 0 else np.float32(0)


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _rows_that_share(alphas, is_fresh, changed, everyone, shares, order):
    """Into ``order`` new rows, and ``everyone`` or those that have to share with them; returns how many.

    ``changed`` is what :func:`_change` says; ``shares`` is written.
    """
    n_rows, n_there, total, n_some = is_fresh.shape[0], 0, 0.0, 0
    for row in range(n_rows):
        share = np.float32(0)
        for lane in range(LANES):
            share += alphas[np.uint64(row * LANES + lane)] * changed[np.uint64(lane)]
        shares[row] = share
        total += share
        n_there += share > 0
    least = np.float32(_LEAST_SHARE * total / max(1, n_there))
    for row in range(n_rows):
        order[n_some] = row
        n_some += everyone | is_fresh[row] | (shares[row] > least)
    return n_some


@njit(nogil=True, cache=True, boundscheck=False)
def _visit_often(rows, starts, order, in_use, weights, biases, halves_and_alphas, n_sweeps, options):
    """Visit rows, in another order each time, and leave gradients within tolerance; nobody asks for their extremes."""
    at_work, extremes = zeros(LANES, np.float32), zeros(2 * LANES, np.float32)
    for lane in range(in_use):
        at_work[lane] = 1
    state = shuffle_state(options.seed)
    for _ in range(n_sweeps):
        state = shuffle(order, order.shape[0], state)
        _visit(rows, starts, order, weights, biases, halves_and_alphas, at_work, extremes, options, options.tol)
