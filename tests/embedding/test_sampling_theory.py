"""The negative-sampling paper's lemmas, on simulated draws: seeds are fixed, bounds are four standard errors."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import embedding as naive
from scipy import stats

from tailwise.embedding import SAMPLERS, WEIGHTINGS, Draw, implicit_margin, weights_for
from tailwise.embedding.negatives import SampledObjective, get_negatives
from tailwise.errors import InvalidInput
from tailwise.losses import (
    MARGINS,
    contrastive,
    decoupled_moments,
    get_margin,
    label_prior,
    least_variance,
    sampled_decoupled,
    sampled_softmax,
    softmax_moments,
)
from tailwise.validation import check_labels

L, Y, REPEATS = 8, 2, 40_000


def setting(seed):
    """Scores, and a q that cannot draw the positive label, with some weights (as (L,) arrays for y = Y)."""
    rng = np.random.default_rng(seed)
    f, q = rng.normal(size=L), rng.dirichlet(np.ones(L))
    q[Y] = 0
    return rng, f, q / q.sum(), rng.uniform(0.2, 2.0, L)


def draw_losses(rng, f, q, w, m, loss, repeats=REPEATS):
    drawn = rng.choice(L, size=(repeats, m), p=q)
    return loss(np.full(repeats, f[Y]), f[drawn], w[drawn])


@pytest.mark.parametrize(("seed", "m"), [(0, 1), (1, 5), (2, 20)])
def test_lemma_1_mean_and_variance_of_the_decoupled_loss(seed, m):
    rng, f, q, eta = setting(seed)
    w = eta / m
    losses = draw_losses(rng, f, q, w, m, lambda *parts: sampled_decoupled(contrastive, *parts))
    rho, negative = m * q * w, contrastive.negative(f)
    mean = contrastive.positive(f[Y]) + rho @ negative
    variance = (w * rho) @ negative**2 - (rho @ negative) ** 2 / m
    assert abs(losses.mean() - mean) < 4 * losses.std() / np.sqrt(REPEATS)
    error_of_variance = np.sqrt(((losses - losses.mean()) ** 2).var() / REPEATS)
    assert abs(losses.var() - variance) < 4 * error_of_variance
    np.testing.assert_allclose(decoupled_moments(contrastive.positive(f[Y]), negative, rho, q, m), (mean, variance))


@pytest.mark.parametrize(("seed", "m"), [(0, 1), (1, 5), (2, 20)])
def test_lemma_2_bounds_the_sampled_softmax(seed, m):
    rng, f, q, eta = setting(seed)
    losses = draw_losses(rng, f, q, eta / m, m, sampled_softmax)
    bound = np.log1p((q * eta) @ np.exp(f - f[Y]))
    assert losses.mean() <= bound + 4 * losses.std() / np.sqrt(REPEATS)
    assert losses.mean() < bound, "and strictly, as the logarithm is concave"


def test_lemma_2_is_an_equality_for_the_model_with_importance_weights():
    rng, f, _, _ = setting(3)
    q = np.exp(f)
    q[Y] = 0
    q /= q.sum()
    w = np.divide(1, 5 * q, out=np.zeros(L), where=q > 0)
    losses = draw_losses(rng, f, q, w, 5, sampled_softmax, repeats=100)
    full = np.log(np.exp(f).sum()) - f[Y]
    np.testing.assert_allclose(losses, full, rtol=1e-10)


def test_theorem_3_the_squared_error_falls_as_one_over_m():
    rng, f, q, eta = setting(4)
    values = eta * np.exp(f)
    mu = np.exp(f[Y]) + q @ values
    sigma2 = q @ values**2 - (q @ values) ** 2
    implicit = np.log(mu) - f[Y]
    for m in (50, 200, 800):
        np.testing.assert_allclose(softmax_moments(f, f[Y], eta * q, q, m), (implicit, sigma2 / (m * mu**2)))
        losses = draw_losses(rng, f, q, eta / m, m, sampled_softmax, repeats=2000)
        squared = (losses - implicit) ** 2
        assert squared.mean() * m == pytest.approx(sigma2 / mu**2, rel=4 * np.sqrt(2 / 2000) + 4 / m)


def test_lemma_6_the_partition_function_is_normal_for_many_draws():
    rng, f, q, eta = setting(6)
    values = eta * np.exp(f)
    mu, m, repeats = np.exp(f[Y]) + q @ values, 1000, 8000
    sigma2 = q @ values**2 - (q @ values) ** 2
    drawn = rng.multinomial(m, q, size=repeats)
    partition = np.exp(f[Y]) + drawn @ values / m
    for deviations, variance in (
        (np.sqrt(m) * (partition - mu), sigma2),
        (np.sqrt(m) * (np.log(partition) - np.log(mu)), sigma2 / mu**2),
    ):
        assert deviations.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / repeats) + 4 / m)
        assert stats.kstest(deviations / np.sqrt(variance), "norm").statistic < 0.03


@pytest.mark.parametrize("name", ["softmax", "logit_adjusted"])
def test_proposition_5_no_distribution_has_less_variance(name):
    rng, f, _, _ = setting(7)
    rho = get_margin(name, label_prior([90, 60, 30, 20, 10, 5, 2, 1])).matrix()[Y].copy()
    rho[Y] = 0
    negative = contrastive.negative(f)
    best = least_variance(rho, negative)
    np.testing.assert_allclose(best, rho * negative / (rho @ negative))
    least = decoupled_moments(0.0, negative, rho, best, 4).variance
    assert least == pytest.approx(0, abs=1e-12)
    others = [rng.dirichlet(np.ones(L)) for _ in range(50)] + [0.9 * best + 0.1 / L]
    for q in others:
        got = decoupled_moments(0.0, negative, rho, q, 4)
        assert got.variance > least and got.mean == pytest.approx(rho @ negative)


def test_proposition_5_on_draws_one_draw_tells_the_whole_loss():
    rng, f, q, _ = setting(8)
    rho = np.where(np.arange(L) == Y, 0, 1.0)
    best = least_variance(rho, contrastive.negative(f))
    full = contrastive.positive(f[Y]) + contrastive.negative(f) @ rho
    spreads = []
    for chosen in (best, q):
        w = np.divide(rho, chosen, out=np.zeros(L), where=chosen > 0)
        losses = draw_losses(rng, f, chosen, w, 1, lambda *parts: sampled_decoupled(contrastive, *parts))
        assert abs(losses.mean() - full) <= 4 * losses.std() / np.sqrt(REPEATS) + 1e-9
        spreads.append(losses.std())
    assert spreads[0] < 1e-9 < 0.1 < spreads[1]


def test_proposition_5_of_the_softmax_is_the_model_itself():
    _, f, _, _ = setting(9)
    np.testing.assert_allclose(least_variance(np.ones(L), np.exp(f)), np.exp(f) / np.exp(f).sum())
    rho = np.where(np.arange(L) == Y, 0, 1.0)
    assert softmax_moments(f, f[Y], rho, least_variance(rho, np.exp(f)), 1).variance == pytest.approx(0, abs=1e-12)
    assert least_variance(rho, np.zeros(L)).tolist() == [1 / L] * L, "where all q are alike"


def batch_losses(sampler, weighting, m, contrastive_loss, repeats):
    """Losses of the training code over repeated draws for one batch, whose shares of labels are the prior."""
    rng = np.random.default_rng(10)
    counts = np.array([12, 8, 6, 4, 2])
    y = rng.permutation(np.repeat(np.arange(5), counts))
    Y = check_labels(np.eye(5)[y])
    vectors, labels = (torch.tensor(rng.normal(size=(n, 3)) / 2, dtype=torch.float64) for n in (y.size, 5))
    prior = label_prior(counts)
    objective = SampledObjective(
        negatives=get_negatives(sampler, prior, m), weighting=WEIGHTINGS[weighting], contrastive=contrastive_loss
    )
    losses = []
    for _ in range(repeats):
        plan = objective.plan(Y, rng)
        table = labels if plan.labels is None else labels[torch.from_numpy(plan.labels.astype(np.int64))]
        losses.append(float(objective.row_loss(plan, slice(0, y.size), vectors, table, None)))
    return np.array(losses), (vectors @ labels.T).numpy(), y, prior


@pytest.mark.parametrize("weighting", sorted(WEIGHTINGS))
@pytest.mark.parametrize("sampler", ["uniform", "within_batch"])
def test_table_3_is_what_the_training_code_expects_of_the_contrastive_loss(sampler, weighting):
    m = 60
    losses, f, y, prior = batch_losses(sampler, weighting, m, True, 60)
    rho = naive.implicit_rho(sampler, weighting, prior, m)
    expected = [naive.sampled_contrastive(f[i], y[i], [o for o in range(5) if o != y[i]], rho) for i in range(y.size)]
    assert abs(losses.mean() - np.mean(expected)) < 4 * losses.std() / np.sqrt(losses.size)
    assert losses.std() < 0.2 * np.mean(expected), "else the test says little"


@pytest.mark.parametrize("weighting", sorted(WEIGHTINGS))
@pytest.mark.parametrize("sampler", ["uniform", "within_batch"])
def test_table_2_is_where_the_training_code_goes_with_many_draws(sampler, weighting):
    m = 4000
    losses, f, y, prior = batch_losses(sampler, weighting, m, False, 8)
    rho = naive.implicit_rho(sampler, weighting, prior, m)
    expected = np.mean([naive.margin_softmax(f[i], y[i], rho) for i in range(y.size)])
    assert losses.mean() == pytest.approx(expected, rel=0.01)


def test_the_model_sampler_of_the_training_code_with_importance_weights_is_the_full_loss():
    for contrastive_loss in (False, True):
        losses, f, y, _ = batch_losses("model", "importance", 400, contrastive_loss, 20)
        ones = np.ones((5, 5))
        full = np.mean(
            [
                naive.sampled_contrastive(f[i], y[i], [o for o in range(5) if o != y[i]], ones)
                if contrastive_loss
                else naive.margin_softmax(f[i], y[i], ones)
                for i in range(y.size)
            ]
        )
        assert abs(losses.mean() - full) < 4 * losses.std() / np.sqrt(losses.size) + 0.002


priors = st.lists(st.integers(1, 500), min_size=2, max_size=7).map(label_prior)


@settings(max_examples=25, deadline=None)
@given(priors, st.sampled_from(["uniform", "within_batch"]), st.sampled_from(sorted(WEIGHTINGS)), st.integers(1, 300))
def test_implicit_margin_is_table_2(prior, sampler, weighting, m):
    rho = implicit_margin(sampler, weighting, prior, m)
    np.testing.assert_allclose(rho.matrix(), naive.implicit_rho(sampler, weighting, prior, m), rtol=1e-9)
    q = SAMPLERS[sampler].distribution(prior)
    np.testing.assert_allclose(rho.matrix(), m * q[None, :] * naive.weights(weighting, q, prior, m), rtol=1e-9)
    log_a, log_b = rho.parts
    np.testing.assert_allclose(np.exp(log_a[:, None] + log_b[None, :]), rho.matrix(), rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(priors, st.sampled_from(["uniform", "within_batch"]), st.sampled_from(sorted(MARGINS)), st.integers(1, 300))
def test_proposition_4_weights_for_inverts_implicit_margin(prior, sampler, name, m):
    wanted = get_margin(name, prior)
    got = implicit_margin(sampler, weights_for(wanted, sampler, prior), prior, m)
    np.testing.assert_allclose(got.matrix(), wanted.matrix(), rtol=1e-9)
    assert got.favours == wanted.favours


def test_proposition_4_on_the_loss_itself():
    rng = np.random.default_rng(5)
    prior, f, m = label_prior([50, 20, 10, 5, 2]), rng.normal(size=5), 4000
    wanted = get_margin("logit_adjusted", prior)
    weigh = weights_for("logit_adjusted", "uniform", prior)
    q = np.full(5, 1 / 4)
    q[1] = 0
    drawn = rng.choice(5, size=(50, m), p=q)
    w = weigh(Draw(m, np.full((50, 1), 1), drawn, None, q[drawn], prior[1], prior[drawn]))
    losses = sampled_softmax(np.full(50, f[1]), f[drawn], w)
    assert losses.mean() == pytest.approx(naive.margin_softmax(f, 1, wanted.matrix()), rel=0.01)


def test_the_table_of_who_gains():
    prior = label_prior([1000, 300, 100, 30, 10, 3, 1])
    verdicts = {
        (s, w): implicit_margin(s, w, prior).favours for s in ("uniform", "within_batch") for w in sorted(WEIGHTINGS)
    }
    assert verdicts == {
        ("uniform", "constant"): "-",
        ("uniform", "importance"): "-",
        ("uniform", "relative"): "-",
        ("uniform", "tail"): "tail",
        ("within_batch", "constant"): "tail",
        ("within_batch", "importance"): "-",
        ("within_batch", "relative"): "head",
        ("within_batch", "tail"): "tail",
    }


def test_the_model_sampler_needs_its_probabilities():
    with pytest.raises(InvalidInput, match="pass q"):
        implicit_margin("model", "constant", [0.5, 0.5])
    q = np.array([0.9, 0.1])
    np.testing.assert_allclose(implicit_margin("model", "constant", [0.5, 0.5], q=q).matrix(), [[0.9, 0.1]] * 2)
    with pytest.raises(InvalidInput, match=r"sampler='guess' is not one of 'uniform', 'within_batch', 'model'"):
        implicit_margin("guess", "constant", [0.5, 0.5])
    with pytest.raises(InvalidInput, match="weighting='heavy' is not one of"):
        implicit_margin("uniform", "heavy", [0.5, 0.5])
