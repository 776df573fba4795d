"""Support vector machines that go on from where their dual stood, with one look at all rows a round.

The problem is that of :mod:`tailwise.kernels.solvers.svm`. A label's state is its support vectors with their α, from
which weights and bias follow. Thirty-two labels at a time are restored and look at rows together, by weights of eight
bits; what the look finds out of balance, and nothing else, is visited. After every sweep the α of all positives, and
those of all negatives, are made larger or smaller together, which a sweep does slowly and two numbers do at once.
"""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, grown, prefetch_row, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import shuffle, shuffle_state
from tailwise.kernels.solvers.lanes import HALF_LANES, dot_half_lanes, put_side_by_side_in_halves, zero_lanes
from tailwise.kernels.solvers.problems import SQUARED_HINGE, Options
from tailwise.kernels.solvers.svm import _make_sets, _roomier
from tailwise.kernels.solvers.sweeps import _AHEAD, _FAST, WorkingSet, _add, _sweep, sum_support

_NEWCOMERS = 64
"""Rows that may join a label after a look, those of the largest losses; or a share of its rows, if that is more."""
_SHARE = 0.3
_BINS = 256
_BINS_A_UNIT = 64
_LEAST = 0.25
"""Of ``tol``: a row whose gradient is off by less is not worth a step, nor another one if its α moved by less."""
_FURTHEST = 2
"""A common factor on α, or its inverse, that is larger is not trusted."""


@njit(nogil=True, cache=True, boundscheck=False)
def resume_svm(rows, labels, standing, options):
    """Go on with every label of ``labels``; returns what :func:`tailwise.kernels.solvers.svm.solve_svm` returns.

    A label holds its positives and its support vectors; a row that has changed sides begins with α = 0. New positives
    get their α first, and all negatives make up for them together, by one factor. Then in turn a look at all rows, from
    which negatives with a loss join, and up to ``options.max_sweeps`` sweeps over what is out of balance:
    ``standing.rounds`` times at most. A label without support vectors is a new one, and begins in the same way. Inputs
    are only read; a label's result does not depend on the others.
    """
    n_labels, n_features, n_rows = labels.indptr.shape[0] - 1, rows.features.shape[0], rows.squares.shape[0]
    floor = np.float32(options.tol - 1)
    side_by_side = zero_lanes(n_features)
    weights = zeros((HALF_LANES, n_features), np.float32)
    unsoft = zeros((HALF_LANES, n_features if options.l1 > 0 else 0), np.float32)
    member = zeros(n_rows, np.uint32)
    scores = empty((n_rows, HALF_LANES), np.float32)
    hits, n_hits = empty((HALF_LANES, n_rows), np.int32), zeros(HALF_LANES, np.int64)
    size, against = zeros(HALF_LANES, np.int64), zeros(n_features, np.float32)
    sets = _make_sets(HALF_LANES, 1024)
    off, before, order = empty(n_rows, np.float32), empty(n_rows, np.float32), empty(n_rows, np.int32)
    begin, count = zeros(n_labels, np.int64), zeros(n_labels, np.int64)
    bias = zeros(n_labels + HALF_LANES, np.float32)
    features, values = empty(n_features, np.int32), empty(n_features, np.float32)
    first, n_support = zeros(n_labels, np.int64), zeros(n_labels, np.int64)
    positions, signed = empty(1024, np.int32), empty(1024, np.float32)
    used = held = 0
    for start in range(0, n_labels, HALF_LANES):
        n_lanes = min(HALF_LANES, n_labels - start)
        for lane in range(n_lanes):
            label = start + lane
            sets = _roomier(sets, size, _most(labels, standing.support, label) + _NEWCOMERS)
            size[lane] = _gather(rows, labels, standing.support, label, lane, sets, member)
            own = _view(sets, lane, size[lane])
            bias[label] = _restore(rows, own, weights[lane], against, unsoft[lane], options)
            n_new = _new_positives(own, order)
            if n_new > 0:
                bars = (np.inf, -np.inf, bias[label], np.float32(0))
                _sweep(rows, rows.indptr, own, order, n_new, weights[lane], unsoft[lane], _fixed(options), bars)
                bias[label] = _balance(own, weights[lane], against, bias[label], options)
        for _ in range(standing.rounds):
            pending = False
            put_side_by_side_in_halves(weights, side_by_side)
            _look(rows, side_by_side, bias[start : start + HALF_LANES], n_lanes, member, floor, scores, hits, n_hits)
            for lane in range(n_lanes):
                label = start + lane
                sets = _roomier(sets, size, size[lane] + n_hits[lane])
                came = _join(rows, labels, label, lane, sets, size, scores, hits[lane, : n_hits[lane]], floor)
                for n in range(came.shape[0]):
                    member[came[n]] |= np.uint32(1 << lane)
                own = _view(sets, lane, size[lane])
                _out_of_balance(own, scores, lane, options, off)
                bias[label], sweeps = _sweep_some(
                    rows, own, weights[lane], unsoft[lane], against, bias[label], off, before, order, options
                )
                pending |= sweeps > 0
            if not pending:
                break
        for lane in range(n_lanes):
            label = start + lane
            begin[label], first[label] = used, held
            features, values = grown(features, used, used + n_features), grown(values, used, used + n_features)
            used = _keep_weights(weights[lane], options.prune, features, values, used)
            positions, signed = grown(positions, held, held + size[lane]), grown(signed, held, held + size[lane])
            held = _keep_support(_view(sets, lane, size[lane]), positions, signed, held)
            count[label], n_support[label] = used - begin[label], held - first[label]
            for n in range(size[lane]):
                member[sets.rows[lane, n]] = 0
            size[lane] = 0
    return begin, count, features, values, bias[:n_labels], first, n_support, positions, signed


@njit(nogil=True, cache=True, boundscheck=False)
def _sweep_some(rows, own, weights, unsoft, positive, bias, off, before, order, options):
    """Visit the members of a set that are out of balance, in another order each time; returns the bias, and how often.

    ``off`` tells by how much the gradient of each is off; then it is what the last visit changed of its α. Descent in a
    fixed order is slow, and where the rows that are furthest off come first, these bear what all should share. α,
    ``weights``, ``unsoft``, ``positive``, ``off``, ``before`` and ``order`` are written.
    """
    size = own.rows.shape[0]
    state = shuffle_state(options.seed)
    least = np.float32(_LEAST * options.tol)
    for number in range(options.max_sweeps):
        n_some = 0
        for n in range(size):
            order[n_some] = n
            n_some += off[n] > least
            before[n] = own.alphas[n]
        if n_some == 0:
            return bias, number
        state = shuffle(order, n_some, state)
        bars = (np.inf, -np.inf, bias, least)
        _, _, _, bias = _sweep(rows, rows.indptr, own, order, n_some, weights, unsoft, options, bars)
        for n in range(size):
            off[n] = abs(own.alphas[n] - before[n])
        if options.loss == SQUARED_HINGE and options.l1 == 0:
            bias = _scale_sides(rows, own, weights, positive, bias, options)
    return bias, options.max_sweeps


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _scale_sides(rows, own, weights, positive, bias, options):
    """Multiply the α of all positives, and those of all negatives, by the two factors of the least dual objective.

    Of the squared hinge without L1; α, ``weights`` and ``positive``, what positives have part in them, are written.
    Returns the bias.
    """
    scale_squared, centre = np.float32(options.bias_scale * options.bias_scale), np.float32(options.bias_centre)
    positive[:] = 0
    total, total_against = np.float32(0), np.float32(0)
    pp, pn, nn = np.float32(0), np.float32(0), np.float32(0)
    for n in range(own.rows.shape[0]):
        row, cost, alpha = own.rows[n], own.costs[n], own.alphas[n]
        square = np.float32(0.5) / abs(cost) * alpha * alpha
        if cost > 0:
            total += alpha
            pp += square
            _add(positive, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], alpha)
        else:
            total_against += alpha
            nn += square
    for feature in range(weights.shape[0]):
        negative = weights[feature] - positive[feature]
        pp += positive[feature] * positive[feature]
        pn += positive[feature] * negative
        nn += negative * negative
    pp += scale_squared * total * total
    pn -= scale_squared * total * total_against
    nn += scale_squared * total_against * total_against
    gain, gain_against = total * (1 - centre), total_against * (1 + centre)
    determinant = pp * nn - pn * pn
    if determinant <= np.float32(1e-6) * pp * nn:
        return bias
    factor = (gain * nn - gain_against * pn) / determinant
    factor_against = (gain_against * pp - gain * pn) / determinant
    if not 1 / _FURTHEST < min(factor, factor_against) <= max(factor, factor_against) < _FURTHEST:
        return bias
    for n in range(own.rows.shape[0]):
        own.alphas[n] *= factor if own.costs[n] > 0 else factor_against
    for feature in range(weights.shape[0]):
        weights[feature] = factor_against * weights[feature] + (factor - factor_against) * positive[feature]
    return centre + scale_squared * (factor * total - factor_against * total_against)


@njit(nogil=True, cache=True, boundscheck=False)
def _new_positives(own, order):
    """Into ``order`` the places of positives without α; returns how many."""
    n_new = 0
    for n in range(own.rows.shape[0]):
        order[n_new] = n
        n_new += (own.costs[n] > 0) & (own.alphas[n] == 0)
    return n_new


@njit(nogil=True, cache=True, boundscheck=False)
def _out_of_balance(own, scores, lane, options, off):
    """By how much the gradient of each member is off, by the scores of its row; writes ``off``."""
    for n in range(own.rows.shape[0]):
        cost, alpha = own.costs[n], own.alphas[n]
        score = scores[np.uint64(own.rows[n]), np.uint64(lane)]
        gradient = (score if cost > 0 else -score) - np.float32(1)
        upper = abs(cost)
        if options.loss == SQUARED_HINGE:
            gradient += np.float32(0.5) / upper * alpha
            upper = np.float32(np.inf)
        if alpha <= 0:
            gradient = min(gradient, np.float32(0))
        elif alpha >= upper:
            gradient = max(gradient, np.float32(0))
        off[n] = abs(gradient)


@njit(nogil=True, cache=True, boundscheck=False)
def _fixed(options):
    """The same with a bias that does not move."""
    return Options(
        options.loss,
        options.l1,
        options.tol,
        options.max_rounds,
        options.max_sweeps,
        options.bias_centre,
        0.0,
        options.prune,
        options.seed,
        options.keep_duals,
    )


@njit(nogil=True, cache=True, boundscheck=False)
def _view(sets, lane, size):
    return WorkingSet(sets.rows[lane, :size], sets.costs[lane, :size], sets.alphas[lane, :size])


@njit(nogil=True, cache=True, boundscheck=False)
def _most(labels, support, label):
    """So many rows at most a label holds before it looks."""
    return labels.indptr[label + 1] - labels.indptr[label] + support.indptr[label + 1] - support.indptr[label]


@njit(nogil=True, cache=True, boundscheck=False)
def _gather(rows, labels, support, label, lane, sets, member):
    """The label's positives and support vectors, merged by position, into ``sets``; returns how many."""
    a, last_a = labels.indptr[label], labels.indptr[label + 1]
    b, last_b = support.indptr[label], support.indptr[label + 1]
    bit = np.uint32(1 << lane)
    size = 0
    nothing = np.iinfo(np.int32).max
    while a < last_a or b < last_b:
        positive = labels.positions[a] if a < last_a else nothing
        held = support.positions[b] if b < last_b else nothing
        row = min(positive, held)
        value = np.float32(0)
        if held == row:
            value = support.values[b]
            b += 1
        sets.rows[lane, size] = row
        member[row] |= bit
        if positive == row:
            sets.costs[lane, size], sets.alphas[lane, size] = labels.positive_costs[a], max(value, np.float32(0))
            a += 1
        else:
            sets.costs[lane, size] = -labels.negative_costs[label] * rows.weights[row]
            sets.alphas[lane, size] = max(-value, np.float32(0))
        size += 1
    return size


@njit(nogil=True, cache=True, boundscheck=False)
def _restore(rows, own, weights, against, unsoft, options):
    """The weights that belong to the α, what negatives have part in them (``against``), both written; and the bias.

    α of the hinge loss end at its C. With L1 nobody asks for the negatives' part.
    """
    if options.loss != SQUARED_HINGE:
        for n in range(own.rows.shape[0]):
            own.alphas[n] = min(own.alphas[n], abs(own.costs[n]))
    l1 = np.float32(options.l1)
    if l1 > 0:
        sum_support(rows, own, unsoft)
        for feature in range(weights.shape[0]):
            moved = unsoft[feature]
            weights[feature] = max(moved - l1, np.float32(0)) + min(moved + l1, np.float32(0))
        return _bias(own, options)
    weights[:] = 0
    against[:] = 0
    size = own.rows.shape[0]
    for n in range(size):
        row = own.rows[min(n + _AHEAD, size - 1)]
        prefetch_row(rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1])
        row, alpha = own.rows[n], own.alphas[n]
        if own.costs[n] > 0:
            _add(weights, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], alpha)
        else:
            _add(against, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], -alpha)
    for feature in range(weights.shape[0]):
        weights[feature] += against[feature]
    return _bias(own, options)


@njit(nogil=True, cache=True, boundscheck=False)
def _bias(own, options):
    total = np.float32(0)
    for n in range(own.rows.shape[0]):
        total += own.alphas[n] if own.costs[n] > 0 else -own.alphas[n]
    return np.float32(options.bias_centre + options.bias_scale * options.bias_scale * total)


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _balance(own, weights, against, before, options):
    """Multiply the α of all negatives by what leaves the bias where it was before new positives; returns the bias.

    New positives lift the bias for every row. A sweep would let the first negatives that it comes to bear that alone,
    and members of the set alone would bear too little: rows that are no members yet have their part in the bias.
    ``before`` is that bias, ``against`` what negatives have part in ``weights``; α and ``weights`` are written.
    """
    bias = _bias(own, options)
    total = np.float32(0)
    for n in range(own.rows.shape[0]):
        total += own.alphas[n] if own.costs[n] < 0 else np.float32(0)
    total *= np.float32(options.bias_scale * options.bias_scale)
    if options.l1 > 0 or options.loss != SQUARED_HINGE or total == 0:
        return bias
    share = (bias - before) / total
    for n in range(own.rows.shape[0]):
        if own.costs[n] < 0:
            own.alphas[n] *= 1 + share
    for feature in range(weights.shape[0]):
        weights[feature] += share * against[feature]
    return before


@njit(nogil=True, cache=True, boundscheck=False)
def _look(rows, side_by_side, bias, n_lanes, member, floor, scores, hits, n_hits):
    """Scores of all rows by all lanes; and for each lane the rows above ``floor`` that are no members of it."""
    n_hits[:] = 0
    busy = (1 << n_lanes) - 1
    for row in range(rows.squares.shape[0]):
        here = scores[row]
        for lane in range(HALF_LANES):
            here[lane] = bias[lane]
        dot_half_lanes(side_by_side, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], here)
        found = 0
        for lane in range(HALF_LANES):
            found |= np.int64(here[lane] > floor) << lane
        found &= busy & ~np.int64(member[row])
        lane = 0
        while found:
            if found & 1:
                hits[lane, n_hits[lane]] = row
                n_hits[lane] += 1
            found >>= 1
            lane += 1


@njit(nogil=True, cache=True, boundscheck=False)
def _join(rows, labels, label, lane, sets, size, scores, hits, floor):
    """The highest of the hits join the set of a lane, with α = 0, in their order; returns which rows these are."""
    bar = _bar(scores, lane, hits, floor, max(_NEWCOMERS, np.int64(_SHARE * size[lane])))
    came = empty(hits.shape[0], np.int32)
    n_came = 0
    for row in hits:
        came[n_came] = row
        n_came += scores[np.uint64(row), np.uint64(lane)] > bar
    own, costs, alphas = sets.rows[lane], sets.costs[lane], sets.alphas[lane]
    a, b = size[lane] - 1, n_came - 1
    for at in range(size[lane] + n_came - 1, -1, -1):
        if b < 0:
            break
        if a >= 0 and own[a] > came[b]:
            own[at], costs[at], alphas[at] = own[a], costs[a], alphas[a]
            a -= 1
        else:
            own[at], alphas[at] = came[b], 0
            costs[at] = -labels.negative_costs[label] * rows.weights[came[b]]
            b -= 1
    size[lane] += n_came
    return came[:n_came]


@njit(nogil=True, cache=True, boundscheck=False)
def _bar(scores, lane, hits, floor, most):
    """The score that ``most`` of the hits exceed, or a few less; at least ``floor``, and at most that and 4."""
    if hits.shape[0] <= most:
        return floor
    counts = zeros(_BINS, np.int64)
    for row in hits:
        counts[min(np.int64((scores[np.uint64(row), np.uint64(lane)] - floor) * _BINS_A_UNIT), _BINS - 1)] += 1
    total, bar = hits.shape[0], 0
    while total > most and bar < _BINS - 1:
        total -= counts[bar]
        bar += 1
    return floor + np.float32(bar / _BINS_A_UNIT)


@njit(nogil=True, cache=True, boundscheck=False)
def _keep_weights(weights, prune, features, values, used):
    for feature in range(weights.shape[0]):
        # Written first and then kept or not: a branch would be mispredicted at every other feature.
        weight = weights[feature]
        features[used], values[used] = feature, weight
        used += (abs(weight) >= prune) & (weight != 0)
    return used


@njit(nogil=True, cache=True, boundscheck=False)
def _keep_support(own, positions, signed, held):
    for n in range(own.rows.shape[0]):
        positions[held] = own.rows[n]
        signed[held] = own.alphas[n] if own.costs[n] > 0 else -own.alphas[n]
        held += own.alphas[n] > 0
    return held
