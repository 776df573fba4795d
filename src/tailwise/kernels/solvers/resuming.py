"""Support vector machines that go on from where their dual stood, over support vectors and new rows alone.

The problem is that of :mod:`tailwise.kernels.solvers.svm`. A label's state is its support vectors with their α, from
which weights and bias follow. Sixteen labels at a time are restored and look at rows together; what the look finds out
of balance, and nothing else, is descended over.
"""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import grown
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.lanes import LANES, dot_lanes, zero_lanes
from tailwise.kernels.solvers.problems import SQUARED_HINGE, Options
from tailwise.kernels.solvers.svm import _make_sets, _roomier
from tailwise.kernels.solvers.sweeps import _FAST, WorkingSet, _where_they_lie, descend, sum_support

_NEWCOMERS = 128
"""Rows at most that join a label after a look, those of the largest losses."""
_SWEEPS_BEFORE = 2
"""Over the new positives of a label, before it looks at all rows: what is like them then shows."""
_BINS = 256
_BINS_A_UNIT = 64
_LEAST = 0.05
"""Of ``tol``: a row whose gradient is off by less is not worth the step."""


@njit(nogil=True, cache=True, boundscheck=False)
def resume_svm(rows, labels, standing, options):
    """Go on with every label of ``labels``; returns what :func:`tailwise.kernels.solvers.svm.solve_svm` returns, and
    which labels moved: (n_labels,) bool. Those that did not have no weights in the result.

    A label holds its positives and its support vectors; a row that has changed sides begins with α = 0. It looks at
    ``standing.among`` for negatives with a loss; without any it stays as it is, unless it is touched. Otherwise they
    join, and descent goes over all that it holds; after a look at all rows, over what is out of balance alone. That
    makes a round, of which there are at most ``standing.rounds``, of ``options.max_sweeps`` sweeps. Inputs are only
    read; a label's result does not depend on the others.
    """
    n_labels, n_features, n_rows = labels.indptr.shape[0] - 1, rows.features.shape[0], rows.squares.shape[0]
    least, floor = np.float32(_LEAST * options.tol), np.float32(options.tol - 1)
    among = standing.among
    everywhere = among.shape[0] == n_rows
    near = _where_they_lie()
    side_by_side = zero_lanes(n_features)
    weights = np.zeros((LANES, n_features), np.float32)
    unsoft = np.zeros((LANES, n_features if options.l1 > 0 else 0), np.float32)
    member = np.zeros(n_rows, np.uint16)
    scores = np.empty((among.shape[0], LANES), np.float32)
    hits, n_hits = np.empty((LANES, among.shape[0]), np.int32), np.zeros(LANES, np.int64)
    seen, size, against = np.zeros(LANES, np.float32), np.zeros(LANES, np.int64), np.zeros(n_features, np.float32)
    sets, some, picked = _make_sets(LANES, 1024), _make_sets(1, 1024), np.empty(1024, np.int64)
    begin, count = np.zeros(n_labels, np.int64), np.zeros(n_labels, np.int64)
    bias, moved = np.zeros(n_labels, np.float32), np.zeros(n_labels, np.bool_)
    features, values = np.empty(n_features, np.int32), np.empty(n_features, np.float32)
    first, n_support = np.zeros(n_labels, np.int64), np.zeros(n_labels, np.int64)
    positions, signed = np.empty(1024, np.int32), np.empty(1024, np.float32)
    used = held = 0
    for start in range(0, n_labels, LANES):
        n_lanes = min(LANES, n_labels - start)
        for lane in range(n_lanes):
            label = start + lane
            sets = _roomier(sets, size, _most(labels, standing.support, label) + _NEWCOMERS)
            size[lane] = _gather(rows, labels, standing.support, label, lane, sets, member)
            own = _view(sets, lane, size[lane])
            moved[label] = standing.touched[label]
            bias[label] = seen[lane] = _restore(rows, own, weights[lane], unsoft[lane], options)
            if everywhere:
                some, picked, n_some = _pick_new_positives(own, some, picked)
                part = _view(some, 0, n_some)
                effort = (_SWEEPS_BEFORE, least)
                descend(rows, part, weights[lane], unsoft[lane], bias[label], effort, _fixed(options), near)
                _put_back(own, part, picked)
                bias[label] = seen[lane] = _balance(rows, own, weights[lane], unsoft[lane], against, options)
        for _ in range(standing.rounds):
            pending = False
            _put_side_by_side(weights, side_by_side)
            _look(rows, among, side_by_side, seen, n_lanes, member, floor, scores, hits, n_hits)
            for lane in range(n_lanes):
                label = start + lane
                sets = _roomier(sets, size, size[lane] + n_hits[lane])
                came = _join(rows, labels, among, label, lane, sets, size, scores, hits[lane, : n_hits[lane]], floor)
                for n in range(came.shape[0]):
                    member[came[n]] |= np.uint16(1 << lane)
                moved[label] |= came.shape[0] > 0
                if not moved[label]:
                    continue
                own = _view(sets, lane, size[lane])
                some, picked, n_some = _pick(own, scores, lane, everywhere, least, options, some, picked)
                part = _view(some, 0, n_some)
                effort = (options.max_sweeps, least)
                bias[label], _ = descend(rows, part, weights[lane], unsoft[lane], bias[label], effort, options, near)
                _put_back(own, part, picked)
                seen[lane] = bias[label]
                pending |= n_some > 0
            if not pending:
                break
        for lane in range(n_lanes):
            label = start + lane
            begin[label], first[label] = used, held
            if moved[label]:
                features, values = grown(features, used, used + n_features), grown(values, used, used + n_features)
                used = _keep_weights(weights[lane], options.prune, features, values, used)
                positions, signed = grown(positions, held, held + size[lane]), grown(signed, held, held + size[lane])
                held = _keep_support(_view(sets, lane, size[lane]), positions, signed, held)
            count[label], n_support[label] = used - begin[label], held - first[label]
            for n in range(size[lane]):
                member[sets.rows[lane, n]] = 0
            size[lane] = 0
    return begin, count, features, values, bias, first, n_support, positions, signed, moved


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
    bit = np.uint16(1 << lane)
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
def _restore(rows, own, weights, unsoft, options):
    """The weights, into ``weights``, and the bias that belong to the α; those of the hinge loss end at its C."""
    if options.loss != SQUARED_HINGE:
        for n in range(own.rows.shape[0]):
            own.alphas[n] = min(own.alphas[n], abs(own.costs[n]))
    l1 = np.float32(options.l1)
    if l1 > 0:
        sum_support(rows, own, unsoft)
        for feature in range(weights.shape[0]):
            moved = unsoft[feature]
            weights[feature] = max(moved - l1, np.float32(0)) + min(moved + l1, np.float32(0))
    else:
        sum_support(rows, own, weights)
    return _bias(own, options)


@njit(nogil=True, cache=True, boundscheck=False)
def _bias(own, options):
    total = np.float32(0)
    for n in range(own.rows.shape[0]):
        total += own.alphas[n] if own.costs[n] > 0 else -own.alphas[n]
    return np.float32(options.bias_centre + options.bias_scale * options.bias_scale * total)


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _balance(rows, own, weights, unsoft, against, options):
    """Multiply the α of all negatives by what makes the dual objective largest; returns the bias.

    New positives lift the bias for every row. A sweep would let the first negatives that it comes to bear that alone.
    ``against`` (n_features,) is written.
    """
    bias = _bias(own, options)
    if options.l1 > 0 or options.loss != SQUARED_HINGE:
        return bias
    against[:] = 0
    total = square = np.float32(0)
    for n in range(own.rows.shape[0]):
        alpha = own.alphas[n]
        if own.costs[n] < 0 and alpha > 0:
            row = own.rows[n]
            for a in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + 1])):
                against[np.uint64(rows.indices[a])] -= alpha * rows.data[a]
            total += alpha
            square += np.float32(0.5) * alpha * alpha / -own.costs[n]
    scale_squared = np.float32(options.bias_scale * options.bias_scale)
    gain = total * (1 + bias) - square
    curvature = square + scale_squared * total * total
    for feature in range(weights.shape[0]):
        gain -= weights[feature] * against[feature]
        curvature += against[feature] * against[feature]
    if curvature <= 0:
        return bias
    share = max(gain / curvature, np.float32(-1))
    for n in range(own.rows.shape[0]):
        if own.costs[n] < 0:
            own.alphas[n] *= 1 + share
    for feature in range(weights.shape[0]):
        weights[feature] += share * against[feature]
    return bias - share * scale_squared * total


@njit(nogil=True, cache=True, boundscheck=False)
def _put_side_by_side(weights, side_by_side):
    for feature in range(weights.shape[1]):
        for lane in range(LANES):
            side_by_side[np.uint64(feature * LANES + lane)] = weights[np.uint64(lane), np.uint64(feature)]


@njit(nogil=True, cache=True, boundscheck=False)
def _look(rows, among, side_by_side, bias, n_lanes, member, floor, scores, hits, n_hits):
    """Scores of the rows ``among`` by all lanes; and for each lane the places of those above ``floor`` that are no
    members of it.
    """
    n_hits[:] = 0
    busy = (1 << n_lanes) - 1
    for n in range(among.shape[0]):
        row = among[n]
        here = scores[n]
        for lane in range(LANES):
            here[lane] = bias[lane]
        dot_lanes(side_by_side, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], here)
        found = 0
        for lane in range(LANES):
            found |= np.int64(here[lane] > floor) << lane
        found &= busy & ~np.int64(member[row])
        lane = 0
        while found:
            if found & 1:
                hits[lane, n_hits[lane]] = n
                n_hits[lane] += 1
            found >>= 1
            lane += 1


@njit(nogil=True, cache=True, boundscheck=False)
def _join(rows, labels, among, label, lane, sets, size, scores, hits, floor):
    """The highest of the hits join the set of a lane, with α = 0, in their order; returns which rows these are."""
    bar = _bar(scores, lane, hits, floor)
    came = np.empty(hits.shape[0], np.int32)
    n_came = 0
    for n in hits:
        came[n_came] = among[n]
        n_came += scores[np.uint64(n), np.uint64(lane)] > bar
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
def _bar(scores, lane, hits, floor):
    """The score that ``_NEWCOMERS`` of the hits exceed, or a few less; at least ``floor``, and at most that and 4."""
    if hits.shape[0] <= _NEWCOMERS:
        return floor
    counts = np.zeros(_BINS, np.int64)
    for n in hits:
        counts[min(np.int64((scores[np.uint64(n), np.uint64(lane)] - floor) * _BINS_A_UNIT), _BINS - 1)] += 1
    total, bar = hits.shape[0], 0
    while total > _NEWCOMERS and bar < _BINS - 1:
        total -= counts[bar]
        bar += 1
    return floor + np.float32(bar / _BINS_A_UNIT)


@njit(nogil=True, cache=True, boundscheck=False)
def _pick_new_positives(own, some, picked):
    """The positives without α, into ``some`` and where they stand into ``picked``; both, and how many."""
    some, picked = _room(some, picked, own.rows.shape[0])
    n_some = 0
    for n in range(own.rows.shape[0]):
        if own.costs[n] > 0 and own.alphas[n] == 0:
            n_some = _take(own, n, some, picked, n_some)
    return some, picked, n_some


@njit(nogil=True, cache=True, boundscheck=False)
def _pick(own, scores, lane, everywhere, least, options, some, picked):
    """As :func:`_pick_new_positives` for all of a set; where rows have scores, what is out of balance by them."""
    some, picked = _room(some, picked, own.rows.shape[0])
    n_some = 0
    for n in range(own.rows.shape[0]):
        cost, alpha = own.costs[n], own.alphas[n]
        off = not everywhere or (alpha == 0 and cost < 0)
        if not off:
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
            off = abs(gradient) > least
        if off:
            n_some = _take(own, n, some, picked, n_some)
    return some, picked, n_some


@njit(nogil=True, cache=True, boundscheck=False)
def _room(some, picked, size):
    if size > picked.shape[0]:
        return _make_sets(1, 2 * size), np.empty(2 * size, np.int64)
    return some, picked


@njit(nogil=True, cache=True, boundscheck=False)
def _take(own, n, some, picked, n_some):
    some.rows[0, n_some], some.costs[0, n_some], some.alphas[0, n_some] = own.rows[n], own.costs[n], own.alphas[n]
    picked[n_some] = n
    return n_some + 1


@njit(nogil=True, cache=True, boundscheck=False)
def _put_back(own, part, picked):
    for n in range(part.rows.shape[0]):
        own.alphas[picked[n]] = part.alphas[n]


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
