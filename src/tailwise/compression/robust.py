"""RobustXML: LEML, and a sparse part for the labels that no small space holds."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.compression.leml import Alternation
from tailwise.compression.low_rank import DIM, LARGEST, POSITIVE, encode, labels_with_rows
from tailwise.compression.ridge import CentredRows
from tailwise.explanation import Explanation, margin_explanation, not_ranked
from tailwise.parallel import ONE_BLAS_THREAD, map_blocks, row_blocks
from tailwise.parameters import Integer
from tailwise.persistence.checks import check_exact, check_finite, check_range
from tailwise.rows import UNIT_LENGTH, RowView
from tailwise.scoring import check_linear, predict_topk_linear

_LABELS_A_BLOCK = 128


class RobustXML(XMCModel):
    """``min ½ |Y - X W Hᵀ - X S|² + ½ l2 (|W|² + |H|²) + l1 |S|₁``: low rank for the head, sparse for the tail.

    X and Y are less their means. Alternates LEML's steps with ``steps`` proximal steps on S, block by block of labels:
    ``S ← soft(S + G / d, l1 / d)`` with ``G = Xᵀ(Y - X W Hᵀ - X S)`` and ``d_f = Σ_i |x_if| |x_i|₁``, which bounds XᵀX
    from above, so that no step raises the objective. A proximal step costs O(entries of X · n_labels) time and blocks
    of (n_samples + n_features) · 128 numbers.

    Paper: C. Xu, D. Tao and C. Xu, *Robust extreme multi-label learning* (2016).

    Parameters
    ----------
    dim : int
        Columns of W and H; at most as many as there are labels.
    l1 : float
        Penalty of S; larger is sparser.
    l2 : float
        Penalty of W and H; rows have unit length.
    rounds : int
        Alternations.
    steps : int
        Proximal steps a round.
    tol : float
        The regressions stop when their residual is below this share of the right-hand side.
    n_jobs : int or None
        Threads; None uses every core.

    Attributes
    ----------
    projection_ : ndarray (n_features, m)
        W, float32.
    weights_ : csr_array (n_features + m, n_labels)
        S, and Hᵀ below it: what the row and its projection are multiplied with.
    bias_ : ndarray (n_labels,)
        Float32; -inf for a label without rows.
    objective_ : ndarray
        The objective after each round.

    Examples
    --------
    >>> model = RobustXML(dim=1, l1=0.1, l2=0.1).fit([[1.0, 0], [0, 1.0], [1, 0]], [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    >>> model.predict_topk([[0.9, 0.1]], k=2).labels
    array([[0, 2]], dtype=int32)
    """

    _parameters = {
        "dim": DIM,
        "l1": POSITIVE,
        "l2": POSITIVE,
        "rounds": Integer(low=1),
        "steps": Integer(low=1),
        "tol": POSITIVE,
    }

    projection_: np.ndarray
    weights_: sparse.csr_array
    bias_: np.ndarray
    objective_: np.ndarray

    def __init__(
        self,
        dim: int = 200,
        *,
        l1: float = 0.3,
        l2: float = 1.0,
        rounds: int = 2,
        steps: int = 3,
        tol: float = 1e-2,
        n_jobs: int | None = None,
    ) -> None:
        self.dim = dim
        self.l1 = l1
        self.l2 = l2
        self.rounds = rounds
        self.steps = steps
        self.tol = tol
        self.n_jobs = n_jobs

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return UNIT_LENGTH

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        ranked = np.flatnonzero(self.label_counts_)
        rows = CentredRows(X, weight)
        Y = rows.scaled(labels_with_rows(Y, ranked))
        objectives = []
        with ONE_BLAS_THREAD:
            model = Alternation(rows, Y, self.dim, self.l2, self.tol, self.n_jobs)
            model.S = sparse.csr_array((X.shape[1], ranked.size), dtype=np.float32)
            for _ in range(self.rounds):
                model.solve_rows("Training RobustXML")
                model.solve_labels()
                model.S, loss = self._sparse_steps(model)
                norms = (model.W.astype(np.float64) ** 2).sum() + (model.H**2).sum()
                objectives.append(loss + 0.5 * self.l2 * norms)
        self.objective_ = np.array(objectives)
        self._keep(model, ranked)

    def _keep(self, model: Alternation, ranked: np.ndarray) -> None:
        W, H, S = model.W, model.H.astype(np.float32), model.S
        assert S is not None
        mean = model.rows.mean
        bias = np.full(self.n_labels_, -np.inf, np.float32)
        bias[ranked] = model.means - H @ (mean @ W) - S.T @ mean
        both = sparse.csr_array(sparse.vstack([S, sparse.csr_array(H.T)], format="csr"))
        shape = both.shape[0], self.n_labels_
        self.projection_ = W
        self.weights_ = sparse.csr_array((both.data, ranked[both.indices].astype(np.int32), both.indptr), shape=shape)
        self.bias_ = bias

    def _sparse_steps(self, model: Alternation) -> tuple[sparse.csr_array, float]:
        """S after the proximal steps, and its part of the objective: ``½ |residual|² + l1 |S|₁``."""
        rows, X = model.rows, model.rows.X
        lengths = np.bincount(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), np.abs(X.data), minlength=X.shape[0])
        bound = np.maximum(abs(X).T @ lengths, 1e-6).astype(np.float32)[:, None]
        by_label, S = sparse.csc_array(model.Y), sparse.csc_array(model.S)
        means, H = model.means.astype(np.float32), model.H.astype(np.float32)
        A = rows.times(model.W)

        def improve(block: tuple[int, int]) -> tuple[sparse.csc_array, float]:
            part = slice(*block)
            own = S[:, part].toarray()
            target = rows.centred(by_label[:, part].toarray(), means[part]) - A @ H[part].T
            residual = target - rows.times(own)
            for _ in range(self.steps):
                own += rows.transposed_times(residual) / bound
                own = np.sign(own) * np.maximum(np.abs(own) - np.float32(self.l1) / bound, 0)
                residual = target - rows.times(own)
            loss = 0.5 * np.square(residual).sum(dtype=np.float64) + self.l1 * np.abs(own).sum(dtype=np.float64)
            return sparse.csc_array(own), float(loss)

        blocks = row_blocks(model.Y.shape[1], _LABELS_A_BLOCK)
        done = map_blocks(improve, blocks, n_jobs=self.n_jobs, description="Training RobustXML")
        if not done:
            return sparse.csr_array(S), 0.0
        return sparse.csr_array(sparse.hstack([part for part, _ in done], format="csr")), sum(loss for _, loss in done)

    def _check_state(self) -> None:
        super()._check_state()
        m = check_exact("projection_", self.projection_, np.float32, (self._n_seen, None)).shape[1]
        check_range("projection_", self.projection_, -LARGEST, LARGEST)
        check_linear(self.weights_, self.bias_, (self._n_seen + m, self.n_labels_))
        check_range("weights_.data", self.weights_.data, -LARGEST, LARGEST)
        check_finite("objective_", check_exact("objective_", self.objective_, np.float64, (None,)))

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        projected = encode(X, self.projection_, n_jobs=self.n_jobs)
        both = sparse.csr_array(sparse.hstack([X, sparse.csr_array(projected)], format="csr"))
        return predict_topk_linear(both, self.weights_, self.bias_, k, n_jobs=self.n_jobs)

    def _label_weights(self) -> sparse.csr_array:
        S, H = self.weights_[: self._n_seen], self.weights_[self._n_seen :]
        return sparse.csr_array(S.T + sparse.csr_array(H.T @ self.projection_.T))

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        if np.isneginf(self.bias_[label]):
            return not_ranked(label, "no training row has the label")
        column = self.weights_[:, [label]].toarray().ravel()
        weights = column[x.indices] + self.projection_[x.indices] @ column[self._n_seen :]
        return margin_explanation(label, x, weights, self.bias_[label])
