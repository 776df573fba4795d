"""Losses and regularisers equal their plain twins, in numpy and torch; identities of the papers hold."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import embedding as naive
from scipy import sparse

from tailwise.errors import InvalidInput
from tailwise.losses import (
    LABEL_REGULARIZERS,
    MARGINS,
    adjacency,
    contrastive,
    get_margin,
    glas,
    gravity,
    label_prior,
    laplacian,
    margin_softmax,
    sampled_decoupled,
    sampled_softmax,
    spreadout,
)
from tailwise.losses.margins import log_sum_exp

sizes = st.tuples(st.integers(1, 6), st.integers(2, 8), st.integers(0, 2**16))


def both(value):
    return [np.asarray(value, np.float64), torch.tensor(np.asarray(value), dtype=torch.float64)]


@settings(max_examples=25, deadline=None)
@given(sizes, st.sampled_from(sorted(MARGINS)))
def test_margin_softmax_equals_its_twin(size, name):
    n, L, seed = size
    rng = np.random.default_rng(seed)
    f = rng.normal(size=(n, L)) * 3
    margin = get_margin(name, label_prior(rng.integers(0, 50, L)))
    rows, labels = rng.integers(n, size=10), rng.integers(L, size=10)
    expected = [naive.margin_softmax(f[i], y, margin.matrix()) for i, y in zip(rows, labels, strict=True)]
    for scores in both(f):
        log_a, log_b = margin.parts if isinstance(scores, np.ndarray) else map(torch.tensor, margin.parts)
        np.testing.assert_allclose(margin_softmax(scores, rows, labels, log_a, log_b), expected, rtol=1e-5, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(sizes)
def test_sampled_losses_equal_their_twins(size):
    _, L, seed = size
    rng = np.random.default_rng(seed)
    f, w = rng.normal(size=L), rng.uniform(0, 2, (L, L)) * (rng.random((L, L)) < 0.7)
    y, drawn = int(rng.integers(L)), rng.integers(L, size=7)
    for scores, weights in zip(both(f), both(w), strict=True):
        parts = scores[[y]], scores[drawn][None], weights[y][drawn][None]
        np.testing.assert_allclose(sampled_softmax(*parts)[0], naive.sampled_softmax(f, y, drawn, w), rtol=1e-9)
        expected = naive.sampled_contrastive(f, y, drawn, w)
        np.testing.assert_allclose(sampled_decoupled(contrastive, *parts)[0], expected, rtol=1e-9)


def test_no_negative_left_is_no_loss():
    scores = torch.zeros(1, 3, requires_grad=True)
    loss = sampled_softmax(torch.zeros(1), scores, torch.zeros(1, 3))
    loss.sum().backward()
    assert loss.item() == 0 and (scores.grad == 0).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 7), st.integers(0, 2**16), st.sampled_from(sorted(LABEL_REGULARIZERS)))
def test_regularizers_equal_their_twins_on_repeated_draws(n, seed, name):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n, 3))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    Y = (rng.random((9, n)) < 0.4).astype(np.float32)
    Y[0] = 1
    U = adjacency(sparse.csr_array(Y.T), np.arange(n)).toarray()
    np.testing.assert_allclose(U, naive.adjacency(Y), rtol=1e-5, atol=1e-6)
    counts = rng.integers(1, 4, n)
    draws = np.repeat(np.arange(n), counts)
    expected = naive.regularizer(name, V[draws], U[np.ix_(draws, draws)])
    for v, u, c in zip(both(V), both(U), both(counts), strict=True):
        whole = LABEL_REGULARIZERS[name](v, u, c)
        np.testing.assert_allclose(whole, expected, rtol=1e-6, atol=1e-9)
        halves = [LABEL_REGULARIZERS[name](v, u[part], c, part) for part in (slice(0, n // 2), slice(n // 2, n))]
        np.testing.assert_allclose(sum(halves), whole, rtol=1e-6, atol=1e-9)


def test_glas_is_laplacian_plus_spreadout_up_to_a_constant():
    rng = np.random.default_rng(0)
    U = rng.random((6, 6))
    U = (U + U.T) / 2
    ones = np.ones(6)
    constants = []
    for _ in range(5):
        V = rng.normal(size=(6, 4))
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        constants.append(glas(V, U, ones) - laplacian(V, U, ones) - spreadout(V, U, ones))
    np.testing.assert_allclose(constants, ((U**2 - 2 * U).sum()) / 36, rtol=1e-9)


def test_identity_adjacency_gives_spreadout_up_to_a_constant():
    V = np.random.default_rng(1).normal(size=(5, 4))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    np.testing.assert_allclose(glas(V, np.eye(5), np.ones(5)), spreadout(V, None, np.ones(5)) - 5 / 25, rtol=1e-9)


def test_gravity_is_the_inner_product_of_gram_matrices():
    rng = np.random.default_rng(2)
    phi, V = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    expected = np.sum((phi.T @ phi) * (V.T @ V)) / 35
    np.testing.assert_allclose(gravity(phi @ V.T, np.ones(5)), expected)


def test_gradients_match_finite_differences():
    torch.manual_seed(0)
    scores = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(3, 5, dtype=torch.float64)
    rows, labels = torch.tensor([0, 0, 2]), torch.tensor([1, 4, 2])
    log_a, log_b = torch.randn(5, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    assert torch.autograd.gradcheck(log_sum_exp, scores)
    assert torch.autograd.gradcheck(lambda s: margin_softmax(s, rows, labels, log_a, log_b), scores)
    assert torch.autograd.gradcheck(lambda s: sampled_softmax(s[:, 0], s[:, 1:], weights[:, 1:]), scores)
    assert torch.autograd.gradcheck(lambda s: sampled_decoupled(contrastive, s[:, 0], s[:, 1:], weights[:, 1:]), scores)
    V = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    U, counts = torch.rand(4, 4, dtype=torch.float64), torch.tensor([1.0, 2, 1, 3], dtype=torch.float64)
    for function in LABEL_REGULARIZERS.values():
        assert torch.autograd.gradcheck(
            lambda v, function=function: function(torch.nn.functional.normalize(v, dim=1), U, counts), V
        )


def test_margins_say_whom_they_favour():
    prior = label_prior([100, 30, 10, 3, 1])
    assert {name: get_margin(name, prior).favours for name in MARGINS} == {
        "softmax": "-",
        "adaptive": "tail",
        "equalised": "tail",
        "logit_adjusted": "tail",
    }
    assert get_margin("logit_adjusted", prior).tilt == pytest.approx(2)
    with pytest.raises(InvalidInput, match=r"margin='harsh' is not one of 'softmax', 'adaptive'"):
        get_margin("harsh", prior)
