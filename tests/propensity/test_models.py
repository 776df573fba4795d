from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from naive.propensity import jain_propensity
from scipy import sparse
from sklearn.base import clone
from strategies import examples, label_rows

import tailwise
from tailwise.errors import InvalidInput, NotFitted
from tailwise.propensity import (
    ConstantPropensity,
    GivenPropensity,
    JainPropensity,
    known_propensity,
    resolve_propensity,
)


def random_labels(seed=0, n=200, n_labels=30):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < rng.random(n_labels) ** 3).astype(np.float32)
    Y[:, 0], Y[:, 1] = 0, 1
    return sparse.csr_array(Y)


@pytest.mark.parametrize(("a", "b"), [(0.55, 1.5), (0.5, 0.4), (0.6, 2.6), (1.3, 0.1)])
@examples(25)
@given(Y=label_rows((3, 60), (1, 12), untidy=True))
def test_jain_equals_naive_twin(a, b, Y):
    model = JainPropensity(a, b=b).fit(Y)
    counts = Y.toarray().sum(axis=0).astype(int)
    expected = jain_propensity(counts, Y.shape[0], a, b)
    np.testing.assert_allclose(model.propensity_, expected, rtol=1e-12)
    np.testing.assert_allclose(model.inverse_, 1 / np.array(expected), rtol=1e-12)
    assert (np.diff(model.propensity_[np.argsort(counts)]) >= 0).all()


def test_jain_reproduces_the_published_eurlex_vector():
    expected = np.loadtxt(Path(__file__).with_name("eurlex_inverse_propensity.txt"))
    counts = np.loadtxt(Path(__file__).with_name("eurlex_label_counts.txt"), dtype=np.int64)
    inverse = JainPropensity().fit_counts(counts, 15_539).inverse_
    assert inverse.shape == expected.shape == (3_993,)
    assert [f"{value:.5g}" for value in inverse] == [f"{value:.5g}" for value in expected]


def test_presets():
    assert JainPropensity.preset("amazon").get_params() == {"a": 0.6, "b": 2.6}
    assert JainPropensity.preset("other").get_params() == JainPropensity().get_params()
    with pytest.raises(InvalidInput, match="family='wiki' is not one of 'wikipedia', 'amazon', 'other'"):
        JainPropensity.preset("wiki")


def test_tiny_training_sets_give_one():
    np.testing.assert_array_equal(JainPropensity().fit([[1, 0]]).propensity_, 1.0)


def test_constant_and_given():
    Y = random_labels(n_labels=3)
    np.testing.assert_array_equal(ConstantPropensity(0.25).fit(Y).inverse_, 4.0)
    np.testing.assert_array_equal(GivenPropensity([1, 0.5, 0.1]).fit(Y).propensity_, [1, 0.5, 0.1])
    with pytest.raises(InvalidInput, match="inverse has the smallest value"):
        GivenPropensity.from_inverse([0.5, 2])


@pytest.mark.parametrize(
    "model", [JainPropensity(0.6, b=2.6), ConstantPropensity(0.5), GivenPropensity(np.linspace(0.1, 1, 30))]
)
def test_clone_save_load(model, tmp_path):
    Y = random_labels()
    fitted = clone(model).fit(Y)
    with pytest.raises(NotFitted, match="fit it on the training labels"):
        _ = model.inverse_
    fitted.save(tmp_path / "propensity")
    loaded = tailwise.load(tmp_path / "propensity")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.propensity_, fitted.propensity_)
    np.testing.assert_array_equal(loaded.inverse_, fitted.inverse_)


def test_resolve():
    Y = random_labels()
    default = resolve_propensity(None, Y)
    np.testing.assert_array_equal(default, JainPropensity().fit(Y).propensity_)
    mine = JainPropensity(0.5, b=0.4)
    np.testing.assert_array_equal(resolve_propensity(mine, Y), clone(mine).fit(Y).propensity_)
    assert not hasattr(mine, "propensity_")
    np.testing.assert_array_equal(resolve_propensity(default, Y), default)
    np.testing.assert_array_equal(known_propensity(clone(mine).fit(Y), 30), clone(mine).fit(Y).propensity_)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones(29), "propensity has 29 entries but Y has 30 columns; fit it on the training labels"),
        (np.full(30, 2.0), "propensity of label 0 is 2, outside .0, 1.; for inverse propensities use"),
        (np.zeros(30), "propensity of label 0 is 0, outside"),
        (np.full(30, np.nan), "propensity of label 0 is nan"),
        (np.ones((30, 1)), "shape .30, 1."),
        (JainPropensity, "or an object: JainPropensity"),
        ("jain", "propensity='jain'"),
        (object(), "is not an array of numbers"),
        (0.5, "pass one value a label"),
    ],
)
def test_bad_propensities_are_refused(value, message):
    with pytest.raises(InvalidInput, match=message):
        resolve_propensity(value, random_labels())
    with pytest.raises(InvalidInput, match=message):
        known_propensity(value, 30)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (JainPropensity(a=0), r"a=0 is outside \(0, inf\)"),
        (JainPropensity(b=-1), "b=-1"),
        (JainPropensity(a="x"), "a='x' must be a number"),
        (ConstantPropensity(0), "value=0"),
        (ConstantPropensity(1.5), "value=1.5"),
    ],
)
def test_bad_parameters_are_refused(model, message):
    with pytest.raises(InvalidInput, match=message):
        model.fit(random_labels())


def test_fit_counts_checks():
    with pytest.raises(InvalidInput, match="0 to n_samples=10 rows"):
        JainPropensity().fit_counts([11, 2], 10)
    with pytest.raises(InvalidInput, match="one integer a label"):
        JainPropensity().fit_counts([0.5, 2], 10)
