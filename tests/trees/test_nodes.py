"""The problem of a node: its rows, and who of them carries what an edge leads to."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from naive.sparse import dense
from scipy import sparse
from strategies import generators

from tailwise.kernels.arrays import read_only
from tailwise.kernels.solvers.problems import Support, Weights
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
    is_fresh = np.isin(np.arange(n_rows), np.append(visitors, rng.choice(n_rows, n_rows // 3)))
    here, rows, starts, _, several, labels, found, began = standing.gather_nodes(
        X,
        squares,
        below,
        np.array([span, span]),
        [edges, edges],
        came if visited else None,
        stood,
        None,
        read_only(is_fresh),
        scratch,
    )
    assert began is None
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


@given(gathered(), generators())
def test_rows_that_neither_are_new_nor_share_are_left_out_where_weights_are_stored(arguments, rng):
    """Features of these weights are numbered with those of rows, and the duals of other rows stay aside."""
    X, below, span, edges, visitors, scratch = arguments
    n_rows, n_features = scratch.place.size, scratch.local.size
    is_fresh = rng.random(n_rows) < 0.4
    visitors = visitors[is_fresh[visitors]]
    known, n = np.flatnonzero(~is_fresh), edges.size
    held = [np.sort(rng.choice(known, known.size // 2, replace=False)) for _ in range(n)]
    indptr = np.append(0, np.cumsum([own.size for own in held])).astype(np.int64)
    positions = np.concatenate([np.empty(0, int), *held]).astype(np.int32)
    stood = Support(indptr, positions, rng.normal(size=positions.size).astype(np.float32))
    weights = sparse.random_array((n, n_features), density=0.5, format="csr", dtype=np.float32, rng=rng)
    parts = weights.indptr.astype(np.int64), weights.indices.astype(np.int32), weights.data
    stored = Weights(*parts, np.zeros(n, np.float32))
    squares = (dense(X, n_features) ** 2).sum(axis=1).astype(np.float32)
    here, rows, _, shares, several, labels, found, began = standing.gather_nodes(
        X, squares, below, np.array([span]), [edges], [visitors], stood, stored, read_only(is_fresh), scratch
    )
    assert (scratch.place == -1).all() and (scratch.local == -1).all() and shares.all()
    carriers = below.rows[below.indptr[span[0]] : below.indptr[span[1]]]
    new = np.union1d(carriers[is_fresh[carriers]], visitors)
    part = np.zeros(n_rows)
    for edge, own in zip(edges, range(n), strict=True):
        carried = below.rows[below.indptr[below.start[edge]] : below.indptr[below.stop[edge]]]
        changed = 0.1 + is_fresh[carried].sum() / max(1, carried.size)
        part[held[own]] += changed * abs(stood.values[indptr[own] : indptr[own + 1]])
    some = np.unique(positions)
    bar = standing._LEAST_SHARE * part.sum() / max(1, some.size)
    sure = some[part[some] > bar * (1 + 1e-5)]
    assert np.isin(np.append(new, sure), here).all()
    assert np.isin(here, np.append(new, some[part[some] > bar * (1 - 1e-5)])).all()
    features = rows.features[several.first_feature[0] : several.last_feature[0]]
    np.testing.assert_array_equal(features[began.features], stored.features)
    kept = np.isin(positions, here)
    np.testing.assert_array_equal(found.positions >= 0, kept)
    np.testing.assert_array_equal(here[found.positions[kept]], positions[kept])
    joined = standing.join_support(stood, found.positions, Support(0 * indptr, positions[:0], stood.values[:0]))
    np.testing.assert_array_equal(joined.positions, positions[~kept])
    for own, edge in enumerate(edges):
        carried = below.rows[below.indptr[below.start[edge]] : below.indptr[below.stop[edge]]]
        there = here[labels.positions[slice(*labels.indptr[own : own + 2])]]
        np.testing.assert_array_equal(np.sort(there), np.intersect1d(carried, here))
