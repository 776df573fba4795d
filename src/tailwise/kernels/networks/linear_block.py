"""Training one linear map from candidate scores to all labels, ``F = ŷ + W ŷ``."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.networks.ranknet import pair_loss
from tailwise.kernels.random import random_bits

_FAST = {"contract", "nsz", "arcp"}


@njit(nogil=True, cache=True, boundscheck=False)
def train_linear_epoch(inputs, Y, counts, weight, order, state, W, memory, options):
    """One pass of stochastic Adagrad over the rows in ``order``; returns the mean loss.

    ``inputs`` (ŷ of each row's candidates) and ``Y`` are :class:`Csr` over labels without duplicates, ``counts``
    (n_labels,) float64 those of training rows, ``weight`` (n,) float32 what each row's loss weighs; all may be
    read-only. Of ``options.n_negatives`` draws from the labels that have training rows, those count that are other than
    the row's own, each once. ``W`` and ``memory`` (n_labels, n_labels) float32, from the label read to the one written,
    and ``state`` (a (1,) uint64 seed) are changed in place. Only columns of labels that take part are read and written.
    """
    seen = np.flatnonzero(counts > 0)
    n_labels, total = W.shape[0], 0.0
    is_here = zeros(n_labels, np.bool_)
    labels = empty(n_labels, np.int32)
    final, slope = empty(n_labels, np.float32), empty(n_labels, np.float32)
    for i in order:
        first, last = inputs.indptr[i], inputs.indptr[i + 1]
        n_own = Y.indptr[i + 1] - Y.indptr[i]
        if n_own == 0 or first == last:
            continue
        labels[:n_own] = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
        for label in labels[:n_own]:
            is_here[label] = True
        n = n_own
        for _ in range(options.n_negatives):
            label = seen[random_bits(state) % np.uint64(seen.shape[0])]
            if not is_here[label]:
                is_here[label] = True
                labels[n] = label
                n += 1
        # Ascending, so that a row of W is gone through from its start to its end.
        labels[n_own:n].sort()
        for label in labels[:n]:
            is_here[label] = False
        chosen = labels[:n]
        _map_scores(inputs.indices[first:last], inputs.data[first:last], chosen, W, final)
        relevant = np.arange(n) < n_own
        loss = pair_loss(chosen, final, relevant, n, counts, np.arange(n_own, n), options, slope)
        total += weight[i] * loss
        moved = np.flatnonzero(slope[:n])
        if moved.shape[0]:
            gradients = weight[i] * slope[moved]
            _learn(inputs.indices[first:last], inputs.data[first:last], chosen[moved], gradients, W, memory, options)
    return total / max(1, order.shape[0])


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _map_scores(candidates, scores, labels, W, final):
    """F of ``labels``, into ``final``."""
    n = labels.shape[0]
    final[:n] = 0
    for c in range(candidates.shape[0]):
        own, score = W[candidates[c]], scores[c]
        for at in range(n):
            final[at] += score * own[np.uint64(labels[at])]
            final[at] += score if labels[at] == candidates[c] else np.float32(0)


@njit(nogil=True, cache=True, boundscheck=False, fastmath=_FAST)
def _learn(candidates, scores, labels, slopes, W, memory, options):
    """A step of Adagrad on W from each candidate to ``labels``, where F has these ``slopes``."""
    rate = np.float32(options.rate)
    for c in range(candidates.shape[0]):
        own, own_memory, score = W[candidates[c]], memory[candidates[c]], scores[c]
        for at in range(labels.shape[0]):
            label = np.uint64(labels[at])
            gradient = score * slopes[at]
            square = own_memory[label] + gradient * gradient
            own_memory[label] = square
            own[label] -= rate * gradient / (np.sqrt(square) + np.float32(1e-6))
