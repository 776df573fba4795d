"""Scoring every label of a sparse linear model for sparse rows: label by label, or 32 labels side by side.

A score is ``bias + Σ x_f w_f`` in the order of the row, each product rounded before it is added: the same bits either
way, since a weight that is not there adds nothing.
"""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.lanes import HALF_LANES, dot_lanes_in_order
from tailwise.kernels.sparse.topk import push, push_any_order

SIDE_BY_SIDE = HALF_LANES
"""Labels that are scored at once: two vectors, since an addition waits for the one before it."""


@njit(nogil=True, cache=True, boundscheck=False)
def predict_sparse_linear(X, block, W, bias, labels, scores):
    """Top-k labels of rows ``block[0]:block[1]`` under ``x @ W + bias``.

    X is a :class:`Csr` over features; W one with a row a feature, its label indices in any order and indptr int32 or
    int64. Inputs may be read-only. Writes the block's rows of ``labels`` (n, k) int32 and ``scores`` (n, k) float32.
    """
    start, stop = block
    n_labels = bias.shape[0]
    k = labels.shape[1]
    total = empty(n_labels, np.float32)
    for i in range(start, stop):
        for label in range(n_labels):
            total[label] = bias[label]
        for a in range(X.indptr[i], X.indptr[i + 1]):
            feature = X.indices[a]
            value = X.data[a]
            for b in range(np.uint64(W.indptr[feature]), np.uint64(W.indptr[feature + 1])):
                total[np.uint64(W.indices[b])] += value * W.data[b]
        labels[i, :] = -1
        scores[i, :] = -np.inf
        for label in range(n_labels):
            if total[label] > scores[i, k - 1]:
                push(labels[i], scores[i], label, total[label])


@njit(nogil=True, cache=True, boundscheck=False)
def count_touches(X, W, n_labels):
    """How many weights of each label the rows of X meet, (n_labels,) int64; X and W as above."""
    n_features = W.indptr.shape[0] - 1
    rows = zeros(n_features, np.int64)
    for a in range(X.indices.shape[0]):
        rows[X.indices[a]] += 1
    touches = zeros(n_labels, np.int64)
    for feature in range(n_features):
        for b in range(W.indptr[feature], W.indptr[feature + 1]):
            touches[W.indices[b]] += rows[feature]
    return touches


@njit(nogil=True, cache=True, boundscheck=False)
def put_weights_side_by_side(W, places, side_by_side):
    """Weights of the labels whose ``places`` are not -1: ``side_by_side[p // 32, feature * 32 + p % 32]``.

    ``side_by_side`` (n, n_features * 32) float32 is 0 and gets these.
    """
    for feature in range(W.indptr.shape[0] - 1):
        for b in range(W.indptr[feature], W.indptr[feature + 1]):
            place = places[W.indices[b]]
            if place >= 0:
                side_by_side[place // SIDE_BY_SIDE, feature * SIDE_BY_SIDE + place % SIDE_BY_SIDE] = W.data[b]


@njit(nogil=True, cache=True, boundscheck=False)
def predict_side_by_side(X, block, side_by_side, own, bias, labels, scores):
    """Merge the labels ``own`` (32 n,) int32 into the top k of rows ``block[0]:block[1]``, as they stand.

    ``side_by_side`` is what :func:`put_weights_side_by_side` wrote, ``bias`` (32 n,) float32; one of -inf is passed
    over. Writes the block's rows of ``labels`` and ``scores``.
    """
    k = labels.shape[1]
    sums = empty(SIDE_BY_SIDE, np.float32)
    for n in range(side_by_side.shape[0]):
        first = n * SIDE_BY_SIDE
        for i in range(block[0], block[1]):
            for lane in range(SIDE_BY_SIDE):
                sums[lane] = bias[first + lane]
            dot_lanes_in_order(side_by_side[n], X.indices, X.data, X.indptr[i], X.indptr[i + 1], sums)
            for lane in range(SIDE_BY_SIDE):
                if sums[lane] >= scores[i, k - 1]:
                    push_any_order(labels[i], scores[i], own[first + lane], sums[lane])
