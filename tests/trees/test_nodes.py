"""The problem of a node: its rows, and who of them carries what an edge leads to."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from naive import trees as naive
from naive.sparse import dense
from naive.twins import Twin, assert_equals_twin
from scipy import sparse
from strategies import generators, sparse_rows

from tailwise.kernels.arrays import frozen
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.kernels.trees import nodes
from tailwise.kernels.trees.nodes import Below


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


def read_node(node, X, below, span, edges, visitors, scratch):
    """Dense rows, what stands beside them, and the carriers of each edge; features in the order of X."""
    assert (scratch.place == -1).all() and (scratch.local == -1).all()
    carrying, rows, labels = node
    n_features = scratch.local.size
    if carrying.size < scratch.place.size:
        indptr, indices, data, squares, features, weights = rows
        assert np.unique(features).size == features.size
        entries = dense(Csr(indptr, features[indices], data), n_features)
        rows = entries, squares, weights
    else:
        assert not any(part[1:].size for part in rows[:1]) and not any(part.size for part in rows[1:])
        rows = ()
    return carrying, *rows, *labels


@given(gathered(), st.sampled_from([0, 32]))
def test_a_node_is_gathered_as_its_twin_does(arguments, few):
    twin = Twin(naive.gather_node, gathered(), writes=(5,), seen=read_node, rtol=1e-5, atol=1e-6)
    with patch.object(nodes, "_FEW", few):
        assert_equals_twin(nodes.gather_node, twin, arguments)
