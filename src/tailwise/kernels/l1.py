"""L1-regularised squared hinge, one problem a label, by coordinate descent over the features that matter.

For each label ``min |w|₁ + |v| + Σ_i C_i max(0, 1 - z_i (w·x_i + b))²``, ``b = centre + scale · v``, z = ±1: as
LIBLINEAR's ``-s 5``, with a bias that is drawn to ``centre``. From w = 0, b = -1 only positives have a loss, so the
gradient of all features costs a pass over the few rows with a loss, and descent visits only features that are in
use or whose gradient exceeds the penalty (Yuan et al. 2010).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

_FAST = {"contract", "nsz", "reassoc", "arcp"}
_SUFFICIENT_DECREASE = 0.01
_MAX_HALVINGS = 25
_FIRST_SWEEPS = 5
_NEWCOMERS = 64
_LEVELS = 64


class Columns(NamedTuple):
    """The same rows by feature: entries ``indptr[j] : indptr[j + 1]`` are feature j's."""

    indptr: np.ndarray
    """(n_local + 1,) int64"""
    rows: np.ndarray
    """(nnz,) int32"""
    values: np.ndarray
    """(nnz,) float32"""


class _Label(NamedTuple):
    """One problem in progress."""

    slack: np.ndarray
    """(n_rows,) float32: ``1 - z_i s_i``"""
    costs: np.ndarray
    """(n_rows,) float32: +C of a positive, -C of a negative"""
    weights: np.ndarray
    """(n_features + 1,) float32; the last one is v"""
    gradient: np.ndarray
    """(n_features + 1,) float32"""


@njit(nogil=True, cache=True, boundscheck=False)
def to_columns(rows):
    """:class:`Columns` of packed rows, in O(non-zeros)."""
    indptr = np.zeros(rows.features.shape[0] + 1, np.int64)
    for a in range(rows.indices.shape[0]):
        indptr[rows.indices[a] + 1] += 1
    for j in range(rows.features.shape[0]):
        indptr[j + 1] += indptr[j]
    place = indptr[:-1].copy()
    members = np.empty(rows.indices.shape[0], np.int32)
    values = np.empty(rows.indices.shape[0], np.float32)
    for row in range(rows.squares.shape[0]):
        for a in range(rows.indptr[row], rows.indptr[row + 1]):
            j = rows.indices[a]
            members[place[j]], values[place[j]] = row, rows.data[a]
            place[j] += 1
    return Columns(indptr, members, values)


@njit(nogil=True, cache=True, boundscheck=False)
def solve_l1(rows, columns, labels, settings):
    """Solve every label of ``labels``; returns as :func:`tailwise.kernels.svm.solve_svm`.

    ``settings.tol`` is the largest violation of a feature's optimality condition, in units of the penalty.
    """
    n_labels = labels.indptr.shape[0] - 1
    n_rows, n_features = rows.squares.shape[0], rows.features.shape[0]
    begin, count = np.zeros(n_labels, np.int64), np.zeros(n_labels, np.int64)
    bias = np.empty(n_labels, np.float32)
    features, values = np.empty(n_features, np.int32), np.empty(n_features, np.float32)
    problem = _Label(
        np.empty(n_rows, np.float32),
        np.empty(n_rows, np.float32),
        np.zeros(n_features + 1, np.float32),
        np.zeros(n_features + 1, np.float32),
    )
    used = 0
    for label in range(n_labels):
        _begin(labels, label, problem, settings.bias_centre)
        _solve(rows, columns, problem, settings)
        if used + n_features > values.shape[0]:
            longer_features = np.empty(2 * used + n_features, np.int32)
            longer_values = np.empty(2 * used + n_features, np.float32)
            for n in range(used):
                longer_features[n], longer_values[n] = features[n], values[n]
            features, values = longer_features, longer_values
        begin[label] = used
        bias[label] = settings.bias_centre + settings.bias_scale * problem.weights[n_features]
        for feature in range(n_features):
            weight = problem.weights[feature]
            if abs(weight) >= settings.prune and weight != 0:
                features[used], values[used] = feature, weight
                used += 1
        count[label] = used - begin[label]
    return begin, count, features, values, bias


@njit(nogil=True, cache=True, boundscheck=False)
def _begin(labels, label, problem, centre):
    for row in range(problem.slack.shape[0]):
        problem.slack[row] = 1 + centre
        problem.costs[row] = -labels.negative_costs[label]
    for a in range(labels.indptr[label], labels.indptr[label + 1]):
        problem.slack[labels.positions[a]] = 1 - centre
        problem.costs[labels.positions[a]] = labels.positive_costs[a]
    for feature in range(problem.weights.shape[0]):
        problem.weights[feature] = 0


@njit(nogil=True, cache=True, boundscheck=False)
def _solve(rows, columns, problem, settings):
    n_features = rows.features.shape[0]
    violations = np.empty(n_features + 1, np.float32)
    chosen = np.empty(n_features + 1, np.int64)
    scale = np.float32(settings.bias_scale)
    for round_ in range(settings.max_rounds):
        _fill_gradient(rows, problem, scale)
        size = 0
        worst = np.float32(0)
        for j in range(n_features + 1):
            violation = _violation(problem.weights[j], problem.gradient[j])
            worst = max(worst, violation)
            violations[j] = -1.0
            if problem.weights[j] != 0 or (j == n_features and scale > 0):
                chosen[size] = j
                size += 1
            elif violation > 0:
                violations[j] = violation
        if worst <= settings.tol:
            return
        bar = _bar_for(violations, worst, _NEWCOMERS + size)
        for j in range(n_features + 1):
            if violations[j] > 0 and violations[j] >= bar:
                chosen[size] = j
                size += 1
        state = np.uint64(settings.seed * 2 + 88172645463325252)
        for _ in range(_FIRST_SWEEPS if round_ < 2 else settings.max_sweeps):
            worst_step = np.float32(0)
            for n in range(size):
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                other = n + np.int64((state >> np.uint64(33)) % np.uint64(size - n))
                chosen[n], chosen[other] = chosen[other], chosen[n]
                worst_step = max(worst_step, _step(columns, chosen[n], problem, scale))
            if worst_step <= 0.5 * settings.tol:
                break


@njit(nogil=True, cache=True, boundscheck=False)
def _bar_for(violations, worst, wanted):
    """The largest of 64 levels up to ``worst`` that at least ``wanted`` violations reach; 0 if fewer are there."""
    counts = np.zeros(_LEVELS + 1, np.int64)
    for j in range(violations.shape[0]):
        if violations[j] > 0:
            counts[np.int64(violations[j] / worst * _LEVELS)] += 1
    level, total = _LEVELS, counts[_LEVELS]
    while level > 0 and total < wanted:
        level -= 1
        total += counts[level]
    return np.float32(worst * level / _LEVELS)


@njit(nogil=True, cache=True, boundscheck=False)
def _violation(weight, gradient):
    one = np.float32(1)
    if weight > 0:
        return abs(gradient + one)
    if weight < 0:
        return abs(gradient - one)
    return max(abs(gradient) - one, np.float32(0))


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _fill_gradient(rows, problem, scale):
    n_features = rows.features.shape[0]
    for j in range(n_features + 1):
        problem.gradient[j] = 0
    for row in range(rows.squares.shape[0]):
        if problem.slack[row] > 0:
            slope = -2 * problem.costs[row] * problem.slack[row]
            for a in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + 1])):
                problem.gradient[np.uint64(rows.indices[a])] += slope * rows.data[a]
            problem.gradient[n_features] += slope * scale


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _derivatives(columns, j, problem, scale):
    first, second = np.float32(0), np.float32(0)
    two = np.float32(2)
    if j == columns.indptr.shape[0] - 1:
        for row in range(np.uint64(problem.slack.shape[0])):
            slack = max(problem.slack[row], np.float32(0))
            first -= two * problem.costs[row] * slack * scale
            second += two * abs(problem.costs[row]) * scale * scale * (slack > 0)
        return first, second
    for a in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
        row, value = np.uint64(columns.rows[a]), columns.values[a]
        slack = problem.slack[row]
        if slack > 0:
            first -= two * problem.costs[row] * slack * value
            second += two * abs(problem.costs[row]) * value * value
    return first, second


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _change(columns, j, problem, scale, step):
    """How much the loss changes when weight j moves by ``step``."""
    zero, total = np.float32(0), np.float32(0)
    if j == columns.indptr.shape[0] - 1:
        for row in range(np.uint64(problem.slack.shape[0])):
            cost, old = problem.costs[row], problem.slack[row]
            new = old - (step if cost > 0 else -step) * scale
            old, new = max(old, zero), max(new, zero)
            total += abs(cost) * (new - old) * (new + old)
        return total
    for a in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
        row = np.uint64(columns.rows[a])
        cost, old = problem.costs[row], problem.slack[row]
        new = old - (step if cost > 0 else -step) * columns.values[a]
        old, new = max(old, zero), max(new, zero)
        total += abs(cost) * (new - old) * (new + old)
    return total


@njit(nogil=True, cache=True, boundscheck=False)
def _move(columns, j, problem, scale, step):
    if j == columns.indptr.shape[0] - 1:
        for row in range(problem.slack.shape[0]):
            problem.slack[row] -= (step if problem.costs[row] > 0 else -step) * scale
    else:
        for a in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
            row = np.uint64(columns.rows[a])
            problem.slack[row] -= (step if problem.costs[row] > 0 else -step) * columns.values[a]
    problem.weights[j] += step


@njit(nogil=True, cache=True, boundscheck=False)
def _step(columns, j, problem, scale):
    """One Newton step of weight j with backtracking; returns by how much its condition was violated."""
    one = np.float32(1)
    weight = problem.weights[j]
    first, second = _derivatives(columns, j, problem, scale)
    second = max(second, np.float32(1e-6))
    if first + one <= second * weight:
        step = -(first + one) / second
    elif first - one >= second * weight:
        step = -(first - one) / second
    else:
        step = -weight
    if abs(step) < 1e-7:
        return np.float32(0)
    violation = _violation(weight, first)
    bound = _SUFFICIENT_DECREASE * (first * step + abs(weight + step) - abs(weight))
    for _ in range(_MAX_HALVINGS):
        if _change(columns, j, problem, scale, step) + abs(weight + step) - abs(weight) <= bound:
            _move(columns, j, problem, scale, step)
            break
        step *= np.float32(0.5)
        bound *= 0.5
    return violation
