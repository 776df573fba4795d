"""Levels of edges as one node: the nodes of labels that a beam finds are those of the most probable paths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tailwise.kernels.solvers.problems import SQUARED_HINGE, Weights
from tailwise.trees.blocks import Part
from tailwise.trees.packing import by_nodes
from tailwise.trees.searching import find_visitors
from tailwise.trees.structure import tree_from_nested
from tailwise.trees.visiting import is_one_node, upper_levels, upper_nodes

ABOVE = np.array([-1, -1, 0, 0, 1, 1])
"""Two levels of two edges each; a third one lies below the first of their ends."""
NESTED = [[[[0, 1], [2, 3]], [4, 5]], [[6, 7], [8, 9]]]
N_FEATURES = 6


@pytest.fixture
def problem():
    tree = tree_from_nested(NESTED)
    part = Part(0, np.arange(6), ABOVE.astype(np.int32))
    rng = np.random.default_rng(0)
    W = rng.integers(-127, 128, (8, N_FEATURES)).astype(np.float32)
    W[:, 0] = 127  # Rounding weights to bytes leaves them as they are.
    W /= 127
    X = sparse.csr_array(rng.random((40, N_FEATURES)).astype(np.float32))
    return tree, part, W, X


def weights_of(W):
    n, m = W.shape
    return Weights(np.arange(n + 1) * m, np.tile(np.arange(m, dtype=np.int32), n), W.ravel(), np.zeros(n, np.float32))


@pytest.mark.parametrize("beam", [1, 2, 3, 50])
def test_levels_of_edges_are_one_node(problem, beam):
    tree, part, W, X = problem
    below = [(np.array([6, 7]), weights_of(W[6:]))]
    upper = upper_levels(tree, {3: below}, {0: (part, weights_of(W[:6]))}, N_FEATURES, 1)
    assert upper.nodes.tolist() == [0, 3, 4, 5, 6, 7, 8] and tree.target[:8].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    found = find_visitors([upper], [tree], X, SQUARED_HINGE, beam, n_jobs=1)[0].toarray()
    logs = -(np.maximum(0, 1 - X @ W.T) ** 2)
    logs[:, 2:6] += logs[:, ABOVE[2:6]]
    logs[:, 6:] += logs[:, [2]]
    expected = np.zeros((tree.n_nodes, X.shape[0]))
    for row, log in enumerate(logs):
        best = 2 + np.argsort(-log[2:6], kind="stable")[:beam]
        for edge in [*best, *(6 + np.argsort(-log[6:], kind="stable")[:beam] if 2 in best else [])]:
            if tree.target[edge] != 3:
                expected[tree.target[edge], row] = 1
    np.testing.assert_array_equal(found, expected)


def test_all_nodes_are_found_by_levels_as_without(problem):
    tree, part, W, X = problem
    alone = {node: [own] for node, own in by_nodes(tree, np.arange(8), weights_of(W))}
    upper = upper_levels(tree, alone, {0: (part, weights_of(W[:6]))}, N_FEATURES, 1)
    found = find_visitors([upper], [tree], X, SQUARED_HINGE, 50, n_jobs=1)[0]
    assert (found.toarray().sum(axis=0) == 5).all()


def test_levels_with_labels_between_them_are_searched_one_by_one():
    tree, edges = tree_from_nested([[[0, 1], [2, 3], 4], [[5, 6], [7, 8]]]), np.array([0, 1, 2, 3, 5, 6])
    part = Part(0, edges, ABOVE.astype(np.int32))
    assert not is_one_node(tree, part, tree.labels_of_nodes())
    assert not is_one_node(tree, part._replace(above=None), tree.labels_of_nodes())
    whole = tree_from_nested([[[0, 1], [2, 3]], [[5, 6], [7, 8]]])
    assert is_one_node(whole, part._replace(edges=np.arange(6)), whole.labels_of_nodes())
    assert upper_nodes({}, whole.n_nodes, 1).nodes.tolist() == list(range(whole.n_nodes))
