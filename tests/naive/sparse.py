"""Plain twins of the kernels for sparse rows, random numbers and growing arrays."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

MASK = 2**64 - 1


def dense(rows, n_columns):
    """The rows of a Csr, float32."""
    A = np.zeros((rows.indptr.size - 1, n_columns), np.float32)
    for i in range(A.shape[0]):
        own = slice(rows.indptr[i], rows.indptr[i + 1])
        A[i, rows.indices[own]] = rows.data[own]
    return A


def topk(scores, k):
    """Best k (label, score) of each dense row: descending score, ties by index, -inf never."""
    labels = np.full((len(scores), k), -1, np.int32)
    best = np.full((len(scores), k), -np.inf, np.float32)
    for i, row in enumerate(scores):
        order = [j for j in sorted(range(len(row)), key=lambda j: (-row[j], j)) if row[j] > -np.inf][:k]
        labels[i, : len(order)] = order
        best[i, : len(order)] = row[order]
    return labels, best


def push(labels, scores, label, score):
    """One more candidate: sort them all by score and label, keep the first k."""
    kept = [(-s, l) for l, s in zip(labels, scores, strict=True) if l >= 0]
    if score > -np.inf:
        kept.append((-score, label))
    labels[:], scores[:] = -1, -np.inf
    for place, (minus, l) in enumerate(sorted(kept)[: labels.size]):
        labels[place], scores[place] = l, -minus


def topk_dense(block, first_label, labels, scores):
    for i, row in enumerate(block):
        for j, score in enumerate(row):
            push(labels[i], scores[i], first_label + j, score)


def topk_csr(rows, labels, scores):
    labels[:], scores[:] = -1, -np.inf
    for i in range(labels.shape[0]):
        for a in range(rows.indptr[i], rows.indptr[i + 1]):
            push(labels[i], scores[i], rows.indices[a], rows.data[a])


def predict_sparse_linear(X, block, W, bias, labels, scores):
    total = dense(X, W.indptr.size - 1) @ dense(W, bias.size) + bias
    own = slice(*block)
    labels[own], scores[own] = topk(total[own], labels.shape[1])


def count_touches(X, W, n_labels):
    met = (dense(X, W.indptr.size - 1) != 0).astype(np.int64) @ (dense(W, n_labels) != 0)
    return met.sum(0)


def put_weights_side_by_side(W, places, side_by_side):
    by_label = dense(W, places.size).T
    for label in np.flatnonzero(places >= 0):
        group, lane = divmod(places[label], 32)
        side_by_side[group].reshape(-1, 32)[:, lane] = by_label[label]


def predict_side_by_side(X, block, side_by_side, own, bias, labels, scores):
    for group, weights in enumerate(side_by_side):
        total = dense(X, weights.size // 32) @ weights.reshape(-1, 32) + bias[32 * group :][:32]
        for i in range(*block):
            for lane in range(32):
                push(labels[i], scores[i], own[32 * group + lane], total[i, lane])


def pack_bytes(W, scale, places, dense_rows):
    weights = np.rint(dense(W, scale.size) / scale).astype(int)
    indptr, gaps, values = [0], [], []
    for row, place in zip(weights, places, strict=True):
        if place >= 0:
            dense_rows[place] = row
        else:
            labels = np.flatnonzero(row)
            gaps += np.diff(labels, prepend=0).tolist()
            values += row[labels].tolist()
        indptr.append(len(gaps))
    return np.array(indptr), np.array(gaps, np.uint16), np.array(values, np.int8)


def furthest_label(indptr, gaps):
    return int(max((np.cumsum(gaps[a:b], dtype=int)[-1] for a, b in pairwise(indptr) if b > a), default=-1))


def predict_by_bytes(X, block, W, bias, labels, scores):
    weights = np.zeros((W.places.size, bias.size))
    for feature, place in enumerate(W.places):
        own = slice(W.indptr[feature], W.indptr[feature + 1])
        weights[feature, np.cumsum(W.gaps[own], dtype=int)] = W.values[own]
        if place >= 0:
            weights[feature] = W.dense[place]
    total = (dense(X, W.places.size) @ weights * W.scale + bias).astype(np.float32)
    labels[slice(*block)], scores[slice(*block)] = topk(total[slice(*block)], labels.shape[1])


def row_order(indptr, indices, width):
    """0 where something leads outside, 1 where a row is unsorted or repeats itself, else 2."""
    if indptr[0] != 0 or indptr[-1] != indices.size or sorted(indptr) != list(indptr):
        return 0
    if any(index not in range(width) for index in indices):
        return 0
    rows = [list(indices[a:b]) for a, b in pairwise(indptr)]
    return 2 if all(row == sorted(set(row)) for row in rows) else 1


def unit_values(indptr, data, scaled):
    rows = [np.asarray(data[a:b], np.float64) for a, b in pairwise(indptr)]
    scaled[:] = np.concatenate([np.empty(0), *(row / (np.linalg.norm(row) or 1) for row in rows)])
    return scaled


def sum_groups(groups, block, X, n_features, keep):
    """Sums in the order of the input; of magnitudes that are equal all are kept, or none."""
    counts, features, values = [], [], []
    for group in range(*block):
        total = {}
        for row in groups.indices[groups.indptr[group] : groups.indptr[group + 1]]:
            for a in range(X.indptr[row], X.indptr[row + 1]):
                total[X.indices[a]] = total.get(X.indices[a], np.float32(0)) + X.data[a]
        if len(total) > keep:
            sizes = sorted((abs(value) for value in total.values()), reverse=True)
            total = {f: v for f, v in total.items() if sum(size >= abs(v) for size in sizes) <= keep}
        else:
            total = {f: v for f, v in total.items() if v != 0}
        norm = np.linalg.norm(np.array(list(total.values()), np.float64)) or 1
        counts.append(len(total))
        features += total
        values += [value / norm for value in total.values()]
    return np.array(counts, np.int64), np.array(features, np.int32), np.array(values, np.float32)


def sum_groups_in_a_pass(carried, n_groups, X, n_features, keep):
    owner = np.repeat(np.arange(carried.indptr.size - 1), np.diff(carried.indptr))
    members = [owner[carried.indices == group] for group in range(n_groups)]
    indptr = np.cumsum([0, *map(len, members)])
    groups = carried._replace(indptr=indptr, indices=np.concatenate(members))
    return sum_groups(groups, (0, n_groups), X, n_features, keep)


def to_columns(rows, n_columns):
    entries = [
        (rows.indices[a], i, rows.data[a])
        for i in range(rows.indptr.size - 1)
        for a in range(rows.indptr[i], rows.indptr[i + 1])
    ]
    entries.sort(key=lambda entry: entry[:2])
    indptr = np.searchsorted([column for column, _, _ in entries], np.arange(n_columns + 1))
    return indptr, np.array([row for _, row, _ in entries], np.int32), np.array([v for _, _, v in entries], np.float32)


def weights_by_feature(starts, labels, keys, values, n_features):
    """Sorted (label, value) of each feature."""
    found = [[] for _ in range(n_features)]
    for n, label in enumerate(labels):
        for a in range(starts[n], starts[n + 1] if n + 1 < len(starts) else len(keys)):
            found[keys[a]].append((label, values[a]))
    return [sorted(own) for own in found]


def merge_columns(old, new, stays):
    """Sorted (column, value) of each row."""
    found = []
    for row, (a, b) in enumerate(pairwise(new.indptr)):
        own = list(zip(new.indices[a:b], new.data[a:b], strict=True))
        if row < len(old.indptr) - 1:
            a, b = old.indptr[row : row + 2]
            own += [pair for pair in zip(old.indices[a:b], old.data[a:b], strict=True) if stays[pair[0]]]
        found.append(sorted(own))
    return found


def order_descending(values, indices):
    """Places in the order of the value descending, then the index; 0.0 before -0.0."""
    pairs = zip(values, indices, strict=True)
    return [n for n, _ in sorted(enumerate(pairs), key=lambda p: (-p[1][0], np.signbit(p[1][0]), p[1][1]))]


def sort_keys(keys, n):
    keys[:n] = sorted(keys[:n])


def log_q(gamma, distance):
    return -np.logaddexp(0, 0.5 * gamma * max(distance, 0.0))


def distance_of_log_q(gamma, value):
    if value == -np.inf:
        return np.inf
    if value >= 0:
        return -np.inf
    return brentq(lambda d: -np.logaddexp(0, 0.5 * gamma * d) - value, -200 / gamma, (100 - 4 * value) / gamma)


def centroid(centroids, label, n_features):
    v = np.zeros(n_features)
    own = slice(centroids.indptr[label], centroids.indptr[label + 1])
    v[centroids.indices[own]] = centroids.data[own]
    return v


def distance_to(centroids, label, x, square):
    return square + centroids.offsets[label] - 2 * (x @ centroid(centroids, label, x.size))


def least_distance(centroids, label, square):
    """At the row of this length that points where the centroid does."""
    return square + centroids.offsets[label] - 2 * np.sqrt(square) * centroids.lengths[label]


def spread_row(indices, data, out):
    out[indices] = data
    return float((data.astype(np.float64) ** 2).sum())


def clear_row(indices, out):
    out[indices] = 0


def score_by_centroids(X, block, centroids, n_features, labels, scores):
    rows = dense(X, n_features).astype(np.float64)
    for i in range(*block):
        for j, label in enumerate(labels[i]):
            known = label >= 0 and np.isfinite(centroids.offsets[label])
            distance = distance_to(centroids, label, rows[i], rows[i] @ rows[i]) if known else np.inf
            scores[i, j] = log_q(centroids.gamma, distance)


def mix_bits(z):
    z = int(z)
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def random_bits(state):
    state[0] = (int(state[0]) + 0x9E3779B97F4A7C15) & MASK
    return mix_bits(state[0])


def shuffle(order, size, state):
    """Swap each place with one at or after it, drawn by xorshift64."""
    state = int(state)
    for place in range(size - 1):
        state ^= state << 13 & MASK
        state ^= state >> 7
        state ^= state << 17 & MASK
        other = place + (state >> 33) % (size - place)
        order[place], order[other] = order[other], order[place]
    return state
