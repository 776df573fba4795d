"""Rows as forests and tail classifiers see them: features weighted, then scaled to unit length."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.kernels.sparse.rows import unit_values
from tailwise.validation import smooth_idf


def feature_weights(X: sparse.csr_array, idf: bool) -> np.ndarray:
    """What the values of each feature are multiplied by: its smooth idf in X, or 1."""
    if not idf:
        return np.ones(X.shape[1], np.float32)
    return smooth_idf(np.bincount(X.indices, X.data != 0, minlength=X.shape[1]), X.shape[0])


def weighted_rows(X: sparse.csr_array, weights: np.ndarray) -> sparse.csr_array:
    """X with its columns multiplied by ``weights`` (n_features,) and every row scaled to unit length (a copy)."""
    data = unit_values(X.indptr, X.data * weights[X.indices])
    return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
