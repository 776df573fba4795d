"""What the kernels trust of a forest that comes from a file: every index within range, every path with an end."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailwise.forest.layout import Forest
from tailwise.persistence.checks import (
    check_exact,
    check_finite,
    check_indices,
    check_kind,
    check_offsets,
    check_range,
    check_that,
)
from tailwise.validation import check_number

_LEAST = float(np.nextafter(np.float32(0), np.float32(1)))
_LARGEST = float(np.finfo(np.float32).max)


def check_forest(forest: Any, n_features: int, n_labels: int) -> None:
    """Refuse a forest that no growth on so many features and labels could have left. Reads every array once."""
    forest = check_kind("forest_", forest, Forest)
    children = check_exact("children", forest.children, np.int32, (None, 2))
    n_nodes = children.shape[0]
    check_number("n_trees", forest.n_trees, integer=True, low=1, high=n_nodes)
    check_number("n_top", forest.n_top, integer=True, low=0, high=n_nodes)
    check_indices("children", children, n_nodes, missing=True)
    # A child after its parent: no path comes back to where it was, and none leads to a root, which come first.
    inner = children >= 0
    later = children > np.maximum(np.arange(n_nodes), forest.n_trees - 1)[:, None]
    check_that((inner[:, 0] == inner[:, 1]).all(), "children has a node with one child")
    check_that((later | ~inner).all(), "children leads back up a tree")
    check_range("n_rows", check_exact("n_rows", forest.n_rows, np.int32, (n_nodes,)), 0)
    check_finite("bias", check_exact("bias", forest.bias, np.float32, (n_nodes,)))
    _check_sparse("top_indptr", forest.top_indptr, n_features, forest.top_weights)
    _check_numbers("top_nodes", forest.top_nodes, forest.n_top, forest.top_weights)
    _check_sparse("weight_indptr", forest.weight_indptr, n_nodes, forest.weights)
    _check_numbers("weight_indices", forest.weight_indices, n_features, forest.weights)
    _check_sparse("leaf_indptr", forest.leaf_indptr, n_nodes, forest.leaf_shares)
    _check_numbers("leaf_labels", forest.leaf_labels, n_labels, forest.leaf_shares)
    # The kernels tell by a total of 0 that a label was not met before.
    check_range("leaf_shares", forest.leaf_shares, _LEAST, _LARGEST)


def _check_sparse(name: str, indptr: Any, n: int, values: Any) -> None:
    values = check_finite(f"values of {name}", check_exact(f"values of {name}", values, np.float32, (None,)))
    check_offsets(name, check_exact(name, indptr, np.int64, (n + 1,)), n, values.size)


def _check_numbers(name: str, numbers: Any, n: int, values: np.ndarray) -> None:
    check_indices(name, check_exact(name, numbers, np.int32, values.shape), n)
