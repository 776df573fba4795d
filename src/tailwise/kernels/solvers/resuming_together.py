"""Support vector machines of sixteen labels at once that go on from where they stood.

The problem is that of :mod:`tailwise.kernels.solvers.together`. Rows that are new come first: their α are far
from where they belong, all others near. Then one sweep over these and known ones that share what has changed, or
several over all rows, lay it on many.
"""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, part, prefetch, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import shuffle, shuffle_state
from tailwise.kernels.solvers.lanes import LANES, add_lanes, zero_lanes
from tailwise.kernels.solvers.problems import Rows
from tailwise.kernels.solvers.taking import LEAST, take_duals, take_lanes
from tailwise.kernels.solvers.together import _AHEAD, _descend, _fill, _set_costs, _visit

_KEPT = 0.8
"""Times ``prune``: of weights that begin as they were stored, in eight bits, those near it would be dropped in each
update that are rounded to less, and what is below it is lost from where the next one begins."""
_A_LINE = 16


@njit(nogil=True, cache=True, boundscheck=False)
def resume_svm_together(rows, starts, several, labels, support, began, marks, options):
    """Go on with every label of ``labels``; returns what :func:`tailwise.kernels.solvers.svm.solve_svm` returns.

    ``several`` (:class:`Several`) says which ``rows``, labels and features each of the problems has, and ``starts``
    (n_rows,) int64 where a row begins in indices and data. Positions are among the rows of a problem, those that are
    returned among all; features are those of X. ``support`` (:class:`Support`) is where the dual of each label stood,
    nothing for a new one; a row that has changed sides begins with α = 0, and one at a negative position is none.
    ``began`` (:class:`Weights`) are weights to begin from, with the features of the problem, and biases; without any
    bias all are made of the support vectors, which then have to be there. ``marks`` (2, n_rows) bool are the new rows,
    and those that share what has changed. ``options.max_sweeps`` bounds the sweeps over all rows; where it is one, it
    is over those that share alone. Inputs are only read.
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
    order, kept = empty(most_rows, np.int32), np.float32(options.prune)
    if began.bias.shape[0] > 0:
        kept *= np.float32(_KEPT)
    least = max(LEAST, kept)
    is_fresh, shares = marks[0], marks[1]
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
            _take_up(support, first, in_use, halves, alphas)
            if began.bias.shape[0] > 0:
                _begin(began, first, in_use, weights, biases)
            else:
                _restore(own, own_starts, weights, biases, halves, alphas, options)
            chosen = part(order, 0, _rows_marked(is_fresh, first_row, last_row, order))
            _visit_once(own, own_starts, chosen, in_use, weights, biases, (halves, alphas), options)
            if options.max_sweeps > 1:
                _descend(own, own_starts, in_use, weights, biases, halves, alphas, options)
            elif options.max_sweeps == 1:
                chosen = part(order, 0, _rows_marked(shares, first_row, last_row, order))
                _visit_once(own, own_starts, chosen, in_use, weights, biases, (halves, alphas), options)
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
def _take_up(support, first, in_use, halves, alphas):
    """The α of support vectors that are on the same side as before."""
    for lane in range(in_use):
        for a in range(support.indptr[first + lane], support.indptr[first + lane + 1]):
            at, value = np.int64(support.positions[a]) * LANES + lane, support.values[a]
            if at >= 0 and value * halves[at] > 0:
                alphas[at] = abs(value)


@njit(nogil=True, cache=True, boundscheck=False)
def _begin(began, first, in_use, weights, biases):
    """Weights and biases as they were."""
    for lane in range(in_use):
        biases[lane] = began.bias[first + lane]
        for a in range(began.indptr[first + lane], began.indptr[first + lane + 1]):
            weights[np.uint64(np.int64(began.features[a]) * LANES + lane)] = began.values[a]


@njit(nogil=True, cache=True, boundscheck=False)
def _restore(rows, starts, weights, biases, halves, alphas, options):
    """Weights and biases that α make."""
    scale_squared = np.float32(options.bias_scale * options.bias_scale)
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
            biases[lane] += scale_squared * steps[lane]
            n_lanes += alphas[at] > 0
        if n_lanes > 0:
            start = starts[row]
            stop = start + rows.indptr[row + 1] - rows.indptr[row]
            add_lanes(weights, rows.indices, rows.data, start, stop, steps)


@njit(nogil=True, cache=True, boundscheck=False)
def _rows_marked(marked, first, last, order):
    """Into ``order`` those of rows ``first:last`` that are marked, by their numbers among these; returns how many."""
    n_marked = 0
    for row in range(first, last):
        order[n_marked] = row - first
        n_marked += marked[row]
    return n_marked


@njit(nogil=True, cache=True, boundscheck=False)
def _visit_once(rows, starts, order, in_use, weights, biases, halves_and_alphas, options):
    """Visit rows in random order, and leave gradients within tolerance; nobody asks for their extremes."""
    at_work, extremes = zeros(LANES, np.float32), zeros(2 * LANES, np.float32)
    for lane in range(in_use):
        at_work[lane] = 1
    shuffle(order, order.shape[0], shuffle_state(options.seed))
    _visit(rows, starts, order, weights, biases, halves_and_alphas, at_work, extremes, options, options.tol)
