"""What a tagger keeps to learn more later: its training rows, their labels, and by what it knows a record again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.data.digests import row_digests
from tailwise.persistence.checks import check_exact, check_finite, check_kind, check_matrix, check_that


class TrainingData(NamedTuple):
    """Rows as the model was given them: 8 bytes for each non-zero of X, 8 for each label, 8 for each row."""

    X: sparse.csr_array
    Y: sparse.csr_array
    digests: np.ndarray
    """(n_rows,) uint64 of the texts, 0 for an empty one"""

    @classmethod
    def of(cls, rows: Any, X: Any, Y: Any) -> TrainingData:
        """Of ``rows``, texts or rows of X, that became ``X``."""
        X, Y = (sparse.csr_array(part, dtype=np.float32) for part in (X, Y))
        return cls(X, Y, row_digests(rows))

    def places(self, rows: Any) -> np.ndarray:
        """The number of the training row that each of ``rows`` is, -1 where it is new: (n,) int64.

        What comes twice, there or here, counts once: the first one is the one that is known.

        >>> kept = TrainingData.of(["sea", "tax"], np.eye(2), np.eye(2))
        >>> kept.places(["tax", "law", "tax"]).tolist()
        [1, -1, -1]
        """
        known, first = np.unique(self.digests, return_index=True)
        asked = row_digests(rows)
        at = np.minimum(np.searchsorted(known, asked), max(0, known.size - 1))
        found = np.where((known[at] == asked) & (asked != 0), first[at], -1) if known.size else np.full(asked.size, -1)
        again = np.ones(asked.size, bool)
        again[np.unique(asked, return_index=True)[1]] = False
        return np.where(again, -1, found).astype(np.int64)

    def check(self, n_features: int, n_labels: int) -> None:
        """Refuse rows that this many features and labels do not have."""
        n_rows = check_exact("digests of training_", self.digests, np.uint64, (None,)).size
        X = check_kind("X of training_", self.X, sparse.csr_array)
        check_finite("X of training_", check_matrix("X of training_", X, (n_rows, n_features)).data)
        Y = check_kind("Y of training_", self.Y, sparse.csr_array)
        values = check_matrix("Y of training_", Y, (n_rows, n_labels)).data
        check_that((values == 1).all(), "Y of training_ has other values than 1")
