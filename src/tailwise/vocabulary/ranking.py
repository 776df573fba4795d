"""Rankings of the labels that may be suggested: as long as if no others were there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tailwise.parallel import row_blocks
from tailwise.topk import TopK

_ENTRIES_AT_ONCE = 20_000_000


def allowed_topk(predict_topk: Callable[[Any, int], TopK], X: Any, k: int, allowed: np.ndarray) -> TopK:
    """The ``k`` best of the labels that are ``allowed``, (n_labels,) bool, for each row of X.

    Asks for more and more labels until every row has k that are allowed, or no more to give. Since the top k is a
    prefix of the top k + 1, so is what is left of it.
    """
    n_labels = allowed.size
    forbidden = n_labels - int(allowed.sum())
    if not forbidden:
        return predict_topk(X, k)
    labels = np.full((X.shape[0], k), -1, np.int32)
    scores = np.full((X.shape[0], k), -np.inf, np.float32)
    waiting = np.arange(X.shape[0])
    asked = k + min(forbidden, k)
    while waiting.size:
        asked = min(asked, n_labels)
        short = []
        for first, last in row_blocks(waiting.size, max(1, _ENTRIES_AT_ONCE // asked)):
            rows = waiting[first:last]
            found = predict_topk(X[rows], asked)
            keep = (found.labels >= 0) & allowed[found.labels]
            rank = np.cumsum(keep, axis=1) - 1
            at, place = np.nonzero(keep & (rank < k))
            labels[rows[at], rank[at, place]] = found.labels[at, place]
            scores[rows[at], rank[at, place]] = found.scores[at, place]
            short.append(rows[(rank[:, -1] < k - 1) & (found.labels[:, -1] >= 0)])
        waiting = np.concatenate(short) if asked < n_labels else waiting[:0]
        asked *= 4
    return TopK(labels, scores)
