"""What a label looks like to the clustering: a sparse vector made of its training rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.sparse.sums import sum_groups, sum_groups_in_a_pass
from tailwise.memory import LARGE, memory_apart
from tailwise.parallel import count_jobs, map_shards, row_blocks
from tailwise.rows import scaled_rows
from tailwise.runs import kept

REPRESENTATIONS = ("input", "output", "joint")

_LABELS_A_BLOCK = 512
_BYTES_A_SUM = 9
"""A feature of a label, where one pass over rows serves many labels."""
KEEP = 128
"""Entries kept of a label vector, the largest: on rows cut from the training rows of six data sets 512 cluster no
better and cost more, and with 64 P@1 of Bonsai is 0.1 lower."""


class LabelVectors:
    """Unit-length vectors of labels, made when they are asked for: labels with similar ones belong together in a tree.

    ``"input"``: the sum of the label's rows of X, which have unit length, so the label lies where its rows lie:
    ``v_l ∝ Σ_i y_il x_i``. ``"output"``: the sum of its rows of Y, that is, its row of the co-occurrence
    matrix ``YᵀY``, which knows nothing of the features. ``"joint"``: both side by side, with equal weight.
    A label without rows is a zero row. Rows count ``weight`` > 0 times; None counts each once.

    Time: the entries of all rows of the labels. Memory: the result, ``keep`` entries a label and space at most.
    """

    def __init__(
        self,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        representation: str = "input",
        *,
        weight: np.ndarray | None = None,
        keep: int = KEEP,
        n_jobs: int | None = None,
    ) -> None:
        self._keep = keep
        self._carried = Y.T.tocsr()
        self._spaces = {"input": (X,), "output": (Y,), "joint": (X, Y)}[representation]
        if weight is not None and np.ptp(weight):
            self._spaces = tuple(scaled_rows(space, weight / weight.max()) for space in self._spaces)
        # Steps follow from it, and processes of a run may have other memories.
        large = max(space.data.nbytes for space in self._spaces) >= LARGE
        self.in_a_pass = kept(lambda: _labels_in_a_pass(self._spaces, n_jobs)) if large else 0
        """How many labels one pass over rows on disk can serve; 0 where rows are in memory."""
        self._n_jobs = n_jobs

    def __getitem__(self, labels: np.ndarray | slice) -> sparse.csr_array:
        """The vectors of some labels, (n, ·)."""
        groups = self._carried[labels]
        parts = [self._sums(groups, space) for space in self._spaces]
        if len(parts) == 1:
            return parts[0]
        joint = sparse.csr_array(sparse.hstack(parts, format="csr"))
        joint.data *= np.float32(np.sqrt(0.5))
        return joint

    def expected_entries(self) -> np.ndarray:
        """How many entries each label's vector has, about: (n_labels,)."""
        carriers = np.diff(self._carried.indptr)
        return sum(
            (np.minimum(self._keep, carriers * (space.nnz / max(1, space.shape[0]))) for space in self._spaces),
            start=np.zeros(carriers.size),
        )

    def _sums(self, groups: sparse.csr_array, space: sparse.csr_array) -> sparse.csr_array:
        n, rows = groups.shape[0], csr_parts(space)
        if self.in_a_pass:
            found = sum_groups_in_a_pass(csr_parts(groups.T.tocsr()), n, rows, space.shape[1], self._keep)
        else:
            found = sum_groups(csr_parts(groups), (0, n), rows, space.shape[1], self._keep)
        counts, features, values = found
        indptr = np.append(0, np.cumsum(counts))
        if indptr[-1] <= np.iinfo(np.int32).max:
            # scipy would widen the columns with it, and kernels would narrow them again, for every node of a tree.
            indptr = indptr.astype(np.int32)
        return sparse.csr_array((values, features, indptr), shape=(n, space.shape[1]))

    def of_all(self) -> sparse.csr_array:
        """The vectors of all labels, (n_labels, ·)."""
        blocks = row_blocks(self._carried.shape[0], self.in_a_pass or _LABELS_A_BLOCK)
        found = map_shards(lambda block: self[slice(*block)], blocks, n_jobs=self._n_jobs)
        return sparse.csr_array(sparse.vstack(found, format="csr"))

    def once_or_when_asked_for(self) -> sparse.csr_array | LabelVectors:
        """All vectors where rows are on disk, because to read them again for every node would take long."""
        return self.of_all() if self.in_a_pass else self


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
    return LabelVectors(X, Y, representation, weight=weight, n_jobs=n_jobs).of_all()


def _labels_in_a_pass(spaces: tuple[sparse.csr_array, ...], n_jobs: int | None) -> int:
    """How many labels' sums of rows on disk are in memory at once; 0 where the rows themselves are."""
    memories = {space.shape[1]: memory_apart(space, count_jobs(n_jobs)) for space in spaces}
    sums = [max(1, memory // (_BYTES_A_SUM * width)) for width, memory in memories.items() if memory is not None]
    return min(sums, default=0)
