"""Plain twins of the tree kernels."""

import numpy as np
from naive.sparse import dense

from tailwise.kernels.solvers.problems import Weights
from tailwise.kernels.sparse.csr import Csr
from tailwise.kernels.trees.chunks import Chunk


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
    return np.concatenate([unpack_chunk(chunk_of(chunks, node), n_features) for node in range(chunks.bits.size)])


def chunk_of(chunks, node):
    """One node's part of the chunks."""

    def own(name, first):
        first = getattr(chunks, f"first_{first}")
        return getattr(chunks, name)[first[node] : first[node + 1]]

    names = ("scale", "edge"), ("words", "word"), ("ranks", "word"), ("directory", "bucket"), ("features", "feature")
    names = *names, ("runs", "run"), ("weights", "weight")
    scale, *rest = (own(*name) for name in names)
    return Chunk(scale, chunks.bits[node], *rest)


def unpack_chunk(chunk, n_features):
    """Dense weights (n_children, n_features) in float64, each feature looked up as a search looks it up."""
    weights = np.zeros((chunk.scale.size, n_features))
    for feature in range(n_features):
        place = place_of(chunk, feature)
        if place is not None:
            weights[:, feature] = weights_at(place, chunk.scale, chunk.runs, chunk.weights)
    return weights


def unpack_children(scale, features, runs, weights, children):
    """Dense weights of some children of a node, whose features are given by place."""
    found = np.zeros((scale.size, int(features.max(initial=0)) + 1))
    for place, feature in enumerate(features):
        found[:, feature] = weights_at(place, scale, runs, weights)
    return found[children]


def weights_at(place, scale, runs, weights):
    """The weights of all children at one place of a node."""
    n, found = scale.size, np.zeros(scale.size)
    start, stop = runs[place : place + 2].tolist() if runs.size else (place * n, (place + 1) * n)
    own = weights[start:stop].tolist()
    if len(own) == n:
        found[:] = own
    elif n <= 256:
        for weight, child in zip(own[::2], own[1::2], strict=True):
            found[child % 256] = weight
    else:
        for weight, low, high in zip(own[::3], own[1::3], own[2::3], strict=True):
            found[low % 256 + 256 * (high % 256)] = weight
    return found * scale.astype(np.float64)


def place_of(chunk, feature):
    """Where a feature is among the chunk's: by counting bits, or in the bucket of its hash."""
    if chunk.bits == 255:
        if feature >= 64 * chunk.words.size:
            return None
        word, bit = int(chunk.words[feature // 64]), feature % 64
        return int(chunk.ranks[feature // 64]) + (word & (1 << bit) - 1).bit_count() if word >> bit & 1 else None
    bucket = hash_feature(feature) >> 32 - int(chunk.bits)
    inside = range(int(chunk.directory[bucket]), int(chunk.directory[bucket + 1]))
    return next((place for place in inside if chunk.features[place] == feature), None)


def run_of(chunk, place):
    """Where the bytes of a place begin and end."""
    n = chunk.scale.size
    return chunk.runs[place : place + 2].tolist() if chunk.runs.size else [place * n, (place + 1) * n]


def find_in_node(bits, words, ranks, directory, features, runs, weights, n_children, x_indices, found, full):
    """``(where full places begin, other places)``, each with the feature's number in the row."""
    chunk = Chunk(np.ones(n_children), bits, words, ranks, directory, features, runs, weights)
    places = [(place_of(chunk, feature), j) for j, feature in enumerate(x_indices.tolist())]
    runs_of = [(place, j, *run_of(chunk, place)) for place, j in places if place is not None]
    return (
        [(start, j) for _, j, start, stop in runs_of if stop - start == n_children],
        [(place, j) for place, j, start, stop in runs_of if stop - start != n_children],
    )


def spread_node(words, features, runs, weights, n_children, listed, table, tile):
    """The integer weights of all children by feature."""
    chunk = Chunk(np.ones(n_children), 255, words, *[np.empty(0)] * 2, features, runs, weights)
    bits = [feature for feature in range(64 * words.size) if int(words[feature // 64]) >> feature % 64 & 1]
    found = np.zeros((n_children, table.size))
    for place, feature in enumerate([*features.tolist(), *bits]):
        start, stop = run_of(chunk, place)
        if stop - start == n_children:
            found[:, feature] = weights[start:stop]
        else:
            for entry in range(start, stop, 2 if n_children <= 256 else 3):
                found[child_of(weights, entry, n_children), feature] = weights[entry]
    return found


def child_of(weights, entry, n_children):
    low, high = (int(weights[int(entry) + n]) % 256 if n_children > 256 or n == 1 else 0 for n in (1, 2))
    return low + 256 * high


def score_node(chunks, loss, X, node, rows, offsets, below, *scratch):
    """Log-probabilities of a node's edges, in place."""
    first, last = chunks.first_edge[node], chunks.first_edge[node + 1]
    n_features = scratch[3].size
    weights = unpack_chunk(chunk_of(chunks, node), n_features)
    for row, offset in zip(rows, offsets, strict=True):
        margin = weights @ dense(X, n_features)[row] + chunks.bias[first:last]
        below[offset : offset + last - first] = np.log(probability(margin, loss))


def mean_probabilities(found, logs, begin, row, n_rows, n_trees, n_labels):
    """Of each label in one row; -inf where no tree found it."""
    total, reached = np.zeros(n_labels), np.zeros(n_labels, bool)
    for place in range(row, begin.size, n_rows + 1):
        own = slice(begin[place], begin[place + 1])
        np.add.at(total, found[own], np.exp(logs[own].astype(np.float64)) / n_trees)
        reached[found[own]] = True
    return np.where(reached, total, -np.inf)


def hash_feature(feature):
    return int(feature) * 2654435769 & 0xFFFFFFFF


def rounded_weights(solved, scratch):
    """What a chunk keeps: multiples of 1/127 of each child's largest weight."""
    weights = dense(Csr(solved.indptr, solved.features, solved.values), scratch.shape[1])
    unit = np.abs(weights).max(axis=1, keepdims=True, initial=0) / np.float32(127)
    return np.rint(weights * (1 / np.where(unit > 0, unit, 1).astype(np.float64))) * unit


def repack_chunk(chunk, number, solved, children, scratch):
    """What a chunk keeps of children under their new numbers."""
    weights = np.zeros(((number >= 0).sum() + children.size, scratch.shape[1]))
    weights[number[number >= 0]] = unpack_chunk(chunk, scratch.shape[1])[number >= 0]
    weights[children] = rounded_weights(solved, scratch)
    return weights


def repack_nodes(chunks, nodes, first_number, number, first_solved, solved, children, scratch):
    """The same of several nodes, those of one after those of the other."""
    found = []
    for n, node in enumerate(nodes):
        own, changed = slice(*first_number[n : n + 2]), slice(*first_solved[n : n + 2])
        indptr = solved.indptr[first_solved[n] : first_solved[n + 1] + 1]
        entries = slice(indptr[0], indptr[-1])
        part = Weights(indptr - indptr[0], solved.features[entries], solved.values[entries], solved.bias[changed])
        found.append(repack_chunk(chunk_of(chunks, node), number[own], part, children[changed], scratch))
    return np.concatenate(found)


def most_features(chunks):
    """So many features, at least, have weights."""
    return 1 + max(64 * chunks.words.size, int(chunks.features.max(initial=0)))


def unpack_edges(chunks, edges):
    """Dense weights of ``edges``, of which -1 has none."""
    weights = unpack(chunks, most_features(chunks))
    return np.where(edges[:, None] >= 0, weights[edges], 0)


def gather_node(X, below, span, edges, visitors, scratch):
    """What a node's problem is, dense: the rows where they are not all, then positives and costs of the edges."""

    def carriers(start, stop):
        return np.unique(below.rows[below.indptr[start] : below.indptr[stop]])

    rows = np.union1d(carriers(*span), visitors).astype(int)
    positions = [np.searchsorted(rows, carriers(below.start[e], below.stop[e])) for e in edges]
    indptr = np.cumsum([0] + [own.size for own in positions])
    carrying = np.concatenate([np.empty(0, int), *positions])
    costs = np.repeat(below.positive_costs[edges], np.diff(indptr)) * below.weights[rows[carrying]]
    packed = ()
    if rows.size < scratch.place.size:
        entries = dense(X, scratch.local.size)[rows]
        packed = entries, (entries**2).sum(axis=1), below.weights[rows]
    return rows, *packed, indptr, carrying, costs, below.negative_costs[edges]


def copy_rows(X, rows, local, indptr, indices, data, squares, features):
    entries = dense(X, local.size)[rows]
    return entries, (entries**2).sum(axis=1)


def halve_rows(X, rows, n_features, starts, max_rounds, least_gain):
    """Balanced 2-means by sorting."""
    entries = dense(X, n_features)[rows].astype(np.float64)
    centroids, best = entries[starts], -np.inf
    for _ in range(max_rounds):
        scale = np.linalg.norm(centroids, axis=1, keepdims=True)
        c0, c1 = centroids / np.where(scale > 0, scale, 1)
        sides = np.zeros(rows.size, np.int32)
        # Rows that are alike may differ in the last digit.
        sides[np.argsort(np.round(entries @ (c1 - c0), 12), kind="stable")[rows.size // 2 :]] = 1
        centroids = np.stack([entries[sides == 0].sum(0), entries[sides == 1].sum(0)])
        mean = np.linalg.norm(centroids, axis=1).sum() / rows.size
        if mean < best + least_gain:
            break
        best = mean
    return sides


def unit_centroids(rows, assignment, n_features, n_clusters):
    sums, counted = np.zeros((n_features, n_clusters)), assignment >= 0
    np.add.at(sums.T, assignment[counted], dense(rows, n_features)[counted].astype(np.float64))
    lengths = np.linalg.norm(sums, axis=0)
    return sums / np.where(lengths > 0, lengths, 1), lengths.sum() / max(1, assignment.size)


def dense_centroids(centroids, n_clusters):
    """(n_features, n_clusters)"""
    feature = np.repeat(np.arange(centroids.indptr.size - 1), np.diff(centroids.indptr))
    found = np.zeros((centroids.indptr.size - 1, n_clusters))
    np.add.at(found, (feature, centroids.clusters), centroids.values)
    return found


def assign_nearest(rows, centroids, n_clusters, room, assignment):
    assignment[:] = assign(dense(rows, centroids.indptr.size - 1) @ dense_centroids(centroids, n_clusters), room)


def probability(margin, loss):
    """Of an edge, from its margin."""
    if loss == "logistic":
        return 1 / (1 + np.exp(-margin))
    return np.exp(-(np.maximum(0, 1 - margin) ** 2))


def search(chunks, x, beams, loss, n_labels, path_weight=1.0):
    """Scores (n_labels,) of one dense row by beam search, one node at a time."""
    edge_probability = probability(unpack(chunks, x.size) @ x + chunks.bias, loss)
    scores = np.zeros(n_labels)
    reached = np.zeros(n_labels, bool)
    for root in chunks.roots:
        for p, node in walk(chunks, edge_probability, beams, int(root)):
            for edge in range(chunks.first_edge[node], chunks.first_edge[node + 1]):
                target = int(chunks.target[edge])
                if target < 0:
                    scores[~target] += p**path_weight * edge_probability[edge] / chunks.roots.size
                    reached[~target] = True
    return np.where(reached, scores, -np.inf)


def walk(chunks, edge_probability, beams, root=0):
    """``(probability of the path, node)`` of every node that the beam reaches: the last of ``beams`` goes on."""
    frontier, reached, depth = [(1.0, root)], [], 0
    while frontier:
        reached += frontier
        below = [
            (p * edge_probability[edge], int(chunks.target[edge]))
            for p, node in frontier
            for edge in range(chunks.first_edge[node], chunks.first_edge[node + 1])
            if chunks.target[edge] >= 0
        ]
        frontier = sorted(below, key=lambda pair: (-pair[0], pair[1]))[: beams[min(depth, len(beams) - 1)]]
        depth += 1
    return reached
