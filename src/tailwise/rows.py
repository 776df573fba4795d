"""How a model sees rows: a choice of columns, damped values, weighted features, unit length; one door for all.

A model says in ``_see_rows`` how it sees rows; ``fit`` keeps the answer as ``rows_``, and training, prediction and
explanation see their rows through it.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.parallel import map_blocks, row_blocks
from tailwise.persistence.checks import (
    INTEGERS,
    check_exact,
    check_finite,
    check_indices,
    check_kind,
    check_monotone,
    check_shape,
)
from tailwise.runs import room
from tailwise.validation import check_number

_ROWS_A_BLOCK = 1 << 13
"""Of more rows threads share the scaling."""


class RowView(NamedTuple):
    """What becomes of a row, step by step in the order of the fields. Without any step the row stays as it is.

    >>> from tailwise.validation import check_features
    >>> RowView(power=0.5, unit=True)(check_features([[9.0, 16.0]])).toarray()
    array([[0.6, 0.8]], dtype=float32)
    """

    columns: np.ndarray | None = None
    """(n_seen,) ascending: the columns that are seen; None is all."""
    power: float = 1.0
    """Values become ``sign(x) |x|^power``."""
    weights: np.ndarray | None = None
    """(n_seen,) float32: what each column is multiplied by."""
    unit: bool = False
    """Whether non-empty rows are scaled to unit length."""

    def check(self, n_features: int) -> int:
        """Refuse steps that rows of ``n_features`` cannot take; returns how many columns are seen."""
        n_seen = n_features
        if self.columns is not None:
            check_shape("rows_.columns", self.columns, (None,), INTEGERS)
            check_monotone("rows_.columns", check_indices("rows_.columns", self.columns, n_features), strict=True)
            n_seen = self.columns.size
        if self.weights is not None:
            check_finite("rows_.weights", check_exact("rows_.weights", self.weights, np.float32, (n_seen,)))
        check_number("rows_.power", self.power, low=0)
        check_kind("rows_.unit", self.unit, bool)
        return n_seen

    def __call__(self, X: sparse.csr_array, n_jobs: int | None = 1) -> sparse.csr_array:
        """X as the model sees it; X itself stays unchanged. Shares what does not change."""
        if self.columns is not None:
            first, last = (int(self.columns[0]), int(self.columns[-1])) if self.columns.size else (0, -1)
            # Columns side by side are cut out in the time that their values take, not their number.
            together = last - first + 1 == self.columns.size
            X = sparse.csr_array(X[:, first : last + 1] if together else X[:, self.columns])
        return X if self.keeps_values else with_values(X, self._values(X, n_jobs))

    @property
    def keeps_values(self) -> bool:
        """Whether every value that is seen stays as it is."""
        return self.power == 1 and self.weights is None and not self.unit

    def _values(self, X: sparse.csr_array, n_jobs: int | None) -> np.ndarray:
        data = X.data
        if self.power != 1:
            data = np.sign(data) * np.abs(data) ** np.float32(self.power)
        if self.weights is not None:
            data = data * self.weights[X.indices]
        if not self.unit:
            return data
        # Not at the top, because numba takes long to import and reading the help needs no rows.
        from tailwise.kernels.arrays import read_only
        from tailwise.kernels.sparse.rows import unit_values

        indptr, data = read_only(X.indptr.astype(np.int64, copy=False)), read_only(data)
        scaled = room(data.size, np.float32)
        if X.shape[0] <= _ROWS_A_BLOCK:
            return unit_values(indptr, data, scaled)

        def scale_rows(block: tuple[int, int]) -> None:
            unit_values(indptr[block[0] : block[1] + 1], data, scaled)

        map_blocks(scale_rows, row_blocks(X.shape[0], _ROWS_A_BLOCK), n_jobs=n_jobs)
        return scaled


AS_THEY_ARE = RowView()
UNIT_LENGTH = RowView(unit=True)


def unit_rows(X: sparse.csr_array) -> sparse.csr_array:
    """X with every non-empty row scaled to unit length (empty rows stay empty)."""
    return UNIT_LENGTH(X)


def with_values(X: sparse.csr_array, data: np.ndarray) -> sparse.csr_array:
    """X with other values in the same places; a hundred times cheaper than a constructor that checks again."""
    changed = copy(X)
    changed.data = data
    return changed


def row_range(X: sparse.csr_array, first: int, last: int) -> sparse.csr_array:
    """``X[first:last]`` that shares the arrays: scipy's own reads all indices where offsets are 64-bit numbers.

    >>> row_range(sparse.csr_array(np.eye(3)), 1, 3).toarray()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    start, stop = X.indptr[first], X.indptr[last]
    return _laid(X, X.indptr[first : last + 1] - start, X.indices[start:stop], X.data[start:stop])


def few_rows(X: sparse.csr_array, rows: np.ndarray) -> sparse.csr_array:
    """``X[rows]`` for some rows of many: time and memory are those of the rows, as scipy's own are not.

    >>> few_rows(sparse.csr_array(np.eye(3)), np.array([2, 0])).toarray()
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    starts = X.indptr[rows].astype(np.int64)
    lengths = X.indptr[rows + 1] - starts
    indptr = np.append(0, np.cumsum(lengths))
    take = np.repeat(starts - indptr[:-1], lengths) + np.arange(indptr[-1])
    return _laid(X, indptr, X.indices[take], X.data[take])


def _laid(X: sparse.csr_array, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> sparse.csr_array:
    """Rows of X by their arrays; not through the constructor, which would copy indices to the type of the offsets."""
    part = sparse.csr_array((indptr.size - 1, X.shape[1]), dtype=X.dtype)
    part.indptr, part.indices, part.data = indptr, indices, data
    return part


def scaled_rows(X: sparse.csr_array, weight: np.ndarray) -> sparse.csr_array:
    """X with every entry times its row's weight; rows of weight 0 lose their entries."""
    scaled = with_values(X, (X.data * np.repeat(weight, np.diff(X.indptr))).astype(np.float32))
    if not weight.all():
        scaled = scaled.copy()
        scaled.eliminate_zeros()
    return scaled


def idf_weights(X: sparse.csr_array) -> np.ndarray:
    """The :func:`smooth_idf` of each column of X: (n_features,) float32."""
    return smooth_idf(np.bincount(X.indices, X.data != 0, minlength=X.shape[1]), X.shape[0])


def smooth_idf(n_having: np.ndarray, n_rows: int) -> np.ndarray:
    """``ln((1 + n_rows) / (1 + n_having)) + 1``, the weight of a feature that ``n_having`` of the rows have.

    >>> smooth_idf(np.array([0, 9]), 9).round(2)
    array([3.3, 1. ], dtype=float32)
    """
    return (np.log((1.0 + n_rows) / (1.0 + n_having)) + 1.0).astype(np.float32)
