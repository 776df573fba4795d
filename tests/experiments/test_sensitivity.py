import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, generators, label_rows

from tailwise import JainPropensity, evaluate, propensity_sensitivity
from tailwise.errors import InvalidInput


def predict_for(Y, rng, k=3):
    """Predictions by three models, one of which names a single label in row 0, and training counts."""
    n_rows, n_labels = Y.shape
    tops = {name: np.stack([rng.permutation(n_labels)[:k] for _ in range(n_rows)]) for name in ("one", "two", "three")}
    tops["one"][0, 1:] = -1
    return Y, tops, rng.integers(0, 60, n_labels)


def draw(seed):
    rng = np.random.default_rng(seed)
    Y = (rng.random((40, 12)) < 0.25).astype(int)
    Y[0], Y[1] = 0, 1
    return predict_for(Y, rng)


@examples(15)
@given(
    label_rows((1, 40), (3, 12), labels=("few", "many", "every row")),
    generators(),
    st.floats(0.05, 2),
    st.floats(0.05, 30),
)
def test_values_are_those_of_evaluate(Y, rng, a, b):
    Y, tops, counts = predict_for(Y, rng)
    found = propensity_sensitivity(Y, tops, counts, 100, k=3, a=[a], b=[b], reference=(a, b))
    propensity = JainPropensity(a, b=b).fit_counts(counts, 100)
    expected = [evaluate(Y, top, "psp@3", propensity, confidence=None)["psp@3"].value for top in tops.values()]
    np.testing.assert_allclose(found.values[:, 0, 0], expected, rtol=1e-9)
    assert found.winner == found.models[int(np.argmax(expected))]
    assert found.lead == pytest.approx(np.sort(expected)[-1] - np.sort(expected)[-2], abs=1e-9)


def head_against_tail():
    """One model finds a frequent label in every row, the other a rare one in fewer: who wins depends on A."""
    Y = np.ones((100, 2), int)
    head = np.zeros((100, 1), int)
    tail = np.where(np.arange(100) < 40, 1, -1)[:, None]
    return Y, {"head": head, "tail": tail}, np.array([90, 2])


def test_the_range_ends_where_the_winner_changes():
    Y, tops, counts = head_against_tail()

    def lead(a):
        inverse = 1 / JainPropensity(a, b=1.5).fit_counts(counts, 100).propensity_
        return 0.4 * inverse[1] - inverse[0]

    grid = np.linspace(0.05, 2, 40)
    found = propensity_sensitivity(Y, tops, counts, 100, k=1, a=grid)
    assert found.winner == ("tail" if lead(0.55) > 0 else "head")
    low, high = found.a_range
    edge = low if found.winner == "tail" else high
    beyond = edge * (0.98 if found.winner == "tail" else 1.02)
    assert lead(edge) * lead(0.55) > 0 and lead(beyond) * lead(0.55) < 0
    assert (found.winners[:, 0] == 0).any() and (found.winners[:, 0] == 1).any()
    assert "elsewhere" in str(found)


def test_the_error_of_the_lead_is_that_of_a_sum_over_rows():
    Y, tops, counts = head_against_tail()
    found = propensity_sensitivity(Y, tops, counts, 100, k=1)
    inverse = 1 / JainPropensity().fit_counts(counts, 100).propensity_
    rows = inverse[0] - np.where(np.arange(100) < 40, inverse[1], 0)
    assert found.lead == pytest.approx(abs(100 * rows.sum() / (100 * inverse[1])))
    assert found.lead_error == pytest.approx(100 * rows.std() * 10 / (100 * inverse[1]))


def test_an_unbeaten_model_wins_everywhere():
    Y, _, counts = draw(1)
    perfect = np.argsort(-Y, axis=1, kind="stable")[:, :3]
    found = propensity_sensitivity(Y, {"bad": perfect[::-1], "perfect": perfect}, counts, 100, k=3)
    assert found.winner == "perfect" and found.share == 1.0
    assert found.a_range == (0.05, 1.5) and found.b_range == (0.1, 50.0)
    assert "[≤ 0.05, ≥ 1.5]" in str(found)


def test_one_model_and_errors():
    Y, tops, counts = draw(0)
    assert propensity_sensitivity(Y, {"one": tops["one"]}, counts, 100, k=3).lead == 0
    with pytest.raises(InvalidInput, match="predictions is empty"):
        propensity_sensitivity(Y, {}, counts, 100)
    with pytest.raises(InvalidInput, match=r"label_counts has shape \(11,\) but Y_true has 12 columns"):
        propensity_sensitivity(Y, tops, counts[:-1], 100, k=3)
    with pytest.raises(InvalidInput, match=r"a=.* must be positive numbers in ascending order"):
        propensity_sensitivity(Y, tops, counts, 100, k=3, a=[0.5, 0.1])
    with pytest.raises(InvalidInput, match="reference B=0 is outside"):
        propensity_sensitivity(Y, tops, counts, 100, k=3, reference=(0.5, 0))
