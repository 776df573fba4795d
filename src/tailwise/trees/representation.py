"""What a label looks like to the clustering: a sparse vector made of its training rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.sparse.sums import sum_groups
from tailwise.parallel import map_shards, row_blocks
from tailwise.rows import scaled_rows

REPRESENTATIONS = ("input", "output", "joint")

_LABELS_A_BLOCK = 512
_KEEP = 4096
"""Entries kept of a label vector: only labels of thousands of rows have more, and those entries are minute."""


class LabelVectors:
    """Unit-length vectors of labels, made when they are asked for: labels with similar ones belong together in a tree.

    ``"input"``: the sum of the label's rows of X, which have unit length, so the label lies where its rows lie:
    ``v_l ∝ Σ_i y_il x_i``. ``"output"``: the sum of its rows of Y, that is, its row of the co-occurrence
    matrix ``YᵀY``, which knows nothing of the features. ``"joint"``: both side by side, with equal weight.
    A label without rows is a zero row. Rows count ``weight`` > 0 times; None counts each once.

    Time: the entries of all rows of the labels. Memory: the result, with at most 4,096 entries a label and space.
    """

    def __init__(
        self,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        representation: str = "input",
        *,
        weight: np.ndarray | None = None,
    ) -> None:
        self._carried = Y.T.tocsr()
        self._spaces = {"input": (X,), "output": (Y,), "joint": (X, Y)}[representation]
        if weight is not None and np.ptp(weight):
            self._spaces = tuple(scaled_rows(space, weight / weight.max()) for space in self._spaces)

    def __getitem__(self, labels: np.ndarray | slice) -> sparse.csr_array:
        """The vectors of some labels, (n, ·)."""
        groups = self._carried[labels]
        members = csr_parts(groups)
        parts = []
        for space in self._spaces:
            found = sum_groups(members, (0, groups.shape[0]), csr_parts(space), space.shape[1], _KEEP)
            counts, features, values = found
            indptr = np.append(0, np.cumsum(counts))
            parts.append(sparse.csr_array((values, features, indptr), shape=(groups.shape[0], space.shape[1])))
        if len(parts) == 1:
            return parts[0]
        joint = sparse.csr_array(sparse.hstack(parts, format="csr"))
        joint.data *= np.float32(np.sqrt(0.5))
        return joint


def represent_labels(
    X: sparse.csr_array,
    Y: sparse.csr_array,
    representation: str = "input",
    *,
    weight: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> sparse.csr_array:
    """The vectors of all labels, (n_labels, ·): see :class:`LabelVectors`.

    >>> represent_labels(sparse.csr_array([[0.6, 0.8]], dtype=np.float32), sparse.csr_array([[1.0, 0.0]])).toarray()
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    vectors = LabelVectors(X, Y, representation, weight=weight)
    blocks = row_blocks(Y.shape[1], _LABELS_A_BLOCK)
    found = map_shards(lambda block: vectors[slice(*block)], blocks, n_jobs=n_jobs)
    return sparse.csr_array(sparse.vstack(found, format="csr"))
