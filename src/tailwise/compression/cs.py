"""CS: labels compressed by a random matrix, found again because few are relevant."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.compression.low_rank import DIM, LARGEST, POSITIVE, encode, labels_with_rows
from tailwise.compression.ridge import CentredRows, ridge
from tailwise.explanation import Explanation, margin_explanation, not_ranked
from tailwise.kernels.arrays import read_only
from tailwise.kernels.compression.pursuit import pursue
from tailwise.kernels.networks.embedding import unit_length
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.kernels.sparse.topk import topk_csr
from tailwise.parallel import map_blocks, row_blocks
from tailwise.parameters import Integer
from tailwise.persistence.checks import check_exact, check_range, check_that
from tailwise.ranges import Range, Ranges
from tailwise.rows import UNIT_LENGTH, RowView
from tailwise.validation import as_rng

_ROWS_A_BLOCK = 64


class CS(XMCModel):
    """Compressed sensing: ridge regression to random sums of labels, decoded by orthogonal matching pursuit.

    Each label gets a random direction ``a_l`` of ``dim`` numbers; a row's target is the sum of its labels' directions.
    From a predicted target ẑ, pursuit takes the label whose direction agrees best with what is left of ẑ, fits all
    weights anew by least squares, and goes on up to ``max_labels``: labels beyond are not predicted. The weight is the
    score. Training costs O(steps · entries of X · dim), a prediction O(max_labels · n_labels · dim).

    Paper: D. Hsu, S. Kakade, J. Langford and T. Zhang, *Multi-label prediction via compressed sensing* (2009).

    Parameters
    ----------
    dim : int
        Length of the random directions.
    max_labels : int
        Labels decoded for a row.
    l2 : float
        Penalty of the regression; rows have unit length.
    tol : float
        The regression stops when its residual is below this share of the right-hand side.
    random_state : int, Generator or None
        Draws the directions.
    n_jobs : int or None
        Threads; None uses every core.

    Attributes
    ----------
    projection_ : ndarray (n_features, dim)
        Of the regression, float32.
    offset_ : ndarray (dim,)
        Its intercept, float32.
    vectors_ : ndarray (n labels that have rows, dim)
        The directions, of unit length, float32.

    Examples
    --------
    >>> model = CS(dim=8, l2=0.1, random_state=0)
    >>> model = model.fit([[1.0, 0], [0, 1.0], [1, 0]], [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    >>> sorted(model.predict_topk([[1.0, 0.0]], k=2).labels[0].tolist())
    [0, 2]
    """

    _parameters = {"dim": DIM, "max_labels": Integer(low=1), "l2": POSITIVE, "tol": POSITIVE}

    projection_: np.ndarray
    offset_: np.ndarray
    vectors_: np.ndarray

    def __init__(
        self,
        dim: int = 200,
        *,
        max_labels: int = 20,
        l2: float = 1.0,
        tol: float = 1e-2,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.dim = dim
        self.max_labels = max_labels
        self.l2 = l2
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {"l2": Range.around(self.l2, 16)}

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return UNIT_LENGTH

    @property
    def _ranked(self) -> np.ndarray:
        return np.flatnonzero(self.label_counts_)

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        rng = as_rng(self.random_state)
        vectors = rng.standard_normal((self._ranked.size, self.dim), np.float32)
        unit_length(vectors)
        rows = CentredRows(X, weight)
        targets = rows.scaled(labels_with_rows(Y, self._ranked)) @ vectors
        W = ridge(rows, targets, self.l2, tol=self.tol, n_jobs=self.n_jobs, description="Training CS")
        offset = rows.mean_of(targets) - np.einsum("i,ij->j", rows.mean, W)
        self.projection_, self.offset_, self.vectors_ = W, offset.astype(np.float32), vectors

    def _check_state(self) -> None:
        super()._check_state()
        for name, n in (("projection_", self._n_seen), ("vectors_", self._ranked.size)):
            check_exact(name, getattr(self, name), np.float32, (n, self.dim))
        check_exact("offset_", self.offset_, np.float32, (self.dim,))
        check_range("projection_", self.projection_, -LARGEST, LARGEST)
        check_range("offset_", self.offset_, -LARGEST, LARGEST)
        lengths = np.einsum("ij,ij->i", self.vectors_, self.vectors_)
        check_that((np.abs(lengths - 1) < 1e-3).all(), "vectors_ has a vector that is not of unit length")

    def _decode(self, X: sparse.csr_array) -> TopK:
        """The positions in ``vectors_`` in the order in which pursuit chooses them, with their weights."""
        targets = read_only(encode(X, self.projection_, n_jobs=self.n_jobs) + self.offset_)
        shape = X.shape[0], min(self.max_labels, self.dim)
        found = TopK(np.empty(shape, np.int32), np.empty(shape, np.float32))
        vectors = read_only(self.vectors_)

        def decode(block: tuple[int, int]) -> None:
            pursue(targets, block, vectors, *found)

        map_blocks(decode, row_blocks(X.shape[0], _ROWS_A_BLOCK), n_jobs=self.n_jobs)
        return found

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        positions, weights = self._decode(X)
        top = TopK(np.empty((X.shape[0], k), np.int32), np.empty((X.shape[0], k), np.float32))
        present = positions >= 0
        indptr = np.append(0, np.cumsum(present.sum(axis=1)))
        topk_csr(csr_parts(Csr(indptr, self._ranked[positions[present]], weights[present])), *top)
        return top

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        chosen = self._decode(x).labels[0]
        chosen = chosen[chosen >= 0]
        at = np.flatnonzero(self._ranked[chosen] == label)
        if not at.size:
            return not_ranked(label, "pursuit does not choose the label")
        # With the chosen labels given, the weights are linear in what the regression predicts.
        decoder = np.linalg.pinv(self.vectors_[chosen].astype(np.float64))[:, at[0]]
        return margin_explanation(label, x, self.projection_[x.indices] @ decoder, float(self.offset_ @ decoder))
