"""How a forest lies in memory, so that a row goes down all of its trees at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.forest.grow import Tree

# What it costs to add a weight to a node's sum, to start that sum, and to jump to a node, in weights read in sequence.
_COST_OF_ADD = 1.6
_COST_OF_SUM = 0.3
_COST_OF_JUMP = 20.0


class Forest(NamedTuple):
    """All trees in one set of arrays, their nodes the roots first: that of tree t is node t.

    The first ``n_top`` nodes are whole levels at the top, where separators have many features. Their weights are
    stored by feature (``top_indptr``, ``top_nodes``, ``top_weights``): one pass over a row's features gives the margins
    of all of them. Deeper nodes, of which a row sees few, store theirs by node (``weight_indptr``, ``weight_indices``,
    ``weights``). ``children`` (n_nodes, 2) are the negative and the positive child, -1 and -1 at a leaf; the CSR rows
    ``leaf_indptr``, ``leaf_labels``, ``leaf_shares`` hold a leaf's labels, ascending, and their share of ``n_rows``.
    """

    n_trees: int
    children: np.ndarray
    n_rows: np.ndarray
    bias: np.ndarray
    n_top: int
    top_indptr: np.ndarray
    top_nodes: np.ndarray
    top_weights: np.ndarray
    weight_indptr: np.ndarray
    weight_indices: np.ndarray
    weights: np.ndarray
    leaf_indptr: np.ndarray
    leaf_labels: np.ndarray
    leaf_shares: np.ndarray


def lay_out(trees: list[Tree], frequency: np.ndarray) -> Forest:
    """Join trees; ``frequency`` (n_features,) is the share of rows that have a feature."""
    first_node = np.cumsum([0] + [tree.bias.size for tree in trees])
    children = np.concatenate(
        [
            np.where(tree.children >= 0, tree.children + first, -1)
            for tree, first in zip(trees, first_node, strict=False)
        ]
    ).reshape(-1, 2)
    depth = _depths(children, first_node[:-1])
    n_rows = np.concatenate([tree.n_rows for tree in trees])
    n_features, n_labels = frequency.size, 1 + max((tree.leaf_labels.max(initial=0) for tree in trees), default=0)
    weights = _stack([(t.weights, t.weight_indices, t.weight_indptr) for t in trees], n_features)
    leaves = _stack([(t.leaf_shares, t.leaf_labels, t.leaf_indptr) for t in trees], n_labels)
    n_levels = _count_top_levels(depth, n_rows, weights, frequency)
    # Below the top, nodes stay as they grew, depth first: the next node on a path is often the next in memory.
    order = np.argsort(np.minimum(depth, n_levels), kind="stable")
    n_top = int((depth < n_levels).sum())
    number = np.empty(order.size, np.int64)
    number[order] = np.arange(order.size)
    children = np.where(children >= 0, number[children], -1)[order].astype(np.int32)
    weights, leaves = weights[order], leaves[order]
    top = sparse.csc_array(weights[:n_top])
    deep = weights[n_top:]
    return Forest(
        len(trees),
        children,
        n_rows[order],
        np.concatenate([tree.bias for tree in trees])[order],
        n_top,
        top.indptr.astype(np.int64),
        top.indices.astype(np.int32),
        top.data,
        np.concatenate([np.zeros(n_top), deep.indptr]).astype(np.int64),
        deep.indices.astype(np.int32),
        deep.data,
        leaves.indptr.astype(np.int64),
        leaves.indices.astype(np.int32),
        leaves.data,
    )


def _depths(children: np.ndarray, roots: np.ndarray) -> np.ndarray:
    depth = np.empty(children.shape[0], np.int64)
    nodes, level = roots, 0
    while nodes.size:
        depth[nodes] = level
        nodes = children[nodes].ravel()
        nodes, level = nodes[nodes >= 0], level + 1
    return depth


def _stack(parts: list[tuple[np.ndarray, ...]], n_columns: int) -> sparse.csr_array:
    rows = [sparse.csr_array(part, shape=(part[2].size - 1, n_columns)) for part in parts]
    return sparse.csr_array(sparse.vstack(rows, format="csr"))


def _count_top_levels(depth: np.ndarray, n_rows: np.ndarray, weights: sparse.csr_array, frequency: np.ndarray) -> int:
    """How many levels, from the top down and at least one, are cheaper to pass by feature than by node.

    By feature, a level costs a row the weights of its features, in all nodes, and the start of their sums; by node,
    the weights of the nodes that it visits and the jumps to them.
    """
    visits = n_rows / n_rows.max()
    per_node = np.diff(weights.indptr)
    n_nodes = np.bincount(depth)
    read = np.bincount(np.repeat(depth, per_node), frequency[weights.indices], minlength=n_nodes.size)
    by_feature = _COST_OF_ADD * read + _COST_OF_SUM * n_nodes
    by_node = np.bincount(depth, (per_node + _COST_OF_JUMP) * visits)
    dearer = np.flatnonzero(by_feature > by_node)
    return max(1, int(dearer[0]) if dearer.size else n_nodes.size)
