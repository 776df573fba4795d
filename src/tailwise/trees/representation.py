"""What a label looks like to the clustering: a sparse vector made of its training rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.sparse.sums import sum_groups, sum_groups_in_a_pass
from tailwise.memory import memory_apart
from tailwise.parallel import count_jobs, map_shards, row_blocks
from tailwise.rows import scaled_rows

REPRESENTATIONS = ("input", "output", "joint")

_LABELS_A_BLOCK = 512
_BYTES_A_SUM = 9
"""A feature of a label, where one pass over rows serves many labels."""
_KEEP = 4096
"""Entries kept of a label vector: only labels of thousands of rows have more, and those entries are minute."""


def represent_labels(
    X: sparse.csr_array,
    Y: sparse.csr_array,
    representation: str = "input",
    *,
    weight: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> sparse.csr_array:
    """Unit-length label vectors (n_labels, ·): labels with similar vectors belong together in a tree.

    ``"input"``: the sum of the label's rows of X, which have unit length, so the label lies where its rows lie:
    ``v_l ∝ Σ_i y_il x_i``. ``"output"``: the sum of its rows of Y, that is, its row of the co-occurrence
    matrix ``YᵀY``, which knows nothing of the features. ``"joint"``: both side by side, with equal weight.
    A label without rows is a zero row. Rows count ``weight`` > 0 times; None counts each once.

    Time: the entries of all rows of all labels. Memory: the result, with at most 4,096 entries a label and space.

    >>> represent_labels(sparse.csr_array([[0.6, 0.8]], dtype=np.float32), sparse.csr_array([[1.0, 0.0]])).toarray()
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    groups = Y.T.tocsr()
    spaces = {"input": (X,), "output": (Y,), "joint": (X, Y)}[representation]
    if weight is not None and np.ptp(weight):
        spaces = tuple(scaled_rows(space, weight / weight.max()) for space in spaces)
    parts = [_sum_groups(groups, space, n_jobs) for space in spaces]
    if len(parts) == 1:
        return parts[0]
    joint = sparse.csr_array(sparse.hstack(parts, format="csr"))
    joint.data *= np.float32(np.sqrt(0.5))
    return joint


def _sum_groups(groups: sparse.csr_array, space: sparse.csr_array, n_jobs: int | None) -> sparse.csr_array:
    members, rows = csr_parts(groups), csr_parts(space)
    memory = memory_apart(space, count_jobs(n_jobs))
    # Rows on disk are read once for all labels whose sums are in memory.
    in_a_pass = _LABELS_A_BLOCK if memory is None else max(1, memory // (_BYTES_A_SUM * space.shape[1]))

    def sum_block(block: tuple[int, int]) -> tuple[np.ndarray, ...]:
        if memory is None:
            return sum_groups(members, block, rows, space.shape[1], _KEEP)
        parts = []
        for first in range(*block, in_a_pass):
            own = groups[first : min(first + in_a_pass, block[1])]
            carried = csr_parts(own.T.tocsr())
            parts.append(sum_groups_in_a_pass(carried, own.shape[0], rows, space.shape[1], _KEEP))
        return tuple(map(np.concatenate, zip(*parts, strict=True)))

    blocks = row_blocks(groups.shape[0], _LABELS_A_BLOCK)
    counts, features, values = zip(*map_shards(sum_block, blocks, n_jobs=n_jobs), strict=True)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    shape = (groups.shape[0], space.shape[1])
    return sparse.csr_array((np.concatenate(values), np.concatenate(features), indptr), shape=shape)
