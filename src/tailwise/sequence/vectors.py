"""Word vectors from rows alone: words that come in the same rows begin alike, before any label is seen."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.compression.spectrum import top_right_vectors
from tailwise.rows import unit_rows
from tailwise.sequence.tokens import Tokens


def token_counts(X: sparse.csr_array, known: np.ndarray) -> sparse.csr_array:
    """How often each of the ``known`` tokens comes in a row, (n_rows, n_tokens) float32."""
    tokens = Tokens.of(X, known)
    parts = np.ones(tokens.ids.size, np.float32), tokens.ids - 1, tokens.indptr
    counts = sparse.csr_array(parts, shape=(X.shape[0], known.size))
    counts.sum_duplicates()
    return counts


def token_vectors(X: sparse.csr_array, known: np.ndarray, dim: int) -> np.ndarray:
    """Vectors of the ``known`` tokens, (n_tokens, dim) float32, by the rows that each comes in.

    Latent semantic analysis: with ``B = U S Vᵀ`` the largest singular values and vectors of the rows as TF-IDF, token j
    begins at row j of ``V √S``, made as long as a vector of ``dim`` standard normal numbers is. Zeros where a token
    comes in no row, or in all of them. Lanczos: ``O(dim · (non-zeros + dim · n_tokens))``.

    >>> vectors = token_vectors(sparse.csr_array([[1.0, 2.0], [1, 2], [3, 4], [3, 4]]), np.array([1.0, 2, 3, 4]), 2)
    >>> (vectors @ vectors.T).round(1) + 0.0
    array([[2., 2., 0., 0.],
           [2., 2., 0., 0.],
           [0., 0., 2., 2.],
           [0., 0., 2., 2.]], dtype=float32)
    """
    counts = token_counts(X, known)
    frequency = np.bincount(counts.indices, minlength=known.size)
    rarity = (1 + np.log(max(1, X.shape[0]) / np.maximum(frequency, 1))).astype(np.float32)
    weighted = ((1 + np.log(counts.data)) * rarity[counts.indices], counts.indices, counts.indptr)
    bags = unit_rows(sparse.csr_array(weighted, shape=counts.shape))
    directions = top_right_vectors(bags, dim)
    strength = np.linalg.norm(bags @ directions, axis=0)
    vectors = np.zeros((known.size, dim), np.float32)
    vectors[:, : directions.shape[1]] = directions * np.sqrt(strength)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(np.sqrt(dim) * vectors, length, out=np.zeros_like(vectors), where=length > 1e-6)
