"""Plain twins of the forest's kernels."""

from __future__ import annotations

import numpy as np
from naive.sparse import dense, distance_to, random_bits, topk
from naive.sparse import log_q as row_log_q
from scipy import sparse
from sklearn.preprocessing import normalize

from tailwise.kernels.solvers.l1_logistic import fit_l1_logistic
from tailwise.kernels.sparse.columns import Columns


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


def sum_trees(trees, features, block, total):
    for i in range(*block):
        for root in trees.roots:
            node = root
            while trees.left[node] >= 0:
                x = features[i, trees.split[node]]
                goes_left = trees.missing_left[node] if np.isnan(x) else x <= trees.threshold[node]
                node = trees.left[node] if goes_left else trees.right[node]
            total[i] += trees.value[node]


def find_leaves(X, forest, n_features, leaves):
    weights = separators(forest, n_features)
    for i, x in enumerate(dense(X, n_features)):
        leaves[i] = [leaf_of(forest, weights, tree, x) for tree in range(forest.n_trees)]


def predict_forest(X, block, forest, shape, labels, scores):
    shares = forest_probabilities(forest, dense(X, shape[0]), shape[1])
    own = slice(*block)
    labels[own], scores[own] = topk(np.where(shares > 0, shares, -np.inf)[own], labels.shape[1])


def reranked_scores(X, tail_data, forest, centroids, alpha, shape):
    """``α ln P + (1 - α) ln q`` of every label that the leaves hold, -inf of others: (n, n_labels)."""
    shares = forest_probabilities(forest, dense(X, shape[0]), shape[1])
    rows = dense(X._replace(data=tail_data), shape[0])
    scores = np.full(shares.shape, -np.inf)
    for i, label in zip(*np.nonzero(shares), strict=True):
        x = rows[i].astype(np.float64)
        near = row_log_q(centroids.gamma, distance_to(centroids, label, x, x @ x))
        scores[i, label] = alpha * np.log(shares[i, label]) + (1 - alpha) * near
    return scores


def grow_tree(columns, features, row_sizes, labels, settings, seed):
    """Depth first, the negative side first; only the separator itself is left to its own kernel, which has a twin."""
    state, nodes, todo = np.array([seed], np.uint64), [], [(None, np.arange(row_sizes.size), np.arange(features.size))]
    while todo:
        slot, members, own = todo.pop()
        node = {"children": [-1, -1], "n_rows": members.size, "bias": 0.0, "weights": [], "leaf": []}
        if slot is not None:
            nodes[slot[0]]["children"][slot[1]] = len(nodes)
        nodes.append(node)
        present, gains, has = _labels_of(members, labels)
        parted = None
        if members.size > settings.max_leaf and gains.any() and not (has[has.any(axis=1)]).all():
            columns_here = _columns_of(columns, own, members)
            parted = _separate(columns_here, gains, has, labels.weight[members], settings, state)
        if parted is None:
            node["leaf"] = _leaf(present, has, labels.weight[members], labels.worth, settings.labels_per_leaf)
            continue
        weights, positive = parted
        for j, weight in zip(own, weights, strict=True):
            if features[j] == features[-1]:
                node["bias"] = weight
            elif weight != 0:
                node["weights"].append((features[j], weight))
        for side in (1, 0):
            part = members[positive == bool(side)]
            filled = [j for j in own if np.isin(columns.rows[columns.indptr[j] : columns.indptr[j + 1]], part).any()]
            todo.append(((len(nodes) - 1, side), part, np.array(filled)))
    return _tree_of(nodes)


def _labels_of(members, labels):
    rows = [labels.indices[labels.indptr[i] : labels.indptr[i + 1]] for i in members]
    present = np.unique(np.concatenate([np.empty(0, np.int32), *rows]))
    has = np.array([np.isin(present, row) for row in rows]).reshape(members.size, present.size)
    gains = has * (labels.scale * labels.weight)[members][:, None] * labels.worth[present]
    return present, gains.astype(np.float32), has


def _columns_of(columns, own, members):
    place = {row: i for i, row in enumerate(members)}
    indptr, rows, values = [0], [], []
    for j in own:
        for a in range(columns.indptr[j], columns.indptr[j + 1]):
            if columns.rows[a] in place:
                rows.append(place[columns.rows[a]])
                values.append(columns.values[a])
        indptr.append(len(rows))
    return Columns(np.array(indptr, np.int64), np.array(rows, np.int32), np.array(values, np.float32))


def _separate(columns, gains, has, counted, settings, state):
    labelled = has.any(axis=1)
    for _ in range(3):
        start = np.array([random_bits(state) & 1 for _ in labelled], bool)
        positive, _ = alternate_sides(gains, start)
        n_positive = (positive & labelled).sum()
        if 0 < n_positive < labelled.sum():
            whole, on_positive = counted[labelled].sum(), counted[positive & labelled].sum()
            side = np.where(positive, on_positive, whole - on_positive)
            costs = np.where(labelled, settings.C * whole / side * counted, 0).astype(np.float32)
            targets = np.where(positive, 1, -1).astype(np.float32)
            weights, margins = np.empty(columns.indptr.size - 1, np.float32), np.empty(labelled.size, np.float32)
            fit_l1_logistic(columns, targets, costs, settings.tolerance, settings.max_newton, weights, margins)
            if 0 < (margins > 0).sum() < labelled.size:
                return weights, margins > 0
    return None


def _leaf(present, has, counted, worth, labels_per_leaf):
    shares = (counted @ has).astype(np.float32) * (worth[present] / np.float32(counted.sum()))
    best = sorted(range(present.size), key=lambda number: (-shares[number], number))[:labels_per_leaf]
    return [(present[number], shares[number]) for number in sorted(best)]


def _tree_of(nodes):
    def joined(name):
        pairs = [pair for node in nodes for pair in node[name]]
        indptr = np.cumsum([0, *(len(node[name]) for node in nodes)])
        return indptr, np.array([i for i, _ in pairs], np.int32), np.array([v for _, v in pairs], np.float32)

    children = np.array([child for node in nodes for child in node["children"]], np.int32)
    counts = np.array([node["n_rows"] for node in nodes], np.int32)
    return children, counts, np.array([node["bias"] for node in nodes], np.float32), *joined("weights"), *joined("leaf")
