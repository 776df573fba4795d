"""Coordinate descent in the dual of a linear support vector machine, over one working set of rows."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import prefetch
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import shuffle, shuffle_state
from tailwise.kernels.solvers.problems import SQUARED_HINGE

_FAST = {"contract", "nsz", "reassoc", "arcp"}


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
def _add_soft(dense, l1, indices, data, start, stop, step):
    for a in range(np.uint64(start), np.uint64(stop)):
        feature = np.uint64(indices[a])
        moved = dense[1, feature] + step * data[a]
        dense[1, feature] = moved
        dense[0, feature] = max(moved - l1, np.float32(0)) + min(moved + l1, np.float32(0))


@njit(nogil=True, cache=True, boundscheck=False)
def sum_support(rows, members, costs, alphas, total):
    """``total = Σ α_i z_i x_i`` over a working set, as :func:`descend` has it; writes ``total`` (n_features,)."""
    for feature in range(total.shape[0]):
        total[feature] = 0
    for n in range(members.shape[0]):
        if n + 2 < members.shape[0]:
            ahead = members[n + 2]
            for a in range(np.uint64(rows.indptr[ahead]), np.uint64(rows.indptr[ahead + 1]), 16):
                prefetch(rows.indices, np.uint64(a))
                prefetch(rows.data, np.uint64(a))
        row = members[n]
        step = alphas[n] if costs[n] > 0 else -alphas[n]
        if step != 0:
            _add(total, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], step)


@njit(nogil=True, cache=True, boundscheck=False)
def descend(rows, members, costs, alphas, dense, bias, sweeps, least, options):
    """Coordinate descent over one working set, with LIBLINEAR's shrinking; returns the bias and the error left.

    ``members`` (n,) int32 are positions in ``rows``, ``costs`` +C of a positive and -C of a negative, ``alphas`` where
    the dual stands, ``dense[0]`` the weights that belong to them, ``bias`` too, and with L1 ``dense[1]`` what
    :func:`sum_support` gives, all float32. A row whose gradient is off by no more than ``least`` stays as it is.
    Writes ``alphas`` and ``dense``.
    """
    size = active = members.shape[0]
    l1 = np.float32(options.l1)
    order = np.arange(size)
    scale_squared = np.float32(options.bias_scale * options.bias_scale)
    squared = options.loss == SQUARED_HINGE
    state = shuffle_state(options.seed)
    error = np.inf
    high_bar, low_bar = np.inf, -np.inf
    for _ in range(sweeps):
        highest, lowest = -np.inf, np.inf
        state = shuffle(order, active, state)
        n = 0
        while n < active:
            at = order[n]
            row, cost, alpha = members[at], costs[at], alphas[at]
            start, stop = rows.indptr[row], rows.indptr[row + 1]
            sign = np.float32(1) if cost > 0 else np.float32(-1)
            gradient = sign * (_dot(dense[0], rows.indices, rows.data, start, stop) + bias) - np.float32(1)
            curvature = rows.squares[row] + scale_squared
            upper = abs(cost)
            if squared:
                half = np.float32(0.5) / upper
                gradient += half * alpha
                curvature += half
                upper = np.float32(np.inf)
            projected = gradient
            if alpha <= 0:
                projected = min(gradient, np.float32(0))
            elif alpha >= upper:
                projected = max(gradient, np.float32(0))
            if (alpha <= 0 and gradient > high_bar) or (alpha >= upper and gradient < low_bar):
                active -= 1
                order[n], order[active] = order[active], order[n]
                continue
            n += 1
            highest, lowest = max(highest, projected), min(lowest, projected)
            if abs(projected) > least and curvature > 0:
                alphas[at] = min(max(alpha - gradient / curvature, np.float32(0)), upper)
                step = (alphas[at] - alpha) * sign
                if l1 > 0:
                    _add_soft(dense, l1, rows.indices, rows.data, start, stop, step)
                else:
                    _add(dense[0], rows.indices, rows.data, start, stop, step)
                bias += step * scale_squared
        error = highest - lowest
        if error <= options.tol and active == size:
            break
        if error <= options.tol:
            active = size
            high_bar, low_bar = np.inf, -np.inf
        else:
            high_bar = highest if highest > 0 else np.inf
            low_bar = lowest if lowest < 0 else -np.inf
    return bias, error
