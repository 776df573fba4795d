"""Plain twins of the shared kernels."""

from __future__ import annotations

import numpy as np


def topk(scores, k):
    """Best k (label, score) of each dense row: descending score, ties by index, -inf never."""
    labels = np.full((len(scores), k), -1, np.int32)
    best = np.full((len(scores), k), -np.inf, np.float32)
    for i, row in enumerate(scores):
        order = [j for j in sorted(range(len(row)), key=lambda j: (-row[j], j)) if row[j] > -np.inf][:k]
        labels[i, : len(order)] = order
        best[i, : len(order)] = row[order]
    return labels, best
