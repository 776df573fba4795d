"""Ridge regression from sparse rows to a few targets,: conjugate gradients, nothing of N × L nor D × D."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.parallel import map_blocks, row_blocks
from tailwise.rows import scaled_rows

TARGETS_A_BLOCK = 32
"""So wide that a row's entries are read for many targets at once, and that the block still fits the cache."""
MAX_STEPS = 200


class CentredRows:
    """``X - 1 μᵀ`` as an operator: X stays sparse. Centred rows make an intercept that no penalty touches.

    Where row i counts ``weight[i]`` times, μ is the weighted mean, and every row is times ``√weight``: squares of what
    rows miss then add up as if each were there so often. Labels and targets go through :meth:`scaled` likewise.
    """

    def __init__(self, X: sparse.csr_array, weight: np.ndarray | None = None) -> None:
        self._root = None if weight is None else np.sqrt(weight).astype(np.float32)
        self.total = float(X.shape[0] if weight is None else weight.sum())
        """How many rows count."""
        self.X = self.scaled(X)
        self.by_feature = sparse.csc_array(self.X.T)
        self.mean = self.mean_of(self.X).astype(np.float32)
        """(n_features,) float32."""
        squares = np.bincount(self.X.indices, self.X.data.astype(np.float64) ** 2, minlength=X.shape[1])
        self.squares = np.maximum(squares - self.total * self.mean.astype(np.float64) ** 2, 0).astype(np.float32)
        """The squared length of each centred column: (n_features,)."""

    def scaled(self, A: Any) -> Any:
        """A, sparse or dense, with row i times ``√weight[i]``."""
        if self._root is None:
            return A
        return scaled_rows(A, self._root) if sparse.issparse(A) else A * self._root[:, None]

    def mean_of(self, scaled: sparse.csr_array | np.ndarray) -> np.ndarray:
        """The weighted mean of rows that are scaled already: float64, a number a column."""
        if self._root is None:
            return np.asarray(scaled.sum(axis=0, dtype=np.float64)).ravel() / self.total
        return np.asarray(scaled.T @ self._root.astype(np.float64)).ravel() / self.total

    def centred(self, scaled: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Dense rows that are scaled already, less their ``means``."""
        return scaled - (means if self._root is None else self._root[:, None] * means)

    def times(self, W: np.ndarray) -> np.ndarray:
        """``(X - 1 μᵀ) W`` for W (n_features, m)."""
        return self.centred(self.X @ W, np.einsum("i,ij->j", self.mean, W))

    def transposed_times(self, T: np.ndarray) -> np.ndarray:
        """``(X - 1 μᵀ)ᵀ T`` for T (n_rows, m)."""
        sums = T.sum(axis=0) if self._root is None else np.einsum("i,ij->j", self._root, T)
        return self.by_feature @ T - self.mean[:, None] * sums


def ridge(
    rows: CentredRows,
    targets: np.ndarray,
    penalty: float | np.ndarray,
    *,
    start: np.ndarray | None = None,
    tol: float = 1e-3,
    n_jobs: int | None = None,
    description: str = "",
) -> np.ndarray:
    """The W (n_features, m) of least ``½ |T - Xc W|² + Σ_j ½ penalty_j |w_j|²``, Xc the centred rows.

    ``targets`` T is (n_rows, m), ``penalty`` positive, one or one a target. Every target has its own conjugate
    gradients, preconditioned by the diagonal; a block of them shares the passes over X and ends when each residual is
    below ``tol`` of its right-hand side. ``start`` is where to begin. A step costs O(entries of X · m), memory is
    O((n_rows + n_features) · m).
    """
    n_features, m = rows.X.shape[1], targets.shape[1]
    penalties = np.broadcast_to(np.asarray(penalty, np.float32), m)
    W = np.zeros((n_features, m), np.float32) if start is None else start.astype(np.float32)

    def solve(block: tuple[int, int]) -> None:
        part = slice(*block)
        W[:, part] = _conjugate_gradients(rows, targets[:, part], penalties[part], W[:, part], tol)

    map_blocks(solve, row_blocks(m, TARGETS_A_BLOCK), n_jobs=n_jobs, description=description)
    return W


def _conjugate_gradients(
    rows: CentredRows, targets: np.ndarray, penalty: np.ndarray, W: np.ndarray, tol: float
) -> np.ndarray:
    W, targets = np.ascontiguousarray(W), np.ascontiguousarray(targets, np.float32)
    goal = rows.transposed_times(targets)
    residual = goal - rows.transposed_times(rows.times(W)) - penalty * W if W.any() else goal.copy()
    diagonal = rows.squares[:, None] + penalty
    # No goal is longer than its target's length times that of X: what is below the rounding of that is zero.
    rounding = np.finfo(np.float32).eps ** 2 * rows.squares.sum() * _dots(targets, targets)
    enough = np.maximum(tol**2 * _dots(goal, goal), rounding)
    step = residual / diagonal
    energy = _dots(residual, step)
    for _ in range(MAX_STEPS):
        # A target that is solved rests: more steps on a residual of rounding errors would only lead away.
        active = _dots(residual, residual) > enough
        if not active.any():
            break
        forward = rows.times(step)
        curvature = _dots(forward, forward) + penalty * _dots(step, step)
        length = active * _ratio(energy, curvature)
        W = W + length * step
        residual = residual - length * (rows.transposed_times(forward) + penalty * step)
        scaled = residual / diagonal
        new_energy = _dots(residual, scaled)
        step = scaled + _ratio(new_energy, energy) * step
        energy = new_energy
    return W


def _dots(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The inner product of each pair of columns, by a sum that does not depend on threads."""
    return np.einsum("ij,ij->j", A, B)


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, and 0 where b is 0: a target that is solved stays as it is."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
