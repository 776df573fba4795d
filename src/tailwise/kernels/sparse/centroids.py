"""The tail classifier of a label: how near a sparse row is to the centroid of the label's training rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import zeros
from tailwise.kernels.compilation import njit

_CHUNK = 64


class Centroids(NamedTuple):
    """One vector v_l a label in CSR form, the largest entries first, with its length; the offsets c_l; γ.

    The distance of a row is ``|x|² + c_l - 2 x·v_l``. A label without training rows has c_l = inf.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    lengths: np.ndarray
    offsets: np.ndarray
    gamma: float


@njit(nogil=True, cache=True, boundscheck=False)
def log_q(gamma, distance):
    """``ln q = -ln(1 + exp(γ/2 · distance))``; -inf at inf. A negative distance, from rounding, counts as 0."""
    t = 0.5 * gamma * max(distance, 0.0)
    return -(t + np.log1p(np.exp(-t)))


@njit(nogil=True, cache=True, boundscheck=False)
def distance_of_log_q(gamma, value):
    """The distance at which ln q is ``value``: inf at -inf, negative where no distance gives so much."""
    if value == -np.inf:
        return np.inf
    return 2.0 / gamma * np.log(np.expm1(-value)) if value < 0 else -np.inf


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"reassoc", "contract", "nsz"})
def _dot_and_square(centroids, start, stop, dense):
    dot = np.float32(0.0)
    read = np.float32(0.0)
    for a in range(np.uint64(start), np.uint64(stop)):
        dot += centroids.data[a] * dense[np.uint64(centroids.indices[a])]
        read += centroids.data[a] * centroids.data[a]
    return dot, read


@njit(nogil=True, cache=True, boundscheck=False)
def least_distance(centroids, label, square):
    """The smallest distance that a row of squared length ``square`` can have. Reads only."""
    return square + centroids.offsets[label] - 2.0 * np.sqrt(square) * centroids.lengths[label]


@njit(nogil=True, cache=True, boundscheck=False)
def distance_to(centroids, label, dense, square, worst):
    """The distance of x, which is in ``dense``, ``square`` its squared length; inf once it must exceed ``worst``.

    The largest entries of v come first, so that what is left of its length soon bounds what is left of x·v. Reads only.
    """
    start, end = centroids.indptr[label], centroids.indptr[label + 1]
    constant = square + centroids.offsets[label]
    dot, left = 0.0, centroids.lengths[label] * centroids.lengths[label]
    while start < end:
        stop = min(start + _CHUNK, end)
        more, read = _dot_and_square(centroids, start, stop, dense)
        dot += more
        left -= read
        if constant - 2.0 * (dot + np.sqrt(square * max(left, 0.0))) > worst:
            return np.inf
        start = stop
    return constant - 2.0 * dot


@njit(nogil=True, cache=True, boundscheck=False)
def spread_row(indices, data, dense):
    """Write a sparse row into ``dense``, which is zero elsewhere; returns the row's squared length.

    ``indices`` has none twice; both may be read-only.
    """
    square = 0.0
    for a in range(indices.shape[0]):
        dense[indices[a]] = data[a]
        square += np.float64(data[a]) * np.float64(data[a])
    return square


@njit(nogil=True, cache=True, boundscheck=False)
def clear_row(indices, dense):
    """Undo :func:`spread_row`: ``dense`` is zero at ``indices`` again."""
    for a in range(indices.shape[0]):
        dense[indices[a]] = 0


@njit(nogil=True, cache=True, boundscheck=False)
def score_by_centroids(X, block, centroids, n_features, labels, scores):
    """``ln q_l(x)`` for the candidate ``labels`` (n, k) of rows ``block[0]:block[1]`` into ``scores`` (n, k).

    ``X`` is a :class:`Csr`; a candidate -1, and a label without training rows, gets -inf. Inputs may be read-only.
    """
    dense = zeros(n_features, np.float32)
    for i in range(block[0], block[1]):
        start, stop = X.indptr[i], X.indptr[i + 1]
        square = spread_row(X.indices[start:stop], X.data[start:stop], dense)
        for j in range(labels.shape[1]):
            label = labels[i, j]
            if label < 0 or centroids.offsets[label] == np.inf:
                scores[i, j] = -np.inf
            else:
                scores[i, j] = log_q(centroids.gamma, distance_to(centroids, label, dense, square, np.inf))
        clear_row(X.indices[start:stop], dense)
