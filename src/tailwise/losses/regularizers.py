"""Regularisers on label vectors, for numpy arrays and torch tensors: GLaS and what it is made of.

``V`` is (n, d): the unit vectors of a batch's labels, ``U`` (n, n) their adjacency, ``counts`` (n,) how often each was
drawn. The papers sum over draws, of which popular labels have many; a sum over *distinct* labels weighted by counts
is the same number for less work. ``against`` restricts the first index to some rows of ``V``, so that the parts of a
batch can be computed apart and added. Equations are those of "Breaking the Glass Ceiling for Embedding-Based
Classifiers for Large Output Spaces".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from tailwise.losses.base import Array


def adjacency(Y: sparse.csr_array, labels: np.ndarray) -> sparse.csr_array:
    """``U = ½ (A Z⁻¹ + Z⁻¹ A)`` of equation (3) among ``labels``, with ``A = YᵀY`` and ``Z = diag(A)``; CSR float32.

    ``u_yy'`` is the mean of the two conditional frequencies ``F(y|y')`` and ``F(y'|y)``. ``Y`` is given *transposed*
    (n_labels, n_samples): only the rows of ``labels`` are multiplied, so the cost follows the batch.

    >>> Y = sparse.csr_array(np.array([[1, 1], [1, 0]], np.float32))
    >>> adjacency(sparse.csr_array(Y.T), np.array([0, 1])).toarray()
    array([[1.  , 0.75],
           [0.75, 1.  ]], dtype=float32)
    """
    part = Y[labels]
    together = sparse.csr_array(part @ part.T)
    inverse = 1.0 / np.maximum(np.diff(part.indptr), 1)
    rows = np.repeat(np.arange(labels.size), np.diff(together.indptr))
    together.data = (0.5 * together.data * (inverse[rows] + inverse[together.indices])).astype(np.float32)
    return together


def glas(V: Array, U: Array, counts: Array, against: slice = slice(None)) -> Array:
    """Equation (3): ``1/n² ‖VVᵀ - U‖²_F``, which is Laplacian plus spread-out up to a constant on unit vectors.

    >>> glas(np.eye(2), np.eye(2), np.ones(2))
    np.float64(0.0)
    """
    return _mean_over_pairs((V[against] @ V.T - U) ** 2, counts, against)


def spreadout(V: Array, U: Array, counts: Array, against: slice = slice(None)) -> Array:
    """Equation (2): ``1/n² Σ (v_y·v_y')²``; ``U`` is not used."""
    return _mean_over_pairs((V[against] @ V.T) ** 2, counts, against)


def laplacian(V: Array, U: Array, counts: Array, against: slice = slice(None)) -> Array:
    """Equation (4): ``1/n² Σ u_yy' ‖v_y - v_y'‖²``, with ``‖v_y - v_y'‖² = 2 - 2 v_y·v_y'`` on unit vectors."""
    return _mean_over_pairs(U * (2 - 2 * (V[against] @ V.T)), counts, against)


def gravity(scores: Array, counts: Array) -> Array:
    """Mean squared score of ``scores`` (rows, labels): pulls rows and labels apart (Krichene et al.).

    It is the inner product of the two Gram matrices, ``⟨ΦᵀΦ, VᵀV⟩ / (n_rows n_labels)``, at no cost where the scores
    are at hand.
    """
    return ((scores**2) @ counts).mean() / counts.sum()


LABEL_REGULARIZERS: dict[str, Callable[..., Array]] = {"glas": glas, "spreadout": spreadout, "laplacian": laplacian}
"""The regularisers of label vectors alone; gravity needs the rows' scores."""

REGULARIZERS = (*LABEL_REGULARIZERS, "gravity", None)
"""What ``regularizer`` may be."""


def _mean_over_pairs(values: Array, counts: Array, against: slice) -> Array:
    return counts[against] @ values @ counts / counts.sum() ** 2
