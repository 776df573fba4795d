"""Plain twins of the tree kernels."""

import numpy as np


def represent(X, Y):
    """Unit-length sums of unit rows, dense."""
    X, Y = np.asarray(X, np.float64), np.asarray(Y)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    sums = Y.T @ (X / np.where(lengths > 0, lengths, 1))
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    return sums / np.where(norms > 0, norms, 1)


def assign(products, room):
    """The cluster of greatest product for each row of ``products``; clusters keep their ``room`` nearest rows."""
    assignment = products.argmax(axis=1)
    homeless = []
    for cluster in range(products.shape[1]):
        own = np.flatnonzero(assignment == cluster)
        homeless += own[np.argsort(-products[own, cluster], kind="stable")][room:].tolist()
    assignment[homeless] = -1
    for row in sorted(homeless):
        full = np.bincount(assignment[assignment >= 0], minlength=products.shape[1]) >= room
        assignment[row] = np.where(full, -np.inf, products[row]).argmax()
    return assignment


def unpack(chunks, n_features):
    """Dense weights (n_edges, n_features) in float64, read back from the chunks."""
    weights = np.zeros((chunks.target.size, n_features))
    for node in range(chunks.bits.size):

        def own(name, node=node):
            first = getattr(chunks, f"first_{name[0]}")
            return getattr(chunks, name[1])[first[node] : first[node + 1]]

        words, features = own(("word", "words")), own(("feature", "features"))
        runs, children, values = own(("run", "runs")), own(("child", "children")), own(("weight", "weights"))
        edges = range(chunks.first_edge[node], chunks.first_edge[node + 1])
        if chunks.bits[node] == 255:
            features = [f for f in range(n_features) if int(words[f // 64]) >> (f % 64) & 1]
        for place, feature in enumerate(features):
            if runs.size:
                for at in range(runs[place], runs[place + 1]):
                    weights[edges[children[at]], feature] = values[at]
            else:
                weights[edges, feature] = values[place * len(edges) : (place + 1) * len(edges)]
    return weights * chunks.scale.astype(np.float64)[:, None]


def probability(margin, loss):
    """Of an edge, from its margin."""
    if loss == "logistic":
        return 1 / (1 + np.exp(-margin))
    return np.exp(-(np.maximum(0, 1 - margin) ** 2))


def search(chunks, x, beam, loss, n_labels, path_weight=1.0):
    """Scores (n_labels,) of one dense row by beam search, one node at a time."""
    edge_probability = probability(unpack(chunks, x.size) @ x + chunks.bias, loss)
    scores = np.zeros(n_labels)
    reached = np.zeros(n_labels, bool)
    for root in chunks.roots:
        for p, node in walk(chunks, edge_probability, beam, int(root)):
            for edge in range(chunks.first_edge[node], chunks.first_edge[node + 1]):
                target = int(chunks.target[edge])
                if target < 0:
                    scores[~target] += p**path_weight * edge_probability[edge] / chunks.roots.size
                    reached[~target] = True
    return np.where(reached, scores, -np.inf)


def walk(chunks, edge_probability, beam, root=0):
    """``(probability of the path, node)`` of every node that the beam reaches."""
    frontier, reached = [(1.0, root)], []
    while frontier:
        reached += frontier
        below = [
            (p * edge_probability[edge], int(chunks.target[edge]))
            for p, node in frontier
            for edge in range(chunks.first_edge[node], chunks.first_edge[node + 1])
            if chunks.target[edge] >= 0
        ]
        frontier = sorted(below, key=lambda pair: (-pair[0], pair[1]))[:beam]
    return reached
