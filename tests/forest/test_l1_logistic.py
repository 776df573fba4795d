import warnings

import numpy as np
import pytest
from naive.forest import logistic_objective
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from tailwise.forest.growth import columns_with_ones
from tailwise.kernels.solvers.l1_logistic import fit_l1_logistic


def solve(X, targets, costs, tolerance=1e-4, max_newton=300):
    weights = np.empty(X.shape[1] + 1, np.float32)
    margins = np.empty(X.shape[0], np.float32)
    objective = fit_l1_logistic(
        columns_with_ones(sparse.csc_array(X)), targets, costs, tolerance, max_newton, weights, margins
    )
    return weights, margins, objective


def problem(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(10, 250), rng.integers(2, 150)
    X = sparse.random_array((n, m), density=rng.uniform(0.02, 0.4), rng=rng, dtype=np.float32).tocsr()
    if seed % 2:
        X.data -= np.float32(0.5)
    truth = X @ rng.normal(size=m) + 0.3 * rng.normal(size=n) + rng.normal()
    targets = np.where(truth > 0, 1, -1).astype(np.float32)
    targets[:2] = [1, -1]
    costs = rng.uniform(0.2, 8.0, n).astype(np.float32)
    return X, targets, costs


@pytest.mark.parametrize("seed", range(12))
def test_reaches_the_objective_of_liblinear(seed):
    X, targets, costs = problem(seed)
    weights, margins, objective = solve(X, targets, costs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = LogisticRegression(penalty="l1", solver="liblinear", C=1.0, tol=1e-8, max_iter=5000, random_state=0)
        peer.fit(X, targets, sample_weight=costs)
    expected = logistic_objective(X, targets, costs, peer.coef_[0], peer.intercept_[0])
    reached = logistic_objective(X, targets, costs, weights[:-1].astype(np.float64), float(weights[-1]))
    assert reached <= expected * (1 + 1e-4)
    assert objective == pytest.approx(reached, rel=1e-4)
    np.testing.assert_allclose(margins, X @ weights[:-1] + weights[-1], atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_loose_solution_is_near_and_never_above_zero_weights(seed):
    X, targets, costs = problem(seed)
    _, _, tight = solve(X, targets, costs)
    _, _, loose = solve(X, targets, costs, tolerance=0.1, max_newton=10)
    zero = logistic_objective(X, targets, costs, np.zeros(X.shape[1]), 0.0)
    assert tight - 1e-3 <= loose <= zero
    assert loose - tight <= 0.15 * (zero - tight)


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
