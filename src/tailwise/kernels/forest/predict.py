"""Passing rows down the trees of a forest and adding up the leaves they reach."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.centroids import (
    clear_row,
    distance_of_log_q,
    distance_to,
    least_distance,
    log_q,
    spread_row,
)
from tailwise.kernels.sparse.sorting import descending_key, index_of, sort_keys
from tailwise.kernels.sparse.topk import push_any_order


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"reassoc", "contract", "nsz"})
def _margin(forest, node, dense):
    total = np.float32(0.0)
    for a in range(np.uint64(forest.weight_indptr[node]), np.uint64(forest.weight_indptr[node + 1])):
        total += forest.weights[a] * dense[np.uint64(forest.weight_indices[a])]
    return total + forest.bias[node]


@njit(nogil=True, cache=True, boundscheck=False)
def _find_leaves(forest, indices, data, dense, margins, leaves):
    """The leaf of each tree for one row, which is also in ``dense``: top levels by feature, then node by node.

    ``margins`` (n_top,) is scratch.
    """
    for node in range(forest.n_top):
        margins[node] = forest.bias[node]
    for a in range(indices.shape[0]):
        value = data[a]
        for b in range(forest.top_indptr[indices[a]], forest.top_indptr[indices[a] + 1]):
            margins[np.uint64(forest.top_nodes[b])] += value * forest.top_weights[b]
    for tree in range(forest.n_trees):
        node = tree
        while node < forest.n_top and forest.children[node, 0] >= 0:
            node = forest.children[node, 1 if margins[node] > 0 else 0]
        leaves[tree] = node
    # Level by level, because the trees are independent and the processor can fetch several nodes at once.
    moving = True
    while moving:
        moving = False
        for tree in range(forest.n_trees):
            node = leaves[tree]
            if forest.children[node, 0] >= 0:
                leaves[tree] = forest.children[node, 1 if _margin(forest, node, dense) > 0 else 0]
                moving = True


@njit(nogil=True, cache=True, boundscheck=False)
def _clear_topk(labels, scores):
    for j in range(labels.shape[0]):
        labels[j] = -1
        scores[j] = -np.inf


@njit(nogil=True, cache=True, boundscheck=False)
def _add_votes(forest, leaves, total, found):
    """Add the shares of ``leaves`` to ``total`` (n_labels,), all zero before; list its labels, return how many."""
    n_found = 0
    for leaf in leaves:
        for a in range(forest.leaf_indptr[leaf], forest.leaf_indptr[leaf + 1]):
            label = forest.leaf_labels[a]
            if total[label] == 0:
                found[n_found] = label
                n_found += 1
            total[label] += forest.leaf_shares[a]
    return n_found


@njit(nogil=True, cache=True, boundscheck=False)
def find_leaves(X, forest, n_features, leaves):
    """Write the leaf node of each row of X (:class:`Csr`) in each tree into ``leaves`` (n, n_trees) int32.

    ``forest`` is a :class:`tailwise.forest.layout.Forest`. Inputs may be read-only.
    """
    dense = zeros(n_features, np.float32)
    margins = empty(forest.n_top, np.float32)
    for i in range(leaves.shape[0]):
        row = X.indices[X.indptr[i] : X.indptr[i + 1]]
        data = X.data[X.indptr[i] : X.indptr[i + 1]]
        spread_row(row, data, dense)
        _find_leaves(forest, row, data, dense, margins, leaves[i])
        clear_row(row, dense)


@njit(nogil=True, cache=True, boundscheck=False)
def _scratch(forest, shape):
    """What a block of rows needs: a dense row and the labels' votes, both zero, margins, labels found, leaves."""
    n_features, n_labels = shape
    return (
        zeros(n_features, np.float32),
        empty(forest.n_top, np.float32),
        zeros(n_labels, np.float32),
        empty(n_labels, np.int32),
        empty(forest.n_trees, np.int32),
    )


@njit(nogil=True, cache=True, boundscheck=False)
def predict_forest(X, block, forest, shape, labels, scores):
    """Top-k labels of rows ``block[0]:block[1]`` by the mean share of their leaves.

    X is a :class:`Csr`, ``shape`` (n_features, n_labels). Inputs may be read-only. Writes the block's rows of
    ``labels`` (n, k) int32 and ``scores`` (n, k) float32, -1 and -inf where the leaves hold fewer labels.
    """
    n_trees = forest.n_trees
    dense, margins, total, found, leaves = _scratch(forest, shape)
    for i in range(block[0], block[1]):
        _clear_topk(labels[i], scores[i])
        row = X.indices[X.indptr[i] : X.indptr[i + 1]]
        data = X.data[X.indptr[i] : X.indptr[i + 1]]
        spread_row(row, data, dense)
        _find_leaves(forest, row, data, dense, margins, leaves)
        clear_row(row, dense)
        for label in found[: _add_votes(forest, leaves, total, found)]:
            push_any_order(labels[i], scores[i], label, total[label] / np.float32(n_trees))
            total[label] = 0


@njit(nogil=True, cache=True, boundscheck=False)
def predict_reranked(X, tail_data, block, forest, centroids, alpha, shape, labels, scores):
    """As :func:`predict_forest`, by ``α ln P(l|x) + (1-α) ln q_l(x)`` over the labels that the leaves hold.

    ``tail_data`` are the values of the same entries as the centroids see them.

    Candidates come in the order of the score which the least distance allows, and the first one that cannot enter the
    top k ends the row. A candidate itself is given up as soon as the part of its centroid not yet read cannot bring it
    into the top k.
    """
    n_trees = forest.n_trees
    dense, margins, total, found, leaves = _scratch(forest, shape)
    k = labels.shape[1]
    # More than rounding can add to a score.
    slack = 1e-4 * centroids.gamma
    for i in range(block[0], block[1]):
        _clear_topk(labels[i], scores[i])
        row = X.indices[X.indptr[i] : X.indptr[i + 1]]
        data = X.data[X.indptr[i] : X.indptr[i + 1]]
        spread_row(row, data, dense)
        _find_leaves(forest, row, data, dense, margins, leaves)
        square = spread_row(row, tail_data[X.indptr[i] : X.indptr[i + 1]], dense)
        n_found = _add_votes(forest, leaves, total, found)
        by_forest = empty(n_found, np.float32)
        hope = empty(n_found, np.float32)
        order = empty(n_found, np.int64)
        for a in range(n_found):
            by_forest[a] = alpha * np.log(total[found[a]] / n_trees)
            total[found[a]] = 0
            nearest = least_distance(centroids, found[a], square)
            hope[a] = by_forest[a] + (1 - alpha) * log_q(centroids.gamma, nearest) + slack
            order[a] = descending_key(hope[a], a)
        sort_keys(order, n_found)
        for key in order:
            a = index_of(key)
            if hope[a] < scores[i, k - 1]:
                break
            label = found[a]
            worst = np.inf
            if alpha < 1:
                worst = distance_of_log_q(centroids.gamma, (scores[i, k - 1] - by_forest[a] - slack) / (1 - alpha))
            distance = distance_to(centroids, label, dense, square, worst)
            if distance <= worst:
                score = by_forest[a] + (1 - alpha) * log_q(centroids.gamma, distance)
                push_any_order(labels[i], scores[i], label, np.float32(score))
        clear_row(row, dense)
