"""Sixteen labels at once: what a label becomes depends on nothing but its own problem."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from tailwise.kernels.arrays import read_only
from tailwise.kernels.solvers import resuming_together, solve, together
from tailwise.kernels.solvers.problems import FarRows, Labels, Options, Rows, Several, Support, pack_rows
from tailwise.kernels.solvers.solve import go_on_together, solve_together
from tailwise.kernels.sparse.csr import csr_parts

OPTIONS = Options(bias_centre=0.0, max_sweeps=6, prune=0.0)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    X = sparse.random_array((90, 50), density=0.2, format="csr", dtype=np.float32, rng=rng)
    Y = sparse.csr_array(rng.random((40, 90)) < 0.1)
    cost = rng.uniform(0.5, 2.0, Y.nnz).astype(np.float32)
    return csr_parts(X), Labels(Y.indptr, Y.indices, cost, np.ones(40, np.float32))


def of_label(weights, label):
    support = weights.support
    own, held = (slice(*indptr[label : label + 2]) for indptr in (weights.indptr, support.indptr))
    return weights.features[own], weights.values[own], support.positions[held], support.values[held]


def alone(labels, label):
    own = slice(*labels.indptr[label : label + 2])
    return Labels(
        np.array([0, own.stop - own.start]),
        labels.positions[own],
        labels.positive_costs[own],
        labels.negative_costs[:1],
    )


def test_neighbours_change_nothing(problem):
    X, labels = problem
    rows = pack_rows(X, 50)
    together = solve_together(rows, labels, OPTIONS)
    for label in (0, 15, 16, 39):
        for ours, theirs in zip(
            of_label(together, label), of_label(solve_together(rows, alone(labels, label), OPTIONS), 0), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


def test_a_label_below_another_has_the_rows_of_that_alone(problem):
    X, _ = problem
    exact = OPTIONS._replace(max_sweeps=500, tol=1e-4)
    own = np.sort(np.random.default_rng(5).choice(90, 40, replace=False)).astype(np.int32)
    carried = np.intersect1d(own, np.arange(0, 90, 2)).astype(np.int32)
    both = Labels(
        np.array([0, own.size, own.size + carried.size]),
        np.append(own, carried),
        np.ones(own.size + carried.size, np.float32),
        np.ones(2, np.float32),
    )
    found = solve_together(pack_rows(X, 50), both, exact, np.array([-1, 0], np.int32))
    places = np.searchsorted(own, carried).astype(np.int32)
    few = Labels(np.array([0, places.size]), places, np.ones(places.size, np.float32), np.ones(1, np.float32))
    expected = solve_together(pack_rows(X, 50, own), few, exact)
    ours, theirs = np.zeros(50), np.zeros(50)
    for dense, weights, label in ((ours, found, 1), (theirs, expected, 0)):
        features, values, *_ = of_label(weights, label)
        dense[features] = values
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    assert set(of_label(found, 1)[2].tolist()) <= set(own.tolist())


@pytest.mark.parametrize("memory", [1, 60_000, 10_000_000])
def test_rows_that_stay_where_they_are_give_the_same_bits(problem, memory):
    X, labels = problem
    chosen = np.arange(5, 90)
    shifted = labels._replace(positions=np.maximum(labels.positions - 5, 0))
    near = pack_rows(X, 50, chosen)
    far = pack_rows(X, 50, chosen, memory=1)
    assert isinstance(far, FarRows)
    found = solve_together(near, shifted, OPTIONS), solve_together(far._replace(memory=memory), shifted, OPTIONS)
    for ours, theirs in zip(found[0][:4], found[1][:4], strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_many_rows_take_fewer_sweeps_but_half_of_them_at_least(problem, monkeypatch):
    X, labels = problem
    rows = pack_rows(X, 50)
    expected = {most: solve_together(rows, labels, OPTIONS._replace(max_sweeps=most)).values for most in (3, 4)}
    for visits, sweeps in ((4 * 90, 4), (90, 3)):
        monkeypatch.setattr(solve, "_VISITS", visits)
        np.testing.assert_array_equal(solve_together(rows, labels, OPTIONS).values, expected[sweeps])


def test_support_vectors_make_the_weights(problem):
    X, labels = problem
    found = solve_together(pack_rows(X, 50), labels, OPTIONS)
    alphas = sparse.csr_array((found.support.values, found.support.positions, found.support.indptr), shape=(40, 90))
    rows = sparse.csr_array((X.data, X.indices, X.indptr), shape=(90, 50))
    weights = sparse.csr_array((found.values, found.features, found.indptr), shape=(40, 50))
    np.testing.assert_allclose((alphas @ rows).toarray(), weights.toarray(), atol=1e-4)
    np.testing.assert_allclose(alphas.sum(axis=1), found.bias, atol=1e-4)


def some_support(support, labels):
    parts = [slice(*support.indptr[label : label + 2]) for label in labels]
    indptr = np.append(0, np.cumsum([part.stop - part.start for part in parts]))
    return Support(indptr, *(np.concatenate([own[part] for part in parts]) for own in support[1:]))


def test_labels_that_go_on_do_not_see_their_neighbours(problem):
    X, labels = problem
    rows, fresh = pack_rows(X, 50), np.arange(80, 90)
    stood = solve_together(rows, labels, OPTIONS._replace(max_sweeps=1)).support
    little = OPTIONS._replace(max_sweeps=2)
    together = go_on_alone(rows, labels, stood, fresh, little)
    for label in (0, 15, 16, 39):
        one = go_on_alone(rows, alone(labels, label), some_support(stood, [label]), fresh, little)
        for ours, theirs in zip(of_label(together, label), of_label(one, 0), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def go_on_alone(rows, labels, support, fresh, options):
    """One problem that is not one of several."""
    several = Several(*(np.array(ends) for ends in ([0, 90], [0, labels.indptr.size - 1], [0], [50])))
    is_fresh = read_only(np.isin(np.arange(90), fresh))
    return go_on_together(rows, read_only(rows.indptr[:-1]), several, labels, support, is_fresh, options)


def test_without_new_rows_and_sweeps_weights_are_those_of_the_dual(problem):
    """But for a row that has changed sides: its part is gone."""
    X, labels = problem
    rows, nobody = pack_rows(X, 50), np.empty(0, np.int32)
    solved = solve_together(rows, labels, OPTIONS)
    again = go_on_alone(rows, labels, solved.support, nobody, OPTIONS._replace(max_sweeps=0))
    dense = sparse.csr_array((X.data, X.indices, X.indptr), shape=(90, 50)).toarray()

    def weights_of(found, label):
        own, weights = slice(*found.indptr[label : label + 2]), np.zeros(50)
        weights[found.features[own]] = found.values[own]
        return weights

    for label in (0, 39):
        np.testing.assert_allclose(weights_of(again, label), weights_of(solved, label), atol=1e-5)
    np.testing.assert_allclose(again.bias, solved.bias, atol=1e-5)
    turned = solved.support.values.copy()
    turned[0] *= -1
    gone = go_on_alone(rows, labels, solved.support._replace(values=turned), nobody, OPTIONS._replace(max_sweeps=0))
    lost = solved.support.values[0] * dense[solved.support.positions[0]]
    np.testing.assert_allclose(weights_of(gone, 0), weights_of(solved, 0) - lost, atol=1e-5)


def test_one_sweep_leaves_rows_out_that_have_little_to_share(problem):
    """Of what has changed by new rows: these are visited as well, and of a row that is left out every α stays."""
    X, labels = problem
    rows, fresh = pack_rows(X, 50), np.arange(80, 90)
    few = some_labels(labels, 16)
    stood = solve_together(rows, few, OPTIONS).support
    label, rng = np.repeat(np.arange(16), np.diff(stood.indptr)), np.random.default_rng(0)
    keep = (stood.positions < 80) & (rng.random(label.size) < 0.3)
    indptr = np.append(0, np.cumsum(np.bincount(label[keep], minlength=16)))
    begun = Support(indptr, stood.positions[keep], stood.values[keep])

    def alphas(support):
        return np.abs(sparse.csr_array((support.values, support.positions, support.indptr), shape=(16, 90)).toarray())

    before, after = (
        alphas(go_on_alone(rows, few, begun, fresh, OPTIONS._replace(max_sweeps=most)).support) for most in (0, 1)
    )
    new = before[:, fresh].sum(axis=1)
    share = (new / (new + alphas(begun).sum(axis=1))) @ before
    visited = share > resuming_together._LEAST_SHARE * share[share > 0].mean()
    visited[fresh] = True
    assert 20 < visited.sum() < 70
    np.testing.assert_array_equal(before[:, ~visited], after[:, ~visited])
    assert (before != after).any(axis=0)[visited].mean() > 0.9


def test_beside_a_new_label_every_row_is_visited(problem):
    X, labels = problem
    rows, fresh = pack_rows(X, 50), np.arange(80, 90)
    few = some_labels(labels, 16)
    stood = solve_together(rows, few, OPTIONS).support
    none = Support(np.append(stood.indptr[:-1], stood.indptr[-2]), *(own[: stood.indptr[-2]] for own in stood[1:]))
    found = go_on_alone(rows, few, none, fresh, OPTIONS._replace(max_sweeps=1)).support
    assert (found.positions[found.indptr[15] :] < 80).any()


def some_labels(labels, n):
    end = labels.indptr[n]
    return Labels(
        labels.indptr[: n + 1], labels.positions[:end], labels.positive_costs[:end], labels.negative_costs[:n]
    )


@pytest.mark.parametrize("length", [1, 3, 16])
def test_blocks_and_runs_have_every_row_once(length):
    """Blocks of 2^22 values, one of them of a single row that is longer, and a last run that is short."""
    sizes = np.random.default_rng(0).integers(0, 1 << 19, 100)
    sizes[50] = 3 << 22
    indptr = np.append(0, np.cumsum(sizes)) + 7
    X = Rows(indptr, *[np.empty(0)] * 2, np.empty(100, np.float32), *[np.empty(0)] * 2)
    ends = together._ends_of_blocks(X, length)
    assert ends[0] == 0 and ends[-1] == 100 and ends.size > 6
    assert (np.diff(ends) >= 0).all() and (ends[:-1] % length == 0)[ends[:-1] < 100].all()
    rows = []
    for first, last in pairwise(ends.tolist()):
        runs = np.arange(-(-first // length), -(-last // length), dtype=np.int32)[::-1].copy()
        order = np.full(last - first, -1, np.int32)
        together._rows_of_runs(runs, length, 100, order)
        assert (np.diff(order)[np.diff(order) != 1] < 0).all()
        rows += order.tolist()
    assert sorted(rows) == list(range(100))
