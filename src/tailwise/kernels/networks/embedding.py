"""Encoding sparse rows and scoring label vectors. Every row is computed by itself, in one fixed order of operations,
so that its result has the same bits in whatever company it comes."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.compilation import njit


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def encode_rows(X, block, table, bias, out):
    """``out[i] = bias + Σ_f x_if table[f]`` for rows ``block[0]:block[1]`` of X, a :class:`Csr`.

    ``table`` is (n_features, width) float32; ``out`` (block rows, width) float32 is overwritten. The rest may be
    read-only.
    """
    for i in range(block[0], block[1]):
        target = out[i - block[0]]
        for j in range(target.shape[0]):
            target[j] = bias[j]
        for a in range(X.indptr[i], X.indptr[i + 1]):
            value = X.data[a]
            source = table[np.uint64(X.indices[a])]
            for j in range(source.shape[0]):
                target[j] += value * source[j]


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"contract", "nsz"})
def dense_layer(inputs, weights, bias, out):
    """``out = inputs @ weights + bias``, a row at a time; zeros of ``inputs`` (after ReLU: many) cost nothing.

    All float32 and contiguous; ``out`` is overwritten, the rest may be read-only.
    """
    for i in range(inputs.shape[0]):
        target = out[i]
        for j in range(target.shape[0]):
            target[j] = bias[j]
        for a in range(inputs.shape[1]):
            value = inputs[i, a]
            if value != 0:
                source = weights[a]
                for j in range(source.shape[0]):
                    target[j] += value * source[j]


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def unit_length(rows):
    """Scale each row of a contiguous float32 array to unit length in place; rows of zeros stay."""
    for i in range(rows.shape[0]):
        square = np.float32(0)
        for j in range(rows.shape[1]):
            square += rows[i, j] * rows[i, j]
        if square > 0:
            factor = np.float32(1) / np.sqrt(square)
            for j in range(rows.shape[1]):
                rows[i, j] *= factor


@njit(nogil=True, cache=True, boundscheck=False, fastmath=True)
def score_candidates(queries, vectors, candidates, scores):
    """``scores[i, c] = queries[i] · vectors[candidates[i, c]]``; -inf where a candidate is -1.

    All float32 and contiguous, candidates int32; queries and vectors may be read-only. This one function gives every
    score that is ever returned, so that equal inputs have equal bits.
    """
    for i in range(candidates.shape[0]):
        query = queries[i]
        for c in range(candidates.shape[1]):
            position = candidates[i, c]
            if position < 0:
                scores[i, c] = -np.inf
                continue
            vector = vectors[np.uint64(position)]
            total = np.float32(0)
            for j in range(query.shape[0]):
                total += query[j] * vector[j]
            scores[i, c] = total
