"""Scoring every label of a sparse linear model for sparse rows."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.topk import push


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def predict_sparse_linear(X, block, W, bias, labels, scores):
    """Top-k labels of rows ``block[0]:block[1]`` under ``x @ W + bias``.

    X is a :class:`Csr` over features; W one with a row a feature, its label indices in any order and indptr int32 or
    int64. Inputs may be read-only. Writes the block's rows of ``labels`` (n, k) int32 and ``scores`` (n, k) float32.
    """
    start, stop = block
    n_labels = bias.shape[0]
    k = labels.shape[1]
    total = np.empty(n_labels, np.float32)
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
