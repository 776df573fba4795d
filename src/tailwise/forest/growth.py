"""From checked matrices to a forest: what each tree gets, and how trees become one set of arrays."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.forest.layout import Forest, lay_out
from tailwise.kernels.forest_grow import GrowSettings, RowLabels, Tree, grow_tree
from tailwise.kernels.l1_logistic import Columns
from tailwise.parallel import map_blocks


def grow_forest(
    X: sparse.csr_array,
    Y: sparse.csr_array,
    worth: np.ndarray,
    settings: GrowSettings,
    seeds: np.ndarray,
    *,
    n_jobs: int | None = None,
    description: str = "",
) -> Forest:
    """Grow one tree from each of ``seeds`` on all rows, the trees in parallel.

    ``worth`` (n_labels,) is what ranking a label first is worth: 1, or 1/p_l.
    """
    columns = columns_with_ones(X)
    row_sizes = (np.diff(X.indptr) + 1).astype(np.int64)
    labels = RowLabels(Y.indptr, Y.indices, worth.astype(np.float32), ideal_scale(np.diff(Y.indptr)))

    def grow(seed: np.uint64) -> Tree:
        return Tree(*(np.array(part) for part in grow_tree(columns, row_sizes, labels, settings, seed)))

    trees = map_blocks(grow, list(seeds), n_jobs=n_jobs, description=description)
    return lay_out(trees, np.bincount(X.indices, minlength=X.shape[1]) / X.shape[0])


def columns_with_ones(X: sparse.csr_array) -> Columns:
    """X by columns, with a last column of ones: its weight is a separator's bias, and is penalised like the others."""
    csc = sparse.csc_array(X)
    n = X.shape[0]
    return Columns(
        np.append(csc.indptr, csc.nnz + n).astype(np.int64),
        np.concatenate([csc.indices, np.arange(n)]).astype(np.int32),
        np.concatenate([csc.data, np.ones(n)]).astype(np.float32),
    )


def ideal_scale(n_relevant: np.ndarray) -> np.ndarray:
    """``I(y) = 1 / Σ_{j ≤ |y|} 1/ln(1+j)``, the scale that makes a perfect ranking's nDCG one; 0 without labels.

    >>> ideal_scale(np.array([0, 1]))
    array([0.       , 0.6931472], dtype=float32)
    """
    ideal = np.concatenate([[np.inf], np.cumsum(1 / np.log1p(np.arange(1, n_relevant.max(initial=0) + 1)))])
    return (1 / ideal[n_relevant]).astype(np.float32)
