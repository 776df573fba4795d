"""From what a beam search found in each tree to the best labels of a row."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, grown
from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.topk import push_any_order
from tailwise.kernels.trees.chunks import hash_feature


@njit(nogil=True, cache=True, boundscheck=False)
def merge_trees(found, logs, begin, n_first, n_trees, block, labels, scores):
    """Top-k labels by the mean over trees of their probabilities; a tree that did not find a label gives it 0.

    ``found`` (int32), their ``logs`` (float32), ``begin`` (int32) and ``n_first`` are what
    :func:`~tailwise.kernels.trees.beam.search_trees` gives of ``n_trees`` trees. Writes rows ``block[0]:block[1]`` of
    ``labels`` (n, k) int32 and ``scores`` (n, k) float32, k > 0: -1 and -inf where fewer than k were found.

    If the first tree's k-th best label has log-probability m, the k-th best mean is at least e^m / n_trees, which a
    label can only reach if some tree gives it m - ln n_trees or more: all other labels are passed over.
    """
    first_row, last_row = block
    n_rows, n_found = last_row - first_row, found.shape[0]
    share, whole = np.float32(1) / np.float32(n_trees), np.float32(1)
    slack = np.float32(np.log(np.float64(n_trees)) + 1e-3)
    own_labels, own_logs = empty(n_found, np.int32), empty(n_found, np.float32)
    slot_label, slot_sum = empty(64, np.int32), empty(64, np.float32)
    for row in range(n_rows):
        n = n_of_first = 0
        for place in range(row, begin.shape[0], n_rows + 1):
            for a in range(begin[place], begin[place + 1]):
                own_labels[n], own_logs[n] = found[a], logs[a]
                n += 1
            if place < n_first * (n_rows + 1):
                n_of_first = n
        best, best_scores = labels[first_row + row], scores[first_row + row]
        _keep_best(own_labels, own_logs, n_of_first, whole, best, best_scores)
        bar = best_scores[best.shape[0] - 1] - slack
        hopeful = 0
        for a in range(n):
            hopeful += own_logs[a] >= bar
        bits = 4
        while (1 << bits) < 2 * hopeful:
            bits += 1
        slot_label, slot_sum = grown(slot_label, 0, 1 << bits), grown(slot_sum, 0, 1 << bits)
        for slot in range(1 << bits):
            slot_label[slot], slot_sum[slot] = -1, 0
        for a in range(n):
            if own_logs[a] >= bar:
                slot_label[_slot_of(own_labels[a], slot_label, bits)] = own_labels[a]
        for a in range(n):
            slot = _slot_of(own_labels[a], slot_label, bits)
            if slot_label[slot] >= 0:
                slot_sum[slot] += np.exp(own_logs[a])
        _keep_best(slot_label, slot_sum, 1 << bits, share, best, best_scores)


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _keep_best(labels, scores, n, share, best, best_scores):
    """The best of n labels, of which -1 is none, by their scores, times ``share``."""
    last = best.shape[0] - 1
    for j in range(best.shape[0]):
        best[j], best_scores[j] = -1, -np.inf
    for a in range(n):
        score = scores[a] * share
        if labels[a] >= 0 and score >= best_scores[last]:
            push_any_order(best, best_scores, labels[a], score)


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _slot_of(label, slot_label, bits):
    """Where a hash table of 2^bits slots holds the label, or the empty slot where it would."""
    slot = hash_feature(label) >> np.uint64(32 - bits)
    while slot_label[slot] != label and slot_label[slot] >= 0:
        slot = (slot + np.uint64(1)) & np.uint64((1 << bits) - 1)
    return slot
