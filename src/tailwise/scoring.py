"""Predicting with a sparse linear model, block by block of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.kernels.arrays import read_only
from tailwise.kernels.sparse.csr import csr_parts, csr_views
from tailwise.kernels.sparse.scoring import predict_sparse_linear
from tailwise.parallel import map_blocks, row_blocks
from tailwise.persistence.checks import check_exact, check_matrix, check_range

_ROWS_A_BLOCK = 256
_LARGEST = float(np.finfo(np.float32).max)


def check_linear(weights: Any, bias: Any, shape: tuple[int, int]) -> None:
    """Refuse ``weights_`` and ``bias_`` from a file that are no linear model of this ``shape``; a bias may be -inf."""
    check_matrix("weights_", weights, shape)
    check_range("bias_", check_exact("bias_", bias, np.float32, shape[1:]), -np.inf, _LARGEST)


def predict_topk_linear(
    X: sparse.csr_array, weights: sparse.csr_array, bias: np.ndarray, k: int, *, n_jobs: int | None = None
) -> TopK:
    """Top ``k`` of ``X @ weights + bias`` with ``weights`` (n_features, n_labels) CSR; no rows × labels array.

    A label whose score is -inf is not predicted.
    """
    labels = np.empty((X.shape[0], k), np.int32)
    scores = np.empty((X.shape[0], k), np.float32)
    rows, by_feature, biases = csr_parts(X), csr_views(weights), read_only(bias)

    def predict_block(block: tuple[int, int]) -> None:
        predict_sparse_linear(rows, block, by_feature, biases, labels, scores)

    map_blocks(predict_block, row_blocks(X.shape[0], _ROWS_A_BLOCK), n_jobs=n_jobs)
    return TopK(labels, scores)
