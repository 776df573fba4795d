"""Evaluating gradient-boosted trees that are kept as plain arrays."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, boundscheck=False)
def sum_trees(features, roots, split, threshold, left, right, missing_left, value, start, stop, total):
    """Add every tree's leaf value for rows ``start:stop`` of ``features`` (n, m) to ``total`` (n,) float64.

    Node arrays of all trees lie one after the other; ``roots`` holds each tree's first node, ``left`` and ``right``
    are absolute node numbers, a leaf has left < 0. NaN goes left where ``missing_left`` says so.
    Inputs may be read-only.
    """
    for tree in range(roots.shape[0]):
        root = roots[tree]
        for i in range(start, stop):
            node = root
            while left[node] >= 0:
                x = features[i, split[node]]
                if np.isnan(x):
                    go_left = missing_left[node] != 0
                else:
                    go_left = x <= threshold[node]
                node = left[node] if go_left else right[node]
            total[i] += value[node]
