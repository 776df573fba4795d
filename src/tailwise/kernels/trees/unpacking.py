"""Weights of a node read back from how :mod:`tailwise.kernels.trees.layout` stores them."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.trees.layout import NARROW


@njit(nogil=True, cache=True, boundscheck=False)
def unpack_chunk(scale, features, runs, weights, children):
    """The weights of some ``children`` (n,) int64 of a node: their indptr int64, features int32, values float32.

    ``scale``, ``runs`` and ``weights`` are those of the node's :class:`Chunk`, ``features`` (n_places,) int32 its
    features by place. A child's features come in the order of the places. Inputs are only read.
    """
    n_children, n_places = scale.shape[0], features.shape[0]
    slot = np.full(n_children, -1, np.int64)
    for n in range(children.shape[0]):
        slot[children[n]] = n
    entry = 2 + (n_children > NARROW)
    indptr = zeros(children.shape[0] + 1, np.int64)
    fill = zeros(children.shape[0], np.int64)
    found, values = empty(0, np.int32), empty(0, np.float32)
    # Twice the same loop: it counts, then it writes.
    for writes in range(2):
        for place in range(n_places):
            start = np.int64(runs[place]) if runs.shape[0] else place * n_children
            stop = np.int64(runs[place + 1]) if runs.shape[0] else start + n_children
            full = stop - start == n_children
            for a in range(start, stop, 1 if full else entry):
                child = a - start
                if not full:
                    child = np.int64(np.uint8(weights[a + 1]))
                    if entry > 2:
                        child += 256 * np.int64(np.uint8(weights[a + 2]))
                n = slot[child]
                if n < 0 or weights[a] == 0:
                    continue
                if writes:
                    found[fill[n]], values[fill[n]] = features[place], scale[child] * np.float32(weights[a])
                fill[n] += 1
        if not writes:
            for n in range(fill.shape[0]):
                indptr[n + 1] = indptr[n] + fill[n]
                fill[n] = indptr[n]
            found, values = empty(indptr[-1], np.int32), empty(indptr[-1], np.float32)
    return indptr, found, values
