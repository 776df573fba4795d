"""LEML: the labels as a product of low rank, both factors learnt together."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.compression.low_rank import Factors, LowRank
from tailwise.compression.ridge import CentredRows, ridge
from tailwise.compression.spectrum import top_right_vectors
from tailwise.parameters import Integer
from tailwise.persistence.checks import check_exact, check_finite

LEAST_GAIN = 1e-4
"""Alternation ends where a round lowers the objective by less than this share."""
_LEAST = 1e-6


class Alternation:
    """``min ½ |R - X W Hᵀ|² + ½ l2 (|W|² + |H|²)`` step by step, where ``R = Y - X S`` for a sparse S that may change.

    X and Y are less their means. R is never formed: it is only multiplied. S starts as None, which is zero.
    """

    def __init__(
        self, rows: CentredRows, Y: sparse.csr_array, dim: int, l2: float, tol: float, n_jobs: int | None
    ) -> None:
        self.rows, self.Y = rows, Y
        self.l2, self.tol, self.n_jobs = l2, tol, n_jobs
        self.S: sparse.csr_array | None = None
        self.means = rows.mean_of(Y)
        """(n_labels,): the share of rows that have each label."""
        self.H = top_right_vectors(Y, dim, rows)
        self.W = np.zeros((rows.X.shape[1], self.H.shape[1]), np.float32)
        self._square = float((Y.data.astype(np.float64) ** 2).sum()) - rows.total * float(self.means @ self.means)

    def solve_rows(self, description: str) -> None:
        """The W that is best for H, both turned so that ``HᵀH`` is diagonal; dead directions are dropped."""
        squares, turn = np.linalg.eigh(self.H.T @ self.H)
        kept = squares > _LEAST * squares.max(initial=0)
        self.H, squares = self.H @ turn[:, kept], squares[kept]
        targets = self.Y @ self.H
        if self.S is not None:
            targets -= self.rows.times((self.S @ self.H).astype(np.float32))
        self.W = ridge(
            self.rows,
            (targets / squares).astype(np.float32),
            self.l2 / squares,
            start=self.W @ turn[:, kept],
            tol=self.tol,
            n_jobs=self.n_jobs,
            description=description,
        )

    def solve_labels(self) -> None:
        """The H that is best for W."""
        gram, image = self._products()
        self.H = np.linalg.solve(gram + self.l2 * np.eye(gram.shape[0]), image.T).T

    def objective(self) -> float:
        """What is minimised, where S is zero."""
        gram, image = self._products()
        fit = 0.5 * self._square - (self.H * image).sum() + 0.5 * ((self.H.T @ self.H) * gram).sum()
        return float(fit + 0.5 * self.l2 * ((self.W.astype(np.float64) ** 2).sum() + (self.H**2).sum()))

    def _products(self) -> tuple[np.ndarray, np.ndarray]:
        """``AᵀA`` and ``Rᵀ A`` of ``A = X W``."""
        A = self.rows.times(self.W)
        image = self.Y.T @ A.astype(np.float64)
        if self.S is not None:
            image -= self.S.T @ self.rows.transposed_times(A).astype(np.float64)
        A = A.astype(np.float64)
        return A.T @ A, image


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
        alternation = Alternation(rows, Y, self.dim, self.l2, self.tol, self.n_jobs)
        objectives: list[float] = []
        for _ in range(self.max_rounds):
            alternation.solve_rows("Training LEML")
            alternation.solve_labels()
            objectives.append(alternation.objective())
            if len(objectives) > 1 and objectives[-1] > objectives[-2] * (1 - LEAST_GAIN):
                break
        self.objective_ = np.array(objectives)
        W, H = alternation.W, alternation.H
        return Factors(W, H, alternation.means - H @ (rows.mean @ W))

    def _check_state(self) -> None:
        super()._check_state()
        check_finite("objective_", check_exact("objective_", self.objective_, np.float64, (None,)))
