"""Plain twins of the tree kernels."""

import numpy as np


def represent(X, Y):
    """Unit-length sums of unit rows, dense."""
    X, Y = np.asarray(X, np.float64), np.asarray(Y)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    sums = Y.T @ (X / np.where(lengths > 0, lengths, 1))
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    return sums / np.where(norms > 0, norms, 1)


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


def search(chunks, x, beam, loss, n_labels):
    """Scores (n_labels,) of one dense row by beam search, one node at a time."""
    edge_probability = probability(unpack(chunks, x.size) @ x + chunks.bias, loss)
    scores = np.zeros(n_labels)
    reached = np.zeros(n_labels, bool)
    for root in chunks.roots:
        frontier = [(1.0, int(root))]
        while frontier:
            below = []
            for p, node in frontier:
                for edge in range(chunks.first_edge[node], chunks.first_edge[node + 1]):
                    target, q = int(chunks.target[edge]), p * edge_probability[edge]
                    if target < 0:
                        scores[~target] += q / chunks.roots.size
                        reached[~target] = True
                    else:
                        below.append((q, target))
            frontier = sorted(below, key=lambda pair: (-pair[0], pair[1]))[:beam]
    return np.where(reached, scores, -np.inf)
