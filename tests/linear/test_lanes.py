"""Vector code for sixteen lanes equals the formulas."""

import numpy as np
from numba import njit

from tailwise.kernels.solvers.lanes import LANES, logistic_lanes, sigmoid_lanes


@njit(cache=True)
def sigmoid(logits, shares):
    sigmoid_lanes(logits, shares)


@njit(cache=True)
def visit(costs, scores, logits, at_work, sums, steps):
    return logistic_lanes(costs, np.float32(1), scores, logits, at_work, sums, steps, np.float32(0))


def exact_sigmoid(t):
    return 1 / (1 + np.exp(-np.asarray(t, np.float64)))


def test_sigmoid():
    rng = np.random.default_rng(0)
    shares = np.empty(LANES, np.float32)
    for scale in (1e-4, 1.0, 10.0, 40.0):
        logits = np.clip(rng.normal(scale=scale, size=LANES), -80, 80).astype(np.float32)
        sigmoid(logits, shares)
        np.testing.assert_allclose(shares, exact_sigmoid(logits), rtol=1e-6)
    sigmoid(np.array([np.inf, -np.inf, 500, -500] * 4, np.float32), shares)
    np.testing.assert_allclose(shares, [1, 0, 1, 0] * 4, atol=1e-30)


def test_visits_of_a_row_end_at_its_root():
    """Also where plain steps of Newton's method run in circles."""
    rng = np.random.default_rng(1)
    working, steps, sums = np.ones(LANES, np.float32), np.empty(LANES, np.float32), np.zeros((2, LANES), np.float32)
    for _ in range(200):
        costs = (rng.choice([-1, 1], LANES) * rng.uniform(0.01, 60, LANES)).astype(np.float32)
        scores, logits = rng.normal(scale=8, size=(2, LANES)).astype(np.float32)
        others = scores - costs * exact_sigmoid(logits)  # what the score is beside the row's own part
        for _ in range(30):
            visit(costs, scores, logits, working, sums, steps)
            scores += steps
        margins = np.sign(costs) * (others + costs * exact_sigmoid(logits))
        np.testing.assert_allclose((margins + logits) / (1 + abs(costs)), 0, atol=1e-3)


def test_lanes_that_rest_stay_as_they_are():
    costs, scores, logits = np.ones((3, LANES), np.float32)
    working, steps, *sums = np.zeros((4, LANES), np.float32)
    sums = np.array(sums)
    assert not visit(costs, scores, logits, working, sums, steps)
    assert (logits == 1).all() and not steps.any() and not sums[0].any()
    working[3] = 1
    assert visit(costs, scores, logits, working, sums, steps)
    for changed in (logits - 1, steps, sums[0]):
        assert np.flatnonzero(changed).tolist() == [3]


def test_sure_logits_do_not_overflow():
    costs, scores = np.ones(LANES, np.float32), np.array([500, -500] * 8, np.float32)
    logits, working = -scores, np.ones(LANES, np.float32)
    steps, sums = np.empty(LANES, np.float32), np.zeros((2, LANES), np.float32)
    visit(costs, scores, logits, working, sums, steps)
    assert not steps.any() and np.isfinite(logits).all()
