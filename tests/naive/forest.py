"""Plain twins of the forest's kernels."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize


def logistic_objective(X, targets, costs, weights, bias):
    """``|w|₁ + |b| + Σ c ln(1 + exp(-t (w·x + b)))``."""
    margins = targets * (X @ weights + bias)
    return np.abs(weights).sum() + abs(bias) + (costs * np.logaddexp(0, -margins)).sum()


def discounts_by_rank(sums):
    order = sorted(range(len(sums)), key=lambda label: (-sums[label], label))
    discounts = np.empty(len(sums), np.float32)
    for position, label in enumerate(order):
        discounts[label] = 1 / np.log(2 + position)
    return discounts


def alternate_sides(gains, positive):
    """Rankings and sides in turn; ``gains`` is dense (n, n_labels) float32. Returns sides and losses by round."""
    positive = positive.copy()
    losses = []
    while True:
        sums = {side: np.zeros(gains.shape[1], np.float32) for side in (True, False)}
        for i, side in enumerate(positive):
            sums[bool(side)] += gains[i]
        value = {side: discounts_by_rank(sums[side]) for side in sums}
        loss, moved = 0.0, False
        for i in range(len(positive)):
            labels = np.flatnonzero(gains[i])
            here, there = (sum((gains[i, l] * value[side][l] for l in labels), np.float64(0)) for side in (True, False))
            if here != there and positive[i] != (here > there):
                positive[i] = here > there
                moved = True
            loss -= max(here, there)
        losses.append(loss)
        if not moved:
            return positive, np.array(losses)


def separators(forest, n_features):
    """Weights of every node, dense (n_nodes, n_features)."""
    shape = (forest.bias.size, n_features)
    deep = sparse.csr_array((forest.weights, forest.weight_indices, forest.weight_indptr), shape=shape)
    top = sparse.csc_array((forest.top_weights, forest.top_nodes, forest.top_indptr), shape=shape)
    return deep.toarray() + top.toarray()


def nodes_below(forest, node):
    """The node and all nodes under it."""
    return [node] + [n for child in forest.children[node] if child >= 0 for n in nodes_below(forest, child)]


def leaf_of(forest, weights, tree, x):
    node = tree
    while forest.children[node, 0] >= 0:
        node = forest.children[node, int(weights[node] @ x + forest.bias[node] > 0)]
    return node


def forest_probabilities(forest, X, n_labels):
    """Mean leaf shares of dense rows: (n, n_labels)."""
    total = np.zeros((X.shape[0], n_labels))
    weights = separators(forest, X.shape[1])
    for i, x in enumerate(X):
        for tree in range(forest.n_trees):
            leaf = leaf_of(forest, weights, tree, x)
            own = slice(forest.leaf_indptr[leaf], forest.leaf_indptr[leaf + 1])
            total[i, forest.leaf_labels[own]] += forest.leaf_shares[own]
    return total / forest.n_trees


def weighted(X, rows):
    """Dense ``rows`` of unit length, after weighting features by their smooth idf in ``X``."""
    X, rows = (np.asarray(matrix.todense(), np.float64) for matrix in (X, rows))
    return normalize(rows * (np.log((1 + len(X)) / (1 + (X != 0).sum(axis=0))) + 1))


def log_q(X, Y, rows, gamma, shape):
    """``ln q_l`` of every label for dense ``rows``: (n, n_labels), nan without training rows."""
    out = np.full((len(rows), Y.shape[1]), np.nan)
    for label in np.flatnonzero(Y.sum(axis=0)):
        mean = X[Y[:, label] > 0].mean(axis=0)
        for i, x in enumerate(rows):
            if shape == "cone":
                cosine = x @ mean / np.linalg.norm(mean)
                alike = np.mean(X[Y[:, label] > 0] @ X[Y[:, label] > 0].T)
                distance = 1 - cosine + 0.45 * alike
            else:
                distance = ((x - mean) ** 2).sum()
            out[i, label] = -np.logaddexp(0, gamma / 2 * distance)
    return out


def ranked(scores, k):
    """The k best columns of each row that are finite, ties by index, padded by -1."""
    out = np.full((scores.shape[0], k), -1)
    for i, row in enumerate(scores):
        best = [l for l in np.lexsort((np.arange(row.size), -row)) if np.isfinite(row[l])][:k]
        out[i, : len(best)] = best
    return out
