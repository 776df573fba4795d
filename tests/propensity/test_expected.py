"""What a count says about the count to be expected."""

import numpy as np
import pytest

from tailwise.propensity.expected import expected_counts


def test_labels_of_two_kinds_are_told_apart():
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.repeat([1.0, 60.0], [4_000, 400]))
    found = expected_counts(counts)
    assert found.share.sum() == pytest.approx(1)
    given = found.given(np.array([0, 3, 60])) @ found.grid
    assert given[0] == pytest.approx(1, abs=0.25) and given[1] == pytest.approx(1, abs=0.5), "luck, not a rarer kind"
    assert given[2] == pytest.approx(60, rel=0.1)


def test_the_mean_is_that_of_the_pairs():
    rng = np.random.default_rng(1)
    found = expected_counts(rng.poisson(rng.gamma(0.3, 30.0, 2_000)))
    counts, inverse = np.array([0, 1, 7]), 1 + 9 / (found.grid + 2)
    for count, value in zip(counts, found.mean_of(counts)(inverse), strict=True):
        chance = np.exp(-found.grid) * found.grid**count * found.share
        assert value == pytest.approx((chance * found.grid).sum() / (chance * found.grid * inverse).sum())
    np.testing.assert_allclose(found.mean_of(counts)(np.full(found.grid.size, 4.0)), 0.25)
