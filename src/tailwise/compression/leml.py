"""LEML: the labels as a product of low rank, both factors learnt together."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.compression.low_rank import Factors, LowRank, label_means
from tailwise.compression.ridge import CentredRows, ridge
from tailwise.compression.spectrum import top_right_vectors
from tailwise.parameters import Integer
from tailwise.persistence.checks import check_exact, check_finite

_LEAST_GAIN = 1e-4
_LEAST = 1e-6


class LEML(LowRank):
    """Low-rank empirical risk minimisation: ``min ½ |Y - X W Hᵀ|² + ½ l2 (|W|² + |H|²)`` with ``dim`` columns each.

    X and Y are less their means, which is a bias of each label that no penalty touches. Alternates: for given W,
    ``H = Yᵀ A (AᵀA + l2)⁻¹`` with ``A = X W``; for given H, turned so that ``HᵀH = diag(s)``, each column of W is a
    ridge regression of its own, to ``Y h_j / s_j`` with the penalty ``l2 / s_j``, by conjugate gradients that start at
    the last W. Neither step raises the objective. A round costs O(steps · entries of X · dim + n_labels · dim²).

    Paper: H.-F. Yu, P. Jain, P. Kar and I. Dhillon, *Large-scale multi-label learning with missing labels* (2014).

    Parameters
    ----------
    dim : int
        Columns of W and H; at most as many as there are labels.
    l2 : float
        Penalty of both factors; rows have unit length.
    max_rounds : int
        Alternations at most; fewer where the objective falls by less than a ten-thousandth.
    tol : float
        The regressions stop when their residual is below this share of the right-hand side.
    n_jobs : int or None
        Threads; None uses every core.

    Attributes
    ----------
    objective_ : ndarray
        The objective after each round.

    Examples
    --------
    >>> model = LEML(dim=2, l2=0.1).fit([[1.0, 0], [0, 1.0], [1, 0]], [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    >>> model.predict_topk([[0.9, 0.1]], k=2).labels
    array([[0, 2]], dtype=int32)
    """

    _parameters = {"max_rounds": Integer(low=1)}

    objective_: np.ndarray

    def __init__(
        self,
        dim: int = 200,
        *,
        l2: float = 1.0,
        max_rounds: int = 3,
        tol: float = 1e-2,
        n_jobs: int | None = None,
    ) -> None:
        self.dim = dim
        self.l2 = l2
        self.max_rounds = max_rounds
        self.tol = tol
        self.n_jobs = n_jobs

    def _factor(self, rows: CentredRows, Y: sparse.csr_array) -> Factors:
        means = label_means(Y)
        square = Y.nnz - Y.shape[0] * float(means @ means)
        H = top_right_vectors(Y, self.dim, centre=True)
        W = np.zeros((rows.X.shape[1], H.shape[1]), np.float32)
        objectives: list[float] = []
        for _ in range(self.max_rounds):
            W, H = self._solve_rows(rows, Y, W, H)
            A = rows.times(W).astype(np.float64)
            gram, image = A.T @ A, Y.T @ A
            H = np.linalg.solve(gram + self.l2 * np.eye(gram.shape[0]), image.T).T
            fit = 0.5 * square - (H * image).sum() + 0.5 * ((H.T @ H) * gram).sum()
            objectives.append(float(fit + 0.5 * self.l2 * ((W.astype(np.float64) ** 2).sum() + (H**2).sum())))
            if len(objectives) > 1 and objectives[-1] > objectives[-2] * (1 - _LEAST_GAIN):
                break
        self.objective_ = np.array(objectives)
        return Factors(W, H, means - H @ (rows.mean @ W))

    def _solve_rows(
        self, rows: CentredRows, Y: sparse.csr_array, W: np.ndarray, H: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The W that is best for H, both turned so that ``HᵀH`` is diagonal; dead directions are dropped."""
        squares, turn = np.linalg.eigh(H.T @ H)
        kept = squares > _LEAST * squares.max(initial=0)
        H, W, squares = H @ turn[:, kept], (W @ turn[:, kept]).astype(np.float32), squares[kept]
        targets = ((Y @ H) / squares).astype(np.float32)
        W = ridge(
            rows,
            targets,
            self.l2 / squares,
            start=W,
            tol=self.tol,
            n_jobs=self.n_jobs,
            description="Training LEML",
        )
        return W, H

    def _check_state(self) -> None:
        super()._check_state()
        check_finite("objective_", check_exact("objective_", self.objective_, np.float64, (None,)))
