"""The problem of a node: its rows, and who of them carries what an edge leads to."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from naive.sparse import dense
from scipy import sparse
from strategies import generators, sparse_rows

from tailwise.kernels.arrays import frozen
from tailwise.kernels.solvers.problems import Support
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.trees import nodes, standing
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


@given(gathered(), generators(), st.booleans())
def test_nodes_that_go_on_are_gathered_as_each_alone(arguments, rng, visited):
    """With rows copied together or left where they are, and support vectors where rows are."""
    X, below, span, edges, visitors, scratch = arguments
    n_rows, n_features = scratch.place.size, scratch.local.size
    held = [np.sort(rng.choice(n_rows, n_rows // 3, replace=False)) for _ in range(2 * edges.size)]
    indptr = np.append(0, np.cumsum([own.size for own in held])).astype(np.int64)
    positions = np.concatenate([np.empty(0, int), *held]).astype(np.int32)
    stood = Support(indptr, positions, np.ones(positions.size, np.float32))
    squares = (dense(X, n_features) ** 2).sum(axis=1).astype(np.float32)
    came = [visitors, visitors[:1]]
    here, rows, starts, several, labels, found = standing.gather_nodes(
        X, squares, below, np.array([span, span]), [edges, edges], came if visited else None, stood, scratch
    )
    assert (scratch.place == -1).all() and (scratch.local == -1).all()
    lengths = np.diff(rows.indptr)
    for node in range(2):
        own = held[node * edges.size : (node + 1) * edges.size]
        coming = np.concatenate([came[node], *own]).astype(np.int32) if visited else visitors[:0]
        expected, _, (ends, places, _, negative) = nodes.gather_node(X, below, span, edges, coming, scratch)
        first, last = several.first_row[node : node + 2]
        np.testing.assert_array_equal(here[first:last], expected)
        features = rows.features[several.first_feature[node] : several.last_feature[node]]
        for at in range(first, last):
            entries = slice(starts[at], starts[at] + lengths[at])
            entry = np.zeros(n_features)
            entry[features[rows.indices[entries]]] = rows.data[entries]
            np.testing.assert_allclose(entry, dense(X, n_features)[here[at]])
            assert rows.squares[at] == np.float32(squares[here[at]]) or abs(rows.squares[at] - squares[here[at]]) < 1e-5
        for n in range(edges.size):
            edge = node * edges.size + n
            ours = np.sort(labels.positions[slice(*labels.indptr[edge : edge + 2])]) - first
            np.testing.assert_array_equal(ours, places[slice(*ends[n : n + 2])])
            there = found.positions[slice(*indptr[edge : edge + 2])]
            kept = np.isin(own[n], expected)
            np.testing.assert_array_equal(there >= 0, kept)
            np.testing.assert_array_equal(here[there[kept]], own[n][kept])
        np.testing.assert_array_equal(labels.negative_costs[node * edges.size : (node + 1) * edges.size], negative)
