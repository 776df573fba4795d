"""Parting the rows of a tree node in two so that each side's best label ranking fits its rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty
from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.sorting import descending_key, index_of, sort_keys

_MAX_ROUNDS = 100


class NodeLabels(NamedTuple):
    """The labels of a node's rows, numbered 0… within the node in ascending order of label.

    Entries ``indptr[i]:indptr[i + 1]`` are row i's; ``gains`` holds ``I(y_i) y_il`` (or over p_l), float32.
    """

    indptr: np.ndarray
    indices: np.ndarray
    gains: np.ndarray
    n_labels: int


@njit(nogil=True, cache=True, boundscheck=False)
def discount_of_rank(n):
    """``1 / ln(1 + rank)`` of ranks 1…n, a new float32 array."""
    discounts = empty(n, np.float32)
    for rank in range(1, n + 1):
        discounts[rank - 1] = 1.0 / np.log(1.0 + rank)
    return discounts


@njit(nogil=True, cache=True, boundscheck=False)
def _rank_labels(sums, discounts, keys):
    """Replace each label's sum by the discount of its rank: the larger sum first, then by index."""
    n_positive = 0
    for label in range(sums.shape[0]):
        if sums[label] > 0:
            keys[n_positive] = descending_key(sums[label], label)
            n_positive += 1
    sort_keys(keys, n_positive)
    # Labels that no row of this side has come last and need no sorting.
    position = n_positive
    for label in range(sums.shape[0]):
        if not sums[label] > 0:
            sums[label] = discounts[position]
            position += 1
    for position in range(n_positive):
        sums[index_of(keys[position])] = discounts[position]


@njit(nogil=True, cache=True, boundscheck=False)
def alternate_sides(labels, discounts, positive):
    """Alternate best rankings and best sides until no row changes side.

    ``positive`` (n,) bool is the start and is overwritten by the result. ``discounts`` covers the node's labels; it and
    ``labels`` (:class:`NodeLabels`) may be read-only.
    Returns the nDCG loss ``-Σ_i I(y_i) Σ_l y_il / ln(1 + rank_δi(l))`` after each round: it never rises, because
    a ranking by gain is the best one for its side, and a row moves only to a side where it gains more.
    """
    n = positive.shape[0]
    for_positive = empty(labels.n_labels, np.float32)
    for_negative = empty(labels.n_labels, np.float32)
    keys = empty(labels.n_labels, np.int64)
    trace = empty(_MAX_ROUNDS, np.float64)
    for turn in range(_MAX_ROUNDS):
        for label in range(labels.n_labels):
            for_positive[label] = 0
            for_negative[label] = 0
        for i in range(n):
            sums = for_positive if positive[i] else for_negative
            for a in range(labels.indptr[i], labels.indptr[i + 1]):
                sums[labels.indices[a]] += labels.gains[a]
        _rank_labels(for_positive, discounts, keys)
        _rank_labels(for_negative, discounts, keys)
        gained = 0.0
        moved = 0
        for i in range(n):
            here = 0.0
            there = 0.0
            for a in range(labels.indptr[i], labels.indptr[i + 1]):
                here += labels.gains[a] * for_positive[labels.indices[a]]
                there += labels.gains[a] * for_negative[labels.indices[a]]
            if here > there and not positive[i]:
                positive[i] = True
                moved += 1
            elif there > here and positive[i]:
                positive[i] = False
                moved += 1
            gained += max(here, there)
        trace[turn] = -gained
        if moved == 0:
            return trace[: turn + 1]
    return trace
