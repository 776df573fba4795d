"""The directions of the label space along which labels vary most: top right singular vectors of Y."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from tailwise.compression.ridge import CentredRows

_FEW_LABELS = 300
_LEAST = 1e-10
"""Eigenvalues below this share of the largest are rounding: their directions say nothing."""


def top_right_vectors(Y: sparse.csr_array, dim: int, centre: CentredRows | None = None) -> np.ndarray:
    """The at most ``dim`` orthonormal columns V (n_labels, ·) that keep most of Y: ``|Y V|²`` is largest.

    With ``centre``, the rows that Y's are scaled as, of Y less its means. Lanczos on ``v ↦ Yᵀ(Y v)``, or all
    eigenvectors of ``Yᵀ Y`` where there are few labels. Directions in which Y does not vary are left out.

    >>> abs(top_right_vectors(sparse.csr_array([[1.0, 0, 1], [1, 0, 1]]), 2).T).round(2)
    array([[0.71, 0.  , 0.71]])
    """
    n_labels = Y.shape[1]
    Y = Y.astype(np.float64)
    total, mean = (0.0, np.zeros(n_labels)) if centre is None else (centre.total, centre.mean_of(Y))
    dim = min(dim, *Y.shape)
    if not dim:
        return np.zeros((n_labels, 0))
    if n_labels <= max(_FEW_LABELS, 2 * dim):
        values, vectors = np.linalg.eigh((Y.T @ Y).toarray() - total * np.outer(mean, mean))
        values, vectors = values[-dim:], vectors[:, -dim:]
    else:

        def gram(v: np.ndarray) -> np.ndarray:
            v = v.ravel()
            return Y.T @ (Y @ v) - total * mean * (mean @ v)

        operator = LinearOperator((n_labels, n_labels), matvec=gram, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n_labels)
        values, vectors = eigsh(operator, k=dim, v0=start, tol=1e-4)
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > _LEAST * max(values.max(initial=0), 1)]
    return np.ascontiguousarray(vectors[:, order])
