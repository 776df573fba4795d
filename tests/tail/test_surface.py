from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tailwise.tail.surface import Surface, monomials


def pairs(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n, 3)) * [1.0, 5.0, 0.1] + [0.0, 3.0, -1.0]
    z = (inputs - [0.0, 3.0, -1.0]) / [1.0, 5.0, 0.1]
    truth = 1 / (1 + np.exp(-(z[:, 0] + 0.8 * z[:, 0] * z[:, 1] - 0.5 * z[:, 2] ** 2 - 1)))
    return inputs, rng.random(n) < truth, truth


def naive(surface, inputs):
    """The formula, pair by pair and monomial by monomial."""
    z = (np.clip(inputs, surface.low, surface.high) - surface.centre) / surface.scale
    n_cubic = z.shape[1] if surface.n_cubic is None else surface.n_cubic
    powers = [p for p in product(range(4), repeat=z.shape[1]) if sum(p) <= (3 if not any(p[n_cubic:]) else 2)]
    # By degree, then as words over the inputs: the order of combinations with replacement.
    powers.sort(key=lambda p: (sum(p), [j for j, times in enumerate(p) for _ in range(times)]))
    odds = [
        sum(c * np.prod(row ** np.array(p)) for c, p in zip(surface.coefficients, powers, strict=True)) for row in z
    ]
    return 1 / (1 + np.exp(-np.array(odds)))


@pytest.mark.parametrize("n_cubic", [None, 0, 2])
def test_a_surface_is_its_formula(n_cubic):
    inputs, hits, _ = pairs(500)
    surface = Surface.fit(inputs, hits, n_cubic=n_cubic)
    np.testing.assert_allclose(surface(inputs), naive(surface, inputs), rtol=1e-5)
    assert surface(inputs[:1])[0] == surface(inputs)[0], "a pair has the same bits alone"


def test_newton_finds_what_scikit_learn_finds():
    inputs, hits, _ = pairs()
    weight = np.random.default_rng(1).integers(0, 3, hits.size).astype(float)
    surface = Surface.fit(inputs, hits, weight)
    counted = weight > 0
    m = monomials((np.clip(inputs, surface.low, surface.high) - surface.centre) / surface.scale)[counted, 1:]
    mean = np.average(m, axis=0, weights=weight[counted])
    sd = np.sqrt(np.average((m - mean) ** 2, axis=0, weights=weight[counted]))
    other = LogisticRegression(C=1.0, tol=1e-8, max_iter=5000).fit(m / sd, hits[counted], weight[counted])
    np.testing.assert_allclose(surface.coefficients[1:] * sd, other.coef_[0], atol=2e-3)


def test_a_surface_finds_the_truth_and_does_not_run_away():
    inputs, hits, truth = pairs(20_000)
    surface = Surface.fit(inputs, hits)
    assert np.abs(surface(inputs) - truth).mean() < 0.02
    far = inputs.max(axis=0, keepdims=True)
    np.testing.assert_array_equal(surface(1e6 + far), surface(surface.high[None]))
    np.testing.assert_array_equal(surface(np.full((1, 3), -np.inf)), surface(surface.low[None]))


@pytest.mark.parametrize(("hits", "expected"), [([True, True], 1.0), ([False, False], 0.0), ([], 0.0)])
def test_nothing_to_learn_is_certain(hits, expected):
    hits = np.array(hits, bool)
    surface = Surface.fit(np.ones((hits.size, 2)), hits)
    np.testing.assert_allclose(surface(np.ones((3, 2))), expected, atol=1e-6)
    surface.check(2)


def test_separable_pairs_and_constant_inputs_stay_finite():
    inputs = np.column_stack([np.arange(40.0), np.ones(40), np.full(40, -np.inf)])
    surface = Surface.fit(inputs, np.arange(40) >= 20)
    surface.check(3)
    assert surface(inputs)[0] < 0.1 < 0.9 < surface(inputs)[-1]
