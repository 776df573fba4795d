"""From candidates with new scores to a ranking: what is a candidate never depends on how many labels are asked for."""

from __future__ import annotations

import numpy as np

from tailwise.base import TopK
from tailwise.parameters import Integer

N_CANDIDATES = Integer(low=1)
"""The constraint of a parameter ``n_candidates``."""


def sort_topk(labels: np.ndarray, scores: np.ndarray, k: int) -> TopK:
    """Candidates in any order (absent: -1) as a TopK: descending scores, ties by label index, the best ``k``."""
    scores = np.where(labels >= 0, scores, -np.inf).astype(np.float32)
    by_label = np.where(labels >= 0, labels, np.iinfo(np.int32).max)
    order = np.lexsort((by_label, -scores), axis=1)[:, :k]
    labels = np.take_along_axis(labels, order, axis=1).astype(np.int32)
    scores = np.take_along_axis(scores, order, axis=1)
    return TopK(np.where(np.isneginf(scores), -1, labels).astype(np.int32), scores).padded(k)


def rank_candidates(labels: np.ndarray, scores: np.ndarray, n_candidates: int, k: int) -> TopK:
    """The best ``k``: the first ``n_candidates`` columns by ``scores``, then the others in the order they have.

    So top-k is a prefix of top-(k + 1) on both sides of ``n_candidates``.
    """
    first = slice(None, n_candidates)
    ranked = sort_topk(labels[:, first], scores[:, first], min(k, n_candidates))
    if k <= n_candidates:
        return ranked
    return followed_by(ranked, TopK(labels[:, n_candidates:], scores[:, n_candidates:]), k)


def followed_by(ranked: TopK, others: TopK, k: int) -> TopK:
    """``ranked``, and behind it ``others`` in their order, with scores that are lowered until they descend.

    A label whose score would have to fall below 0, where its own does not, is left out: it has no probability.
    """
    labels = np.concatenate([ranked.labels, others.labels], axis=1)
    scores = np.concatenate([ranked.scores, others.scores], axis=1).astype(np.float32)
    is_other = np.broadcast_to(np.arange(labels.shape[1]) >= ranked.labels.shape[1], labels.shape)
    present_first = np.argsort(labels < 0, axis=1, kind="stable")
    labels, scores, is_other = (np.take_along_axis(part, present_first, axis=1) for part in (labels, scores, is_other))
    labels, scores = labels[:, :k].copy(), scores[:, :k].copy()
    for j in range(1, labels.shape[1]):
        lowered = np.minimum(scores[:, j], np.nextafter(scores[:, j - 1], np.float32(-np.inf)))
        lowered = np.where((lowered < 0) & (scores[:, j] >= 0), -np.inf, lowered)
        scores[:, j] = np.where(is_other[:, j], lowered, scores[:, j])
    labels[np.isneginf(scores)] = -1
    scores[labels < 0] = -np.inf
    return TopK(labels, scores).padded(k)
