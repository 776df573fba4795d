"""Selecting the best k of many scores; ties go to the lower index."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, boundscheck=False)
def push(labels, scores, label, score):
    """Insert one candidate into a descending top-k row.

    ``labels`` and ``scores`` are rows of length k that start as -1 and -inf. Candidates must come in
    ascending order of label: an equal score never displaces an earlier label. -inf is never inserted.
    """
    k = labels.shape[0]
    if not score > scores[k - 1]:
        return
    j = k - 1
    while j > 0 and scores[j - 1] < score:
        scores[j] = scores[j - 1]
        labels[j] = labels[j - 1]
        j -= 1
    scores[j] = score
    labels[j] = label


@njit(nogil=True, cache=True, boundscheck=False)
def push_any_order(labels, scores, label, score):
    """As :func:`push`, for candidates in any order of label (each label at most once)."""
    k = labels.shape[0]
    if not (score > scores[k - 1] or (score == scores[k - 1] and score > -np.inf and label < labels[k - 1])):
        return
    j = k - 1
    while j > 0 and (scores[j - 1] < score or (scores[j - 1] == score and labels[j - 1] > label)):
        scores[j] = scores[j - 1]
        labels[j] = labels[j - 1]
        j -= 1
    scores[j] = score
    labels[j] = label


@njit(nogil=True, cache=True, boundscheck=False)
def topk_dense(block, first_label, labels, scores):
    """Merge a dense (n, m) block of scores, whose columns are labels first_label…, into running top-k rows.

    ``labels`` (n, k) int32 and ``scores`` (n, k) float32 start as -1 and -inf; blocks come in ascending label order.
    """
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            if block[i, j] > scores[i, scores.shape[1] - 1]:
                push(labels[i], scores[i], first_label + j, block[i, j])


@njit(nogil=True, cache=True, boundscheck=False)
def topk_csr(indptr, indices, data, labels, scores):
    """Best stored entries of each CSR row (any index order) into (n, k) ``labels`` and ``scores``, both overwritten."""
    labels[:] = -1
    scores[:] = -np.inf
    for i in range(indptr.shape[0] - 1):
        for j in range(indptr[i], indptr[i + 1]):
            push_any_order(labels[i], scores[i], indices[j], data[j])
