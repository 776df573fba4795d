"""Logistic regression, one a label, by dual coordinate descent for sixteen labels at once.

For each label ``min ½|w|² + ½ v² + Σ_i C_i ln(1 + exp(-z_i (w·x_i + b)))``, ``b = centre + scale · v``, z = ±1. The
dual (Yu, Huang & Lin 2011) keeps ``α_i = C_i σ(t_i)`` with ``w = Σ α_i z_i x_i``; optimal is
``t_i = -z_i (w·x_i + b)``. Every row is active for every label, so rows are visited in one order for sixteen labels,
whose weights lie side by side.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tailwise.kernels.lanes import LANES, add_lanes, dot_lanes, zero_lanes

_NEWTON_STEPS = 20
_START_LENGTH = 10.0


@njit(nogil=True, cache=True, boundscheck=False)
def solve_logistic(rows, labels, settings):
    """Solve every label of ``labels``; returns as :func:`tailwise.kernels.svm.solve_svm`.

    ``settings.max_rounds`` bounds the passes over the rows. A bias centre of NaN means the label's log-odds. A
    label's result does not depend on the others.
    """
    n_labels = labels.indptr.shape[0] - 1
    n_rows, n_features = rows.squares.shape[0], rows.features.shape[0]
    begin, count = np.zeros(n_labels, np.int64), np.zeros(n_labels, np.int64)
    bias = np.empty(n_labels, np.float32)
    features, values = np.empty(n_features, np.int32), np.empty(n_features, np.float32)
    order = np.arange(n_rows)
    costs = np.empty(n_rows * LANES, np.float32)
    logits = np.empty(n_rows * LANES, np.float32)
    used = 0
    for first in range(0, n_labels, LANES):
        in_use = min(LANES, n_labels - first)
        weights = zero_lanes(n_features)
        biases = np.zeros(LANES, np.float32)
        _begin(rows, labels, first, in_use, weights, biases, costs, logits, settings)
        worst = np.full(LANES, np.float32(np.inf), np.float32)
        state = np.uint64(settings.seed * 2 + 88172645463325252)
        for row in range(n_rows):
            order[row] = row
        for _ in range(settings.max_rounds):
            state = _shuffle(order, state)
            if not _sweep(rows, order, in_use, weights, biases, costs, logits, worst, settings):
                break
        if used + in_use * n_features > values.shape[0]:
            room = 2 * used + in_use * n_features
            longer_features, longer_values = np.empty(room, np.int32), np.empty(room, np.float32)
            for n in range(used):
                longer_features[n], longer_values[n] = features[n], values[n]
            features, values = longer_features, longer_values
        for lane in range(in_use):
            begin[first + lane], bias[first + lane] = used, biases[lane]
            for feature in range(n_features):
                weight = weights[np.uint64(feature * LANES + lane)]
                if abs(weight) >= settings.prune and weight != 0:
                    features[used], values[used] = feature, weight
                    used += 1
            count[first + lane] = used - begin[first + lane]
    return begin, count, features, values, bias


@njit(nogil=True, cache=True, boundscheck=False)
def _shuffle(order, state):
    size = order.shape[0]
    for place in range(size - 1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        other = place + np.int64((state >> np.uint64(33)) % np.uint64(size - place))
        order[place], order[other] = order[other], order[place]
    return state


@njit(nogil=True, cache=True, boundscheck=False)
def _begin(rows, labels, first, in_use, weights, biases, costs, logits, settings):
    """Start near the solution of rare labels: ``w`` proportional to the mean of positives minus the mean of all.

    ``costs`` becomes +C for a positive and -C for a negative; its α is σ(logit) C.
    """
    n_rows = rows.squares.shape[0]
    steps = np.zeros(LANES, np.float32)
    for lane in range(in_use):
        label = first + lane
        positives = labels.indptr[label + 1] - labels.indptr[label]
        odds = (positives + 0.5) / (n_rows - positives + 0.5)
        biases[lane] = np.log(odds) if np.isnan(settings.bias_centre) else settings.bias_centre
        total = 0.0
        for a in range(labels.indptr[label], labels.indptr[label + 1]):
            total += labels.positive_costs[a]
        shrink = min(1.0, _START_LENGTH / max(total, 1e-30))
        share = shrink * min(0.5, positives / n_rows)
        negative = np.float32(np.log(share / (1 - share))) if share > 0 else np.float32(-30)
        for row in range(n_rows):
            costs[np.uint64(row * LANES + lane)] = -labels.negative_costs[label]
            logits[np.uint64(row * LANES + lane)] = negative
        share = shrink * max(0.5, 1 - positives / n_rows)
        positive = np.float32(np.log(share / (1 - share))) if share < 1 else np.float32(30)
        for a in range(labels.indptr[label], labels.indptr[label + 1]):
            costs[labels.positions[a] * LANES + lane] = labels.positive_costs[a]
            logits[labels.positions[a] * LANES + lane] = positive
    scale_squared = np.float32(settings.bias_scale * settings.bias_scale)
    for row in range(n_rows):
        for lane in range(in_use):
            at = np.uint64(row * LANES + lane)
            steps[lane] = costs[at] / (np.float32(1) + np.exp(-logits[at]))
            biases[lane] += steps[lane] * scale_squared
        add_lanes(weights, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], steps)


@njit(nogil=True, cache=True, boundscheck=False)
def _sweep(rows, order, in_use, weights, biases, costs, logits, worst, settings):
    """One pass of coordinate descent over ``order``; lanes whose last pass was within tolerance rest.

    Returns whether a lane is still at work.
    """
    scores = np.empty(LANES, np.float32)
    steps = np.zeros(LANES, np.float32)
    scale_squared = np.float32(settings.bias_scale * settings.bias_scale)
    ignored = np.float32(0.01 * settings.tol)
    resting = np.empty(LANES, np.bool_)
    working = False
    for lane in range(LANES):
        resting[lane] = lane >= in_use or worst[lane] <= settings.tol
        working |= not resting[lane]
        if not resting[lane]:
            worst[lane] = 0
    if not working:
        return False
    for n in range(order.shape[0]):
        row = order[n]
        start, stop = rows.indptr[row], rows.indptr[row + 1]
        for lane in range(LANES):
            scores[lane] = biases[lane]
        dot_lanes(weights, rows.indices, rows.data, start, stop, scores)
        curvature = rows.squares[row] + scale_squared
        moved = False
        for lane in range(in_use):
            steps[lane] = 0
            if resting[lane]:
                continue
            at = np.uint64(row * LANES + lane)
            cost, logit = costs[at], logits[at]
            margin = scores[lane] if cost > 0 else -scores[lane]
            worst[lane] = max(worst[lane], min(abs(margin + logit), np.float32(1)) * _slope(margin, logit))
            if abs(margin + logit) <= ignored:
                continue
            old, new, logit = _newton(margin, logit, curvature * abs(cost))
            logits[at] = logit
            steps[lane] = (new - old) * cost
            biases[lane] += steps[lane] * scale_squared
            moved |= steps[lane] != 0
        if moved:
            add_lanes(weights, rows.indices, rows.data, start, stop, steps)
    return True


@njit(nogil=True, cache=True, boundscheck=False)
def _slope(margin, logit):
    """How strongly an error of the logit matters: 1 where the row is undecided or wrong, little where it is sure."""
    return np.float32(2) / (np.float32(1) + np.exp(min(margin, -logit)))


@njit(nogil=True, cache=True, boundscheck=False)
def _newton(margin, logit, strength):
    """Solve ``strength (σ(t) - σ(logit)) + margin + t = 0``; returns σ(logit), σ(t) and t."""
    one = np.float32(1)
    old = one / (one + np.exp(-logit))
    low, high = -margin - strength * (one - old), -margin + strength * old
    t = min(max(logit, low), high)
    share = old
    for _ in range(_NEWTON_STEPS):
        share = one / (one + np.exp(-t))
        error = strength * (share - old) + margin + t
        if error > 0:
            high = t
        else:
            low = t
        step = error / (one + strength * share * (one - share))
        t -= step
        if not low <= t <= high:
            t = np.float32(0.5) * (low + high)
        if abs(step) < np.float32(1e-3):
            break
    return old, one / (one + np.exp(-t)), t
