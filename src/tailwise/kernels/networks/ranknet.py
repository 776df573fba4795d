"""Training and applying residual bottleneck layers on sparse candidate scores.

A layer turns a row's candidate scores s (labels c) into ``F_c = s_c + W2[c] · relu(b1 + Σ_c' s_c' W1[c'])``. Only the
candidates' rows of W1 and W2 are read or written: a step costs candidates × bottleneck, however many labels there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import random_bits

_FAST = {"contract", "nsz", "reassoc"}


class Layers(NamedTuple):
    """The weights of all residual blocks, float32."""

    W1: np.ndarray
    """(n_layers, n_labels, width): from scores to the bottleneck"""
    W2: np.ndarray
    """(n_layers, n_labels, width): back"""
    b1: np.ndarray
    """(n_layers, width)"""


class TrainingCandidates(NamedTuple):
    """Candidates of rows, (n, k) each."""

    labels: np.ndarray
    """int32, -1 where absent, absent last"""
    scores: np.ndarray
    """float32"""
    relevant: np.ndarray
    """bool"""
    weight: np.ndarray
    """(n,) float32: what the row's loss weighs"""


class TrainingOptions(NamedTuple):
    """What steers the training."""

    rate: float
    """of Adagrad"""
    margin: float
    """by which a relevant candidate should exceed a sampled one"""
    balance: float
    """weight of relevant over irrelevant pairs against pairs of relevant candidates"""
    n_negatives: int
    """irrelevant candidates sampled a row at most"""
    sums: bool = False
    """whether a row's loss is the sum over its pairs, each in both orders; otherwise their mean"""


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _forward(labels, scores, n, layers, block, hidden, out):
    """One layer on the first ``n`` candidates; writes ``hidden`` (V,) after the ReLU and ``out`` (n,)."""
    W1, W2, b1 = layers.W1[block], layers.W2[block], layers.b1[block]
    width = b1.shape[0]
    for v in range(width):
        hidden[v] = b1[v]
    for c in range(n):
        label, score = labels[c], scores[c]
        for v in range(width):
            hidden[v] += score * W1[label, v]
    for v in range(width):
        hidden[v] = max(hidden[v], np.float32(0))
    for c in range(n):
        label = labels[c]
        total = scores[c]
        for v in range(width):
            total += W2[label, v] * hidden[v]
        out[c] = total


@njit(nogil=True, cache=True, boundscheck=False)
def apply_blocks(labels, scores, block, layers, out):
    """Pass rows ``block[0]:block[1]`` of (n, k) candidates (-1 where absent, absent last) through all layers.

    Overwrites these rows of ``out`` (n, k) float32, absent entries by -inf. Inputs may be read-only.
    """
    k = labels.shape[1]
    hidden = empty(layers.b1.shape[1], np.float32)
    current = empty(k, np.float32)
    after = empty(k, np.float32)
    for i in range(block[0], block[1]):
        n = 0
        while n < k and labels[i, n] >= 0:
            current[n] = scores[i, n]
            n += 1
        for layer in range(layers.W1.shape[0]):
            _forward(labels[i], current, n, layers, layer, hidden, after)
            for c in range(n):
                current[c] = after[c]
        for c in range(k):
            out[i, c] = current[c] if c < n else -np.inf


@njit(nogil=True, cache=True, boundscheck=False)
def pair_loss(labels, final, relevant, n, counts, sampled, options, slope):
    """The population-aware pairwise loss of one row and its gradient with respect to ``final`` (n,), into ``slope``.

    ``Σ_{i,j relevant} [(n_i - n_j)/(n_i + n_j) (F_i - F_j)]+ + λ Σ_{i relevant, k sampled} [F_k - F_i + c]+``,
    λ = ``options.balance``, c = ``options.margin``. Unless ``options.sums``, each sum is divided by its number of
    pairs: rows with many labels do not outweigh the rest. ``sampled`` holds positions of irrelevant candidates.
    Overwrites ``slope[:n]`` float32.
    """
    slope[:n] = 0
    n_relevant = 0
    for a in range(n):
        n_relevant += relevant[a]
    loss = 0.0
    if n_relevant == 0:
        return loss
    n_pairs = 0.5 if options.sums else max(1.0, n_relevant * (n_relevant - 1) / 2)
    for a in range(n):
        if not relevant[a]:
            continue
        for b in range(a + 1, n):
            if not relevant[b]:
                continue
            na, nb = counts[labels[a]], counts[labels[b]]
            weight = (na - nb) / (na + nb)
            gap = weight * (final[a] - final[b])
            if gap > 0:
                loss += gap / n_pairs
                slope[a] += weight / n_pairs
                slope[b] -= weight / n_pairs
    if sampled.shape[0]:
        share = options.balance / (1 if options.sums else n_relevant * sampled.shape[0])
        for a in range(n):
            if not relevant[a]:
                continue
            for s in range(sampled.shape[0]):
                gap = final[sampled[s]] - final[a] + options.margin
                if gap > 0:
                    loss += share * gap
                    slope[sampled[s]] += share
                    slope[a] -= share
    return loss


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _step(value, memory, gradient, rate):
    """Adagrad on one coordinate; returns the new value and memory."""
    memory += gradient * gradient
    return value - rate * gradient / (np.sqrt(memory) + np.float32(1e-6)), memory


@njit(nogil=True, cache=True, boundscheck=False)
def train_epoch(candidates, counts, order, state, layers, memories, options):
    """One pass of stochastic Adagrad over the rows in ``order``; returns the mean loss.

    ``layers`` and ``memories`` (:class:`Layers` of the same shapes) are changed in place, ``state`` (a (1,) uint64
    seed) is advanced; the rest may be read-only. ``counts`` (n_labels,) float64 are those of training rows.
    Sequential, so the result depends on ``state`` and ``order`` alone.
    """
    labels, scores, relevant = candidates.labels, candidates.scores, candidates.relevant
    W1, W2, b1 = layers.W1, layers.W2, layers.b1
    M1, M2, m1 = memories.W1, memories.W2, memories.b1
    rate, n_negatives = options.rate, options.n_negatives
    n_layers, _, width = W1.shape
    k = labels.shape[1]
    states = empty((n_layers + 1, k), np.float32)
    hiddens = empty((n_layers, width), np.float32)
    slope = empty(k, np.float32)
    below = empty(k, np.float32)
    inner = empty(width, np.float32)
    irrelevant = empty(k, np.int64)
    total = 0.0
    for i in order:
        n, n_irrelevant = 0, 0
        while n < k and labels[i, n] >= 0:
            states[0, n] = scores[i, n]
            if not relevant[i, n]:
                irrelevant[n_irrelevant] = n
                n_irrelevant += 1
            n += 1
        if n_irrelevant == n:
            continue
        sampled = irrelevant[:n_irrelevant]
        if n_irrelevant > n_negatives:
            for s in range(n_negatives):
                swap = s + np.int64(random_bits(state) % np.uint64(n_irrelevant - s))
                irrelevant[s], irrelevant[swap] = irrelevant[swap], irrelevant[s]
            sampled = irrelevant[:n_negatives]
        for layer in range(n_layers):
            _forward(labels[i], states[layer], n, layers, layer, hiddens[layer], states[layer + 1])
        loss = pair_loss(labels[i], states[n_layers], relevant[i], n, counts, sampled, options, slope)
        total += candidates.weight[i] * loss
        for c in range(n):
            slope[c] *= candidates.weight[i]
        for layer in range(n_layers - 1, -1, -1):
            hidden = hiddens[layer]
            inner[:] = 0
            for c in range(n):
                below[c] = slope[c]
            for c in range(n):
                label, g = labels[i, c], slope[c]
                if g == 0:
                    continue
                for v in range(width):
                    inner[v] += g * W2[layer, label, v]
                    W2[layer, label, v], M2[layer, label, v] = _step(
                        W2[layer, label, v], M2[layer, label, v], g * hidden[v], rate
                    )
            for v in range(width):
                if hidden[v] <= 0:
                    inner[v] = 0
            for c in range(n):
                label, score = labels[i, c], states[layer, c]
                for v in range(width):
                    below[c] += inner[v] * W1[layer, label, v]
                    if inner[v] != 0:
                        W1[layer, label, v], M1[layer, label, v] = _step(
                            W1[layer, label, v], M1[layer, label, v], inner[v] * score, rate
                        )
            for v in range(width):
                b1[layer, v], m1[layer, v] = _step(b1[layer, v], m1[layer, v], inner[v], rate)
            for c in range(n):
                slope[c] = below[c]
    return total / max(1, order.shape[0])
