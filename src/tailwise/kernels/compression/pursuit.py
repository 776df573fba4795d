"""Orthogonal matching pursuit: few vectors whose weighted sum is near a target."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty
from tailwise.kernels.compilation import njit

_NOTHING_LEFT = 1e-5
"""A residual, or a vector's part outside of those chosen, that is shorter than this share of its whole is rounding."""


@njit(nogil=True, cache=True, boundscheck=False, fastmath={"reassoc", "contract", "nsz"})
def _nearest(vectors, residual):
    """The position of the largest inner product with ``residual``, the first of equals; -1 where none is positive."""
    best = -1
    largest = np.float32(0)
    for position in range(vectors.shape[0]):
        vector = vectors[position]
        total = np.float32(0)
        for j in range(vector.shape[0]):
            total += vector[j] * residual[j]
        if total > largest:
            largest = total
            best = position
    return best


@njit(nogil=True, cache=True, boundscheck=False)
def _outside(vector, basis, n_chosen, factors):
    """Put the part of ``vector`` outside of the first rows of ``basis`` behind them, at unit length; its length.

    Row ``n_chosen`` of ``factors`` gets the vector's coordinates in the basis.
    """
    new = basis[n_chosen]
    for j in range(new.shape[0]):
        new[j] = vector[j]
    for c in range(n_chosen):
        factors[n_chosen, c] = np.dot(basis[c], new)
        new -= factors[n_chosen, c] * basis[c]
    length = np.sqrt(np.dot(new, new))
    factors[n_chosen, n_chosen] = length
    if length > _NOTHING_LEFT:
        new /= length
    return length


@njit(nogil=True, cache=True, boundscheck=False)
def pursue(targets, block, vectors, positions, weights):
    """For each of the rows ``block[0]:block[1]`` of ``targets`` choose at most s vectors, one by one.

    Each time the one of ``vectors`` with the largest positive inner product with what is left of the target; then all
    weights anew by least squares. Ends early where nothing is left. ``targets`` (n, m) and ``vectors`` (n_vectors, m),
    of unit length, are float32 in C's order and may be read-only. Writes the block's rows of ``positions`` (n, s)
    int32, -1 where none, and ``weights`` (n, s) float32, -inf there. O(s · n_vectors · m) a row.
    """
    s, m = positions.shape[1], vectors.shape[1]
    basis = empty((s, m), np.float64)
    factors = empty((s, s), np.float64)
    shares = empty(s, np.float64)
    residual = empty(m, np.float64)
    for i in range(block[0], block[1]):
        positions[i, :] = -1
        weights[i, :] = -np.inf
        for j in range(m):
            residual[j] = targets[i, j]
        enough = _NOTHING_LEFT * np.sqrt(np.dot(residual, residual))
        n_chosen = 0
        while n_chosen < s and np.sqrt(np.dot(residual, residual)) > enough:
            position = _nearest(vectors, residual.astype(np.float32))
            if position < 0 or _outside(vectors[position], basis, n_chosen, factors) <= _NOTHING_LEFT:
                break
            shares[n_chosen] = np.dot(basis[n_chosen], residual)
            residual -= shares[n_chosen] * basis[n_chosen]
            positions[i, n_chosen] = position
            n_chosen += 1
        # The target's part within the basis is Σ shares · basis, and a vector's coordinates are a row of factors.
        for c in range(n_chosen - 1, -1, -1):
            for later in range(c + 1, n_chosen):
                shares[c] -= factors[later, c] * shares[later]
            shares[c] /= factors[c, c]
            weights[i, c] = shares[c]
