import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from naive import losses as naive

from tailwise.errors import InvalidInput
from tailwise.losses import (
    LOSSES,
    Loss,
    convex_surrogate,
    correct,
    get_loss,
    hinge,
    solver_weights,
    squared_hinge,
    tail_weighted,
    unbiased,
)

SCORES = np.array([[-3.0, -1.0, -0.2, 0.0], [0.3, 1.0, 1.7, 4.0], [0.0, -1.0, 1.0, 2.5]])
LABELS = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
PROPENSITY = np.array([0.1, 0.5, 0.9, 1.0])
CORRECTED = [(name, how) for name in LOSSES for how in ("none", "unbiased", "convex", "tail")]
CORRECTED = [pair for pair in CORRECTED if pair != ("zero_one", "convex")]


@pytest.mark.parametrize("name", LOSSES)
def test_parts_equal_the_plain_twin(name):
    positive, negative = naive.PARTS[name]
    loss = LOSSES[name]
    np.testing.assert_allclose(loss.observed(SCORES), np.vectorize(positive)(SCORES), atol=1e-12)
    np.testing.assert_allclose(loss.unobserved(SCORES), np.vectorize(negative)(SCORES), atol=1e-12)
    assert loss(SCORES, LABELS).sum() == pytest.approx(naive.plain_loss(name, SCORES, LABELS))


@st.composite
def blocks(draw):
    """Scores, observed labels (rows and labels without any among them) and propensities of the same labels."""
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 6)))
    scores = draw(hnp.arrays(np.float64, shape, elements=st.floats(-20, 20)))
    observed = draw(hnp.arrays(np.int8, shape, elements=st.integers(0, 1)))
    return scores, observed, draw(hnp.arrays(np.float64, shape[1], elements=st.floats(0.01, 1)))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CORRECTED), blocks())
def test_total_over_sparse_labels_equals_the_elementwise_sum(loss, block):
    scores, observed, propensity = block
    corrected = correct(*loss, propensity)
    rows, labels = np.nonzero(observed)
    np.testing.assert_allclose(
        corrected.total(scores, rows, labels), corrected(scores, observed).sum(), rtol=1e-9, atol=1e-6
    )
    weight = np.arange(len(scores)) / 2
    weighted = corrected.total(scores, rows, labels, weight)
    np.testing.assert_allclose(weighted, (corrected(scores, observed).sum(axis=1) * weight).sum(), atol=1e-6)


@pytest.mark.parametrize(("name", "how"), CORRECTED)
def test_torch_gives_the_same_values_and_numerical_gradients(name, how):
    torch = pytest.importorskip("torch")
    loss = correct(name, how, PROPENSITY)
    smooth = SCORES + 0.0137  # away from the kinks
    scores = torch.tensor(smooth, requires_grad=True)
    values = loss(scores, torch.tensor(LABELS))
    np.testing.assert_allclose(values.detach().numpy(), loss(smooth, LABELS), rtol=1e-12, atol=1e-12)
    rows, labels = np.nonzero(LABELS)
    total = loss.total(scores, rows, labels)
    assert total.item() == pytest.approx(values.sum().item())
    if loss.trainable:
        total.backward()
        step = 1e-6
        slope = (loss(smooth + step, LABELS) - loss(smooth - step, LABELS)) / (2 * step)
        np.testing.assert_allclose(scores.grad.numpy(), slope, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_float32_stays_float32_and_large_scores_stay_finite(name):
    loss = unbiased(name, PROPENSITY)
    scores = np.array([[-1e4, -100, 100, 1e4]], np.float32)
    values = loss(scores, np.ones((1, 4)))
    assert values.dtype == np.float32
    assert np.isfinite(values).all()


def test_a_loss_of_ones_own_needs_two_functions():
    exponential = Loss("exponential", positive=lambda s: np.exp(-s), negative=lambda s: np.exp(s))
    assert exponential([0.0, 1.0], [1, 0]).tolist() == [1.0, np.e]
    assert get_loss(exponential) is exponential


def test_solver_weights_are_those_of_the_papers():
    np.testing.assert_allclose(solver_weights(squared_hinge, 4), np.ones((2, 4)))
    positive, negative = solver_weights(convex_surrogate(squared_hinge, PROPENSITY), 4)
    np.testing.assert_allclose(positive, 2 / PROPENSITY - 1)
    np.testing.assert_allclose(negative, 1)
    np.testing.assert_allclose(solver_weights(tail_weighted(hinge, PROPENSITY), 4)[0], 1 / PROPENSITY - 1)
    np.testing.assert_allclose(solver_weights(convex_surrogate(hinge, 0.5), 3)[0], [3.0, 3.0, 3.0])


def test_errors_name_the_argument_and_the_fix():
    with pytest.raises(InvalidInput, match=r"loss='logistic' is not one of .*'cross_entropy'"):
        get_loss("logistic")
    with pytest.raises(InvalidInput, match=r"unbiased hinge .* use convex_surrogate"):
        solver_weights(unbiased(hinge, 0.5), 3)
