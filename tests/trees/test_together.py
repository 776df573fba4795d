"""Sixteen labels at once: what a label becomes depends on nothing but its own problem."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from tailwise.kernels.arrays import read_only
from tailwise.kernels.solvers import solve, together
from tailwise.kernels.solvers.problems import FarRows, Labels, Options, Rows, Several, Support, Weights, pack_rows
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


def go_on_alone(rows, labels, support, fresh, options, sharing=None, began=None):
    """One problem that is not one of several."""
    several = Several(*(np.array(ends) for ends in ([0, 90], [0, labels.indptr.size - 1], [0], [50])))
    marks = read_only(np.stack([np.isin(np.arange(90), own) for own in (fresh, fresh if sharing is None else sharing)]))
    return go_on_together(rows, read_only(rows.indptr[:-1]), several, labels, support, began, marks, options)


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


def test_one_sweep_leaves_rows_out_that_do_not_share(problem):
    """Every α stays of a row that is left out."""
    X, labels = problem
    rows, fresh, sharing = pack_rows(X, 50), np.arange(80, 90), np.arange(60, 90)
    few = some_labels(labels, 16)
    stood = solve_together(rows, few, OPTIONS._replace(max_sweeps=1)).support

    def alphas(most):
        found = go_on_alone(rows, few, stood, fresh, OPTIONS._replace(max_sweeps=most), sharing).support
        return sparse.csr_array((found.values, found.positions, found.indptr), shape=(16, 90)).toarray()

    before, after = alphas(0), alphas(1)
    np.testing.assert_array_equal(before[:, :60], after[:, :60])
    assert (before != after).any(axis=0)[60:].mean() > 0.9


def test_weights_begin_as_they_were_stored_but_for_the_smallest(problem):
    """Without rows to visit they come back, a fifth below the bound too, and so does the bias."""
    X, labels = problem
    rows, few, nobody = pack_rows(X, 50), some_labels(labels, 2), np.empty(0, np.int32)
    nothing = Support(np.zeros(3, np.int64), nobody, np.empty(0, np.float32))
    values, bias = np.array([0.5, 0.085, 0.075, -2.0], np.float32), np.array([0.25, -1.0], np.float32)
    began = Weights(np.array([0, 3, 4]), np.array([4, 7, 30, 2]), values, bias)
    found = go_on_alone(rows, few, nothing, nobody, OPTIONS._replace(prune=0.1, max_sweeps=1), began=began)
    np.testing.assert_array_equal(found.indptr, [0, 2, 3])
    np.testing.assert_array_equal(found.features, [4, 7, 2])
    np.testing.assert_allclose(found.values, [0.5, 0.085, -2.0])
    np.testing.assert_array_equal(found.bias, began.bias)


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
