import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.forest import logistic_objective
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from strategies import examples, generators, sparse_rows

from tailwise.forest.growth import columns_with_ones
from tailwise.kernels.solvers.l1_logistic import fit_l1_logistic


def solve(X, targets, costs, tolerance=1e-4, max_newton=300):
    weights = np.empty(X.shape[1] + 1, np.float32)
    margins = np.empty(X.shape[0], np.float32)
    objective = fit_l1_logistic(
        columns_with_ones(sparse.csc_array(X)), targets, costs, tolerance, max_newton, weights, margins
    )
    return weights, margins, objective


def with_targets(X, rng):
    """Rows of both kinds, told apart by their features but for some noise, with costs of every size."""
    n, m = X.shape
    truth = X @ rng.normal(size=m) + 0.3 * rng.normal(size=n) + rng.normal()
    targets = np.where(truth > 0, 1, -1).astype(np.float32)
    targets[:2] = [1, -1]
    return X, targets, rng.uniform(0.2, 8.0, n).astype(np.float32)


def problem(seed):
    rng = np.random.default_rng(seed)
    shape, density = (rng.integers(10, 250), rng.integers(2, 150)), rng.uniform(0.02, 0.4)
    X = sparse.random_array(shape, density=density, rng=rng, dtype=np.float32).tocsr()
    if seed % 2:
        X.data -= np.float32(0.5)
    return with_targets(X, rng)


rows = st.booleans().flatmap(lambda signed: sparse_rows((2, 120), (1, 60), signed=signed))
problems = st.builds(with_targets, rows, generators())


def liblinear_objective(X, targets, costs):
    peer = LogisticRegression(penalty="l1", solver="liblinear", C=1.0, tol=1e-8, max_iter=5000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(X.toarray(), targets, sample_weight=costs)
    return logistic_objective(X, targets, costs, peer.coef_[0], peer.intercept_[0])


@pytest.mark.parametrize("seed", range(12))
def test_reaches_the_objective_of_liblinear(seed):
    X, targets, costs = problem(seed)
    weights, margins, objective = solve(X, targets, costs)
    reached = logistic_objective(X, targets, costs, weights[:-1].astype(np.float64), float(weights[-1]))
    assert reached <= liblinear_objective(X, targets, costs) * (1 + 1e-4)
    assert objective == pytest.approx(reached, rel=1e-4)
    np.testing.assert_allclose(margins, X @ weights[:-1] + weights[-1], atol=1e-4)


@examples(15)
@given(problems)
def test_odd_rows_come_near_the_objective_of_liblinear(problem):
    """A handful of rows, or rows all alike, leave float32 less to tell the steps by."""
    X, targets, costs = problem
    weights, margins, objective = solve(X, targets, costs, tolerance=1e-3)
    reached = logistic_objective(X, targets, costs, weights[:-1].astype(np.float64), float(weights[-1]))
    assert reached <= liblinear_objective(X, targets, costs) * (1 + 0.05)
    assert objective == pytest.approx(reached, rel=1e-4)
    np.testing.assert_allclose(margins, X @ weights[:-1] + weights[-1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_loose_solution_is_near(seed):
    X, targets, costs = problem(seed)
    _, _, tight = solve(X, targets, costs)
    _, _, loose = solve(X, targets, costs, tolerance=0.1, max_newton=10)
    zero = logistic_objective(X, targets, costs, np.zeros(X.shape[1]), 0.0)
    assert tight - 1e-3 <= loose <= tight + 0.15 * (zero - tight)


@examples(15)
@given(problems, st.integers(1, 10))
def test_a_solution_is_never_above_zero_weights(problem, max_newton):
    X, targets, costs = problem
    _, _, loose = solve(X, targets, costs, tolerance=0.1, max_newton=max_newton)
    zero = logistic_objective(X, targets, costs, np.zeros(X.shape[1]), 0.0)
    assert loose <= zero * (1 + 1e-6)


def test_a_tight_tolerance_looks_at_every_feature_before_it_gives_up():
    """Once rounding stops the steps over the working set, features that waited outside it still have to be asked."""
    X = sparse.csr_array(np.array([[0.7277779, 0, 0], [0.06170157] * 3, [0, 1, 0]], np.float32))
    targets, costs = np.array([1, -1, -1], np.float32), np.array([5.5282974, 6.0399528, 1.003008], np.float32)
    _, _, tight = solve(X, targets, costs)
    _, _, loose = solve(X, targets, costs, tolerance=0.1, max_newton=10)
    assert tight <= loose * (1 + 1e-6)


def test_a_row_without_cost_is_ignored_but_gets_its_margin():
    X, targets, costs = problem(1)
    costs[5:20] = 0
    weights, margins, _ = solve(X, targets, costs)
    keep = costs > 0
    without, _, _ = solve(X[keep], targets[keep], costs[keep])
    np.testing.assert_allclose(weights, without, atol=2e-3)
    np.testing.assert_allclose(margins, X @ weights[:-1] + weights[-1], atol=1e-4)


def test_small_features_and_empty_columns_get_no_weight():
    X = np.zeros((6, 3), np.float32)
    X[:3, 0] = 0.1
    X[:, 2] = [1, 1, 1, -1, -1, -1]
    targets = np.array([1, 1, 1, -1, -1, -1], np.float32)
    weights, margins, _ = solve(X, targets, np.ones(6, np.float32))
    assert weights[0] == weights[1] == 0 < weights[2]
    np.testing.assert_array_equal(margins > 0, targets > 0)
