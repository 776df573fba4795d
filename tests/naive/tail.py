"""Plain twins of the tail modules' kernels and tables."""

from __future__ import annotations

import numpy as np


def residual_blocks(labels, scores, W1, W2, b1):
    """RankNet's forward pass for one row: dense over the candidates."""
    current = scores.astype(np.float64)
    for first, second, bias in zip(W1, W2, b1, strict=True):
        hidden = np.maximum(bias + current @ first[labels], 0)
        current = current + second[labels] @ hidden
    return current


def population_loss(counts, final, relevant, sampled, margin, balance):
    """RankNet's loss of one row, pair by pair as the formula reads (means over pairs)."""
    positive = np.flatnonzero(relevant)
    pairs = [(i, j) for i in positive for j in positive if i < j]
    first = sum(
        max(0.0, (counts[i] - counts[j]) / (counts[i] + counts[j]) * (final[i] - final[j])) for i, j in pairs
    ) / max(1, len(pairs))
    crossed = [max(0.0, final[k] - final[i] + margin) for i in positive for k in sampled]
    return first + balance * (sum(crossed) / len(crossed) if crossed else 0.0)


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
