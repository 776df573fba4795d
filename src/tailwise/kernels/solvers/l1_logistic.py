"""L1-regularised logistic regression on sparse columns: a proximal Newton method over a working set."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.penalty import violation

_SUFFICIENT_DECREASE = 0.01
_MAX_HALVINGS = 12
_MAX_SWEEPS = 20
_SWEEP_TOLERANCE = 0.3
_MIN_CURVATURE = np.float32(1e-4)
_ONE = np.float32(1.0)
_HALF = np.float32(0.5)


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def _dot(columns, j, vector):
    total = np.float32(0.0)
    for a in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
        total += columns.values[a] * vector[np.uint64(columns.rows[a])]
    return total


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def _derivatives(columns, j, slope, curvature):
    """First and second derivative along feature j, and ``Σ_i |x_ij slope_i|``."""
    first = np.float32(0.0)
    second = np.float32(0.0)
    bound = np.float32(0.0)
    for a in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
        i = np.uint64(columns.rows[a])
        value = columns.values[a]
        first += value * slope[i]
        second += value * value * curvature[i]
        bound += abs(value * slope[i])
    return first, second, bound


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def _add_column(columns, j, step, scale, vector):
    for a in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
        i = np.uint64(columns.rows[a])
        vector[i] += step * columns.values[a] * scale[i]


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def _loss_and_slopes(targets, costs, margins, slope, curvature):
    """The data term at ``margins``; writes its first and second derivatives by row."""
    loss = 0.0
    for i in range(targets.shape[0]):
        z = targets[i] * margins[i]
        e = np.exp(-abs(z))
        p = (e if z > 0 else _ONE) / (_ONE + e)
        loss += costs[i] * (np.log1p(e) - min(z, np.float32(0.0)))
        slope[i] = -targets[i] * costs[i] * p
        curvature[i] = max(costs[i] * p * (_ONE - p), _MIN_CURVATURE)
    return loss


@njit(nogil=True, cache=True, boundscheck=False)
def _shrunk_step(at, gradient, curvature):
    """The minimiser z of ``gradient z + curvature z²/2 + |at + z|``."""
    if gradient + _ONE < curvature * at:
        return -(gradient + _ONE) / curvature
    if gradient - _ONE > curvature * at:
        return -(gradient - _ONE) / curvature
    return -at


@njit(nogil=True, cache=True, boundscheck=False)
def fit_l1_logistic(columns, targets, costs, tolerance, max_newton, weights, margins):
    """Minimise ``|w|₁ + Σ_i costs_i ln(1 + exp(-targets_i w·x_i))``, starting at w = 0.

    ``columns`` is (n, m); ``targets`` (n,) are ±1 and ``costs`` (n,) ≥ 0, float32; they may be read-only. Overwrites
    ``weights`` (m,) and ``margins`` (n,) float32. Stops when the violations of the optimality conditions sum to at
    most ``tolerance`` times those at zero, or after ``max_newton`` Newton steps. Returns the objective.

    Each step minimises a quadratic model by coordinate descent over the features that violate their condition or
    are in use, then searches along the line (Yuan, Ho and Lin: An improved GLMNET, 2012). Features whose weight
    cannot leave zero, because ``Σ_i costs_i |x_ij| ≤ 1`` bounds their gradient, are dropped after one look.
    """
    n, m = targets.shape[0], weights.shape[0]
    slope, curvature = empty(n, np.float32), empty(n, np.float32)
    current, trial, change = empty(n, np.float32), empty(n, np.float32), empty(n, np.float32)
    gradient, second, direction = empty(m, np.float32), empty(m, np.float32), empty(m, np.float32)
    alive, working = empty(m, np.int32), empty(m, np.int32)
    for j in range(m):
        weights[j] = 0
        direction[j] = 0
        alive[j] = j
    for i in range(n):
        current[i] = 0
    loss = _loss_and_slopes(targets, costs, current, slope, curvature)
    norm = 0.0
    n_alive, n_working = m, 0
    first_total = 0.0
    whole = True
    for step in range(max_newton):
        # A feature with zero weight and a satisfied condition waits until the others are solved.
        candidates, n_candidates = (alive, n_alive) if whole else (working, n_working)
        n_alive = 0 if step == 0 else n_alive
        n_working = 0
        total = 0.0
        for a in range(n_candidates):
            j = candidates[a]
            gradient[j], second[j], bound = _derivatives(columns, j, slope, curvature)
            if step == 0:
                # The slopes at zero are half the costs.
                if bound <= _HALF:
                    continue
                alive[n_alive] = j
                n_alive += 1
            v = violation(weights[j], gradient[j])
            total += v
            if v > 0 or weights[j] != 0:
                working[n_working] = j
                n_working += 1
        if step == 0:
            first_total = total
        if total <= tolerance * first_total:
            if whole:
                break
            whole = True
            continue
        looked_at_all, whole = whole, False

        expected = _solve_model(columns, curvature, gradient, second, weights, working[:n_working], direction, change)
        size = _ONE
        new_loss, new_norm = np.inf, 0.0
        for _ in range(_MAX_HALVINGS):
            new_norm = 0.0
            for a in range(n_working):
                new_norm += abs(weights[working[a]] + size * direction[working[a]])
            for i in range(n):
                trial[i] = current[i] + size * change[i]
            new_loss = _loss_and_slopes(targets, costs, trial, slope, curvature)
            if new_loss + new_norm - loss - norm <= _SUFFICIENT_DECREASE * size * expected:
                break
            size *= _HALF
        if new_loss + new_norm > loss + norm:
            # Rounding has eaten the rest of the decrease; a feature that waits may have some left.
            if looked_at_all:
                break
            for a in range(n_working):
                direction[working[a]] = 0
            _loss_and_slopes(targets, costs, current, slope, curvature)
            whole = True
            continue
        current, trial = trial, current
        loss, norm = new_loss, new_norm
        for a in range(n_working):
            weights[working[a]] += size * direction[working[a]]
            direction[working[a]] = 0
    _multiply(columns, weights, margins)
    return loss + norm


@njit(nogil=True, cache=True, boundscheck=False)
def _solve_model(columns, curvature, gradient, second, weights, working, direction, change):
    """Coordinate descent on the quadratic model; writes ``direction`` and its margins ``change``.

    Returns the first-order decrease of the objective. While it runs, ``change`` holds curvature × margins, which makes
    a gradient one sparse dot product.
    """
    for i in range(change.shape[0]):
        change[i] = 0
    start = 0.0
    for sweep in range(_MAX_SWEEPS):
        left = 0.0
        for j in working:
            g = gradient[j] + _dot(columns, j, change)
            at = weights[j] + direction[j]
            left += violation(at, g)
            z = _shrunk_step(at, g, second[j]) if second[j] > 0 else np.float32(0.0)
            if z != 0:
                direction[j] += z
                _add_column(columns, j, z, curvature, change)
        if sweep == 0:
            start = left
        elif left <= _SWEEP_TOLERANCE * start:
            break
    for i in range(change.shape[0]):
        change[i] /= curvature[i]
    decrease = 0.0
    for j in working:
        decrease += gradient[j] * direction[j] + abs(weights[j] + direction[j]) - abs(weights[j])
    return decrease


@njit(nogil=True, cache=True, boundscheck=False)
def _multiply(columns, weights, margins):
    """Write ``X w`` into ``margins``, free of the rounding of the steps that led to w."""
    for i in range(margins.shape[0]):
        margins[i] = 0
    for j in range(weights.shape[0]):
        if weights[j] != 0:
            for a in range(columns.indptr[j], columns.indptr[j + 1]):
                margins[np.uint64(columns.rows[a])] += weights[j] * columns.values[a]
