"""Which labels come together on rows, and how high a label's companions stand in a ranking."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.parallel import map_blocks, row_blocks

_ROWS_A_BLOCK = 1024


def companions(Y: sparse.csr_array, weight: np.ndarray | None = None) -> sparse.csr_array:
    """The share of each label m (row) among all others on rows with label l (column): (n_labels, n_labels) float32.

    ``weight`` is how often each row counts; None is once. Costs the sum of the squared numbers of labels on rows.

    >>> companions(sparse.csr_array([[1.0, 1, 0], [1, 1, 1]])).toarray().round(2)
    array([[0.  , 0.67, 0.5 ],
           [0.67, 0.  , 0.5 ],
           [0.33, 0.33, 0.  ]], dtype=float32)
    """
    n_on_row = np.diff(Y.indptr)
    counted = np.ones(Y.nnz) if weight is None else np.repeat(weight, n_on_row)
    ones, weighted = (
        sparse.csr_array((data, Y.indices, Y.indptr), shape=Y.shape) for data in (np.ones(Y.nnz), counted)
    )
    together = sparse.coo_array(ones.T @ weighted)
    label, other = together.coords
    apart = label != other
    label, other, often = label[apart], other[apart], together.data[apart]
    totals = np.bincount(label, often, minlength=Y.shape[1])
    shares = sparse.csr_array(((often / totals[label]).astype(np.float32), (other, label)), shape=together.shape)
    shares.sort_indices()
    return shares


def company(above: TopK, shares: sparse.csr_array, n_jobs: int | None = None) -> np.ndarray:
    """``Σ_m shares[m, l] above_m`` over the candidates m of a row, for each of its candidates l: (n, k) float32.

    >>> above = TopK(np.array([[2, 0]], np.int32), np.array([[0.6, 0.0]], np.float32))
    >>> company(above, companions(sparse.csr_array([[1.0, 1, 0], [1, 1, 1]]))).round(2)
    array([[0. , 0.2]], dtype=float32)
    """
    found = np.zeros(above.labels.shape, np.float32)

    def add_up(block: tuple[int, int]) -> None:
        own = TopK(above.labels[slice(*block)], above.scores[slice(*block)])
        sums = sparse.csr_array(own.to_csr(shares.shape[0], binary=False) @ shares)
        row, place = np.nonzero(own.labels >= 0)
        if row.size:
            found[block[0] + row, place] = np.asarray(sums[row, own.labels[row, place]]).ravel()

    map_blocks(add_up, row_blocks(above.labels.shape[0], _ROWS_A_BLOCK), n_jobs=n_jobs)
    return found
