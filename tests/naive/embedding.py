"""Plain twins of the embedding room: one loop for each sum in the papers."""

from __future__ import annotations

import math

import numpy as np
from naive.sparse import random_bits


def margin_softmax(f, y, rho):
    """Equation (6) for one example."""
    return math.log(1 + sum(rho[y, other] * math.exp(f[other] - f[y]) for other in range(len(f)) if other != y))


def sampled_softmax(f, y, drawn, w):
    """Equation (7) for one example; ``w`` is (L, L)."""
    return math.log(1 + sum(w[y, other] * math.exp(f[other] - f[y]) for other in drawn))


def sampled_contrastive(f, y, drawn, w):
    """Equation (8) for one example, with the cosine contrastive parts."""
    return (1 - f[y]) ** 2 + sum(w[y, other] * max(f[other], 0) ** 2 for other in drawn)


def weights(name, q, prior, m):
    """Table 1 and equation (16) as an (L, L) matrix."""
    L = len(q)
    w = np.zeros((L, L))
    for y in range(L):
        for other in range(L):
            w[y, other] = {
                "constant": 1 / m,
                "importance": 1 / (m * q[other]),
                "relative": q[y] / q[other],
                "tail": prior[other] / (m * q[other] * prior[y]),
            }[name]
    return w


def implicit_rho(sampler, weighting, prior, m):
    """Table 2, written out."""
    L = len(prior)
    rho = np.zeros((L, L))
    for y in range(L):
        for other in range(L):
            rho[y, other] = {
                ("uniform", "constant"): 1 / L,
                ("uniform", "importance"): 1,
                ("uniform", "relative"): m / L,
                ("within_batch", "constant"): prior[other],
                ("within_batch", "importance"): 1,
                ("within_batch", "relative"): m * prior[y],
            }.get((sampler, weighting), prior[other] / prior[y])
    return rho


def adjacency(Y):
    """U of equation (3), dense."""
    A = Y.T @ Y
    L = len(A)
    U = np.zeros((L, L))
    for y in range(L):
        for other in range(L):
            if A[y, y] and A[other, other]:
                U[y, other] = 0.5 * (A[y, other] / A[other, other] + A[y, other] / A[y, y])
    return U


def regularizer(name, V, U):
    """Equations (3), (2) and (4): the mean over ordered pairs of drawn labels."""
    n = len(V)
    total = 0.0
    for i in range(n):
        for j in range(n):
            inner = float(V[i] @ V[j])
            total += {
                "glas": (inner - U[i, j]) ** 2,
                "spreadout": inner**2,
                "laplacian": U[i, j] * float(np.sum((V[i] - V[j]) ** 2)),
            }[name]
    return total / n**2


def top_k(vectors, labels, query, k):
    """Best labels by inner product, ties by label."""
    ranked = sorted(zip(-(vectors.astype(np.float64) @ query.astype(np.float64)), labels, strict=True))
    return [int(label) for _, label in ranked[:k]]


def adam(value, mean, square, gradient, step, rate):
    """Algorithm 1 of Kingma and Ba, with their constants; the new value and moments."""
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    best_mean, best_square = mean / (1 - 0.9**step), square / (1 - 0.999**step)
    return value - rate * best_mean / (np.sqrt(best_square) + 1e-8), mean, square


def score_candidates(queries, vectors, candidates, scores):
    for i, row in enumerate(candidates):
        for c, position in enumerate(row):
            scores[i, c] = queries[i] @ vectors[position] if position >= 0 else -np.inf


def train_warp(X, Y, row_weights, order, state, rank_weights, vectors, options):
    """One pass of WARP as the formulas read, in float64; the arrays of ``vectors`` are changed."""
    features, labels, feature_memory, label_memory = (part.astype(np.float64) for part in vectors)

    def move(table, memory, at, gradient):
        memory[at] += (gradient**2).mean()
        table[at] += options.rate * gradient / np.sqrt(memory[at] + 1e-6)
        table[at] *= min(1.0, options.longest / max(np.linalg.norm(table[at]), 1e-30))

    n_labels, total, n_seen = len(labels), 0.0, 0
    for i in order:
        own = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
        mine = slice(X.indptr[i], X.indptr[i + 1])
        z = X.data[mine].astype(np.float64) @ features[X.indices[mine]]
        slope = np.zeros_like(z)
        for label in own:
            n_seen += 1
            score = z @ labels[label]
            for n in range(1, options.n_tries + 1):
                other = int(random_bits(state)) % n_labels
                if other in own or 1 + z @ labels[other] - score <= 0:
                    continue
                weight = rank_weights[(n_labels - 1) // n] * row_weights[i]
                total += weight * (1 + z @ labels[other] - score)
                slope += weight * (labels[label] - labels[other])
                move(labels, label_memory, label, weight * z)
                move(labels, label_memory, other, -weight * z)
                break
        for feature, value in zip(X.indices[mine], X.data[mine], strict=True):
            if slope.any():
                move(features, feature_memory, feature, value * slope)
    for part, learnt in zip(vectors, (features, labels, feature_memory, label_memory), strict=True):
        part[...] = learnt
    return total / max(1, n_seen)
