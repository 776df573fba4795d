"""The problem of a node: its rows, and who of them carries what an edge leads to."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from naive.sparse import dense
from strategies import generators

from tailwise.kernels.solvers.problems import Support
from tailwise.kernels.trees import nodes, standing
from tree_strategies import gathered


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
            ours = np.sort(labels.positions[slice(*labels.indptr[edge : edge + 2])])
            np.testing.assert_array_equal(ours, places[slice(*ends[n : n + 2])])
            there = found.positions[slice(*indptr[edge : edge + 2])]
            kept = np.isin(own[n], expected)
            np.testing.assert_array_equal(there >= 0, kept)
            np.testing.assert_array_equal(here[first + there[kept]], own[n][kept])
        np.testing.assert_array_equal(labels.negative_costs[node * edges.size : (node + 1) * edges.size], negative)
