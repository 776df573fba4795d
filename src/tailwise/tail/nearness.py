"""How alike a row is to the nearest training row that has a label."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from tailwise.kernels.sparse.csr import spread
from tailwise.parallel import map_blocks, row_blocks
from tailwise.persistence.checks import check_kind, check_matrix

_COSINES = 1 << 20
"""Of a block of rows with all training rows."""


class Nearness(NamedTuple):
    """``max_{i has l} cos(x, x_i) - max_i cos(x, x_i)`` over the training rows i: 0 where the nearest has the label."""

    rows: sparse.csr_array
    """(n_features, n_rows): training rows of unit length, one a column"""
    labels: sparse.csr_array
    """(n_labels, n_rows): which of them have each label"""

    @classmethod
    def of(cls, rows: sparse.csr_array, Y: sparse.csr_array) -> Self:
        """Training rows of unit length and their labels."""
        return cls(sparse.csr_array(rows.T.tocsr()), sparse.csr_array(Y.T.tocsr()))

    def __call__(self, rows: sparse.csr_array, labels: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """For unit rows and candidates ``labels`` (n, k): (n, k) float32, of a -1 anything; no row is a cosine of 0.

        >>> near = Nearness.of(sparse.csr_array(np.eye(2, dtype=np.float32)), sparse.csr_array([[1.0, 0], [0, 1]]))
        >>> near(sparse.csr_array([[0.6, 0.8]]), np.array([[0, 1]])).round(2)
        array([[-0.2,  0. ]], dtype=float32)
        """
        counts = np.diff(self.labels.indptr)
        found = np.zeros(labels.shape, np.float32)

        def compare(block: tuple[int, int]) -> None:
            part = slice(*block)
            cosines = (rows[part] @ self.rows).toarray()
            row, place = np.nonzero((labels[part] >= 0) & (counts[labels[part]] > 0))
            if row.size:
                label = labels[part][row, place]
                begin, entries = spread(self.labels.indptr[label], counts[label])
                own = cosines[np.repeat(row, counts[label]), self.labels.indices[entries]]
                found[part][row, place] = np.maximum.reduceat(own, begin[:-1])
            found[part] -= cosines.max(axis=1, initial=0.0, keepdims=True)

        n_at_once = max(1, _COSINES // max(1, self.labels.shape[1]))
        map_blocks(compare, row_blocks(labels.shape[0], n_at_once), n_jobs=n_jobs)
        return found

    def check(self, n_features: int, n_labels: int) -> None:
        """Refuse what does not compare rows of ``n_features`` by ``n_labels``."""
        n_rows = check_kind("nearest_.rows", self.rows, sparse.csr_array).shape[1]
        check_matrix("nearest_.rows", self.rows, (n_features, n_rows))
        check_matrix("nearest_.labels", self.labels, (n_labels, n_rows))
