"""Logistic regression, one a label, by dual coordinate descent for sixteen labels at once.

For each label ``min ½|w|² + ½ v² + Σ_i C_i ln(1 + exp(-z_i (w·x_i + b)))``, ``b = centre + scale · v``, z = ±1. The
dual (Yu, Huang & Lin 2011) keeps ``α_i = C_i σ(t_i)`` with ``w = Σ α_i z_i x_i``; optimal is
``t_i = -z_i (w·x_i + b)``. Every row is active for every label, so rows are visited in one order for sixteen labels,
whose weights lie side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import grown
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import shuffle, shuffle_state
from tailwise.kernels.solvers.lanes import LANES, add_lanes, dot_lanes, newton_lanes, sigmoid_lanes, zero_lanes

_NEWTON_STEPS = 20
_START_LENGTH = 10.0
_SHORT_STEP = 1e-3
_IGNORED = 0.1


class _Room(NamedTuple):
    """What the sixteen problems of one row need, float32."""

    problems: np.ndarray
    """(3, 16): strength, margin and σ(logit), as :func:`newton_lanes` takes them"""
    brackets: np.ndarray
    """(2, 16): below and above the root"""
    roots: np.ndarray
    """(16,)"""
    shares: np.ndarray
    """(16,): σ of the roots"""
    movable: np.ndarray
    """(16,): 1 for lanes to move, 0 for others"""
    pending: np.ndarray
    """(16,): 1 for lanes whose root is not found yet, 0 for others"""


@njit(nogil=True, cache=True, boundscheck=False)
def solve_logistic(rows, labels, options):
    """Solve every label of ``labels``; takes and returns the same as :func:`tailwise.kernels.solvers.svm.solve_svm`.

    ``options.max_rounds`` bounds the passes over the rows. A bias centre of NaN means the label's log-odds. A
    label's result does not depend on the others.
    """
    n_labels = labels.indptr.shape[0] - 1
    n_rows, n_features = rows.squares.shape[0], rows.features.shape[0]
    begin, count = np.zeros(n_labels, np.int64), np.zeros(n_labels, np.int64)
    bias = np.empty(n_labels, np.float32)
    features, values = np.empty(n_features, np.int32), np.empty(n_features, np.float32)
    order = np.arange(n_rows)
    costs = np.zeros(n_rows * LANES, np.float32)
    logits = np.zeros(n_rows * LANES, np.float32)
    used = 0
    for first in range(0, n_labels, LANES):
        in_use = min(LANES, n_labels - first)
        weights = zero_lanes(n_features)
        biases = np.zeros(LANES, np.float32)
        _begin(rows, labels, first, in_use, weights, biases, costs, logits, options)
        worst = np.full(LANES, np.float32(np.inf), np.float32)
        state = shuffle_state(options.seed)
        for row in range(n_rows):
            order[row] = row
        for _ in range(options.max_rounds):
            state = shuffle(order, n_rows, state)
            if not _sweep(rows, order, in_use, weights, biases, costs, logits, worst, options):
                break
        features = grown(features, used, used + in_use * n_features)
        values = grown(values, used, used + in_use * n_features)
        for lane in range(in_use):
            begin[first + lane], bias[first + lane] = used, biases[lane]
            for feature in range(n_features):
                weight = weights[np.uint64(feature * LANES + lane)]
                if abs(weight) >= options.prune and weight != 0:
                    features[used], values[used] = feature, weight
                    used += 1
            count[first + lane] = used - begin[first + lane]
    return begin, count, features, values, bias


@njit(nogil=True, cache=True, boundscheck=False)
def _begin(rows, labels, first, in_use, weights, biases, costs, logits, options):
    """Start near the solution of rare labels: ``w`` proportional to the mean of positives minus the mean of all.

    ``costs`` becomes +C for a positive and -C for a negative; its α is σ(logit) C.
    """
    n_rows = rows.squares.shape[0]
    steps = np.zeros(LANES, np.float32)
    everything = 0.0
    for row in range(n_rows):
        everything += rows.weights[row]
    for lane in range(in_use):
        label = first + lane
        positives = 0.0
        for a in range(labels.indptr[label], labels.indptr[label + 1]):
            positives += rows.weights[labels.positions[a]]
        odds = (positives + 0.5) / (everything - positives + 0.5)
        biases[lane] = np.log(odds) if np.isnan(options.bias_centre) else options.bias_centre
        total = 0.0
        for a in range(labels.indptr[label], labels.indptr[label + 1]):
            total += labels.positive_costs[a]
        shrink = min(1.0, _START_LENGTH / max(total, 1e-30))
        share = shrink * min(0.5, positives / everything)
        negative = np.float32(np.log(share / (1 - share))) if share > 0 else np.float32(-30)
        for row in range(n_rows):
            costs[np.uint64(row * LANES + lane)] = -labels.negative_costs[label] * rows.weights[row]
            logits[np.uint64(row * LANES + lane)] = negative
        share = shrink * max(0.5, 1 - positives / everything)
        positive = np.float32(np.log(share / (1 - share))) if share < 1 else np.float32(30)
        for a in range(labels.indptr[label], labels.indptr[label + 1]):
            costs[labels.positions[a] * LANES + lane] = labels.positive_costs[a]
            logits[labels.positions[a] * LANES + lane] = positive
    scale_squared = np.float32(options.bias_scale * options.bias_scale)
    for row in range(n_rows):
        for lane in range(in_use):
            at = np.uint64(row * LANES + lane)
            steps[lane] = costs[at] / (np.float32(1) + np.exp(-logits[at]))
            biases[lane] += steps[lane] * scale_squared
        add_lanes(weights, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], steps)


@njit(nogil=True, cache=True, boundscheck=False)
def _sweep(rows, order, in_use, weights, biases, costs, logits, worst, options):
    """One pass of coordinate descent over ``order``; lanes whose last pass was within tolerance rest.

    Returns whether a lane is still at work.
    """
    scores = np.empty(LANES, np.float32)
    at_work = np.zeros(LANES, np.float32)
    steps = np.zeros(LANES, np.float32)
    room = _Room(
        np.empty((3, LANES), np.float32),
        np.empty((2, LANES), np.float32),
        np.empty(LANES, np.float32),
        np.empty(LANES, np.float32),
        np.empty(LANES, np.float32),
        np.empty(LANES, np.float32),
    )
    scale_squared = np.float32(options.bias_scale * options.bias_scale)
    ignored = np.float32(_IGNORED * options.tol)
    working = False
    for lane in range(in_use):
        if worst[lane] > options.tol:
            at_work[lane] = 1
            worst[lane] = 0
            working = True
    if not working:
        return False
    for n in range(order.shape[0]):
        row = order[n]
        start, stop = rows.indptr[row], rows.indptr[row + 1]
        for lane in range(LANES):
            scores[lane] = biases[lane]
        dot_lanes(weights, rows.indices, rows.data, start, stop, scores)
        own = slice(row * LANES, (row + 1) * LANES)
        if _find_movable(scores, costs[own], logits[own], at_work, worst, ignored, room):
            _solve_row(costs[own], logits[own], rows.squares[row] + scale_squared, room, steps)
            for lane in range(LANES):
                biases[lane] += steps[lane] * scale_squared
            add_lanes(weights, rows.indices, rows.data, start, stop, steps)
    return True


@njit(nogil=True, cache=True, boundscheck=False)
def _find_movable(scores, costs, logits, at_work, worst, ignored, room):
    """Which lanes have an error worth a step, ``room.movable``; notes each lane's worst; returns whether any has."""
    margins, shares = room.problems[1], room.shares
    for lane in range(LANES):
        margins[lane] = scores[lane] if costs[lane] > 0 else -scores[lane]
        room.roots[lane] = max(-margins[lane], logits[lane])
    # How strongly an error of the logit matters: 2 σ, near 0 where the row is sure.
    sigmoid_lanes(room.roots, shares)
    found = False
    for lane in range(LANES):
        error = abs(margins[lane] + logits[lane])
        worst[lane] = max(worst[lane], at_work[lane] * min(error, np.float32(1)) * np.float32(2) * shares[lane])
        room.movable[lane] = at_work[lane] if error > ignored else np.float32(0)
        found |= room.movable[lane] > 0
    return found


@njit(nogil=True, cache=True, boundscheck=False)
def _solve_row(costs, logits, curvature, room, steps):
    """Move the movable lanes of one row: t with ``strength (σ(t) - σ(logit)) + margin + t = 0`` becomes the logit.

    ``steps`` becomes what this adds to α z.
    """
    strengths, margins, old = room.problems[0], room.problems[1], room.problems[2]
    sigmoid_lanes(logits, old)
    for lane in range(LANES):
        strengths[lane] = curvature * abs(costs[lane])
        low = -margins[lane] - strengths[lane] * (np.float32(1) - old[lane])
        high = low + strengths[lane]
        room.brackets[0, lane], room.brackets[1, lane] = low, high
        room.roots[lane] = min(max(logits[lane], low), high)
        room.pending[lane] = room.movable[lane]
    for _ in range(_NEWTON_STEPS):
        if not newton_lanes(room.problems, room.brackets, room.roots, room.pending, _SHORT_STEP):
            break
    sigmoid_lanes(room.roots, room.shares)
    for lane in range(LANES):
        steps[lane] = room.movable[lane] * (room.shares[lane] - old[lane]) * costs[lane]
        logits[lane] = room.roots[lane] if room.movable[lane] > 0 else logits[lane]
