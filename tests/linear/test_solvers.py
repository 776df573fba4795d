"""The solvers reach the optimum of the objective they state."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.linear import dual_bound, objective, solve_hinge_dual, solve_l1, solve_smooth
from scipy import sparse
from sklearn.svm import LinearSVC
from strategies import examples, generators, rows_and_labels

from tailwise.kernels.solvers.problems import Labels, Options, pack_rows
from tailwise.kernels.solvers.solve import solve_block, solve_l1_block
from tailwise.kernels.sparse.columns import to_columns
from tailwise.kernels.sparse.csr import Csr, csr_parts

TIGHT = Options(tol=1e-3, max_rounds=200, max_sweeps=1000, prune=0.0)


def make_problem(seed, n_rows=60, n_features=25, n_labels=5):
    """Sparse rows of uneven length, one of them empty; label 0 has no row, label 1 every row; mixed costs."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.2)
    X[rng.integers(n_rows)] = 0
    Y = (X[:, :n_labels] > 0.3) | (rng.random((n_rows, n_labels)) < 0.1)
    Y[:, 0], Y[:, 1] = False, True
    return with_costs(sparse.csr_array(X.astype(np.float32)), sparse.csr_array(Y), rng)


def with_costs(X, Y, rng):
    """Dense X, its rows ready for solvers, and the labels with costs of every size."""
    by_label = sparse.csc_array(Y)
    labels = Labels(
        by_label.indptr.astype(np.int64),
        by_label.indices.astype(np.int32),
        rng.uniform(0.3, 3.0, by_label.nnz).astype(np.float32),
        rng.uniform(0.3, 3.0, Y.shape[1]).astype(np.float32),
    )
    return X.toarray(), pack_rows(csr_parts(X), X.shape[1]), labels


def problems(n_rows=(2, 60), **options):
    drawn = rows_and_labels(n_rows, (1, 25), (1, 5), **options)
    return st.builds(lambda rows, rng: with_costs(*rows, rng), drawn, generators())


signed_or_not = st.booleans().flatmap(lambda signed: problems(signed=signed))


def each_label(X, labels, weights):
    """(z, costs, w, b) of each label, in float64."""
    for label, bias in enumerate(weights.bias):
        own = slice(labels.indptr[label], labels.indptr[label + 1])
        z = -np.ones(X.shape[0])
        costs = np.full(X.shape[0], float(labels.negative_costs[label]))
        z[labels.positions[own]] = 1
        costs[labels.positions[own]] = labels.positive_costs[own]
        w = np.zeros(X.shape[1])
        kept = slice(weights.indptr[label], weights.indptr[label + 1])
        w[weights.features[kept]] = weights.values[kept]
        yield z, costs, w, float(bias)


def log_odds(z):
    return np.log(((z > 0).sum() + 0.5) / ((z < 0).sum() + 0.5))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@examples(15)
@given(problem=signed_or_not, centre=st.sampled_from([None, 0.0]), scale=st.sampled_from([0.0, 1.0, 5.0]))
def test_smooth_losses_reach_the_optimum(loss, problem, centre, scale):
    X, rows, labels = problem
    weights = solve_block(rows, labels, TIGHT._replace(loss=loss, bias_centre=centre, bias_scale=scale, tol=1e-4))
    for z, costs, w, b in each_label(X, labels, weights):
        middle = centre if centre is not None else -1.0 if loss == "squared_hinge" else log_odds(z)
        form = {"loss": loss, "centre": middle, "scale": scale}
        # The twin is as near as L-BFGS comes, which may be less near: its value is one that can be reached.
        best = objective(X, z, costs, *solve_smooth(X, z, costs, **form), **form)
        assert objective(X, z, costs, w, b, **form) <= best * (1 + 1e-3) + 1e-5


@examples(8)
@given(problem=problems((2, 40)), l1=st.sampled_from([0.0, 0.1, 0.5]))
def test_hinge_with_l1_and_l2_reaches_its_dual(problem, l1):
    X, rows, labels = problem
    weights = solve_block(rows, labels, TIGHT._replace(loss="hinge", l1=l1, tol=1e-4))
    for z, costs, w, b in each_label(X, labels, weights):
        best = solve_hinge_dual(X, z, costs, l1=l1, iterations=3000)
        assert objective(X, z, costs, w, b, loss="hinge", l1=l1) == pytest.approx(best, rel=5e-3, abs=5e-3)


@examples(15)
@given(problem=signed_or_not, l1=st.sampled_from([0.1, 0.5]))
def test_squared_hinge_with_l1_and_l2_closes_the_gap_to_its_dual(problem, l1):
    X, rows, labels = problem
    weights = solve_block(rows, labels, TIGHT._replace(l1=l1, tol=1e-4))
    for z, costs, w, b in each_label(X, labels, weights):
        alphas = 2 * costs * np.maximum(0, 1 - z * (X @ w + b))
        below = dual_bound(X, z, costs, alphas, l1=l1, squared=True)
        assert objective(X, z, costs, w, b, l1=l1) <= below * (1 + 1e-3) + 1e-4


@examples(8)
@given(problem=signed_or_not)
def test_l1_reaches_the_optimum(problem):
    X, rows, labels = problem
    weights = solve_l1_block(rows, to_columns(rows, X.shape[1]), labels, TIGHT)
    for z, costs, w, b in each_label(X, labels, weights):
        best = objective(X, z, costs, *solve_l1(X, z, costs, iterations=3000), l1=1.0, l2=0.0)
        assert objective(X, z, costs, w, b, l1=1.0, l2=0.0) == pytest.approx(best, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_equals_liblinear_when_the_bias_is_centred_at_zero(scale):
    X, rows, labels = make_problem(3, n_rows=200)
    labels = labels._replace(positive_costs=np.ones_like(labels.positive_costs), negative_costs=np.ones(5, np.float32))
    weights = solve_block(rows, labels, TIGHT._replace(bias_centre=0.0, bias_scale=scale))
    for label, (z, costs, w, b) in enumerate(each_label(X, labels, weights)):
        if label < 2:
            continue
        peer = LinearSVC(loss="squared_hinge", intercept_scaling=scale, tol=1e-8, max_iter=100_000).fit(X, z)
        form = {"centre": 0.0, "scale": scale}
        best = objective(X, z, costs, peer.coef_[0], peer.intercept_[0], **form)
        assert objective(X, z, costs, w, b, **form) == pytest.approx(best, rel=1e-3)
        np.testing.assert_allclose(w, peer.coef_[0], atol=0.01)


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_l1_equals_liblinear_when_the_bias_is_centred_at_zero(scale):
    X, rows, labels = make_problem(4, n_rows=200)
    labels = labels._replace(
        positive_costs=np.full_like(labels.positive_costs, 3), negative_costs=np.ones(5, np.float32)
    )
    options = TIGHT._replace(bias_centre=0.0, bias_scale=scale)
    for label, (z, costs, w, b) in enumerate(
        each_label(X, labels, solve_l1_block(rows, to_columns(rows, X.shape[1]), labels, options))
    ):
        if label < 2:
            continue
        peer = LinearSVC(
            penalty="l1", dual=False, class_weight={1.0: 3.0}, intercept_scaling=scale, tol=1e-8, max_iter=100_000
        ).fit(X, z)
        form = {"centre": 0.0, "scale": scale, "l1": 1.0, "l2": 0.0}
        best = objective(X, z, costs, peer.coef_[0], peer.intercept_[0], **form)
        assert objective(X, z, costs, w, b, **form) == pytest.approx(best, rel=1e-3)
        np.testing.assert_allclose(w, peer.coef_[0], atol=0.02)


def test_the_default_tolerance_of_l1_is_close_to_exact():
    X, rows, labels = make_problem(6, n_rows=300, n_features=60)
    columns = to_columns(rows, X.shape[1])
    form = {"l1": 1.0, "l2": 0.0}
    exact, loose = (
        [
            objective(X, *label, **form)
            for label in each_label(X, labels, solve_l1_block(rows, columns, labels, options))
        ]
        for options in (TIGHT, Options(prune=0.0))
    )
    np.testing.assert_allclose(loose, exact, rtol=5e-3, atol=1e-3)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_label_does_not_depend_on_its_block(loss):
    _, rows, labels = make_problem(5, n_labels=20)
    whole = solve_block(rows, labels, Options(loss=loss))
    for label in (0, 1, 7, 19):
        own = slice(labels.indptr[label], labels.indptr[label + 1])
        alone = Labels(
            np.array([0, own.stop - own.start]),
            labels.positions[own],
            labels.positive_costs[own],
            labels.negative_costs[label : label + 1],
        )
        found = solve_block(rows, alone, Options(loss=loss))
        kept = slice(whole.indptr[label], whole.indptr[label + 1])
        np.testing.assert_array_equal(found.values, whole.values[kept])
        np.testing.assert_array_equal(found.features, whole.features[kept])
        assert found.bias[0] == whole.bias[label]


def test_a_subset_of_rows_is_the_same_problem():
    X, _, _ = make_problem(8)
    csr = sparse.csr_array(X)
    chosen = np.array([40, 3, 17, 22, 5, 30, 31, 50])
    part = csr[chosen]
    labels = Labels(np.array([0, 3]), np.array([0, 2, 5]), np.ones(3), np.ones(1))
    found = solve_block(pack_rows(csr_parts(csr), 25, chosen), labels, TIGHT)
    wanted = solve_block(pack_rows(csr_parts(part), 25), labels, TIGHT)
    np.testing.assert_array_equal(found.features, wanted.features)
    np.testing.assert_allclose(found.values, wanted.values, atol=1e-6)


def test_read_only_rows_and_wide_indptr():
    X, rows, labels = make_problem(9)
    expected = solve_block(rows, labels)
    csr = sparse.csr_array(X)
    parts = [csr.indptr.astype(np.int64), csr.indices.copy(), csr.data.copy()]
    for part in parts:
        part.setflags(write=False)
    found = solve_block(pack_rows(csr_parts(Csr(*parts)), 25), labels)
    np.testing.assert_array_equal(found.values, expected.values)


def test_pruning_drops_small_weights_only():
    _, rows, labels = make_problem(10)
    whole, pruned = (solve_block(rows, labels, Options(prune=p)) for p in (0.0, 0.2))
    assert np.abs(pruned.values).min() >= np.float32(0.2)
    np.testing.assert_array_equal(pruned.values, whole.values[np.abs(whole.values) >= 0.2])


def test_unknown_options_are_refused():
    _, rows, labels = make_problem(0)
    with pytest.raises(ValueError, match="loss='huber' is not one of"):
        solve_block(rows, labels, Options(loss="huber"))
    with pytest.raises(ValueError, match=r"l1=0.5 goes with the hinge losses"):
        solve_block(rows, labels, Options(loss="logistic", l1=0.5))
