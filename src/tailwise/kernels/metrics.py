"""Counting hits, best rankings and bootstrap sums for the metrics."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty
from tailwise.kernels.compilation import njit
from tailwise.kernels.random import GOLDEN, mix_bits


@njit(nogil=True, cache=True, boundscheck=False)
def mark_hits(truth, labels, hits):
    """Set ``hits[i, j]`` where the predicted ``labels[i, j]`` is one of row i of ``truth``.

    ``truth`` is a :class:`Csr` with sorted indices, its data not read; ``labels`` (n, k) int32, -1 for none. Both may
    be read-only; ``hits`` (n, k) bool is overwritten. Returns the first row that predicts a label twice, or -1.
    """
    k = labels.shape[1]
    repeated = -1
    for i in range(labels.shape[0]):
        for j in range(k):
            label = labels[i, j]
            low, high = truth.indptr[i], truth.indptr[i + 1]
            while low < high:
                middle = (low + high) // 2
                if truth.indices[middle] < label:
                    low = middle + 1
                else:
                    high = middle
            hits[i, j] = low < truth.indptr[i + 1] and truth.indices[low] == label
            for earlier in range(j):
                if labels[i, earlier] == label and label >= 0 and repeated < 0:
                    repeated = i
    return repeated


@njit(nogil=True, cache=True, boundscheck=False)
def sum_values(truth, values, sums):
    """``sums[i]`` = sum of ``values[l]`` over the indices l of row i of ``truth``, a :class:`Csr` without need of data.

    ``sums`` (n,) float64 is overwritten; ``values`` (n_labels,) float64 and ``truth`` may be read-only.
    """
    for i in range(sums.shape[0]):
        total = 0.0
        for j in range(truth.indptr[i], truth.indptr[i + 1]):
            total += values[np.uint64(truth.indices[j])]
        sums[i] = total


@njit(nogil=True, cache=True, boundscheck=False)
def best_values(truth, values, best):
    """The largest ``values`` of each row's indices in descending order; ``best`` (n, k) float64 is overwritten.

    Values are not negative; rows with fewer than k indices are filled with 0. ``truth`` as in :func:`sum_values`.
    """
    k = best.shape[1]
    best[:] = 0.0
    for i in range(best.shape[0]):
        for j in range(truth.indptr[i], truth.indptr[i + 1]):
            value = values[np.uint64(truth.indices[j])]
            if value > best[i, k - 1]:
                place = k - 1
                while place > 0 and best[i, place - 1] < value:
                    best[i, place] = best[i, place - 1]
                    place -= 1
                best[i, place] = value


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract"})
def add_resampled(columns, first_row, seed, weight_of_byte, sums, first_replicate):
    """Add each replicate's randomly weighted column sums: ``sums[b] += Σ_i w[b, i] columns[i]``.

    The weight of row ``first_row + i`` in replicate ``first_replicate + b`` depends on these two numbers and on
    ``seed`` (uint64) alone, so rows may come in batches and replicates in ranges. It is ``weight_of_byte`` (256,)
    float64 of a random byte. Rows are added in ascending order: the sums are the same bits however the rows are
    split. ``columns`` (n, c) is C-contiguous float64 and may be read-only; ``sums`` is added to.
    """
    n, width = columns.shape
    block, together = 512, 8
    weights = empty((block + 16, together), np.float64)
    for start in range(0, n, block):
        stop = min(start + block, n)
        # One 64-bit draw serves the eight rows of a group; groups are counted from row 0 of the whole data.
        first_group = (first_row + start) // 8
        n_groups = (first_row + stop + 7) // 8 - first_group
        skip = first_row + start - first_group * 8
        # Several replicates at a time: their sums are independent chains of additions, which overlap.
        for b in range(0, sums.shape[0], together):
            width_b = min(together, sums.shape[0] - b)
            for r in range(width_b):
                stream = mix_bits(seed + np.uint64(first_replicate + b + r + 1) * GOLDEN)
                for g in range(n_groups):
                    bits = mix_bits(stream + np.uint64(first_group + g) * GOLDEN)
                    for part in range(8):
                        weights[8 * g + part, r] = weight_of_byte[(bits >> np.uint64(8 * part)) & np.uint64(0xFF)]
            paired = stop - (stop - start) % 4
            for i in range(start, paired, 4):
                at = skip + i - start
                for r in range(width_b):
                    w0, w1, w2, w3 = weights[at, r], weights[at + 1, r], weights[at + 2, r], weights[at + 3, r]
                    for c in range(width):
                        total = sums[b + r, c] + w0 * columns[i, c]
                        total += w1 * columns[i + 1, c]
                        total += w2 * columns[i + 2, c]
                        sums[b + r, c] = total + w3 * columns[i + 3, c]
            for i in range(paired, stop):
                for r in range(width_b):
                    for c in range(width):
                        sums[b + r, c] += weights[skip + i - start, r] * columns[i, c]
