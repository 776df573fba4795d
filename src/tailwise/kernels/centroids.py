"""The tail classifier of a label: how near a sparse row is to the mean of the label's training rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

_CHUNK = 64


class Means(NamedTuple):
    """Label means in CSR form, the largest entries first; their squared lengths, inf for a label without rows; γ."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    squares: np.ndarray
    gamma: float


@njit(nogil=True, cache=True, boundscheck=False)
def log_q(gamma, distance):
    """``ln q = -ln(1 + exp(γ/2 · distance))`` for a squared distance; -inf at inf."""
    t = 0.5 * gamma * max(distance, 0.0)
    return -(t + np.log1p(np.exp(-t)))


@njit(nogil=True, cache=True, boundscheck=False)
def distance_of_log_q(gamma, value):
    """The squared distance at which ln q is ``value``: inf at -inf, negative where no distance gives so much."""
    if value == -np.inf:
        return np.inf
    return 2.0 / gamma * np.log(np.expm1(-value)) if value < 0 else -np.inf


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"reassoc", "contract", "nsz"})
def _dot_and_square(means, start, stop, dense):
    dot = np.float32(0.0)
    read = np.float32(0.0)
    for a in range(np.uint64(start), np.uint64(stop)):
        dot += means.data[a] * dense[np.uint64(means.indices[a])]
        read += means.data[a] * means.data[a]
    return dot, read


@njit(nogil=True, cache=True, boundscheck=False)
def squared_distance(means, label, dense, square, worst):
    """``|x - μ_label|²`` where ``dense`` is x and ``square`` its squared length; inf once it must exceed ``worst``.

    The largest entries of μ come first, so that what is left of its length soon bounds what is left of x·μ.
    """
    start, end = means.indptr[label], means.indptr[label + 1]
    dot, left = 0.0, means.squares[label]
    while start < end:
        stop = min(start + _CHUNK, end)
        more, read = _dot_and_square(means, start, stop, dense)
        dot += more
        left -= read
        if square - 2.0 * (dot + np.sqrt(square * max(left, 0.0))) + means.squares[label] > worst:
            return np.inf
        start = stop
    return square - 2.0 * dot + means.squares[label]


@njit(nogil=True, cache=True, boundscheck=False)
def spread_row(indices, data, dense):
    """Write a sparse row into ``dense``, which is zero elsewhere; returns the row's squared length."""
    square = 0.0
    for a in range(indices.shape[0]):
        dense[indices[a]] = data[a]
        square += np.float64(data[a]) * np.float64(data[a])
    return square


@njit(nogil=True, cache=True, boundscheck=False)
def clear_row(indices, dense):
    """Undo :func:`spread_row`."""
    for a in range(indices.shape[0]):
        dense[indices[a]] = 0


@njit(nogil=True, cache=True, boundscheck=False)
def score_candidates(x_indptr, x_indices, x_data, block, means, n_features, labels, scores):
    """``ln q_l(x)`` for the candidate ``labels`` (n, k) of rows ``block[0]:block[1]`` into ``scores`` (n, k).

    A candidate -1, and a label without training rows, gets -inf.
    """
    dense = np.zeros(n_features, np.float32)
    for i in range(block[0], block[1]):
        start, stop = x_indptr[i], x_indptr[i + 1]
        square = spread_row(x_indices[start:stop], x_data[start:stop], dense)
        for j in range(labels.shape[1]):
            label = labels[i, j]
            if label < 0 or means.squares[label] == np.inf:
                scores[i, j] = -np.inf
            else:
                scores[i, j] = log_q(means.gamma, squared_distance(means, label, dense, square, np.inf))
        clear_row(x_indices[start:stop], dense)
