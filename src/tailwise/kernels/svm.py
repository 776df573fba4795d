"""Linear support vector machines, one a label, by dual coordinate descent over small working sets.

For each label ``min ½|w|² + l1 |w|₁ + ½ v² + Σ_i C_i loss(z_i (w·x_i + b))``, ``b = centre + scale · v``, z = ±1 and
the loss ``max(0, 1 - s)`` or its square. With ``centre = 0`` this is LIBLINEAR's problem with ``-B scale``. With
``centre = -1`` the starting point w = 0, b = -1 leaves every negative without loss, so that only negatives which
resemble a positive ever enter the problem: this, and scanning the rows for sixteen labels at once, is
what makes it fast.

The dual keeps one α_i >= 0 a row, ``u = Σ α_i z_i x_i``, ``w = soft(u, l1)`` and ``v = scale Σ α_i z_i`` (Hsieh et al.
2008; with l1 > 0: Yen et al. 2017). Rows with α > 0 or a violated margin form a label's working set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from tailwise.kernels.lanes import LANES, dot_lanes, zero_lanes

_FAST = {"contract", "nsz", "reassoc", "arcp"}
_FIRST_SWEEPS = 4
_NEGATIVES_TO_START = 64


class Settings(NamedTuple):
    """How to solve; :func:`tailwise.kernels.solve.solve_block` documents the fields and owns the defaults."""

    squared: bool
    l1: float
    tol: float
    max_rounds: int
    max_sweeps: int
    bias_centre: float
    bias_scale: float
    prune: float
    seed: int


class _Lane(NamedTuple):
    """A label's working set."""

    rows: np.ndarray
    """(capacity,) int32"""
    costs: np.ndarray
    """(capacity,) float32: +C of a positive, -C of a negative"""
    alphas: np.ndarray
    """(capacity,) float32"""


@njit(nogil=True, cache=True, boundscheck=False)
def solve_svm(rows, labels, settings):
    """Solve every label of ``labels`` over ``rows``; returns a list of (local features, values) and the biases.

    A label's result depends neither on the other labels of the block nor on their order: a lane whose label
    is done takes the next label, and lanes never exchange anything.
    """
    n_labels = labels.indptr.shape[0] - 1
    n_rows, n_features = rows.squares.shape[0], rows.features.shape[0]
    weights = zero_lanes(n_features)
    bias = np.zeros(LANES, np.float32)
    member = np.zeros(n_rows, np.uint16)
    sets = [
        _grown(_Lane(np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.float32)), 256)
        for _ in range(LANES)
    ]
    sizes = np.zeros(LANES, np.int64)
    label_of = np.full(LANES, -1, np.int64)
    rounds = np.zeros(LANES, np.int64)
    worst = np.zeros(LANES, np.float32)
    dense = np.zeros(n_features, np.float32)
    dual = np.zeros(n_features if settings.l1 > 0 else 0, np.float32)
    results = [(np.empty(0, np.int32), np.empty(0, np.float32)) for _ in range(n_labels)]
    biases = np.empty(n_labels, np.float32)
    next_label = done = 0
    while True:
        for lane in range(LANES):
            finished = label_of[lane] >= 0 and worst[lane] <= settings.tol
            while True:
                if finished:
                    label = label_of[lane]
                    results[label] = _take(weights, lane, n_features, settings.prune)
                    biases[label] = bias[lane]
                    _forget(weights, lane, sets[lane], sizes, member)
                    label_of[lane] = -1
                    done += 1
                if label_of[lane] < 0:
                    if next_label == n_labels:
                        break
                    label_of[lane] = next_label
                    next_label += 1
                    rounds[lane] = 0
                    bias[lane] = settings.bias_centre
                    sets[lane] = _start(n_rows, labels, label_of[lane], lane, sets[lane], sizes, member)
                first = rounds[lane] == 0
                _solve_lane(
                    rows,
                    lane,
                    weights,
                    bias,
                    sets[lane],
                    sizes,
                    member,
                    dense,
                    dual,
                    settings,
                    max(settings.tol, 0.5) if first else settings.tol,
                    min(_FIRST_SWEEPS, settings.max_sweeps) if first else settings.max_sweeps,
                )
                rounds[lane] += 1
                # What a scan adds must be solved once more: the steps of a scan only push scores down.
                finished = rounds[lane] > settings.max_rounds
                if not finished:
                    break
        if done == n_labels:
            return results, biases
        _scan(rows, labels, label_of, weights, bias, sets, sizes, member, settings, worst)


@njit(nogil=True, cache=True, boundscheck=False)
def _grown(lane, capacity):
    new = _Lane(np.empty(capacity, np.int32), np.empty(capacity, np.float32), np.empty(capacity, np.float32))
    used = lane.rows.shape[0]
    new.rows[:used] = lane.rows
    new.costs[:used] = lane.costs
    new.alphas[:used] = lane.alphas
    return new


@njit(nogil=True, cache=True, boundscheck=False)
def _start(n_rows, labels, label, lane, set_, sizes, member):
    """The first working set: every positive, and as many negatives spread evenly over the rows."""
    first, last = labels.indptr[label], labels.indptr[label + 1]
    wanted = last - first + _NEGATIVES_TO_START
    if set_.rows.shape[0] < last - first + wanted:
        set_ = _grown(set_, 2 * (last - first + wanted))
    size = 0
    bit = np.uint16(1 << lane)
    for a in range(first, last):
        set_.rows[size] = labels.positions[a]
        set_.costs[size] = labels.positive_costs[a]
        set_.alphas[size] = 0
        member[labels.positions[a]] |= bit
        size += 1
    for n in range(min(wanted, n_rows)):
        row = n * n_rows // min(wanted, n_rows)
        if not member[row] & bit:
            set_.rows[size] = row
            set_.costs[size] = -labels.negative_costs[label]
            set_.alphas[size] = 0
            member[row] |= bit
            size += 1
    sizes[lane] = size
    return set_


@njit(nogil=True, cache=True, boundscheck=False)
def _forget(weights, lane, set_, sizes, member):
    keep = np.uint16(0xFFFF ^ (1 << lane))
    for n in range(sizes[lane]):
        member[set_.rows[n]] &= keep
    sizes[lane] = 0
    for a in range(lane, weights.shape[0], LANES):
        weights[np.uint64(a)] = 0


@njit(nogil=True, cache=True, boundscheck=False)
def _take(weights, lane, n_features, prune):
    count = 0
    for feature in range(n_features):
        weight = abs(weights[feature * LANES + lane])
        count += weight >= prune and weight > 0
    features = np.empty(count, np.int32)
    values = np.empty(count, np.float32)
    count = 0
    for feature in range(n_features):
        weight = weights[feature * LANES + lane]
        if abs(weight) >= prune and weight != 0:
            features[count] = feature
            values[count] = weight
            count += 1
    return features, values


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _dot(weights, indices, data, start, stop):
    total = np.float32(0)
    for a in range(np.uint64(start), np.uint64(stop)):
        total += data[a] * weights[np.uint64(indices[a])]
    return total


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _add(weights, indices, data, start, stop, step):
    for a in range(np.uint64(start), np.uint64(stop)):
        weights[np.uint64(indices[a])] += step * data[a]


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _add_soft(weights, dual, l1, indices, data, start, stop, step):
    for a in range(np.uint64(start), np.uint64(stop)):
        feature = np.uint64(indices[a])
        moved = dual[feature] + step * data[a]
        dual[feature] = moved
        weights[feature] = max(moved - l1, np.float32(0)) + min(moved + l1, np.float32(0))


@njit(nogil=True, cache=True, boundscheck=False)
def _solve_lane(rows, lane, weights, bias, set_, sizes, member, dense, dual, settings, tol, max_sweeps):
    """Coordinate descent over one working set; afterwards rows with α = 0 leave it, positives stay."""
    n_features = dense.shape[0]
    for feature in range(n_features):
        dense[feature] = weights[feature * LANES + lane]
    l1 = np.float32(settings.l1)
    if l1 > 0:
        dual[:] = 0
        for n in range(sizes[lane]):
            if set_.alphas[n] > 0:
                row = set_.rows[n]
                step = set_.alphas[n] if set_.costs[n] > 0 else -set_.alphas[n]
                _add(dual, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], step)
    size = active = sizes[lane]
    order = np.arange(size).astype(np.int32)
    scale_squared = np.float32(settings.bias_scale * settings.bias_scale)
    b = bias[lane]
    state = np.uint64(settings.seed * 2 + 88172645463325252)
    high_bar, low_bar = np.inf, -np.inf
    for _ in range(max_sweeps):
        highest, lowest = -np.inf, np.inf
        n = 0
        for place in range(active - 1):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            other = place + np.int64((state >> np.uint64(33)) % np.uint64(active - place))
            order[place], order[other] = order[other], order[place]
        while n < active:
            at = order[n]
            row, cost, alpha = set_.rows[at], set_.costs[at], set_.alphas[at]
            start, stop = rows.indptr[row], rows.indptr[row + 1]
            score = _dot(dense, rows.indices, rows.data, start, stop) + b
            sign = np.float32(1) if cost > 0 else np.float32(-1)
            gradient = sign * score - np.float32(1)
            curvature = rows.squares[row] + scale_squared
            upper = np.float32(np.inf)
            if settings.squared:
                half = np.float32(0.5) / abs(cost)
                gradient += half * alpha
                curvature += half
            else:
                upper = abs(cost)
            projected = gradient
            if alpha <= 0:
                if gradient > high_bar:
                    active -= 1
                    order[n], order[active] = order[active], order[n]
                    continue
                projected = min(gradient, np.float32(0))
            elif alpha >= upper:
                if gradient < low_bar:
                    active -= 1
                    order[n], order[active] = order[active], order[n]
                    continue
                projected = max(gradient, np.float32(0))
            highest = max(highest, projected)
            lowest = min(lowest, projected)
            if abs(projected) > 1e-6 and curvature > 0:
                new = min(max(alpha - gradient / curvature, np.float32(0)), upper)
                set_.alphas[at] = new
                step = (new - alpha) * sign
                if l1 > 0:
                    _add_soft(dense, dual, l1, rows.indices, rows.data, start, stop, step)
                else:
                    _add(dense, rows.indices, rows.data, start, stop, step)
                b += step * scale_squared
            n += 1
        if highest - lowest <= tol:
            if active == size:
                break
            active = size
            high_bar, low_bar = np.inf, -np.inf
        else:
            high_bar = highest if highest > 0 else np.inf
            low_bar = lowest if lowest < 0 else -np.inf
    bias[lane] = b
    for feature in range(n_features):
        weights[feature * LANES + lane] = dense[feature]
    kept = 0
    keep = np.uint16(0xFFFF ^ (1 << lane))
    for n in range(size):
        if set_.alphas[n] > 0 or set_.costs[n] > 0:
            set_.rows[kept] = set_.rows[n]
            set_.costs[kept] = set_.costs[n]
            set_.alphas[kept] = set_.alphas[n]
            kept += 1
        else:
            member[set_.rows[n]] &= keep
    sizes[lane] = kept


@njit(nogil=True, cache=True, boundscheck=False)
def _scan(rows, labels, label_of, weights, bias, sets, sizes, member, settings, worst):
    """Pass over all rows for all lanes; each negative that violates its margin joins the lane's working set.

    Without l1 its α is optimised on the spot, so that the rows that follow see better weights.
    """
    scores = np.empty(LANES, np.float32)
    scale_squared = np.float32(settings.bias_scale * settings.bias_scale)
    bar = np.full(LANES, np.float32(np.inf), np.float32)
    for lane in range(LANES):
        if label_of[lane] >= 0:
            bar[lane] = -1 + 0.1 * settings.tol
    worst[:] = 0
    for row in range(rows.squares.shape[0]):
        scores[:] = bias
        start, stop = rows.indptr[row], rows.indptr[row + 1]
        dot_lanes(weights, rows.indices, rows.data, start, stop, scores)
        over = False
        for lane in range(LANES):
            over |= scores[lane] > bar[lane]
        if not over:
            continue
        for lane in range(LANES):
            if scores[lane] <= bar[lane] or member[row] & np.uint16(1 << lane):
                continue
            size = sizes[lane]
            if size == sets[lane].rows.shape[0]:
                sets[lane] = _grown(sets[lane], 2 * size)
            set_ = sets[lane]
            cost = labels.negative_costs[label_of[lane]]
            violation = scores[lane] + np.float32(1)
            worst[lane] = max(worst[lane], violation)
            alpha = np.float32(0)
            curvature = rows.squares[row] + scale_squared
            if settings.l1 == 0 and (settings.squared or curvature > 0):
                if settings.squared:
                    alpha = violation / (curvature + np.float32(0.5) / cost)
                else:
                    alpha = min(violation / curvature, cost)
                for a in range(np.uint64(start), np.uint64(stop)):
                    weights[np.uint64(rows.indices[a]) * np.uint64(LANES) + np.uint64(lane)] -= alpha * rows.data[a]
                bias[lane] -= alpha * scale_squared
            set_.rows[size] = row
            set_.costs[size] = -cost
            set_.alphas[size] = alpha
            member[row] |= np.uint16(1 << lane)
            sizes[lane] = size + 1
