"""Rows of X as sequences of tokens, and as padded batches whose length a row alone decides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

_LENGTH_STEP = 32


class Tokens(NamedTuple):
    """Token numbers of rows, one after the other: those of row i are ``ids[indptr[i] : indptr[i + 1]]``, from 1 on."""

    indptr: np.ndarray
    ids: np.ndarray

    @classmethod
    def of(cls, X: sparse.csr_array, known: np.ndarray) -> Tokens:
        """The entries of each row from left to right; a value's number is its place in ``known``, others are left out.

        >>> Tokens.of(sparse.csr_array([[7.0, 3.0, 5.0]]), np.array([3.0, 7.0])).ids
        array([2, 1])
        """
        if not known.size:
            return cls(np.zeros(X.shape[0] + 1, np.int64), np.empty(0, np.int64))
        place = np.minimum(np.searchsorted(known, X.data), known.size - 1)
        found = known[place] == X.data
        return cls(np.append(0, np.cumsum(found))[X.indptr], place[found].astype(np.int64) + 1)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.indptr.size - 1

    def lengths(self) -> np.ndarray:
        """(n_rows,): to how many tokens each row is padded, a multiple of 32 and at least 32."""
        return np.maximum(1, -(-np.diff(self.indptr) // _LENGTH_STEP)) * _LENGTH_STEP

    def padded(self, rows: np.ndarray) -> np.ndarray:
        """These rows as (n_rows, longest) int64, 0 after a row's end."""
        longest = int(self.lengths()[rows].max(initial=_LENGTH_STEP))
        batch = np.zeros((rows.size, longest), np.int64)
        for place, row in enumerate(rows):
            own = self.ids[self.indptr[row] : self.indptr[row + 1]]
            batch[place, : own.size] = own
        return batch

    def buckets(self, rows: np.ndarray, size: int) -> list[np.ndarray]:
        """``rows`` in parts of at most ``size``, the shortest first: rows of a part are about equally long."""
        order = rows[np.argsort(self.lengths()[rows], kind="stable")]
        return [order[start : start + size] for start in range(0, order.size, size)]
