"""Regularisers of label vectors equal their plain twins, in numpy and torch; identities of the GLaS paper hold."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from naive import embedding as naive
from scipy import sparse

from tailwise.losses import LABEL_REGULARIZERS, adjacency, glas, gravity, laplacian, spreadout


def both(value):
    return [np.asarray(value, np.float64), torch.tensor(np.asarray(value), dtype=torch.float64)]


def unit(rng, n, d):
    V = rng.normal(size=(n, d))
    return V / np.linalg.norm(V, axis=1, keepdims=True)


@st.composite
def drawn_labels(draw):
    """Label vectors (some the same), how often each was drawn, the labels of a few rows, and where to cut in two."""
    n = draw(st.integers(1, 7))
    directions = unit(np.random.default_rng(0), 5, 3)
    V = directions[draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))]
    counts = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    Y = draw(hnp.arrays(np.float32, (draw(st.integers(1, 6)), n), elements=st.sampled_from([0.0, 1.0])))
    return V, np.array(counts), Y, draw(st.integers(0, n))


@settings(max_examples=50, deadline=None)
@given(drawn_labels(), st.sampled_from(sorted(LABEL_REGULARIZERS)))
def test_regularizers_equal_their_twins_on_repeated_draws(case, name):
    V, counts, Y, cut = case
    n = len(V)
    U = adjacency(sparse.csr_array(Y.T), np.arange(n)).toarray().astype(np.float64)
    np.testing.assert_allclose(U, naive.adjacency(Y), rtol=1e-5, atol=1e-6)
    draws = np.repeat(np.arange(n), counts)
    expected = naive.regularizer(name, V[draws], U[np.ix_(draws, draws)])
    for v, u, c in zip(both(V), both(U), both(counts), strict=True):
        whole = LABEL_REGULARIZERS[name](v, u, c)
        np.testing.assert_allclose(whole, expected, rtol=1e-6, atol=1e-9)
        halves = [LABEL_REGULARIZERS[name](v, u[part], c, part) for part in (slice(0, cut), slice(cut, n))]
        np.testing.assert_allclose(sum(halves), whole, rtol=1e-6, atol=1e-9)


def test_glas_is_laplacian_plus_spreadout_up_to_a_constant():
    rng = np.random.default_rng(0)
    U = rng.random((6, 6))
    U = (U + U.T) / 2
    ones = np.ones(6)
    constants = []
    for _ in range(5):
        V = unit(rng, 6, 4)
        constants.append(glas(V, U, ones) - laplacian(V, U, ones) - spreadout(V, U, ones))
    np.testing.assert_allclose(constants, ((U**2 - 2 * U).sum()) / 36, rtol=1e-9)


def test_identity_adjacency_gives_spreadout_up_to_a_constant():
    V = unit(np.random.default_rng(1), 5, 4)
    np.testing.assert_allclose(glas(V, np.eye(5), np.ones(5)), spreadout(V, None, np.ones(5)) - 5 / 25, rtol=1e-9)


def test_gravity_is_the_inner_product_of_gram_matrices():
    rng = np.random.default_rng(2)
    phi, V = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    expected = np.sum((phi.T @ phi) * (V.T @ V)) / 35
    np.testing.assert_allclose(gravity(phi @ V.T, np.ones(5)), expected)


def test_gradients_match_finite_differences():
    torch.manual_seed(0)
    V = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    U, counts = torch.rand(4, 4, dtype=torch.float64), torch.tensor([1.0, 2, 1, 3], dtype=torch.float64)
    for function in LABEL_REGULARIZERS.values():
        assert torch.autograd.gradcheck(
            lambda v, function=function: function(torch.nn.functional.normalize(v, dim=1), U, counts), V
        )
