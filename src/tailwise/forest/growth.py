"""From checked matrices to a forest: what each tree gets, and how trees become one set of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.forest_grow import GrowSettings, RowLabels, Tree, grow_tree
from tailwise.kernels.l1_logistic import Columns
from tailwise.parallel import map_blocks


class Forest(NamedTuple):
    """Trees in one set of arrays: the fields of :class:`~tailwise.kernels.forest_grow.Tree`, and each tree's root.

    ``children`` is (n_nodes, 2) here.
    """

    roots: np.ndarray
    children: np.ndarray
    n_rows: np.ndarray
    bias: np.ndarray
    weight_indptr: np.ndarray
    weight_indices: np.ndarray
    weights: np.ndarray
    leaf_indptr: np.ndarray
    leaf_labels: np.ndarray
    leaf_shares: np.ndarray


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

    return _join(map_blocks(grow, list(seeds), n_jobs=n_jobs, description=description))


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


def _join(trees: list[Tree]) -> Forest:
    first_node = np.cumsum([0] + [tree.bias.size for tree in trees])
    children = [
        np.where(tree.children >= 0, tree.children + first, -1).astype(np.int32).reshape(-1, 2)
        for tree, first in zip(trees, first_node[:-1], strict=True)
    ]
    return Forest(
        first_node[:-1].astype(np.int32),
        np.concatenate(children),
        np.concatenate([tree.n_rows for tree in trees]),
        np.concatenate([tree.bias for tree in trees]),
        _join_indptr([tree.weight_indptr for tree in trees]),
        np.concatenate([tree.weight_indices for tree in trees]),
        np.concatenate([tree.weights for tree in trees]),
        _join_indptr([tree.leaf_indptr for tree in trees]),
        np.concatenate([tree.leaf_labels for tree in trees]),
        np.concatenate([tree.leaf_shares for tree in trees]),
    )


def _join_indptr(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part) for part in parts]))]).astype(np.int64)
