"""Vectors that keep who is near whom: singular value projection on the nearest rows in label space."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.kernels.networks.embedding import score_candidates
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.sparse.topk import topk_csr
from tailwise.parallel import row_blocks

_ROWS_A_BLOCK = 512
_POWER_STEPS = 1
"""A round's eigenvectors start so near that one step towards them will do."""


def nearest_by_labels(Y: sparse.csr_array, n_neighbours: int) -> TopK:
    """The rows of largest inner product with each row of Y, itself among them, as a TopK of rows.

    Rows without anything in common are no neighbours: -1. O(Σ over labels of its rows²), in blocks of rows.
    """
    n = Y.shape[0]
    k = min(n_neighbours, n)
    near = TopK(np.empty((n, k), np.int32), np.empty((n, k), np.float32))
    by_label = sparse.csr_array(Y.T)
    for start, stop in row_blocks(n, _ROWS_A_BLOCK):
        products = sparse.csr_array(Y[start:stop] @ by_label)
        topk_csr(csr_parts(products), near.labels[start:stop], near.scores[start:stop])
    return near


def embed_neighbours(near: TopK, dim: int, rounds: int, rng: np.random.Generator) -> np.ndarray:
    """Z (n, dim) float32 whose inner products ``z_i·z_j`` are near the products of the neighbours (i, j) in Ω.

    Singular value projection: ``M ← P(M + P_Ω(G - M))``, where P keeps the ``dim`` largest positive eigenvalues
    and Ω the given pairs, counted half in each direction; ``M = Z Zᵀ``. M is never formed: it is of low rank, what is
    added is sparse, and the eigenvectors of one round start those of the next, by a power step and Rayleigh–Ritz.
    O(rounds · n · dim · (neighbours + dim)).
    """
    n, k = near.labels.shape
    dim = min(dim, n)
    rows = np.repeat(np.arange(n, dtype=np.int32), k).reshape(n, k)
    there = near.labels >= 0
    candidates = np.ascontiguousarray(near.labels)
    U = np.linalg.qr(rng.standard_normal((n, dim)))[0].astype(np.float32)
    values = np.zeros(dim, np.float32)
    products = np.empty((n, k), np.float32)
    for _ in range(rounds):
        Z = np.ascontiguousarray(U * np.sqrt(values))
        score_candidates(Z, Z, candidates, products)
        difference = (near.scores[there] - products[there]) * np.float32(0.5)
        change = sparse.csr_array((difference, (rows[there], near.labels[there])), shape=(n, n))
        change = sparse.csr_array(change + change.T)

        Q = U
        for _ in range(_POWER_STEPS):
            Q = np.linalg.qr(_times(U, values, change, Q))[0]
        eigenvalues, turn = np.linalg.eigh(Q.T @ _times(U, values, change, Q))
        U, values = (Q @ turn).astype(np.float32), np.maximum(eigenvalues, 0).astype(np.float32)
    return np.ascontiguousarray(U * np.sqrt(values))


def _times(U: np.ndarray, values: np.ndarray, change: sparse.csr_array, B: np.ndarray) -> np.ndarray:
    """``(U diag(values) Uᵀ + change) B``"""
    return U @ (values[:, None] * (U.T @ B)) + change @ B
