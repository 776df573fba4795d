"""Evaluating gradient-boosted trees that are kept as plain arrays."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.compilation import njit


@njit(nogil=True, cache=True, boundscheck=False)
def sum_trees(trees, features, block, total):
    """Add every tree's leaf value for rows ``block[0]:block[1]`` of ``features`` (n, m) to ``total`` (n,) float64.

    ``trees`` is a :class:`tailwise.tail.boosting.BoostedTrees`: node arrays of all trees lie one after the other;
    ``roots`` holds each tree's first node, ``left`` and ``right`` are absolute node numbers, a leaf has left < 0. NaN
    goes left where ``missing_left`` says so. Inputs may be read-only; the block's part of ``total`` is written.
    """
    for tree in range(trees.roots.shape[0]):
        root = trees.roots[tree]
        for i in range(block[0], block[1]):
            node = root
            while trees.left[node] >= 0:
                x = features[i, trees.split[node]]
                if np.isnan(x):
                    go_left = trees.missing_left[node] != 0
                else:
                    go_left = x <= trees.threshold[node]
                node = trees.left[node] if go_left else trees.right[node]
            total[i] += trees.value[node]
