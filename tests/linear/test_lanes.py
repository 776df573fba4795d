"""Vector code for sixteen lanes equals the formulas."""

import numpy as np
from numba import njit

from tailwise.kernels.solvers.lanes import LANES, newton_lanes, sigmoid_lanes


@njit(cache=True)
def sigmoid(logits, shares):
    sigmoid_lanes(logits, shares)


@njit(cache=True)
def newton(problems, brackets, logits, pending):
    return newton_lanes(problems, brackets, logits, pending, 1e-3)


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


def test_newton_finds_every_root():
    """Also where Newton's method without a bracket, or with one that never shrinks, runs in circles."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        strength, margin = rng.uniform(0, 60, LANES), rng.normal(scale=8, size=LANES)
        start = rng.normal(scale=8, size=LANES).astype(np.float32)
        old = exact_sigmoid(start)
        problems = np.array([strength, margin, old], np.float32)
        brackets = np.array([-margin - strength * (1 - old), -margin + strength * old], np.float32)
        logits, pending = np.clip(start, *brackets), np.ones(LANES, np.float32)
        for _ in range(20):
            more = newton(problems, brackets, logits, pending)
        assert not more and not pending.any()
        error = strength * (exact_sigmoid(logits) - old) + margin + logits.astype(np.float64)
        np.testing.assert_allclose(error / (1 + strength), 0, atol=1e-3)


def test_newton_moves_pending_lanes_only():
    problems, brackets = np.ones((3, LANES), np.float32), np.array([[-9.0] * LANES, [9.0] * LANES], np.float32)
    logits, pending = np.zeros(LANES, np.float32), np.zeros(LANES, np.float32)
    assert not newton(problems, brackets, logits, pending) and not logits.any()
    pending[3] = 1
    assert newton(problems, brackets, logits, pending)
    assert np.flatnonzero(logits).tolist() == [3] and pending.sum() == 1
