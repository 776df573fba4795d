"""Linear support vector machines, one a label, by dual coordinate descent over small working sets.

For each label ``min ½|w|² + l1 |w|₁ + ½ v² + Σ_i C_i loss(z_i (w·x_i + b))``, ``b = centre + scale · v``, z = ±1 and
the loss ``max(0, 1 - s)`` or its square. With ``centre = 0`` this is LIBLINEAR's problem with ``-B scale``. With
``centre = -1`` the starting point w = 0, b = -1 leaves every negative without loss, so that only negatives which
resemble a positive ever enter the problem.

The dual keeps one α_i >= 0 a row, ``u = Σ α_i z_i x_i``, ``w = soft(u, l1)`` and ``v = scale Σ α_i z_i`` (Hsieh et al.
2008; with l1 > 0: Yen et al. 2017). A label's working set starts as its positives and a few negatives that stand
for all; then in turn a few sweeps of coordinate descent over the set, and a scan of all rows, for sixteen
labels at once, from which the negatives of the highest scores join. On EURLex-4K three scans reach the
optimum to one part in a thousand, with 3,000 updates a label. A label with an old solution begins with a scan by its
old weights, which says what the working set and its α are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty, grown, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.lanes import LANES, dot_lanes, zero_lanes
from tailwise.kernels.solvers.problems import FEW_TIMES, SQUARED_HINGE, has_start
from tailwise.kernels.solvers.sweeps import _descend, _dot
from tailwise.kernels.sparse.sorting import index_of, sort_keys

_NEGATIVES_TO_START = 64
_NEWCOMERS = 256
_BINS = 256
_RESUMED = -1
"""In place of rounds: old weights are in place, and the next scan tells what the rows' α are by them."""


class _Lanes(NamedTuple):
    """The labels being solved, sixteen or one: their weights, and what is known of each."""

    weights: np.ndarray
    """(n_lanes, n_features) float32"""
    side_by_side: np.ndarray
    """(n_features * 16,) float32: the same feature by feature while rows are scanned; empty for a single lane"""
    bias: np.ndarray
    """(16,) float32"""
    label: np.ndarray
    """(16,) int64, -1 for an idle lane"""
    rounds: np.ndarray
    """(16,) int64: descents so far"""
    size: np.ndarray
    """(16,) int64: rows in the working set"""
    member: np.ndarray
    """(n_rows,) uint16: bit ``lane`` tells that the row is in that lane's set"""
    error: np.ndarray
    """(16,) float32: how far the dual gradient is from optimal, in the set or out of it"""


class _Sets(NamedTuple):
    """Working sets, (16, capacity) each."""

    rows: np.ndarray
    """int32"""
    costs: np.ndarray
    """float32: +C of a positive, -C of a negative"""
    alphas: np.ndarray
    """float32"""


@njit(nogil=True, cache=True, boundscheck=False)
def solve_svm(rows, labels, start, unsoft, options):
    """Solve every label of ``labels`` over ``rows``; returns (begin, count, local features, values, bias) and the same
    for support vectors: (begin, count, positions, α z).

    A label's weights are ``values[begin : begin + count]``. They depend neither on the other labels of the block
    nor on their order: a lane whose label is done takes the next one, and lanes never exchange anything.
    Positions ascend within a label; ``rows``, ``labels`` and ``start`` (features in local numbers) are only read; where
    the start is None there are no old solutions, and what they need is not compiled. ``unsoft`` (n_features,) float32
    is room for what L1 needs; where it is None there is no L1, and that is not compiled either. ``options`` has numbers
    only, and a loss of ``SQUARED_HINGE`` or ``HINGE``.
    :func:`tailwise.kernels.solvers.solve.solve_block` puts the result in order.
    """
    n_labels = labels.indptr.shape[0] - 1
    n_rows, n_features = rows.squares.shape[0], rows.features.shape[0]
    n_lanes = 1 if rows.indices.shape[0] < FEW_TIMES * n_features else LANES
    lanes = _Lanes(
        zeros((n_lanes, n_features), np.float32),
        zero_lanes(n_features if n_lanes > 1 else 0),
        zeros(LANES, np.float32),
        empty(LANES, np.int64),
        zeros(LANES, np.int64),
        zeros(LANES, np.int64),
        zeros(n_rows, np.uint16),
        zeros(LANES, np.float32),
    )
    for lane in range(LANES):
        lanes.label[lane] = -1
    sets = _make_sets(n_lanes, _NEWCOMERS)
    scores = empty((n_rows, n_lanes), np.float32)
    begin, count = zeros(n_labels, np.int64), zeros(n_labels, np.int64)
    bias = empty(n_labels, np.float32)
    features, values = empty(n_features, np.int32), empty(n_features, np.float32)
    first, n_support = zeros(n_labels, np.int64), zeros(n_labels, np.int64)
    positions, signed = empty(n_rows, np.int32), empty(n_rows, np.float32)
    next_label = done = used = held = 0
    while True:
        for lane in range(n_lanes):
            while True:
                label = lanes.label[lane]
                if label >= 0 and (lanes.error[lane] <= options.tol or lanes.rounds[lane] >= options.max_rounds):
                    features = grown(features, used, used + n_features)
                    values = grown(values, used, used + n_features)
                    count[label] = _take(lanes, lane, options.prune, features, values, used)
                    begin[label], bias[label] = used, lanes.bias[lane]
                    used += count[label]
                    positions = grown(positions, held, held + lanes.size[lane])
                    signed = grown(signed, held, held + lanes.size[lane])
                    n_support[label] = _take_support(lanes, lane, sets, positions, signed, held)
                    first[label] = held
                    held += n_support[label]
                    _forget(lanes, lane, sets)
                    label = lanes.label[lane] = -1
                    done += 1
                if label < 0:
                    if next_label == n_labels:
                        break
                    label = lanes.label[lane] = next_label
                    next_label += 1
                    if start is not None and has_start(start, label):
                        _resume(start, label, lanes, lane)
                        break
                    lanes.rounds[lane] = 0
                    lanes.bias[lane] = options.bias_centre
                    sets = _roomier(
                        sets, lanes.size, 2 * (labels.indptr[label + 1] - labels.indptr[label]) + _NEGATIVES_TO_START
                    )
                    _start(rows, labels, label, lanes, lane, sets)
                _descend(rows, lanes, lane, sets, unsoft, options)
                _settle(rows, lanes, lane, sets, labels.negative_costs[label])
                # The last descent needs no scan after it: the lane takes its next label at once.
                if lanes.rounds[lane] < options.max_rounds:
                    break
        if done == n_labels:
            return begin, count, features, values, bias, first, n_support, positions, signed
        _scan(rows, lanes, scores)
        for lane in range(n_lanes):
            if start is not None and lanes.label[lane] >= 0 and lanes.rounds[lane] == _RESUMED:
                sets = _roomier(sets, lanes.size, _count_losses(labels, lanes, lane, scores))
                _adopt(rows, labels, start, lanes, lane, sets, scores, options)
            elif lanes.label[lane] >= 0:
                room = _room_for(lanes.size[lane])
                sets = _roomier(sets, lanes.size, lanes.size[lane] + room)
                _admit(rows, lanes, lane, sets, scores, labels.negative_costs[lanes.label[lane]], room)


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _scan(rows, lanes, scores):
    """The scores of all rows by all lanes, into ``scores`` (n_rows, n_lanes)."""
    if lanes.weights.shape[0] == 1:
        weights = lanes.weights[0]
        for row in range(scores.shape[0]):
            total = _dot(weights, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1])
            scores[row, 0] = total + lanes.bias[0]
        return
    _put_side_by_side(lanes)
    for row in range(scores.shape[0]):
        here = scores[row]
        for lane in range(LANES):
            here[lane] = lanes.bias[lane]
        dot_lanes(lanes.side_by_side, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], here)


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _put_side_by_side(lanes):
    for feature in range(lanes.weights.shape[1]):
        for lane in range(LANES):
            lanes.side_by_side[np.uint64(feature * LANES + lane)] = lanes.weights[np.uint64(lane), np.uint64(feature)]


@njit(nogil=True, cache=True, boundscheck=False)
def _make_sets(n_lanes, capacity):
    shape = (n_lanes, capacity)
    return _Sets(empty(shape, np.int32), empty(shape, np.float32), empty(shape, np.float32))


@njit(nogil=True, cache=True, boundscheck=False)
def _roomier(sets, sizes, capacity):
    """Working sets with room for ``capacity`` rows each; what is not used yet takes no memory."""
    if capacity <= sets.rows.shape[1]:
        return sets
    n_lanes = sets.rows.shape[0]
    new = _make_sets(n_lanes, max(capacity, 2 * sets.rows.shape[1]))
    for lane in range(n_lanes):
        for n in range(sizes[lane]):
            new.rows[lane, n] = sets.rows[lane, n]
            new.costs[lane, n] = sets.costs[lane, n]
            new.alphas[lane, n] = sets.alphas[lane, n]
    return new


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _take(lanes, lane, prune, features, values, used):
    at = used
    weights = lanes.weights[lane]
    for feature in range(weights.shape[0]):
        weight = weights[np.uint64(feature)]
        if abs(weight) >= prune and weight != 0:
            features[at] = feature
            values[at] = weight
            at += 1
    return at - used


@njit(nogil=True, cache=True, boundscheck=False)
def _take_support(lanes, lane, sets, positions, signed, held):
    at = held
    size = lanes.size[lane]
    keys = empty(size, np.int64)
    for n in range(size):
        keys[n] = (np.int64(sets.rows[lane, n]) << np.int64(32)) | n
    sort_keys(keys, size)
    for key in keys:
        n = index_of(key)
        if sets.alphas[lane, n] > 0:
            positions[at] = sets.rows[lane, n]
            signed[at] = sets.alphas[lane, n] if sets.costs[lane, n] > 0 else -sets.alphas[lane, n]
            at += 1
    return at - held


@njit(nogil=True, cache=True, boundscheck=False)
def _forget(lanes, lane, sets):
    others = np.uint16(0xFFFF ^ (1 << lane))
    for n in range(lanes.size[lane]):
        lanes.member[sets.rows[lane, n]] &= others
    lanes.weights[lane] = 0


@njit(nogil=True, cache=True, boundscheck=False)
def _resume(start, label, lanes, lane):
    """The label's old weights and bias; its working set waits for the next scan."""
    weights = lanes.weights[lane]
    for a in range(start.indptr[label], start.indptr[label + 1]):
        weights[np.uint64(start.features[a])] = start.values[a]
    lanes.bias[lane] = start.bias[label]
    lanes.rounds[lane] = _RESUMED
    lanes.error[lane] = np.inf
    lanes.size[lane] = 0


@njit(nogil=True, cache=True, boundscheck=False)
def _count_losses(labels, lanes, lane, scores):
    """How many rows are positive or have a loss, some of them counted twice."""
    label = lanes.label[lane]
    size = labels.indptr[label + 1] - labels.indptr[label]
    for row in range(lanes.member.shape[0]):
        size += scores[np.uint64(row), np.uint64(lane)] > -1
    return size


@njit(nogil=True, cache=True, boundscheck=False)
def _adopt(rows, labels, start, lanes, lane, sets, scores, options):
    """The working set of old weights: every positive, and every negative with a loss.

    A known row gets the α that its loss has at the optimum, 2 C max(0, 1 - s) for the squared hinge; a new row gets 0.
    Weights and bias become those of the α, all times the number that makes the dual objective largest.
    """
    label = lanes.label[lane]
    bit = np.uint16(1 << lane)
    size = 0
    for a in range(labels.indptr[label], labels.indptr[label + 1]):
        row = labels.positions[a]
        sets.rows[lane, size], sets.costs[lane, size] = row, labels.positive_costs[a]
        lanes.member[row] |= bit
        size += 1
    for row in range(lanes.member.shape[0]):
        if scores[np.uint64(row), np.uint64(lane)] > -1 and not lanes.member[row] & bit:
            sets.rows[lane, size] = row
            sets.costs[lane, size] = -labels.negative_costs[label] * rows.weights[row]
            lanes.member[row] |= bit
            size += 1
    for n in range(size):
        row, cost = sets.rows[lane, n], sets.costs[lane, n]
        score = scores[np.uint64(row), np.uint64(lane)]
        slack = 1 - score if cost > 0 else 1 + score
        alpha = np.float32(0)
        if row < start.n_known[label] and slack > 0:
            alpha = np.float32(2 * abs(cost) * slack if options.loss == SQUARED_HINGE else abs(cost))
        sets.alphas[lane, n] = alpha
    lanes.size[lane] = size
    lanes.rounds[lane] = 1
    _weigh(rows, lanes, lane, sets, options)


@njit(nogil=True, cache=True, boundscheck=False)
def _weigh(rows, lanes, lane, sets, options):
    """Weights and bias from the α of a working set, scaled; with L1 unscaled, for descent makes those anew."""
    weights = lanes.weights[lane]
    weights[:] = 0
    total = gain = square = 0.0
    for n in range(lanes.size[lane]):
        row, cost, alpha = sets.rows[lane, n], sets.costs[lane, n], sets.alphas[lane, n]
        if alpha > 0:
            step = alpha if cost > 0 else -alpha
            for a in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + 1])):
                weights[np.uint64(rows.indices[a])] += step * rows.data[a]
            total += step
            gain += alpha - step * options.bias_centre
            square += alpha * alpha / (2 * abs(cost)) if options.loss == SQUARED_HINGE else 0.0
    scale_squared = options.bias_scale * options.bias_scale
    square += scale_squared * total * total
    for feature in range(weights.shape[0]):
        square += weights[np.uint64(feature)] * weights[np.uint64(feature)]
    share = np.float32(1)
    if options.l1 == 0 and square > 0:
        share = np.float32(max(0.0, gain / square))
        if options.loss != SQUARED_HINGE:
            share = min(share, np.float32(1))
    for n in range(lanes.size[lane]):
        sets.alphas[lane, n] *= share
    for feature in range(weights.shape[0]):
        weights[np.uint64(feature)] *= share
    lanes.bias[lane] = options.bias_centre + scale_squared * total * share


@njit(nogil=True, cache=True, boundscheck=False)
def _start(rows, labels, label, lanes, lane, sets):
    """The first working set: every positive, and negatives spread evenly over the rows at the cost of all."""
    first, last = labels.indptr[label], labels.indptr[label + 1]
    n_rows = lanes.member.shape[0]
    wanted = min(last - first + _NEGATIVES_TO_START, n_rows)
    size = 0
    bit = np.uint16(1 << lane)
    for a in range(first, last):
        sets.rows[lane, size] = labels.positions[a]
        sets.costs[lane, size] = labels.positive_costs[a]
        sets.alphas[lane, size] = 0
        lanes.member[labels.positions[a]] |= bit
        size += 1
    for n in range(wanted):
        row = n * n_rows // wanted
        if not lanes.member[row] & bit:
            sets.rows[lane, size] = row
            sets.costs[lane, size] = -labels.negative_costs[label] * np.float32(n_rows / wanted) * rows.weights[row]
            sets.alphas[lane, size] = 0
            lanes.member[row] |= bit
            size += 1
    lanes.size[lane] = size


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _settle(rows, lanes, lane, sets, cost):
    """After a descent negatives with α = 0 leave the set, and the others cost what they should."""
    kept = 0
    others = np.uint16(0xFFFF ^ (1 << lane))
    for n in range(lanes.size[lane]):
        if sets.alphas[lane, n] > 0 or sets.costs[lane, n] > 0:
            row = sets.rows[lane, kept] = sets.rows[lane, n]
            sets.costs[lane, kept] = sets.costs[lane, n] if sets.costs[lane, n] > 0 else -cost * rows.weights[row]
            sets.alphas[lane, kept] = sets.alphas[lane, n]
            kept += 1
        else:
            lanes.member[sets.rows[lane, n]] &= others
    lanes.size[lane] = kept
    lanes.rounds[lane] += 1


@njit(nogil=True, cache=True, boundscheck=False)
def _room_for(size):
    """How many rows may join a working set of ``size`` after one scan."""
    return _NEWCOMERS + 2 * size


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _bin_of(violation):
    return min(np.int64(violation * 128), _BINS - 1)


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _lowest_bin(counts, room):
    """The bin from which violators are admitted, so that they are ``room`` or more, if so many are; and how many."""
    total, lowest = 0, _BINS
    while lowest > 0 and total < room:
        lowest -= 1
        total += counts[lowest]
    return lowest, total


@njit(nogil=True, cache=True, boundscheck=False)
def _admit(rows, lanes, lane, sets, scores, cost, room):
    """The highest-scoring violators join the working set, at most ``room`` at a time.

    Admitting every violator would waste most of the work: the highest ones pull the others below the margin.
    """
    bit = np.uint16(1 << lane)
    n_rows = lanes.member.shape[0]
    counts = zeros(_BINS, np.int64)
    worst = np.float32(0)
    for row in range(n_rows):
        violation = scores[np.uint64(row), np.uint64(lane)] + np.float32(1)
        if violation > 0 and not lanes.member[row] & bit:
            counts[_bin_of(violation)] += 1
            worst = max(worst, violation)
    lanes.error[lane] = max(worst, lanes.error[lane] if lanes.rounds[lane] > 1 else np.float32(np.inf))
    lowest, total = _lowest_bin(counts, room)
    size = lanes.size[lane]
    left = min(total, room)
    for row in range(n_rows):
        violation = scores[np.uint64(row), np.uint64(lane)] + np.float32(1)
        if violation > 0 and not lanes.member[row] & bit and _bin_of(violation) >= lowest:
            if left == 0:
                return
            sets.rows[lane, size], sets.costs[lane, size] = row, -cost * rows.weights[row]
            sets.alphas[lane, size] = 0
            lanes.member[row] |= bit
            size += 1
            left -= 1
            lanes.size[lane] = size
