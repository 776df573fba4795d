"""Plain twins of the tail modules' kernels and tables."""

from __future__ import annotations

import numpy as np
from naive.sparse import random_bits


def residual_blocks(labels, scores, W1, W2, b1):
    """RankNet's forward pass for one row: dense over the candidates."""
    current = scores.astype(np.float64)
    for first, second, bias in zip(W1, W2, b1, strict=True):
        hidden = np.maximum(bias + current @ first[labels], 0)
        current = current + second[labels] @ hidden
    return current


def population_loss(counts, final, relevant, sampled, margin, balance, sums=False):
    """RankNet's loss of one row, pair by pair as the formula reads (means over pairs, or sums)."""
    positive = np.flatnonzero(relevant)
    pairs = [(i, j) for i in positive for j in positive if i != j]
    of_pairs = [max(0.0, (counts[i] - counts[j]) / (counts[i] + counts[j]) * (final[i] - final[j])) for i, j in pairs]
    crossed = [max(0.0, final[k] - final[i] + margin) for i in positive for k in sampled]
    if sums:
        return sum(of_pairs) + balance * sum(crossed)
    return sum(of_pairs) / max(1, len(pairs)) + balance * sum(crossed) / max(1, len(crossed))


def neighbour_votes(X_train, Y_train, x, k, sharpness):
    """Shares of votes of the k nearest labelled rows by cosine, one value a label."""
    unit = lambda v: v / (np.linalg.norm(v) or 1.0)  # noqa: E731
    keep = np.flatnonzero(Y_train.sum(axis=1))
    similarity = np.array([unit(X_train[i]) @ unit(x) for i in keep])
    near = sorted(range(len(keep)), key=lambda i: (-similarity[i], i))[:k]
    weights = np.array([similarity[i] ** sharpness if similarity[i] > 0 else 0.0 for i in near])
    votes = weights @ Y_train[keep[near]]
    return votes / weights.sum() if weights.sum() > 0 else votes


def union_of_candidates(tops):
    """Sorted (row, label) pairs named by any member."""
    return sorted(
        {(i, int(label)) for labels, _ in tops for i, row in enumerate(labels) for label in row if label >= 0}
    )


def apply_blocks(labels, scores, block, layers, out):
    for i in range(*block):
        n = int((labels[i] >= 0).sum())
        out[i] = -np.inf
        out[i, :n] = residual_blocks(labels[i, :n], scores[i, :n], *layers)


def population_slope(counts, final, relevant, sampled, margin, balance, sums=False):
    """The gradient of :func:`population_loss`, pair by pair."""
    slope = np.zeros(len(final))
    positive = np.flatnonzero(relevant)
    pairs = [(i, j) for i in positive for j in positive if i != j]
    share = 1 if sums else len(pairs)
    for i, j in pairs:
        weight = (counts[i] - counts[j]) / (counts[i] + counts[j])
        if weight * (final[i] - final[j]) > 0:
            slope[i] += weight / share
            slope[j] -= weight / share
    share = 1 if sums else len(positive) * len(sampled)
    for i in positive:
        for k in sampled:
            if final[k] - final[i] + margin > 0:
                slope[k] += balance / share
                slope[i] -= balance / share
    return slope


def pair_loss(labels, final, relevant, n, counts, sampled, options, slope):
    own, exact = counts[labels[:n]], final[:n].astype(np.float64)
    of_loss = (own, exact, relevant[:n], sampled, options.margin, options.balance, options.sums)
    slope[:n] = population_slope(*of_loss)
    return population_loss(*of_loss)


def train_linear_epoch(inputs, Y, counts, weight, order, state, W, memory, options):
    """Each row's gradient on whole rows of ŷ, for its own labels and those drawn, then Adagrad."""
    total, seen = 0.0, np.flatnonzero(counts)
    for i in order:
        own = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
        row = slice(inputs.indptr[i], inputs.indptr[i + 1])
        named, scores = inputs.indices[row], inputs.data[row].astype(np.float64)
        if not own.size or not named.size:
            continue
        drawn = {int(seen[int(random_bits(state)) % seen.size]) for _ in range(options.n_negatives)}
        labels = np.append(own, sorted(drawn - set(own.tolist()))).astype(int)
        final = scores @ W[np.ix_(named, labels)] + scores @ (named[:, None] == labels)
        relevant, sampled = np.arange(labels.size) < own.size, np.arange(own.size, labels.size)
        of_loss = (counts[labels], final, relevant, sampled, options.margin, options.balance, options.sums)
        total += weight[i] * population_loss(*of_loss)
        gradient = np.outer(scores, weight[i] * population_slope(*of_loss))
        memory[np.ix_(named, labels)] += gradient**2
        W[np.ix_(named, labels)] -= options.rate * gradient / (np.sqrt(memory[np.ix_(named, labels)]) + 1e-6)
    return total / max(1, len(order))


def train_epoch(candidates, counts, order, state, layers, memories, options):
    """Each row's gradient at the parameters it meets, by the chain rule on whole arrays, then Adagrad."""
    total = 0.0
    for i in order:
        n = int((candidates.labels[i] >= 0).sum())
        labels, relevant = candidates.labels[i, :n], candidates.relevant[i, :n]
        sampled = np.flatnonzero(~relevant)
        if sampled.size == n:
            continue
        if sampled.size > options.n_negatives:
            for s in range(options.n_negatives):
                swap = s + random_bits(state) % (sampled.size - s)
                sampled[s], sampled[swap] = sampled[swap], sampled[s]
            sampled = sampled[: options.n_negatives]
        states, hiddens = [candidates.scores[i, :n].astype(np.float64)], []
        for W1, W2, b1 in zip(*layers, strict=True):
            hiddens.append(np.maximum(b1 + states[-1] @ W1[labels], 0))
            states.append(states[-1] + W2[labels] @ hiddens[-1])
        of_loss = (counts[labels], states[-1], relevant, sampled, options.margin, options.balance, options.sums)
        total += candidates.weight[i] * population_loss(*of_loss)
        slope = candidates.weight[i] * population_slope(*of_loss)
        for layer in reversed(range(len(hiddens))):
            W1, W2, b1 = (part[layer] for part in layers)
            inner = (slope @ W2[labels]) * (hiddens[layer] > 0)
            gradients = np.outer(states[layer], inner), np.outer(slope, hiddens[layer]), inner
            slope = slope + W1[labels] @ inner
            for part, memory, gradient, own in zip(
                (W1, W2, b1), (m[layer] for m in memories), gradients, (labels, labels, slice(None)), strict=True
            ):
                memory[own] += gradient**2
                part[own] -= options.rate * gradient / (np.sqrt(memory[own]) + 1e-6)
    return total / max(1, len(order))
