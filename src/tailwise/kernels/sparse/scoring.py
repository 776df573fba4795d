"""Scoring every label of a sparse linear model for sparse rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from tailwise.kernels.sparse.topk import push


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def predict_sparse_linear(x_indptr, x_indices, x_data, block, w_indptr, w_indices, w_data, bias, labels, scores):
    """Top-k labels of rows ``block[0]:block[1]`` under ``x @ W + bias``.

    X is CSR over features; W is CSR with one row a feature and sorted label indices. All inputs may be
    read-only, indptr int32 or int64. Writes rows of ``labels`` (n, k) int32 and ``scores`` (n, k) float32.
    """
    start, stop = block
    n_labels = bias.shape[0]
    k = labels.shape[1]
    total = np.empty(n_labels, np.float32)
    for i in range(start, stop):
        total[:] = bias
        for a in range(x_indptr[i], x_indptr[i + 1]):
            feature = x_indices[a]
            value = x_data[a]
            for b in range(np.uint64(w_indptr[feature]), np.uint64(w_indptr[feature + 1])):
                total[np.uint64(w_indices[b])] += value * w_data[b]
        labels[i, :] = -1
        scores[i, :] = -np.inf
        for label in range(n_labels):
            if total[label] > scores[i, k - 1]:
                push(labels[i], scores[i], label, total[label])
