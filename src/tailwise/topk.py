"""What a model predicts: :class:`TopK`, the best labels of each row with their scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.display import Table

_ROWS_SHOWN = 10


class TopK(NamedTuple):
    """The best labels of each row.

    ``labels`` is (n, k) int32, best first, -1 where there is no label. ``scores`` is (n, k) float32,
    descending, -inf where there is no label. Equal scores are ordered by label index.
    """

    labels: np.ndarray
    scores: np.ndarray

    def padded(self, k: int) -> TopK:
        """The same predictions with exactly ``k`` columns: cut, or filled with -1 and -inf."""
        n, have = self.labels.shape
        if have >= k:
            return TopK(self.labels[:, :k], self.scores[:, :k])
        labels = np.full((n, k), -1, np.int32)
        scores = np.full((n, k), -np.inf, np.float32)
        labels[:, :have], scores[:, :have] = self.labels, self.scores
        return TopK(labels, scores)

    def first(self, sizes: np.ndarray) -> TopK:
        """The first ``sizes`` (n,) labels of each row; the others become absent.

        >>> TopK(np.array([[2, 0]], np.int32), np.array([[0.5, 0.1]], np.float32)).first(np.array([1])).labels
        array([[ 2, -1]], dtype=int32)
        """
        kept = np.arange(self.labels.shape[1]) < np.asarray(sizes)[:, None]
        labels, scores = np.where(kept, self.labels, -1), np.where(kept, self.scores, -np.inf)
        return TopK(labels.astype(np.int32), scores.astype(np.float32))

    def to_csr(self, n_labels: int, *, binary: bool = True) -> sparse.csr_array:
        """The predictions as an (n, n_labels) CSR matrix: ones, or the scores.

        >>> TopK(np.array([[2, 0]], np.int32), np.array([[0.5, 0.1]], np.float32)).to_csr(3).toarray()
        array([[1., 0., 1.]], dtype=float32)
        """
        n, k = self.labels.shape
        present = self.labels >= 0
        rows = np.repeat(np.arange(n), k).reshape(n, k)[present]
        data = np.ones(rows.size, np.float32) if binary else self.scores[present]
        csr = sparse.csr_array((data, (rows, self.labels[present])), shape=(n, n_labels))
        csr.sort_indices()
        return csr

    def to_dense(self, n_labels: int, absent: float) -> np.ndarray:
        """The scores as an (n, n_labels) float32 array, ``absent`` where there is none."""
        dense = np.full((len(self.labels), n_labels), absent, np.float32)
        rows, places = np.nonzero(self.labels >= 0)
        dense[rows, self.labels[rows, places]] = self.scores[rows, places]
        return dense

    def table(self) -> Table:
        """The first rows, each label with its score."""
        n, k = self.labels.shape
        rows = [
            [row, *(f"{label} ({score:.3g})" if label >= 0 else "" for label, score in zip(*pair, strict=True))]
            for row, pair in enumerate(
                zip(self.labels[:_ROWS_SHOWN].tolist(), self.scores[:_ROWS_SHOWN].tolist(), strict=True)
            )
        ]
        more = [f"… and {n - _ROWS_SHOWN:,} more rows"] if n > _ROWS_SHOWN else []
        header = ["row", *(f"{place + 1}." for place in range(k))]
        return Table(f"The best {k} labels of {n:,} rows: label (score)", header, rows, more)

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table().html()
