"""Nodes and trees over labels to draw."""

import numpy as np
from hypothesis import strategies as st
from scipy import sparse
from strategies import generators, sparse_rows

from tailwise.kernels.arrays import frozen
from tailwise.kernels.solvers.problems import Weights
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.trees import nodes
from tailwise.kernels.trees.nodes import Below
from tailwise.trees.packing import join_trees
from tailwise.trees.problems import Planted
from tailwise.trees.structure import tree_from_nested
from tailwise.trees.training import train_trees


@st.composite
def solved_children(draw, n_children=(1, 9)):
    """Children without weights, with one, with all; few features or so many that they are hashed."""
    n_features = draw(st.sampled_from([1, 7, 64, 65, 3000]))
    rows = ("empty", "one", "few", "as above") if n_features == 3000 else ("empty", "one", "few", "full", "as above")
    weights = draw(sparse_rows(n_children, n_features, signed=True, rows=rows))
    if n_features == 3000 and draw(st.booleans()):
        weights = every_fortieth(weights)
    parts = csr_parts(weights)
    return Weights(*parts, np.zeros(weights.shape[0], np.float32)), np.zeros((2, n_features), np.int64)


def every_fortieth(weights):
    coo = sparse.coo_array(weights)
    keep = np.arange(coo.nnz) % 40 == 0
    entries = coo.data[keep], (coo.coords[0][keep], coo.coords[1][keep])
    return sparse.csr_array(sparse.coo_array(entries, shape=coo.shape))


nested = st.recursive(st.just(0), lambda inner: st.lists(inner, min_size=1, max_size=4), max_leaves=9)


@st.composite
def forests(draw, n_features):
    """Chunks of one or two drawn trees over the same labels, with drawn weights; biases differ, or are all equal."""
    rng, equal = draw(generators()), draw(st.booleans())
    trees = []
    for _ in range(draw(st.integers(1, 2))):
        shape = draw(nested.filter(lambda root: isinstance(root, list)))
        tree = tree_from_nested(_number(shape, iter(range(100))))

        def solve(rows, labels):
            n = labels.indptr.size - 1
            if equal:
                nothing = csr_parts(sparse.csr_array((n, n_features)))
                return Weights(*nothing, np.full(n, 0.5, np.float32))
            part = draw(sparse_rows(n, n_features, signed=True))
            return Weights(*csr_parts(part), rng.normal(size=n).astype(np.float32))

        n_labels = tree.order.size
        X = sparse.csr_array(np.ones((2, n_features), np.float32))
        Y = sparse.csr_array(np.ones((2, n_labels), np.float32))
        costs = np.ones(tree.target.size)
        trees.append([train_trees(X, Y, [Planted(tree, costs, costs)], solve, n_jobs=1)])
    n_labels = 1 + max(int(~tree.target.min()) for (tree,) in trees)
    return join_trees(trees), n_labels


def _number(shape, labels):
    return [next(labels) if item == 0 else _number(item, labels) for item in shape]


@st.composite
def gathered(draw):
    """A node of a few labels, some of its edges, and visitors, any of whom may carry a label themselves."""
    n_rows, n_features, n_labels = draw(st.integers(1, 40)), draw(st.integers(1, 9)), draw(st.integers(1, 6))
    X = csr_parts(draw(sparse_rows(n_rows, n_features, signed=True)))
    rng = draw(generators())
    carried = sparse.csr_array(rng.random((n_labels, n_rows)) < draw(st.sampled_from([0.0, 0.05, 0.6, 1.0])))
    ends = np.unique(rng.integers(0, n_labels + 1, 3))
    n_edges = ends.size - 1
    costs = 1 + rng.random((2, n_edges))
    below = Below(
        ends[:-1],
        ends[1:],
        carried.indptr.astype(np.int64),
        carried.indices.astype(np.int32),
        *costs,
        rng.random(n_rows),
    )
    edges = np.flatnonzero(rng.random(n_edges) < 0.7)
    visitors = rng.choice(n_rows, rng.integers(0, n_rows // 2 + 1), replace=False).astype(np.int32)
    span = (int(ends[0]), int(ends[-1]))
    return X, frozen(below), span, edges, visitors, nodes.scratch_for(n_rows, n_features)
