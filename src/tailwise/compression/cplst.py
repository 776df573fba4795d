"""CPLST: the directions of the label space that are both wide and predictable from rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.compression.low_rank import Factors, LowRank
from tailwise.compression.ridge import CentredRows, ridge
from tailwise.compression.spectrum import top_right_vectors

_MAX_ROUNDS = 10
_LEAST_GAIN = 1e-3


class CPLST(LowRank):
    """Conditional principal label space transformation: ridge regression to the label directions it predicts best.

    With Y less its means and ``H = X (XᵀX + l2)⁻¹ Xᵀ`` of the centred rows, V holds the top eigenvectors of
    ``Yᵀ H Y``: the orthonormal V of least ``|Y - X W Vᵀ|² + l2 |W|²``, W the regression to ``Y V``. The score is
    ``x W Vᵀ`` plus the label's mean. Found by subspace iteration ``V ← orth(Yᵀ H Y V)`` from the principal directions
    of Y, each round one regression that starts where the last one ended; O(rounds · steps · entries of X · dim).

    Paper: Y.-N. Chen and H.-T. Lin, *Feature-aware label space dimension reduction* (2012).

    Parameters
    ----------
    dim : int
        Directions kept; at most as many as there are labels.
    l2 : float
        Penalty of the regression; rows have unit length.
    tol : float
        The regression stops when its residual is below this share of the right-hand side.
    n_jobs : int or None
        Threads; None uses every core.

    Examples
    --------
    >>> model = CPLST(dim=2, l2=0.1).fit([[1.0, 0], [0, 1.0], [1, 0]], [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    >>> model.predict_topk([[0.9, 0.1]], k=2).labels
    array([[0, 2]], dtype=int32)
    """

    def __init__(self, dim: int = 200, *, l2: float = 1.0, tol: float = 1e-2, n_jobs: int | None = None) -> None:
        self.dim = dim
        self.l2 = l2
        self.tol = tol
        self.n_jobs = n_jobs

    def _factor(self, rows: CentredRows, Y: sparse.csr_array) -> Factors:
        means = rows.mean_of(Y)
        V = top_right_vectors(Y, self.dim, rows)
        W, captured = np.zeros((rows.X.shape[1], V.shape[1]), np.float32), -np.inf
        for _ in range(_MAX_ROUNDS):
            targets = (Y @ V).astype(np.float32)
            W = ridge(rows, targets, self.l2, start=W, tol=self.tol, n_jobs=self.n_jobs, description="Training CPLST")
            image = Y.T @ rows.times(W).astype(np.float64)
            before, captured = captured, float((V * image).sum())
            if captured <= before * (1 + _LEAST_GAIN) or V.shape[1] == min(Y.shape):
                break
            turned = np.linalg.qr(image)[0]
            W, V = (W @ (V.T @ turned)).astype(np.float32), turned
        return Factors(W, V, means - V @ (rows.mean @ W))
