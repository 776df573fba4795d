"""RankNet's block without a bottleneck: one linear map from a model's scores to all labels, ``F = ŷ + W ŷ``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.errors import InvalidInput
from tailwise.kernels.arrays import read_only
from tailwise.kernels.networks.linear_block import train_linear_epoch
from tailwise.kernels.networks.ranknet import TrainingOptions
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.sparse.topk import topk_dense
from tailwise.parallel import map_blocks, row_blocks

MAX_LABELS = 16_384
"""The matrix of so many labels takes 1 GiB, and as much again while it is trained."""
_ROWS_A_BLOCK = 256
_FIRST_MEMORY = np.float32(1e-3)


def check_size(n_labels: int) -> None:
    """Refuse a matrix that is too large to hold."""
    if n_labels > MAX_LABELS:
        raise InvalidInput(
            f"bottleneck=None makes a matrix of {n_labels:,}² numbers ({4 * n_labels**2 / 2**30:.1f} GiB, twice that "
            f"in training), which is for at most {MAX_LABELS:,} labels; pass a width, such as bottleneck=16"
        )


def as_matrix(labels: np.ndarray, values: np.ndarray, n_labels: int) -> sparse.csr_array:
    """Candidates (n, k), -1 where absent, as rows of a matrix (n, n_labels) float32."""
    present = labels >= 0
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    return sparse.csr_array((values[present], labels[present], indptr), shape=(labels.shape[0], n_labels))


def train_linear_block(
    inputs: sparse.csr_array,
    Y: sparse.csr_array,
    counts: np.ndarray,
    weight: np.ndarray,
    options: TrainingOptions,
    epochs: int,
    rng: np.random.Generator,
    advance: Callable[..., Any] = lambda **told: None,
) -> tuple[np.ndarray, list[float]]:
    """Learn ``W`` (n_labels, n_labels) float32, from the label that is read to the one that is written.

    ``inputs`` holds ŷ of each row's candidates, ``Y`` all relevant labels, named by the model or not. Irrelevant labels
    are drawn evenly from all that have training rows. Adagrad, row by row; only the columns of the labels that take
    part are read and written. Returns the mean loss of each epoch too.
    """
    n, n_labels = inputs.shape
    W = np.zeros((n_labels, n_labels), np.float32)
    memory = np.full_like(W, _FIRST_MEMORY)
    state = rng.integers(2**63, size=1, dtype=np.uint64)
    fixed = csr_parts(inputs), csr_parts(Y), read_only(counts), read_only(weight)
    losses = []
    for _ in range(epochs):
        losses.append(float(train_linear_epoch(*fixed, rng.permutation(n), state, W, memory, options)))
        advance(note=f"loss {losses[-1]:.4f}")
    return W, losses


def rank_by_linear_block(inputs: sparse.csr_array, W: np.ndarray, k: int, n_jobs: int | None) -> TopK:
    """The best ``k`` labels of each row by F. A label that the model did not name is ranked where F is positive."""
    n = inputs.shape[0]
    top = TopK(np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32))

    def rank(block: tuple[int, int]) -> None:
        first, last = block
        own = inputs[first:last]
        final = np.asarray(own @ W)
        named = np.repeat(np.arange(last - first), np.diff(own.indptr)), own.indices
        corrected = own.data + final[named]
        final[final <= 0] = -np.inf
        final[named] = corrected
        topk_dense(final, 0, top.labels[first:last], top.scores[first:last])

    map_blocks(rank, row_blocks(n, _ROWS_A_BLOCK), n_jobs=n_jobs)
    return top
