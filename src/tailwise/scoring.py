"""The best labels of rows: by a sparse linear model, by dense vectors; block by block of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.kernels.arrays import read_only
from tailwise.kernels.networks.embedding import score_candidates
from tailwise.kernels.sparse.csr import Csr, csr_parts, csr_views
from tailwise.kernels.sparse.scoring import predict_sparse_linear
from tailwise.kernels.sparse.topk import topk_csr, topk_dense
from tailwise.parallel import ONE_BLAS_THREAD, map_blocks, row_blocks
from tailwise.persistence.checks import check_exact, check_matrix, check_range

_ROWS_A_BLOCK = 256
_VECTORS_A_BLOCK = 8192
_FEW_ROWS = 2
_SPARE = 16
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


def search_vectors(
    queries: np.ndarray, vectors: np.ndarray, positions: np.ndarray, scores: np.ndarray, *, n_jobs: int | None = None
) -> None:
    """The ``vectors`` (n, d) of largest inner product with each of ``queries`` (m, d), both float32 in C's order.

    Fills the rows of ``positions`` (m, k) int32 and ``scores`` (m, k) float32, best first, ties by position. A blocked
    matrix product only nominates ``k + 16`` vectors a row; their scores are then computed one by one, in an order that
    does not depend on the other rows of the batch. Where rounding could have hidden a better one (ties, mostly), the
    row is scanned in full. So a row's result has the same bits alone and in any batch. O(n · d) a row.
    """
    n, k = positions.shape
    if n <= _FEW_ROWS:
        _scan_vectors(queries, vectors, range(n), positions, scores)
        return
    spare = min(k + _SPARE, vectors.shape[0])
    longest = float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors).max()))

    def search_block(block: tuple[int, int]) -> None:
        rows = slice(*block)
        part = np.ascontiguousarray(queries[rows])
        nominees = np.full((part.shape[0], spare), -1, np.int32)
        rough = np.full((part.shape[0], spare), -np.inf, np.float32)
        for start, stop in row_blocks(vectors.shape[0], _VECTORS_A_BLOCK):
            topk_dense(part @ vectors[start:stop].T, start, nominees, rough)
        rank_vectors(part, vectors, nominees, positions[rows], scores[rows])
        if spare < vectors.shape[0]:
            # The error of a float32 product of d terms is at most d · eps · |q| |v|, here and in the re-scoring.
            doubt = 2 * part.shape[1] * np.finfo(np.float32).eps * longest * np.linalg.norm(part, axis=1)
            unsure = np.flatnonzero(scores[rows][:, -1] <= rough[:, -1] + doubt)
            _scan_vectors(part, vectors, unsure, positions[rows], scores[rows])

    with ONE_BLAS_THREAD:
        map_blocks(search_block, row_blocks(n, _ROWS_A_BLOCK), n_jobs=n_jobs)


def rank_vectors(
    queries: np.ndarray, vectors: np.ndarray, candidates: np.ndarray, positions: np.ndarray, scores: np.ndarray
) -> None:
    """Score ``candidates`` (m, c), positions of ``vectors``, in full precision and keep the best of each row."""
    exact = np.empty(candidates.shape, np.float32)
    candidates = np.ascontiguousarray(candidates, dtype=np.int32)
    score_candidates(queries, vectors, candidates, exact)
    indptr = np.arange(0, candidates.size + 1, candidates.shape[1], dtype=np.int64)
    topk_csr(csr_parts(Csr(indptr, candidates.ravel(), exact.ravel())), positions, scores)


def _scan_vectors(
    queries: np.ndarray, vectors: np.ndarray, rows: Iterable[int], positions: np.ndarray, scores: np.ndarray
) -> None:
    everything = np.arange(vectors.shape[0], dtype=np.int32)[None]
    total = np.empty(everything.shape, np.float32)
    for i in rows:
        score_candidates(queries[i : i + 1], vectors, everything, total)
        positions[i], scores[i] = -1, -np.inf
        topk_dense(total, 0, positions[i : i + 1], scores[i : i + 1])
