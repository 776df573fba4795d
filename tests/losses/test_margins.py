"""Softmaxes with margins and sampled losses equal their plain twins, in numpy and torch, with gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from naive import embedding as naive

from tailwise.errors import InvalidInput
from tailwise.losses import (
    MARGINS,
    contrastive,
    get_margin,
    label_prior,
    margin_softmax,
    sampled_decoupled,
    sampled_softmax,
)
from tailwise.losses.margins import log_sum_exp

scores = st.floats(-8, 8)


def both(value):
    return [np.asarray(value, np.float64), torch.tensor(np.asarray(value), dtype=torch.float64)]


@st.composite
def scored_examples(draw):
    """Scores (rows, labels), counts of the labels (some without rows), and examples (row, label), some twice."""
    n, L = draw(st.integers(1, 6)), draw(st.integers(2, 8))
    f = draw(hnp.arrays(np.float64, (n, L), elements=scores))
    counts = draw(st.lists(st.integers(0, 500), min_size=L, max_size=L))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, L - 1)), min_size=1, max_size=12))
    return f, counts, *np.array(pairs).T


@settings(max_examples=50, deadline=None)
@given(scored_examples(), st.sampled_from(sorted(MARGINS)))
def test_margin_softmax_equals_its_twin(case, name):
    f, counts, rows, labels = case
    margin = get_margin(name, label_prior(counts))
    expected = [naive.margin_softmax(f[i], y, margin.matrix()) for i, y in zip(rows, labels, strict=True)]
    for values in both(f):
        log_a, log_b = margin.parts if isinstance(values, np.ndarray) else map(torch.tensor, margin.parts)
        got = margin_softmax(values, rows, labels, log_a, log_b)
        # The label's own term is taken out of the row's sum again, which leaves the rounding of the sum.
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@st.composite
def drawn_negatives(draw):
    """Scores and weights (some zero) of labels, an example's label, and labels drawn against it, itself among them."""
    L = draw(st.integers(1, 8))
    f = draw(hnp.arrays(np.float64, L, elements=scores))
    w = draw(hnp.arrays(np.float64, (L, L), elements=st.sampled_from([0.0, 1e-3, 0.4, 1.0, 2.5])))
    drawn = draw(st.lists(st.integers(0, L - 1), min_size=1, max_size=9))
    return f, w, draw(st.integers(0, L - 1)), np.array(drawn)


@settings(max_examples=50, deadline=None)
@given(drawn_negatives())
def test_sampled_losses_equal_their_twins(case):
    f, w, y, drawn = case
    for values, weights in zip(both(f), both(w), strict=True):
        parts = values[[y]], values[drawn][None], weights[y][drawn][None]
        np.testing.assert_allclose(
            sampled_softmax(*parts)[0], naive.sampled_softmax(f, y, drawn, w), rtol=1e-9, atol=1e-15
        )
        expected = naive.sampled_contrastive(f, y, drawn, w)
        np.testing.assert_allclose(sampled_decoupled(contrastive, *parts)[0], expected, rtol=1e-9)


def test_no_negative_left_is_no_loss():
    values = torch.zeros(1, 3, requires_grad=True)
    loss = sampled_softmax(torch.zeros(1), values, torch.zeros(1, 3))
    loss.sum().backward()
    assert loss.item() == 0 and (values.grad == 0).all()


def test_gradients_match_finite_differences():
    torch.manual_seed(0)
    values = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(3, 5, dtype=torch.float64)
    rows, labels = torch.tensor([0, 0, 2]), torch.tensor([1, 4, 2])
    log_a, log_b = torch.randn(5, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    assert torch.autograd.gradcheck(log_sum_exp, values)
    assert torch.autograd.gradcheck(lambda s: margin_softmax(s, rows, labels, log_a, log_b), values)
    assert torch.autograd.gradcheck(lambda s: sampled_softmax(s[:, 0], s[:, 1:], weights[:, 1:]), values)
    assert torch.autograd.gradcheck(lambda s: sampled_decoupled(contrastive, s[:, 0], s[:, 1:], weights[:, 1:]), values)


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
