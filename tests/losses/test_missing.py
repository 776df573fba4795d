import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import losses as naive

from tailwise.errors import InvalidInput
from tailwise.losses import (
    LOSSES,
    Loss,
    NoConvexSurrogate,
    convex_surrogate,
    convexity,
    correct,
    hinge,
    squared_error,
    squared_hinge,
    tail_weighted,
    unbiased,
    zero_one,
)
from tailwise.losses.missing import look_at

LABELS = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0]])
PROPENSITY = np.array([0.2, 0.55, 0.9])
PAIRS = {
    **LOSSES,
    "exponential": Loss("exponential", positive=lambda s: np.exp(-s), negative=lambda s: np.exp(s)),
    "ramp": Loss("ramp", positive=lambda s: np.clip(1 - s, 0, 2), negative=lambda s: np.clip(1 + s, 0, 2)),
}


def scores_for(labels, seed):
    return np.random.default_rng(seed).normal(size=labels.shape) * 2


@pytest.mark.parametrize("name", PAIRS)
def test_expectation_over_every_observation_is_the_true_loss(name):
    plain, scores = PAIRS[name], scores_for(LABELS, 1)
    corrected = unbiased(plain, PROPENSITY)
    expected = sum(
        chance * corrected(scores, seen).sum() for seen, chance in naive.every_observation(LABELS, PROPENSITY)
    )
    assert expected == pytest.approx(plain(scores, LABELS).sum(), rel=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_plain_loss_on_observed_labels_is_biased(name):
    plain, scores = PAIRS[name], scores_for(LABELS, 1)
    expected = sum(chance * plain(scores, seen).sum() for seen, chance in naive.every_observation(LABELS, PROPENSITY))
    assert abs(expected - plain(scores, LABELS).sum()) > 0.05


@pytest.mark.parametrize("name", PAIRS)
def test_simulated_mean_comes_to_the_true_loss(name):
    rng = np.random.default_rng(0)
    plain, corrected = PAIRS[name], unbiased(PAIRS[name], PROPENSITY)
    labels = (rng.random((200, 3)) < 0.3).astype(int)
    scores = scores_for(labels, 2) / 2
    seen = labels * (rng.random((400, *labels.shape)) < PROPENSITY)
    totals = corrected(scores, seen).sum(axis=(1, 2))
    error = totals.std(ddof=1) / np.sqrt(len(totals))
    assert abs(totals.mean() - plain(scores, labels).sum()) < 4 * error


def test_a_random_label_is_estimated_without_bias():
    """Theorem 1 of the unbiased losses: the truth is random too, and the estimate has the mean of the true loss."""
    rng = np.random.default_rng(3)
    n, p, score = 200_000, 0.3, 0.4
    truth = rng.random(n) < 0.6
    seen = truth & (rng.random(n) < p)
    for name in ("hinge", "squared_hinge", "cross_entropy", "squared_error", "zero_one"):
        values = unbiased(name, p)(np.full(n, score), seen.astype(int))
        wanted = 0.6 * float(LOSSES[name](score, 1)) + 0.4 * float(LOSSES[name](score, 0))
        error = values.std(ddof=1) / np.sqrt(n)
        assert abs(values.mean() - wanted) < 4 * error
        wrong = unbiased(name, 1.5 * p)(np.full(n, score), seen.astype(int))
        assert abs(wrong.mean() - wanted) > 10 * error, "a wrong propensity is seen"


def test_a_sum_of_different_losses_is_estimated_without_bias_though_labels_go_missing_together():
    """Corollary 1: each label has a loss of its own; only the marginal propensities matter."""
    rng = np.random.default_rng(4)
    names = ["hinge", "squared_error", "cross_entropy"]
    labels, scores = (rng.random((50, 3)) < 0.5).astype(int), rng.normal(size=(50, 3))

    def total(seen, corrected):
        parts = [
            (unbiased(name, PROPENSITY[l]) if corrected else LOSSES[name])(scores[:, l], seen[..., l])
            for l, name in enumerate(names)
        ]
        return sum(part.sum(axis=-1) for part in parts)

    truth = total(labels, corrected=False)
    # One draw a row decides all its labels: whoever records a rare label records the frequent ones too.
    seen = labels * (rng.random((4000, 50, 1)) < PROPENSITY)
    values, plain = total(seen, corrected=True), total(seen, corrected=False)
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean() - truth) < 4 * error
    assert abs(plain.mean() - truth) > 10 * plain.std(ddof=1) / np.sqrt(len(plain))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(LOSSES)), st.floats(-5, 5), st.floats(0.01, 1))
def test_corrected_parts_equal_the_twin_and_the_closed_forms(name, score, p):
    corrected = unbiased(name, p)
    assert corrected(score, 1) == pytest.approx(naive.corrected_loss(name, [[score]], [[1]], [p]), abs=1e-9)
    assert corrected(score, 0) == pytest.approx(naive.corrected_loss(name, [[score]], [[0]], [p]), abs=1e-9)
    if name in naive.CLOSED_FORMS:
        assert corrected(score, 1) == pytest.approx(naive.CLOSED_FORMS[name](score, p), abs=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_nothing_is_corrected_where_nothing_is_missing(name):
    scores = np.linspace(-3, 3, 13)
    for how in ("unbiased", "convex"):
        if (name, how) != ("zero_one", "convex"):
            np.testing.assert_allclose(correct(name, how, 1.0).observed(scores), LOSSES[name].observed(scores))


class TestConvexity:
    @pytest.mark.parametrize("p", [0.05, 0.3, 0.7, 0.99])
    def test_the_table(self, p):
        assert convexity("squared_error", p) == (True, True, None)
        assert convexity("cross_entropy", p) == (True, False, None)
        assert not convexity("squared_hinge", p).convex
        assert convexity("hinge", p) == (False, False, -1.0)

    def test_all_are_convex_when_nothing_is_missing(self):
        for name in ("squared_error", "cross_entropy", "hinge", "squared_hinge"):
            assert convexity(name, 1.0) == (True, True, None)

    def test_squared_error_of_a_very_rare_label_is_bounded(self):
        assert convexity("squared_error", 1e-4).bounded_below

    def test_concave_and_wavy_functions_are_found(self):
        assert not look_at(lambda s: -(s**2)).convex
        assert not look_at(np.sin).convex
        assert look_at(np.exp) == (True, True, None)


class TestConvexSurrogate:
    @pytest.mark.parametrize("name", ["squared_error", "hinge", "squared_hinge", "cross_entropy"])
    @pytest.mark.parametrize("p", [0.05, 0.5, 1.0])
    def test_is_convex_and_bounded_below(self, name, p):
        loss = convex_surrogate(name, p)
        for part in (loss.observed, loss.unobserved):
            assert look_at(part)[:2] == (True, True)

    @pytest.mark.parametrize("loss", [hinge, squared_hinge])
    @pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
    def test_bounds_the_shifted_unbiased_zero_one_loss(self, loss, p):
        scores = np.linspace(-4, 4, 801)
        shift = 1 / p - 1  # equation 38: so that the corrected 0-1 loss of a right label is 0
        assert (
            convex_surrogate(loss, p).observed(scores) >= unbiased(zero_one, p).observed(scores) + shift - 1e-12
        ).all()

    def test_is_the_unbiased_loss_for_squared_error(self):
        scores = np.linspace(-2, 2, 9)
        np.testing.assert_allclose(
            convex_surrogate(squared_error, 0.3).observed(scores), unbiased(squared_error, 0.3).observed(scores)
        )

    def test_is_weighted_positive_part_for_the_others(self):
        scores = np.linspace(-2, 2, 9)
        for name in ("hinge", "squared_hinge", "cross_entropy"):
            np.testing.assert_allclose(convex_surrogate(name, 0.5).observed(scores), 3 * LOSSES[name].observed(scores))

    def test_says_where_there_is_none(self):
        with pytest.raises(
            NoConvexSurrogate, match="ramp has no convex surrogate: its positive part bends down at s = -1"
        ):
            convex_surrogate(PAIRS["ramp"], 0.5)
        with pytest.raises(NoConvexSurrogate, match=r"zero_one .* such as the hinge"):
            convex_surrogate("zero_one", 0.5)
        lazy = Loss("lazy", positive=lambda s: np.clip(-s - 1, 0, None), negative=lambda s: np.clip(s - 1, 0, None))
        with pytest.raises(NoConvexSurrogate, match="do not bound the 0-1 loss"):
            convex_surrogate(lazy, 0.5)


def test_tail_weight_forgets_a_label_that_is_never_missing():
    assert tail_weighted(hinge, 1.0)(-5.0, 1) == 0


def test_wrong_propensities_are_refused():
    with pytest.raises(InvalidInput, match=r"propensity=2.5 is outside \(0, 1\].*inverses"):
        unbiased(hinge, [0.5, 2.5])
    with pytest.raises(InvalidInput, match=r"propensity=0 is outside"):
        convex_surrogate(hinge, 0.0)
    with pytest.raises(InvalidInput, match=r"shape \(1, 2\)"):
        unbiased(hinge, [[0.5, 0.5]])
    with pytest.raises(InvalidInput, match="corrected already"):
        unbiased(unbiased(hinge, 0.5), 0.5)
