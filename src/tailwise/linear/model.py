"""What the trained linear models share: rows as they are or of unit length."""

from __future__ import annotations

from scipy import sparse

from tailwise.parameters import Flag
from tailwise.rows import AS_THEY_ARE, UNIT_LENGTH, RowView
from tailwise.sparse_linear import SparseLinear


class LinearModel(SparseLinear):
    """A linear model that sees rows as they are or, by ``normalize``, of unit length; a subclass writes ``_fit``."""

    _parameters = {"normalize": Flag()}

    normalize: bool

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return UNIT_LENGTH if self.normalize else AS_THEY_ARE
