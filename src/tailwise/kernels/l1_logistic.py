"""L1-regularised logistic regression on sparse columns: a proximal Newton method over a working set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


class Columns(NamedTuple):
    """A sparse matrix by columns: entries ``indptr[j]:indptr[j + 1]`` of ``rows`` and ``values`` are column j."""

    indptr: np.ndarray
    rows: np.ndarray
    values: np.ndarray


_SUFFICIENT_DECREASE = 0.01
_MAX_HALVINGS = 12
_MAX_SWEEPS = 20
_MIN_CURVATURE = 1e-4


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def _dot(rows, values, vector):
    total = np.float32(0.0)
    for a in range(rows.shape[0]):
        total += values[a] * vector[np.uint64(rows[a])]
    return total


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def _dot_and_curvature(rows, values, slope, curvature):
    total = np.float32(0.0)
    second = np.float32(0.0)
    for a in range(rows.shape[0]):
        i = np.uint64(rows[a])
        total += values[a] * slope[i]
        second += values[a] * values[a] * curvature[i]
    return total, second


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def _add_scaled(rows, values, step, scale, vector):
    for a in range(rows.shape[0]):
        i = np.uint64(rows[a])
        vector[i] += step * values[a] * scale[i]


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def _loss_and_slopes(targets, costs, margins, slope, curvature):
    """The data term at ``margins``; writes its first and second derivatives by row."""
    loss = 0.0
    for i in range(targets.shape[0]):
        z = targets[i] * margins[i]
        e = np.exp(-abs(z))
        p = (e if z > 0 else np.float32(1.0)) / (np.float32(1.0) + e)
        loss += costs[i] * (np.log1p(e) - min(z, np.float32(0.0)))
        slope[i] = -targets[i] * costs[i] * p
        curvature[i] = max(costs[i] * p * (np.float32(1.0) - p), np.float32(_MIN_CURVATURE))
    return loss


@njit(nogil=True, cache=True, boundscheck=False)
def _violation(weight, gradient):
    """How far 0 is from the subdifferential of ``gradient · w + |w|``."""
    if weight > 0:
        return abs(gradient + 1)
    if weight < 0:
        return abs(gradient - 1)
    return max(abs(gradient) - 1, 0.0)


@njit(nogil=True, cache=True, boundscheck=False)
def _shrunk_step(at, gradient, curvature):
    """The minimiser z of ``gradient z + curvature z²/2 + |at + z|``."""
    if gradient + 1 < curvature * at:
        return -(gradient + 1) / curvature
    if gradient - 1 > curvature * at:
        return -(gradient - 1) / curvature
    return -at


@njit(nogil=True, cache=True, boundscheck=False)
def fit_l1_logistic(columns, targets, costs, tolerance, max_newton, weights, margins):
    """Minimise ``|w|₁ + |b| + Σ_i costs_i ln(1 + exp(-targets_i (w·x_i + b)))`` from w = 0, b = 0.

    ``columns`` is (n, m); ``targets`` (n,) are ±1 and ``costs`` (n,) ≥ 0, float32. Writes ``weights``
    (m + 1,) float32, whose last entry is b, and ``margins`` (n,) float32. Stops when the sum of violations of
    the optimality conditions falls below ``tolerance`` times that at zero, or after ``max_newton`` Newton steps.
    Returns the objective.

    Each step minimises a quadratic model by coordinate descent over the features that violate their
    condition or are in use, then searches along the line (Yuan, Ho and Lin: An improved GLMNET, 2012).
    """
    n, m = targets.shape[0], weights.shape[0] - 1
    slope = np.empty(n, np.float32)
    curvature = np.empty(n, np.float32)
    change = np.empty(n, np.float32)
    trial = np.empty(n, np.float32)
    gradient = np.empty(m + 1, np.float32)
    second = np.empty(m + 1, np.float32)
    direction = np.zeros(m + 1, np.float32)
    alive = np.empty(m + 1, np.int32)
    working = np.empty(m + 1, np.int32)

    weights[:] = 0
    margins[:] = 0
    loss = _loss_and_slopes(targets, costs, margins, slope, curvature)
    norm = 0.0
    n_alive = _possible_features(columns, costs, alive)
    first_violation = 0.0
    n_working = 0
    whole = True
    for step in range(max_newton):
        # A feature with zero weight and a satisfied condition waits until the others are solved.
        candidates, n_candidates = (alive, n_alive) if whole else (working, n_working)
        violation = 0.0
        kept = 0
        for a in range(n_candidates):
            j = candidates[a]
            if j == m:
                gradient[j], second[j] = slope.sum(), curvature.sum()
            else:
                s, e = columns.indptr[j], columns.indptr[j + 1]
                gradient[j], second[j] = _dot_and_curvature(columns.rows[s:e], columns.values[s:e], slope, curvature)
            v = _violation(weights[j], gradient[j])
            violation += v
            if v > 0 or weights[j] != 0:
                working[kept] = j
                kept += 1
        n_working = kept
        if step == 0:
            first_violation = violation
        if violation <= tolerance * first_violation:
            if whole:
                break
            whole = True
            continue
        whole = False

        _solve_model(columns, curvature, gradient, second, weights, working[:n_working], direction, change, violation)
        model = 0.0
        new_norm = 0.0
        for a in range(n_working):
            j = working[a]
            model += gradient[j] * direction[j] + abs(weights[j] + direction[j]) - abs(weights[j])
        size = np.float32(1.0)
        accepted = False
        for _ in range(_MAX_HALVINGS):
            new_norm = 0.0
            for a in range(n_working):
                new_norm += abs(weights[working[a]] + size * direction[working[a]])
            for i in range(n):
                trial[i] = margins[i] + size * change[i]
            new_loss = _loss_and_slopes(targets, costs, trial, slope, curvature)
            if new_loss + new_norm - loss - norm <= _SUFFICIENT_DECREASE * size * model:
                accepted = True
                break
            size *= np.float32(0.5)
        if not accepted:
            # Rounding has eaten the rest of the decrease.
            _loss_and_slopes(targets, costs, margins, slope, curvature)
            break
        margins[:] = trial
        loss, norm = new_loss, new_norm
        for a in range(n_working):
            weights[working[a]] += size * direction[working[a]]
            direction[working[a]] = 0
    return loss + norm


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def _possible_features(columns, costs, alive):
    """Features whose weight can be non-zero at all: ``Σ_i costs_i |x_ij| > 1`` bounds the gradient. Bias last."""
    m = alive.shape[0] - 1
    n_alive = 0
    for j in range(m):
        bound = np.float32(0.0)
        for a in range(columns.indptr[j], columns.indptr[j + 1]):
            bound += abs(columns.values[a]) * costs[np.uint64(columns.rows[a])]
        if bound > 1:
            alive[n_alive] = j
            n_alive += 1
    alive[n_alive] = m
    return n_alive + 1


@njit(nogil=True, cache=True, boundscheck=False)
def _solve_model(columns, curvature, gradient, second, weights, working, direction, change, violation):
    """Coordinate descent on the quadratic model; writes ``direction`` and its margins ``change``.

    While it runs, ``change`` holds curvature × margins, which makes a gradient one sparse dot product.
    """
    m = weights.shape[0] - 1
    change[:] = 0
    for _ in range(_MAX_SWEEPS):
        left = 0.0
        for a in range(working.shape[0]):
            j = working[a]
            s, e = (0, 0) if j == m else (columns.indptr[j], columns.indptr[j + 1])
            rows, values = columns.rows[s:e], columns.values[s:e]
            if second[j] <= 0:
                continue
            g = gradient[j] + (change.sum() if j == m else _dot(rows, values, change))
            at = weights[j] + direction[j]
            left += _violation(at, g)
            z = np.float32(_shrunk_step(at, g, second[j]))
            if z != 0:
                direction[j] += z
                if j == m:
                    for i in range(change.shape[0]):
                        change[i] += z * curvature[i]
                else:
                    _add_scaled(rows, values, z, curvature, change)
        if left <= 0.1 * violation:
            break
    for i in range(change.shape[0]):
        change[i] /= curvature[i]
