"""Logistic regression, one a label, by dual coordinate descent for sixteen labels at once.

For each label ``min ½|w|² + ½ v² + Σ_i C_i ln(1 + exp(-z_i (w·x_i + b)))``, ``b = centre + scale · v``, z = ±1. The
dual (Yu, Huang & Lin 2011) keeps ``α_i = C_i σ(t_i)`` with ``w = Σ α_i z_i x_i``; optimal is
``t_i = -z_i (w·x_i + b)``. Every row is active for every label, so rows are visited in one order for sixteen labels,
whose weights lie side by side. Far from the end already the direction of ``w`` is good; its length and the bias, on
which probabilities depend and on which coordinates are slow to agree, are then solved for in the primal.
"""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, part, prefetch, prefetch_row, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import shuffle, shuffle_state
from tailwise.kernels.solvers.lanes import LANES, add_lanes, dot_lanes, logistic_lanes, sigmoid_lanes, zero_lanes
from tailwise.kernels.solvers.taking import LEAST, take_lanes

_START_LENGTH = 10.0
_IGNORED = 0.1
_MOVED = 0.8
"""Times the tolerance: a label of whose α no larger share moved in a pass is done. Chosen on validation rows of
EURLex-4K, where more passes change no ranking, and the log-loss of the first five labels by less than 1 %."""
_NEWTON_STEPS = 5
_LONGEST = np.float32(1.0), np.float32(3.0)
"""Of these steps: for the factor of the weights, and for the bias."""
_AHEAD = 4
"""A row is asked for so many rows before its turn."""


@njit(nogil=True, cache=True, boundscheck=False)
def solve_logistic(rows, labels, options):
    """Solve every label of ``labels``; takes and returns the same as :func:`tailwise.kernels.solvers.svm.solve_svm`.

    ``options.max_rounds`` bounds the passes over the rows. A bias centre of NaN means the label's log-odds. A
    label's result does not depend on the others.
    """
    n_labels = labels.indptr.shape[0] - 1
    n_rows, n_features = rows.squares.shape[0], rows.features.shape[0]
    begin, count = zeros(n_labels, np.int64), zeros(n_labels, np.int64)
    bias = empty(n_labels, np.float32)
    features, values = empty(n_features, np.int32), empty(n_features, np.float32)
    order = np.arange(n_rows)
    costs = zeros(n_rows * LANES, np.float32)
    logits = zeros(n_rows * LANES, np.float32)
    sums = _sum_rows(rows)
    least = max(LEAST, np.float32(options.prune))
    used = 0
    for first in range(0, n_labels, LANES):
        in_use = min(LANES, n_labels - first)
        weights = zero_lanes(n_features)
        centres, biases = zeros(LANES, np.float32), zeros(LANES, np.float32)
        _begin(rows, labels, first, in_use, sums, weights, centres, biases, costs, logits, options)
        at_work = zeros(LANES, np.float32)
        at_work[:in_use] = 1
        state = shuffle_state(options.seed)
        for row in range(n_rows):
            order[row] = row
        for _ in range(options.max_rounds):
            state = shuffle(order, n_rows, state)
            if not _sweep(rows, order, weights, biases, costs, logits, at_work, options):
                break
        _polish(rows, in_use, centres, weights, biases, costs, logits, options)
        for lane in range(in_use):
            bias[first + lane] = biases[lane]
        at = part(begin, first, first + in_use), part(count, first, first + in_use)
        features, values, used = take_lanes(weights, in_use, least, features, values, used, *at)
    return begin, count, features, values, bias


@njit(nogil=True, cache=True, boundscheck=False)
def _sum_rows(rows):
    """All rows, each as often as it counts, (n_features,) float64; and how often they count together."""
    total, everything = zeros(rows.features.shape[0], np.float64), 0.0
    for row in range(rows.squares.shape[0]):
        everything += rows.weights[row]
        for a in range(rows.indptr[row], rows.indptr[row + 1]):
            total[np.uint64(rows.indices[a])] += rows.weights[row] * rows.data[a]
    return total, everything


@njit(nogil=True, cache=True, boundscheck=False)
def _begin(rows, labels, first, in_use, sums, weights, centres, biases, costs, logits, options):
    """Start near the solution of rare labels: ``w`` proportional to the mean of positives minus the mean of all.

    ``sums`` are those of all rows. ``costs`` becomes +C for a positive and -C for a negative; its α is σ(logit) C.
    """
    total, everything = sums
    n_rows, n_features = rows.squares.shape[0], rows.features.shape[0]
    scale_squared = options.bias_scale * options.bias_scale
    for lane in range(in_use):
        label = first + lane
        positives = positive_cost = 0.0
        for a in range(labels.indptr[label], labels.indptr[label + 1]):
            positives += rows.weights[labels.positions[a]]
            positive_cost += labels.positive_costs[a]
        odds = (positives + 0.5) / (everything - positives + 0.5)
        shrink = min(1.0, _START_LENGTH / max(positive_cost, 1e-30))
        share = shrink * min(0.5, positives / everything)
        negative = np.float32(np.log(share / (1 - share))) if share > 0 else np.float32(-30)
        for row in range(n_rows):
            costs[np.uint64(row * LANES + lane)] = -labels.negative_costs[label] * rows.weights[row]
            logits[np.uint64(row * LANES + lane)] = negative
        step = -labels.negative_costs[label] / (1 + np.exp(-negative))
        for feature in range(n_features):
            weights[np.uint64(feature * LANES + lane)] = step * total[feature]
        moved = step * everything
        share = shrink * max(0.5, 1 - positives / everything)
        positive = np.float32(np.log(share / (1 - share))) if share < 1 else np.float32(30)
        for a in range(labels.indptr[label], labels.indptr[label + 1]):
            row = labels.positions[a]
            costs[row * LANES + lane] = labels.positive_costs[a]
            logits[row * LANES + lane] = positive
            more = labels.positive_costs[a] / (1 + np.exp(-positive)) - step * rows.weights[row]
            for b in range(rows.indptr[row], rows.indptr[row + 1]):
                weights[np.uint64(rows.indices[b] * LANES + lane)] += more * rows.data[b]
            moved += more
        centres[lane] = np.log(odds) if np.isnan(options.bias_centre) else options.bias_centre
        biases[lane] = centres[lane] + scale_squared * moved


@njit(nogil=True, cache=True, boundscheck=False)
def _sweep(rows, order, weights, biases, costs, logits, at_work, options):
    """One pass of coordinate descent over ``order``; a lane whose α moved little rests from then on.

    Returns whether a lane is still at work.
    """
    scores, steps = empty(LANES, np.float32), empty(LANES, np.float32)
    sums = zeros((2, LANES), np.float32)
    scale_squared = np.float32(options.bias_scale * options.bias_scale)
    least = np.float32(_IGNORED * options.tol)
    last = order.shape[0] - 1
    for n in range(order.shape[0]):
        ahead = order[min(n + _AHEAD, last)]
        prefetch_row(rows.indices, rows.data, rows.indptr[ahead], rows.indptr[ahead + 1])
        prefetch(costs, np.uint64(ahead * LANES))
        prefetch(logits, np.uint64(ahead * LANES))
        row = order[n]
        start, stop = rows.indptr[row], rows.indptr[row + 1]
        for lane in range(LANES):
            scores[lane] = biases[lane]
        dot_lanes(weights, rows.indices, rows.data, start, stop, scores)
        own = slice(row * LANES, (row + 1) * LANES)
        curvature = rows.squares[row] + scale_squared
        if logistic_lanes(costs[own], curvature, scores, logits[own], at_work, sums, steps, least):
            add_lanes(weights, rows.indices, rows.data, start, stop, steps)
            for lane in range(LANES):
                biases[lane] += steps[lane] * scale_squared
    working = False
    for lane in range(LANES):
        if sums[0, lane] <= _MOVED * options.tol * sums[1, lane]:
            at_work[lane] = 0
        working |= at_work[lane] > 0
    return working


@njit(nogil=True, cache=True, boundscheck=False)
def _polish(rows, in_use, centres, weights, biases, costs, scores, options):
    """The best factor of ``weights`` and the best bias, by Newton's method on the objective itself; both are written.

    Coordinates of the dual are slow to agree on these two. ``scores`` is room for one a row and lane.
    """
    n_rows, n_features = rows.squares.shape[0], rows.features.shape[0]
    factor, squares = np.ones(LANES, np.float32), zeros(LANES, np.float32)
    logits, shares = empty(LANES, np.float32), empty(LANES, np.float32)
    for row in range(n_rows):
        own = scores[row * LANES : (row + 1) * LANES]
        own[:] = 0
        dot_lanes(weights, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], own)
    for feature in range(n_features):
        for lane in range(LANES):
            weight = weights[np.uint64(feature * LANES + lane)]
            squares[lane] += weight * weight
    moves = options.bias_scale > 0
    pull = np.float32(1 / (options.bias_scale * options.bias_scale)) if moves else np.float32(1)
    for _ in range(_NEWTON_STEPS):
        sums = zeros((5, LANES), np.float64)
        for row in range(n_rows):
            own, cost = scores[row * LANES : (row + 1) * LANES], costs[row * LANES : (row + 1) * LANES]
            for lane in range(LANES):
                logits[lane] = factor[lane] * own[lane] + biases[lane]
            sigmoid_lanes(logits, shares)
            for lane in range(LANES):
                share = shares[lane]
                size = abs(cost[lane])
                slope = size * (share - np.float32(cost[lane] > 0))
                bend = size * share * (np.float32(1) - share)
                sums[0, lane] += slope * own[lane]
                sums[1, lane] += slope
                sums[2, lane] += bend * own[lane] * own[lane]
                sums[3, lane] += bend * own[lane]
                sums[4, lane] += bend
        for lane in range(in_use):
            a, b = sums[0, lane] + factor[lane] * squares[lane], sums[1, lane] + pull * (biases[lane] - centres[lane])
            aa, ab, bb = sums[2, lane] + squares[lane], sums[3, lane], sums[4, lane] + pull
            if not moves:
                b, ab, bb = 0.0, 0.0, 1.0
            determinant = aa * bb - ab * ab
            if determinant > 0:
                factor[lane] -= _bounded((bb * a - ab * b) / determinant, _LONGEST[0])
                biases[lane] -= _bounded((aa * b - ab * a) / determinant, _LONGEST[1])
    for feature in range(n_features):
        for lane in range(LANES):
            weights[np.uint64(feature * LANES + lane)] *= factor[lane]


@njit(nogil=True, cache=True, boundscheck=False)
def _bounded(step, longest):
    return min(max(step, -longest), longest)
