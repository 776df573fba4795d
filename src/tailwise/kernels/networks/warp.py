"""Training row and label vectors by WARP: a label's step weighs as much as its rank, which sampling estimates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import random_bits

_FAST = {"contract", "nsz", "reassoc"}
_FIRST = np.float32(1e-6)


class Vectors(NamedTuple):
    """What is learnt, float32, and Adagrad's memory of it: the sum of mean squared gradients of each vector."""

    features: np.ndarray
    """(n_features, dim): a row's vector is the sum of its features' vectors, times their values"""
    labels: np.ndarray
    """(n_labels, dim)"""
    feature_memory: np.ndarray
    """(n_features,)"""
    label_memory: np.ndarray
    """(n_labels,)"""


class WarpOptions(NamedTuple):
    """What steers the training."""

    rate: float
    """of Adagrad"""
    longest: float
    """the largest norm that a vector may have"""
    n_tries: int
    """labels drawn a label of the row at most"""


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _dot(a, b):
    total = np.float32(0)
    for d in range(a.shape[0]):
        total += a[d] * b[d]
    return total


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _move(vector, memory, at, direction, factor, square, options):
    """Adagrad on one vector along ``factor · direction``; ``square`` is the mean square of ``direction``."""
    memory[at] += factor * factor * square
    step = np.float32(options.rate) * factor / np.sqrt(memory[at] + _FIRST)
    length = np.float32(0)
    for d in range(vector.shape[0]):
        vector[d] += step * direction[d]
        length += vector[d] * vector[d]
    if length > options.longest * options.longest:
        shrink = np.float32(options.longest) / np.sqrt(length)
        for d in range(vector.shape[0]):
            vector[d] *= shrink


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def train_warp(X, Y, row_weights, order, state, rank_weights, vectors, options):
    """One pass over the rows in ``order``; returns the mean weighted loss of a label that a row has.

    For each label y of a row with vector z, labels are drawn until one violates, ``1 + z·h_k > z·h_y``, at most
    ``options.n_tries``; after n draws the rank of y is about ``(n_labels - 1) / n``, and ``rank_weights`` (n_labels,)
    float32 says what that weighs, times the row's ``row_weights`` (n,) float32. Label vectors move at once, the row's
    features after its last label.
    X and Y are :class:`Csr`. ``vectors`` is changed in place and ``state`` (a (1,) uint64 seed) advanced; the rest may
    be read-only. Sequential, so the result depends on ``state`` and ``order`` alone.
    """
    n_labels, dim = vectors.labels.shape
    own = np.full(n_labels, -1, np.int64)
    z, slope = empty(dim, np.float32), empty(dim, np.float32)
    total, n_seen = 0.0, 0
    for i in order:
        z[:] = 0
        for a in range(X.indptr[i], X.indptr[i + 1]):
            vector = vectors.features[X.indices[a]]
            for d in range(dim):
                z[d] += X.data[a] * vector[d]
        square = _dot(z, z) / np.float32(dim)
        for a in range(Y.indptr[i], Y.indptr[i + 1]):
            own[Y.indices[a]] = i
        slope[:] = 0
        for a in range(Y.indptr[i], Y.indptr[i + 1]):
            label = Y.indices[a]
            score = _dot(z, vectors.labels[label])
            n_seen += 1
            for n in range(1, options.n_tries + 1):
                other = np.int64(random_bits(state) % np.uint64(n_labels))
                if own[other] == i:
                    continue
                excess = 1 + _dot(z, vectors.labels[other]) - score
                if excess > 0:
                    weight = rank_weights[(n_labels - 1) // n] * row_weights[i]
                    total += weight * excess
                    for d in range(dim):
                        slope[d] += weight * (vectors.labels[label, d] - vectors.labels[other, d])
                    _move(vectors.labels[label], vectors.label_memory, label, z, weight, square, options)
                    _move(vectors.labels[other], vectors.label_memory, other, z, -weight, square, options)
                    break
        square = _dot(slope, slope) / np.float32(dim)
        if square > 0:
            for a in range(X.indptr[i], X.indptr[i + 1]):
                feature = X.indices[a]
                _move(vectors.features[feature], vectors.feature_memory, feature, slope, X.data[a], square, options)
    return total / max(1, n_seen)
