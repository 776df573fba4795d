"""How alike a row is to the training rows that have a label: the nearest of them, and all together."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from tailwise.kernels.sparse.csr import spread
from tailwise.parallel import map_blocks, row_blocks
from tailwise.persistence.checks import check_exact, check_kind, check_matrix, check_range, check_that
from tailwise.rows import UNIT_LENGTH, with_values
from tailwise.tail.solved_votes import solved_votes

_COSINES = 1 << 20
"""Of a block of rows with all training rows."""


_LEAST = 0.003
"""What is added to a label's share of the votes, whose logarithm counts."""


class Nearness(NamedTuple):
    """Five numbers about a row x and a label l, from cosines of x with the training rows i:

    * ``max_{i has l} cos(x, x_i) - max_i cos(x, x_i)``, 0 where the nearest has the label;
    * ``ln(0.003 + Σ_{i has l} c_i⁸ / Σ_i c_i⁸)``, ``c_i = max(0, cos(x, x_i))``: the votes of rows very alike;
    * the same with the power 4 and cosines without idf weights: the votes of many rows, somewhat alike;
    * ``v = Σ_{i has l} w_i``, w the :func:`solved_votes` of the rows most alike, which count what they share once;
    * v less that of the row's best candidate.
    """

    rows: sparse.csr_array
    """(n_features, n_rows): training rows with idf weights, of unit length, one a column"""
    labels: sparse.csr_array
    """(n_labels, n_rows): which of them have each label"""
    idf: np.ndarray | None = None
    """(n_features,) float32: the weights; None, in models of earlier versions: there are no votes"""
    lengths: np.ndarray | None = None
    """(n_rows,) float32: of the rows once the weights are taken off again"""
    bare: sparse.csr_array | None = None
    """(n_rows, n_features): without weights, of unit length; None, in models of earlier versions: no vote is solved"""

    @classmethod
    def of(cls, rows: sparse.csr_array, Y: sparse.csr_array, idf: np.ndarray) -> Self:
        """Training rows with weights ``idf``, of unit length, and their labels."""
        bare = rows.data.astype(np.float64) / idf[rows.indices]
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        lengths = np.sqrt(np.bincount(row, bare**2, minlength=rows.shape[0])).astype(np.float32)
        unit = with_values(rows, (bare / np.maximum(lengths, np.finfo(np.float32).tiny)[row]).astype(np.float32))
        return cls(sparse.csr_array(rows.T.tocsr()), sparse.csr_array(Y.T.tocsr()), idf, lengths, unit)

    @property
    def n_inputs(self) -> int:
        """How many of the numbers there are."""
        return 1 if self.idf is None else 3 if self.bare is None else 5

    def __call__(self, rows: sparse.csr_array, labels: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """For weighted unit rows and candidates ``labels`` (n, k): (n, k, n_inputs) float32, of a -1 anything.

        A label of no row has a cosine of 0 and no votes.

        >>> X, ones = sparse.csr_array(np.eye(2, dtype=np.float32)), np.ones(2, np.float32)
        >>> Nearness.of(X, X, ones)(sparse.csr_array([[0.6, 0.8]]), np.array([[0, 1]])).round(2)
        array([[[-0.2 , -2.36, -1.41,  0.3 , -0.23],
                [ 0.  , -0.09, -0.27,  0.53,  0.  ]]], dtype=float32)
        """
        counts = np.diff(self.labels.indptr)
        found = np.zeros((*labels.shape, self.n_inputs), np.float32)
        bare = self._without_weights(rows)

        def summed(votes: np.ndarray, own: np.ndarray, begin: np.ndarray) -> np.ndarray:
            return np.add.reduceat(votes.ravel().take(own), begin[:-1])

        def compare(block: tuple[int, int]) -> None:
            part = slice(*block)
            cosines = (rows[part] @ self.rows).toarray()
            row, place = np.nonzero((labels[part] >= 0) & (counts[labels[part]] > 0))
            label = labels[part][row, place]
            begin, entries = spread(self.labels.indptr[label], counts[label])
            own = np.repeat(row * cosines.shape[1], counts[label]) + self.labels.indices[entries]
            if row.size:
                found[part][row, place, 0] = np.maximum.reduceat(cosines.ravel().take(own), begin[:-1])
            found[part][..., 0] -= cosines.max(axis=1, initial=0.0, keepdims=True)
            if bare is None or self.lengths is None:
                return
            broad = (bare[part] @ self.rows).toarray() / np.maximum(self.lengths, np.finfo(np.float32).tiny)
            for number, (alike, squared) in enumerate(((cosines, 3), (broad, 2)), 1):
                votes = np.maximum(alike, 0.0)
                for _ in range(squared):
                    votes *= votes
                if row.size:
                    found[part][row, place, number] = summed(votes, own, begin)
                found[part][..., number] /= np.maximum(votes.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
                found[part][..., number] = np.log(found[part][..., number] + np.float32(_LEAST))
            if self.bare is None:
                return
            if row.size:
                found[part][row, place, 3] = summed(solved_votes(broad, self.bare), own, begin)
            best = np.where(labels[part] >= 0, found[part][..., 3], -np.inf).max(axis=1, initial=-np.inf, keepdims=True)
            found[part][..., 4] = found[part][..., 3] - np.where(np.isfinite(best), best, 0.0)

        n_at_once = max(1, _COSINES // max(1, self.labels.shape[1]))
        with threadpool_limits(1):  # the same sums for any number of threads
            map_blocks(compare, row_blocks(labels.shape[0], n_at_once), n_jobs=n_jobs)
        return found

    def _without_weights(self, rows: sparse.csr_array) -> sparse.csr_array | None:
        """What, times the training rows with weights, gives the cosines without, but for the lengths of those."""
        if self.idf is None:
            return None
        unit = UNIT_LENGTH._replace(weights=1 / self.idf)(rows)
        return with_values(unit, unit.data / self.idf[unit.indices])

    def check(self, n_features: int, n_labels: int) -> None:
        """Refuse what does not compare rows of ``n_features`` by ``n_labels``."""
        n_rows = check_kind("nearest_.rows", self.rows, sparse.csr_array).shape[1]
        check_matrix("nearest_.rows", self.rows, (n_features, n_rows))
        check_matrix("nearest_.labels", self.labels, (n_labels, n_rows))
        if self.idf is not None:
            check_range("nearest_.idf", check_exact("nearest_.idf", self.idf, np.float32, (n_features,)), 1)
            check_range("nearest_.lengths", check_exact("nearest_.lengths", self.lengths, np.float32, (n_rows,)), 0)
        if self.bare is not None:
            check_that(self.idf is not None, "nearest_ has rows without weights, but no weights")
            check_matrix("nearest_.bare", self.bare, (n_rows, n_features))
