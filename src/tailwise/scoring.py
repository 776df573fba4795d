"""The best labels of rows: by a sparse linear model, by dense vectors; block by block of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.kernels.arrays import frozen, read_only
from tailwise.kernels.networks.embedding import score_candidates
from tailwise.kernels.solvers.lanes import zero_lanes
from tailwise.kernels.sparse.columns import merge_columns
from tailwise.kernels.sparse.csr import Csr, csr_parts, csr_views
from tailwise.kernels.sparse.scoring import (
    SIDE_BY_SIDE,
    count_touches,
    predict_side_by_side,
    predict_sparse_linear,
    put_weights_side_by_side,
)
from tailwise.kernels.sparse.topk import topk_csr, topk_dense
from tailwise.parallel import ONE_BLAS_THREAD, count_jobs, map_blocks, row_blocks
from tailwise.persistence.checks import check_exact, check_matrix, check_range

_ROWS_A_BLOCK = 256
_LEAST_SIDE_BY_SIDE, _MOST_SIDE_BY_SIDE = 128, 1024
"""Rows that share the reading of weights side by side; threads have about as many each."""
_FLOATS_SIDE_BY_SIDE = 2**23
"""So many weights, 32 MB, are laid side by side at a time."""
_MANY, _MANY_SCORES = 16, 2**27
"""Values of rows for each feature, and times labels, that make it worth while to lay weights side by side."""
_NEAR = 2**13
_OFTEN_NEAR, _OFTEN_FAR = 1 / 12, 1 / 3
"""Of the values of rows so many must meet a weight of the label: where 32 labels of so many features fit into the cache
near the core, and where they do not."""
_VECTORS_A_BLOCK = 8192
_FEW_ROWS = 2
_SPARE = 16
_LARGEST = float(np.finfo(np.float32).max)


def check_linear(weights: Any, bias: Any, shape: tuple[int, int]) -> None:
    """Refuse ``weights_`` and ``bias_`` from a file that are no linear model of this ``shape``; a bias may be -inf."""
    check_matrix("weights_", weights, shape)
    check_bias(bias, shape[1])


def check_bias(bias: Any, n_labels: int) -> None:
    """Refuse a ``bias_`` from a file that has not one number for each label, or -inf."""
    check_range("bias_", check_exact("bias_", bias, np.float32, (n_labels,)), -np.inf, _LARGEST)


def predict_topk_linear(
    X: sparse.csr_array, weights: sparse.csr_array, bias: np.ndarray, k: int, *, n_jobs: int | None = None
) -> TopK:
    """Top ``k`` of ``X @ weights + bias`` with ``weights`` (n_features, n_labels) CSR; no rows × labels array.

    A label whose score is -inf is not predicted. Of many rows, labels that have weights for much of what is in them are
    scored 32 at once with their weights side by side, the others weight by weight: the same bits.
    """
    labels = np.full((X.shape[0], k), -1, np.int32)
    scores = np.full((X.shape[0], k), -np.inf, np.float32)
    rows, by_feature, biases = csr_parts(X), csr_views(weights), read_only(bias)
    often = _often_met(rows, by_feature, bias.size)
    if often.size < bias.size:
        rest, others = _without(by_feature, biases, often) if often.size else (by_feature, biases)

        def predict_block(block: tuple[int, int]) -> None:
            predict_sparse_linear(rows, block, rest, others, labels, scores)

        map_blocks(predict_block, row_blocks(X.shape[0], _ROWS_A_BLOCK), n_jobs=n_jobs)
    at_once = max(1, _FLOATS_SIDE_BY_SIDE // max(1, X.shape[1] * SIDE_BY_SIDE)) * SIDE_BY_SIDE
    for start in range(0, often.size, at_once):
        _merge_side_by_side(rows, by_feature, biases, often[start : start + at_once], TopK(labels, scores), n_jobs)
    return TopK(labels, scores)


def _often_met(rows: Csr, by_feature: Csr, n_labels: int) -> np.ndarray:
    """The labels that are scored sooner side by side, weights that are 0 and all, than weight by weight."""
    n_features = by_feature.indptr.size - 1
    if rows.indices.size < _MANY * n_features or rows.indices.size * n_labels < _MANY_SCORES:
        return np.empty(0, np.int32)
    touches = count_touches(rows, by_feature, n_labels)
    enough = rows.indices.size * (_OFTEN_NEAR if n_features <= _NEAR else _OFTEN_FAR)
    often = np.flatnonzero(touches >= enough).astype(np.int32)
    return often if 2 * touches[often].sum() > touches.sum() else often[:0]


def _without(by_feature: Csr, bias: np.ndarray, left_out: np.ndarray) -> tuple[Csr, np.ndarray]:
    """The weights and biases of the other labels; those of the labels that are left out are none and -inf."""
    stays, others = np.ones(bias.size, bool), bias.copy()
    stays[left_out], others[left_out] = False, -np.inf
    nothing = Csr(np.zeros(by_feature.indptr.size, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    return frozen(Csr(*merge_columns(csr_parts(by_feature), csr_parts(nothing), stays))), read_only(others)


def _merge_side_by_side(
    rows: Csr, by_feature: Csr, bias: np.ndarray, often: np.ndarray, top: TopK, n_jobs: int | None
) -> None:
    """Bring the labels ``often`` into ``top``."""
    padded = -(-often.size // SIDE_BY_SIDE) * SIDE_BY_SIDE
    own, biases = np.full(padded, -1, np.int32), np.full(padded, -np.inf, np.float32)
    own[: often.size], biases[: often.size] = often, bias[often]
    places = np.full(bias.size, -1, np.int32)
    places[often] = np.arange(often.size)
    n_features = by_feature.indptr.size - 1
    weights = zero_lanes(2 * n_features * (padded // SIDE_BY_SIDE)).reshape(-1, n_features * SIDE_BY_SIDE)
    put_weights_side_by_side(by_feature, read_only(places), weights)
    weights, own, biases = read_only(weights), read_only(own), read_only(biases)

    def predict_block(block: tuple[int, int]) -> None:
        predict_side_by_side(rows, block, weights, own, biases, *top)

    n_rows = rows.indptr.size - 1
    size = min(_MOST_SIDE_BY_SIDE, max(_LEAST_SIDE_BY_SIDE, -(-n_rows // count_jobs(n_jobs))))
    map_blocks(predict_block, row_blocks(n_rows, size), n_jobs=n_jobs)


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
