"""Weights of a linear model in one byte each, with a scale a label: made from others, made others, looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.kernels.arrays import frozen, read_only
from tailwise.kernels.sparse.bytes import LARGEST, ByteWeights, furthest_label, pack_bytes, predict_by_bytes
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.parallel import map_blocks, row_blocks
from tailwise.persistence.checks import (
    check_exact,
    check_indices,
    check_kind,
    check_offsets,
    check_range,
    check_that,
)

_DENSE = 0.2
"""The share of labels with a weight from which on a feature holds one of each: two thirds more bytes at worst, and
twenty times as fast to read."""
_ROWS_A_BLOCK = 256


def to_bytes(weights: sparse.csr_array) -> ByteWeights:
    """``weights`` (n_features, n_labels) rounded to one byte each: within 1/254 of the largest of each label."""
    if not weights.has_sorted_indices:
        weights = weights.sorted_indices()
    n_labels = weights.shape[1]
    largest = np.zeros(n_labels, np.float32)
    np.maximum.at(largest, weights.indices, np.abs(weights.data))
    # Not 0, and no number so small that dividing by it leaves the range of float32.
    scale = np.maximum(largest / LARGEST, np.finfo(np.float32).tiny).astype(np.float32)
    many = np.flatnonzero(np.diff(weights.indptr) > _DENSE * n_labels)
    places = np.full(weights.shape[0], -1, np.int32)
    places[many] = np.arange(many.size)
    dense = np.zeros((many.size, n_labels), np.int8)
    indptr, gaps, values = pack_bytes(csr_parts(weights), read_only(scale), read_only(places), dense)
    return ByteWeights(scale, places, dense, indptr, gaps, values)


def from_bytes(packed: ByteWeights) -> sparse.csr_array:
    """The weights (n_features, n_labels), float32."""
    ends = np.append(0, np.cumsum(packed.gaps, dtype=np.int64))
    counts = np.diff(packed.indptr)
    kept = np.flatnonzero(packed.values)
    features = np.repeat(np.arange(packed.places.size), counts)[kept]
    labels = (ends[1:] - np.repeat(ends[packed.indptr[:-1]], counts))[kept]
    rows, columns = np.nonzero(packed.dense)
    where = np.concatenate([np.flatnonzero(packed.places >= 0)[rows], features])
    labels = np.concatenate([columns, labels]).astype(np.int32)
    values = np.concatenate([packed.dense[rows, columns], packed.values[kept]]) * packed.scale[labels]
    shape = (packed.places.size, packed.scale.size)
    return sparse.csr_array(sparse.coo_array((values, (where, labels)), shape=shape))


def bytes_of_label(packed: ByteWeights, features: np.ndarray, label: int) -> np.ndarray:
    """The weights of ``label`` for some features, float32."""
    found = np.zeros(features.size, np.int64)
    for n, feature in enumerate(features):
        if packed.places[feature] >= 0:
            found[n] = packed.dense[packed.places[feature], label]
            continue
        own = slice(packed.indptr[feature], packed.indptr[feature + 1])
        at = np.flatnonzero(np.cumsum(packed.gaps[own], dtype=np.int64) == label)
        found[n] = packed.values[own][at].sum(dtype=np.int64)
    return found.astype(np.float32) * packed.scale[label]


def predict_topk_by_bytes(
    X: sparse.csr_array, packed: ByteWeights, bias: np.ndarray, k: int, *, n_jobs: int | None = None
) -> TopK:
    """Top ``k`` of ``X @ weights + bias``; a label whose score is -inf is not predicted."""
    labels = np.empty((X.shape[0], k), np.int32)
    scores = np.empty((X.shape[0], k), np.float32)
    rows, weights, biases = csr_parts(X), frozen(packed), read_only(bias)

    def predict_block(block: tuple[int, int]) -> None:
        predict_by_bytes(rows, block, weights, biases, labels, scores)

    map_blocks(predict_block, row_blocks(X.shape[0], _ROWS_A_BLOCK), n_jobs=n_jobs)
    return TopK(labels, scores)


def check_bytes(packed: Any, shape: tuple[int, int]) -> None:
    """Refuse ``weights_`` from a file that are no :class:`ByteWeights` of this ``shape``."""
    packed = check_kind("weights_", packed, ByteWeights)
    n_features, n_labels = shape
    check_range("weights_.scale", check_exact("weights_.scale", packed.scale, np.float32, (n_labels,)), 0)
    dense = check_exact("weights_.dense", packed.dense, np.int8, (None, n_labels))
    places = check_exact("weights_.places", packed.places, np.int32, (n_features,))
    check_indices("weights_.places", places, dense.shape[0], missing=True)
    gaps = check_exact("weights_.gaps", packed.gaps, np.uint16, (None,))
    check_exact("weights_.values", packed.values, np.int8, (gaps.size,))
    indptr = check_exact("weights_.indptr", packed.indptr, np.int64, (n_features + 1,))
    check_offsets("weights_.indptr", indptr, n_features, gaps.size)
    furthest = furthest_label(indptr, gaps)
    check_that(furthest < n_labels, f"weights_.gaps lead to label {furthest}, outside [0, {n_labels - 1}]")
