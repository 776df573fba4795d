"""Support vector machines that go on from where their dual stood, over support vectors and new rows alone.

The problem is that of :mod:`tailwise.kernels.solvers.svm`. A label's state is its support vectors with their α, from
which weights and bias follow; rows that were without loss stay without α and are not looked at.
"""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import grown
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.lanes import LANES, dot_lanes, zero_lanes
from tailwise.kernels.solvers.problems import SQUARED_HINGE
from tailwise.kernels.solvers.sweeps import WorkingSet, _where_they_lie, descend, sum_support

_SWEEPS_OF_NEW = 2
_BINS = 256
_BINS_A_UNIT = 64
_LEAST = 0.3
"""Of ``tol``: a row whose gradient is off by less is not worth the step."""


@njit(nogil=True, cache=True, boundscheck=False)
def resume_svm(rows, labels, standing, options):
    """Go on with every label of ``labels``; returns what :func:`tailwise.kernels.solvers.svm.solve_svm` returns.

    The working set of a label is what ``standing`` says and all its positives; a row that has changed sides begins with
    α = 0. First come a few sweeps over rows without α, then at most ``options.max_sweeps`` over the whole set. Inputs
    are only read; a label's result does not depend on the others.
    """
    n_labels, n_features = labels.indptr.shape[0] - 1, rows.features.shape[0]
    least = np.float32(_LEAST * options.tol)
    weights = np.zeros(n_features, np.float32)
    unsoft = np.zeros(n_features if options.l1 > 0 else 0, np.float32)
    near = _where_they_lie()
    whole, fresh = _make_set(1024), _make_set(1024)
    begin, count = np.zeros(n_labels, np.int64), np.zeros(n_labels, np.int64)
    bias = np.empty(n_labels, np.float32)
    features, values = np.empty(n_features, np.int32), np.empty(n_features, np.float32)
    first, n_support = np.zeros(n_labels, np.int64), np.zeros(n_labels, np.int64)
    positions, signed = np.empty(1024, np.int32), np.empty(1024, np.float32)
    used = held = 0
    for label in range(n_labels):
        whole, size = _gather(rows, labels, standing, label, whole)
        own = WorkingSet(whole.rows[:size], whole.costs[:size], whole.alphas[:size])
        now = _restore(rows, own, weights, unsoft, options)
        fresh, n_fresh = _without_alpha(whole, size, fresh)
        some = WorkingSet(fresh.rows[:n_fresh], fresh.costs[:n_fresh], fresh.alphas[:n_fresh])
        now, _ = descend(rows, some, weights, unsoft, now, (_SWEEPS_OF_NEW, least), options, near)
        at = 0
        for n in range(size):
            if own.alphas[n] == 0 or own.costs[n] > 0:
                own.alphas[n] = some.alphas[at]
                at += 1
        now, _ = descend(rows, own, weights, unsoft, now, (standing.sweeps, least), options, near)
        begin[label], bias[label] = used, now
        features, values = grown(features, used, used + n_features), grown(values, used, used + n_features)
        for feature in range(n_features):
            # Written first and then kept or not: a branch would be mispredicted at every other feature.
            weight = weights[feature]
            features[used], values[used] = feature, weight
            used += (abs(weight) >= options.prune) & (weight != 0)
        count[label] = used - begin[label]
        first[label] = held
        positions, signed = grown(positions, held, held + size), grown(signed, held, held + size)
        for n in range(size):
            if own.alphas[n] > 0:
                signed[held] = own.alphas[n] if own.costs[n] > 0 else -own.alphas[n]
                positions[held] = own.rows[n]
                held += 1
        n_support[label] = held - first[label]
    return begin, count, features, values, bias, first, n_support, positions, signed


@njit(nogil=True, cache=True, boundscheck=False)
def rows_above(rows, positions, weights, others, floor, most):
    """For every label of ``weights`` the ``most`` of ``positions`` whose score ``w·x + b`` exceeds ``floor`` by most.

    ``weights`` are a :class:`Start` with local feature numbers, ``positions`` (n,) int32 ascending; ``others``, a
    :class:`Support`, has for each label places in ``positions`` that are not asked for. Sixteen labels are looked at
    together. Returns where each label's rows begin, (n_labels + 1,) int64, and the rows, int32, ascending.
    Inputs are only read.
    """
    n_labels = weights.indptr.shape[0] - 1
    lanes = zero_lanes(rows.features.shape[0])
    scores = np.empty(positions.shape[0] * LANES, np.float32)
    first = np.zeros(n_labels + 1, np.int64)
    found = np.empty(1024, np.int32)
    used = 0
    for begin in range(0, n_labels, LANES):
        end = min(n_labels, begin + LANES)
        for label in range(begin, end):
            for a in range(weights.indptr[label], weights.indptr[label + 1]):
                lanes[np.uint64(weights.features[a] * LANES + label - begin)] = weights.values[a]
        for n in range(positions.shape[0]):
            here = scores[n * LANES : n * LANES + LANES]
            for lane in range(LANES):
                here[lane] = weights.bias[min(begin + lane, end - 1)]
            row = positions[n]
            dot_lanes(lanes, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], here)
        for label in range(begin, end):
            found = grown(found, used, used + positions.shape[0])
            for a in range(others.indptr[label], others.indptr[label + 1]):
                scores[np.uint64(others.positions[a] * LANES + label - begin)] = -np.inf
            bar = _bar(scores, label - begin, floor, most)
            for n in range(positions.shape[0]):
                found[used] = positions[n]
                used += scores[np.uint64(n * LANES + label - begin)] > bar
            first[label + 1] = used
            for a in range(weights.indptr[label], weights.indptr[label + 1]):
                lanes[np.uint64(weights.features[a] * LANES + label - begin)] = 0
    return first, found[:used]


@njit(nogil=True, cache=True, boundscheck=False)
def _bar(scores, lane, floor, most):
    """The score that ``most`` rows of a lane exceed, or a few less; at least ``floor``, and at most that and 4."""
    counts = np.zeros(_BINS, np.int64)
    total = 0
    for n in range(lane, scores.shape[0], LANES):
        over = scores[np.uint64(n)] - floor
        if over > 0:
            counts[min(np.int64(over * _BINS_A_UNIT), _BINS - 1)] += 1
            total += 1
    bar = 0
    while total > most and bar < _BINS - 1:
        total -= counts[bar]
        bar += 1
    return floor + np.float32(bar / _BINS_A_UNIT)


@njit(nogil=True, cache=True, boundscheck=False)
def _make_set(capacity):
    return WorkingSet(np.empty(capacity, np.int32), np.empty(capacity, np.float32), np.empty(capacity, np.float32))


@njit(nogil=True, cache=True, boundscheck=False)
def _gather(rows, labels, standing, label, whole):
    """The working set and its size: positives, support vectors and candidates, merged by position."""
    a, last_a = labels.indptr[label], labels.indptr[label + 1]
    b, last_b = standing.support.indptr[label], standing.support.indptr[label + 1]
    c, last_c = standing.first[label], standing.first[label + 1]
    most = last_a - a + last_b - b + last_c - c
    if most > whole.rows.shape[0]:
        whole = _make_set(2 * most)
    size = 0
    nothing = np.iinfo(np.int32).max
    while a < last_a or b < last_b or c < last_c:
        positive = labels.positions[a] if a < last_a else nothing
        support = standing.support.positions[b] if b < last_b else nothing
        candidate = standing.candidates[c] if c < last_c else nothing
        row = min(positive, support, candidate)
        value = np.float32(0)
        if support == row:
            value = standing.support.values[b]
            b += 1
        c += candidate == row
        whole.rows[size] = row
        if positive == row:
            whole.costs[size], whole.alphas[size] = labels.positive_costs[a], max(value, np.float32(0))
            a += 1
        else:
            whole.costs[size] = -labels.negative_costs[label] * rows.weights[row]
            whole.alphas[size] = max(-value, np.float32(0))
        size += 1
    return whole, size


@njit(nogil=True, cache=True, boundscheck=False)
def _restore(rows, own, weights, unsoft, options):
    """The weights, into ``weights``, and the bias that belong to the α; those of the hinge loss end at its C."""
    total = np.float32(0)
    for n in range(own.rows.shape[0]):
        if options.loss != SQUARED_HINGE:
            own.alphas[n] = min(own.alphas[n], abs(own.costs[n]))
        total += own.alphas[n] if own.costs[n] > 0 else -own.alphas[n]
    l1 = np.float32(options.l1)
    if l1 > 0:
        sum_support(rows, own, unsoft)
        for feature in range(weights.shape[0]):
            moved = unsoft[feature]
            weights[feature] = max(moved - l1, np.float32(0)) + min(moved + l1, np.float32(0))
    else:
        sum_support(rows, own, weights)
    return np.float32(options.bias_centre + options.bias_scale * options.bias_scale * total)


@njit(nogil=True, cache=True, boundscheck=False)
def _without_alpha(whole, size, fresh):
    """The positives of a working set and what has no α, and how many these are."""
    if size > fresh.rows.shape[0]:
        fresh = _make_set(whole.rows.shape[0])
    n_fresh = 0
    for n in range(size):
        if whole.alphas[n] == 0 or whole.costs[n] > 0:
            fresh.rows[n_fresh], fresh.costs[n_fresh] = whole.rows[n], whole.costs[n]
            fresh.alphas[n_fresh] = whole.alphas[n]
            n_fresh += 1
    return fresh, n_fresh
