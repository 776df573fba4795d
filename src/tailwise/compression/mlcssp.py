"""ML-CSSP: a few labels that stand for all, drawn by how much of Y they carry."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.compression.low_rank import Factors, LowRank
from tailwise.compression.ridge import CentredRows, ridge
from tailwise.compression.spectrum import top_right_vectors
from tailwise.persistence.checks import INTEGERS, check_indices, check_monotone, check_shape
from tailwise.validation import as_rng


class MLCSSP(LowRank):
    """Column subset selection: ridge regression to ``dim`` of the labels, the others decoded from these.

    The labels are drawn, all distinct, with probability ``|R_l|² / dim``, where R holds the top right singular vectors
    of Y: their leverage. With C their columns of Y, the score is ``ẑ C⁺ Y``, ẑ the regression to C. Costs one
    regression, O(steps · entries of X · dim), and O(dim³ + dim · n_labels) to decode.

    Paper: W. Bi and J. Kwok, *Efficient multi-label classification with many labels* (2013).

    Parameters
    ----------
    dim : int
        Labels drawn; at most as many as there are.
    l2 : float
        Penalty of the regression; rows have unit length.
    tol : float
        The regression stops when its residual is below this share of the right-hand side.
    random_state : int, Generator or None
        Draws the labels.
    n_jobs : int or None
        Threads; None uses every core.

    Attributes
    ----------
    chosen_ : ndarray
        The labels drawn, ascending.

    Examples
    --------
    >>> model = MLCSSP(dim=2, l2=0.1, random_state=0)
    >>> model = model.fit([[1.0, 0], [0, 1.0], [1, 0]], [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    >>> model.predict_topk([[0.9, 0.1]], k=1).labels
    array([[0]], dtype=int32)
    """

    chosen_: np.ndarray

    def __init__(
        self,
        dim: int = 200,
        *,
        l2: float = 1.0,
        tol: float = 1e-2,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.dim = dim
        self.l2 = l2
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _factor(self, rows: CentredRows, Y: sparse.csr_array) -> Factors:
        leverage = (top_right_vectors(Y, self.dim) ** 2).sum(axis=1)
        n_drawn = min(self.dim, int(np.count_nonzero(leverage)))
        chosen = np.arange(0)
        if n_drawn:
            rng, share = as_rng(self.random_state), leverage / leverage.sum()
            chosen = np.sort(rng.choice(leverage.size, n_drawn, replace=False, p=share))
        self.chosen_ = self._ranked[chosen]
        C = sparse.csr_array(Y[:, chosen]).astype(np.float64)
        W = ridge(rows, C.toarray(), self.l2, tol=self.tol, n_jobs=self.n_jobs, description="Training ML-CSSP")
        H = (np.linalg.pinv((C.T @ C).toarray(), hermitian=True) @ (C.T @ Y).toarray()).T
        offset = rows.mean_of(C) - rows.mean @ W
        return Factors(W, H, H @ offset)

    def _check_state(self) -> None:
        super()._check_state()
        chosen = check_shape("chosen_", self.chosen_, (self.projection_.shape[1],), INTEGERS)
        check_monotone("chosen_", check_indices("chosen_", chosen, self.n_labels_), strict=True)
