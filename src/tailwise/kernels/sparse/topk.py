"""Selecting the best k of many scores; ties go to the lower index."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.compilation import njit


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def push(labels, scores, label, score):
    """Insert one candidate into a descending top-k row.

    ``labels`` and ``scores`` are rows of length k that start as -1 and -inf; both are written. Candidates must come
    in ascending order of label: an equal score never displaces an earlier label. -inf and NaN are never inserted.
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


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
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

    ``labels`` (n, k) int32 and ``scores`` (n, k) float32 start as -1 and -inf and are written; blocks come in ascending
    label order. ``block`` may be read-only.
    """
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            if block[i, j] > scores[i, scores.shape[1] - 1]:
                push(labels[i], scores[i], first_label + j, block[i, j])


@njit(nogil=True, cache=True, boundscheck=False)
def topk_csr(rows, labels, scores):
    """Best stored entries of each row into ``labels`` (n, k) int32 and ``scores`` (n, k) float32, both overwritten.

    ``rows`` is a :class:`Csr`, its indices in any order but none twice in a row; it may be read-only. Places without
    an entry become -1 and -inf; an entry of -inf counts as none.
    """
    labels[:] = -1
    scores[:] = -np.inf
    for i in range(rows.indptr.shape[0] - 1):
        for j in range(rows.indptr[i], rows.indptr[i + 1]):
            push_any_order(labels[i], scores[i], rows.indices[j], rows.data[j])
