"""From checked matrices to a forest: what each tree gets, and how trees become one set of arrays."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from tailwise.forest.layout import Forest, lay_out
from tailwise.kernels.arrays import frozen
from tailwise.kernels.forest.grow import GrowSettings, RowLabels, Tree, grow_tree
from tailwise.kernels.sparse.columns import Columns
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.parallel import map_shards


def grow_forest(
    X: sparse.csr_array,
    Y: sparse.csr_array,
    worth: np.ndarray,
    settings: GrowSettings,
    seeds: np.ndarray,
    *,
    weight: np.ndarray | None = None,
    max_features: float = 1.0,
    n_jobs: int | None = None,
    description: str = "",
) -> Forest:
    """Grow one tree from each of ``seeds`` on all rows, the trees in parallel.

    ``worth`` (n_labels,) is what ranking a label first is worth: 1, or 1/p_l. A tree sees the share ``max_features`` of
    the features, drawn with its seed. ``weight`` (n_rows,) is how often a row counts; None is once.
    """
    by_feature = sparse.csc_array(X)
    n_features = X.shape[1]
    n_seen = math.ceil(max_features * n_features)
    counted = np.ones(Y.shape[0]) if weight is None else weight
    labels = frozen(
        RowLabels(
            *csr_parts(Y)[:2],
            worth.astype(np.float32),
            ideal_scale(np.diff(Y.indptr)),
            counted.astype(np.float32),
        )
    )

    def look_at(seen: np.ndarray) -> tuple[Columns, np.ndarray, np.ndarray]:
        part = by_feature[:, seen]
        row_sizes = np.bincount(part.indices, minlength=part.shape[0]) + 1
        return columns_with_ones(part), np.append(seen, n_features).astype(np.int32), row_sizes

    everything = look_at(np.arange(n_features)) if n_seen == n_features else None

    def grow(seed: np.uint64) -> Tree:
        seen = everything
        if seen is None:
            seen = look_at(np.sort(np.random.default_rng(seed).choice(n_features, n_seen, replace=False)))
        return Tree(*(np.array(part) for part in grow_tree(*seen, labels, settings, seed)))

    trees = map_shards(grow, list(seeds), n_jobs=n_jobs, description=description)
    return frozen(lay_out(trees, np.bincount(X.indices, minlength=X.shape[1]) / X.shape[0]))


def columns_with_ones(csc: sparse.csc_array) -> Columns:
    """A matrix by columns, with a last one of ones: its weight is a separator's bias, and is penalised like others."""
    n = csc.shape[0]
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
