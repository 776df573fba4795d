"""Coordinate descent over one working set of :mod:`tailwise.kernels.solvers.svm`, all of whose rows are in memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty, prefetch_row
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import shuffle, shuffle_state
from tailwise.kernels.solvers.problems import SQUARED_HINGE

_FAST = {"contract", "nsz", "reassoc", "arcp"}
_SWEEPS = 5
_LEAST = 1e-6
_AHEAD = 3
"""A row is asked for so many rows before its turn: working sets of many rows lie outside of the caches."""


class WorkingSet(NamedTuple):
    """Rows of one label, and where their dual stands; (size,) each."""

    rows: np.ndarray
    """int32"""
    costs: np.ndarray
    """float32: +C of a positive, -C of a negative"""
    alphas: np.ndarray
    """float32"""


@njit(nogil=True, cache=True, boundscheck=False, borrows=True, fastmath=_FAST)
def _dot(weights, indices, data, start, stop):
    total = np.float32(0)
    for a in range(np.uint64(start), np.uint64(stop)):
        total += data[a] * weights[np.uint64(indices[a])]
    return total


@njit(nogil=True, cache=True, boundscheck=False, borrows=True, fastmath=_FAST)
def _add(weights, indices, data, start, stop, step):
    for a in range(np.uint64(start), np.uint64(stop)):
        weights[np.uint64(indices[a])] += step * data[a]


@njit(nogil=True, cache=True, boundscheck=False, borrows=True, fastmath=_FAST)
def _add_soft(weights, unsoft, l1, indices, data, start, stop, step):
    for a in range(np.uint64(start), np.uint64(stop)):
        feature = np.uint64(indices[a])
        moved = unsoft[feature] + step * data[a]
        unsoft[feature] = moved
        weights[feature] = max(moved - l1, np.float32(0)) + min(moved + l1, np.float32(0))


@njit(nogil=True, cache=True, boundscheck=False)
def _descend(rows, lanes, lane, sets, unsoft, options):
    """Coordinate descent over the working set of a lane; its first one, before a scan, is short."""
    size = lanes.size[lane]
    own = WorkingSet(sets.rows[lane, :size], sets.costs[lane, :size], sets.alphas[lane, :size])
    if unsoft is not None:
        sum_support(rows, own, unsoft)
    sweeps = min(_SWEEPS, options.max_sweeps) if lanes.rounds[lane] < 2 else options.max_sweeps
    effort = (sweeps, _LEAST)
    bias, error = descend(rows, own, lanes.weights[lane], unsoft, lanes.bias[lane], effort, options)
    lanes.bias[lane], lanes.error[lane] = bias, error


@njit(nogil=True, cache=True, boundscheck=False)
def descend(rows, own, weights, unsoft, bias, effort, options):
    """Coordinate descent over one working set, with LIBLINEAR's shrinking; returns the bias and the error left.

    ``own`` is a :class:`WorkingSet`, ``weights`` (n_features,) and ``bias`` belong to its α, and ``unsoft`` is what
    :func:`sum_support` gives, all float32, or None where there is no L1; α, ``weights`` and ``unsoft`` are written.
    ``effort`` is how many sweeps there are at most, and how far a row's gradient may be off without a step.
    """
    sweeps, least = effort
    size = own.rows.shape[0]
    order = empty(size, np.int32)
    for n in range(size):
        order[n] = n
    active, error = size, np.inf
    high_bar, low_bar = np.inf, -np.inf
    state = shuffle_state(options.seed)
    for _ in range(sweeps):
        state = shuffle(order, active, state)
        bars = (high_bar, low_bar, bias, least)
        active, highest, lowest, bias = _sweep(rows, rows.indptr, own, order, active, weights, unsoft, options, bars)
        error = highest - lowest
        if error <= options.tol:
            if active == size:
                break
            active = size
            high_bar, low_bar = np.inf, -np.inf
        else:
            high_bar = highest if highest > 0 else np.inf
            low_bar = lowest if lowest < 0 else -np.inf
    return bias, error


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def sum_support(rows, own, total):
    """``total = Σ α_i z_i x_i`` over a :class:`WorkingSet`; writes ``total`` (n_features,)."""
    for feature in range(total.shape[0]):
        total[feature] = 0
    size = own.rows.shape[0]
    for n in range(size):
        row = own.rows[min(n + _AHEAD, size - 1)]
        prefetch_row(rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1])
        row, step = own.rows[n], own.alphas[n] if own.costs[n] > 0 else -own.alphas[n]
        if step != 0:
            _add(total, rows.indices, rows.data, rows.indptr[row], rows.indptr[row + 1], step)


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _sweep(rows, starts, own, order, last, weights, unsoft, options, bars):
    """Visit ``order[:last]`` once, those that shrink put behind the others.

    ``starts`` says where each row begins in ``rows.indices`` and ``rows.data``. ``bars`` are the gradients from which
    members are left out, high and low, the bias, and how far off a gradient may be. Returns the new ``last``, the
    highest and the lowest gradient, and the bias.
    """
    indices, data = rows.indices, rows.data
    high_bar, low_bar, bias, least = bars
    highest, lowest = -np.inf, np.inf
    scale_squared = np.float32(options.bias_scale * options.bias_scale)
    squared = options.loss == SQUARED_HINGE
    l1 = np.float32(options.l1)
    n = 0
    while n < last:
        row = own.rows[order[min(n + _AHEAD, last - 1)]]
        prefetch_row(indices, data, starts[row], starts[row] + rows.indptr[row + 1] - rows.indptr[row])
        at = order[n]
        row, cost, alpha = own.rows[at], own.costs[at], own.alphas[at]
        start = starts[row]
        stop = start + rows.indptr[row + 1] - rows.indptr[row]
        sign = np.float32(1) if cost > 0 else np.float32(-1)
        gradient = sign * (_dot(weights, indices, data, start, stop) + bias) - np.float32(1)
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
            last -= 1
            order[n], order[last] = order[last], order[n]
            continue
        n += 1
        highest, lowest = max(highest, projected), min(lowest, projected)
        if abs(projected) > least and curvature > 0:
            own.alphas[at] = min(max(alpha - gradient / curvature, np.float32(0)), upper)
            step = (own.alphas[at] - alpha) * sign
            if unsoft is not None and l1 > 0:
                _add_soft(weights, unsoft, l1, indices, data, start, stop, step)
            else:
                _add(weights, indices, data, start, stop, step)
            bias += step * scale_squared
    return last, highest, lowest, bias
