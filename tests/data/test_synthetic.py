"""Synthetic data and label dropping: the planted truth is what comes out."""

import numpy as np
import pytest
from naive import data as naive
from scipy import sparse

from tailwise import Centroid, ConstantPropensity, JainPropensity, drop_labels, load_dataset, make_longtail
from tailwise.data import planted_propensity, write_longtail
from tailwise.errors import InvalidInput
from tailwise.validation import label_counts


@pytest.fixture(scope="module")
def data():
    return make_longtail(6000, 2000, 400, random_state=7)


def test_shapes_and_types(data):
    assert data.X_train.shape == (4800, 2000) and data.X_test.shape == (1200, 2000)
    for X in (data.X_train, data.X_test):
        assert X.dtype == np.float32 and X.has_canonical_format
        assert np.allclose((X.toarray() ** 2).sum(axis=1), 1, atol=1e-5) and (X.data > 0).all()
    for observed, complete in ((data.Y_train, data.Y_train_complete), (data.Y_test, data.Y_test_complete)):
        assert observed.shape == complete.shape and (complete - observed).min() == 0
        assert (np.diff(complete.indptr) >= 1).all()
    assert data.propensity.shape == (400,) and ((data.propensity > 0) & (data.propensity <= 1)).all()


def test_the_same_seed_gives_the_same_bits(monkeypatch):
    from tailwise.data import synthetic

    monkeypatch.setattr(synthetic, "_ROWS_A_BLOCK", 64)
    made = [make_longtail(300, 100, 40, random_state=5, n_jobs=n_jobs) for n_jobs in (1, 2)]
    for part in ("X_train", "X_test", "Y_train", "Y_test", "Y_train_complete"):
        a, b = (getattr(data, part) for data in made)
        assert (a.indices == b.indices).all() and (a.data == b.data).all() and (a.indptr == b.indptr).all()
    assert (made[0].X_train.toarray() != make_longtail(300, 100, 40, random_state=6).X_train.toarray()).any()


def test_frequencies_follow_the_power_law():
    data = make_longtail(20_000, 500, 300, exponent=1.2, correlation=0, propensity=1.0, test_fraction=0, random_state=0)
    assert data.Y_test is None and data.Y_train.nnz == data.Y_train_complete.nnz
    counts = np.sort(label_counts(data.Y_train))[::-1]
    ranks = np.arange(1, 301) + 10.0
    slope = np.polyfit(np.log(ranks[20:]), np.log(counts[20:]), 1)[0]
    assert abs(slope + 1.2) < 0.1


def test_labels_of_a_topic_come_together(data):
    def lift(Y):
        Y = Y.astype(np.float64)
        together = (Y.T @ Y).toarray()
        np.fill_diagonal(together, 0)
        chance = np.outer(label_counts(Y), label_counts(Y)) / Y.shape[0]
        return (together > 3 * chance + 5).sum()

    alone = make_longtail(6000, 2000, 400, correlation=0, random_state=7)
    assert lift(data.Y_train_complete) > 200 > 20 > lift(alone.Y_train_complete)


def test_rows_tell_their_labels(data):
    model = Centroid().fit(data.X_train, data.Y_train)
    hits = model.predict(data.X_test, k=1).multiply(data.Y_test_complete).sum() / data.n_test
    chance = label_counts(data.Y_test_complete).max() / data.n_test
    assert hits > 0.6 > 3 * chance


def test_jain_fitted_on_the_observed_labels_recovers_the_planted_curve(data):
    fitted = JainPropensity().fit(data.Y_train).propensity_
    assert np.abs(fitted - data.propensity).mean() < 0.03
    frequent = data.label_counts >= 50
    assert np.abs(fitted - data.propensity)[frequent].max() < 0.05


def test_planted_counts_solve_the_fixed_point():
    rng = np.random.default_rng(0)
    Y = sparse.csr_array(rng.random((500, 30)) < np.linspace(0, 0.9, 30))
    for a, b in ((0.55, 1.5), (0.9, 3.0)):
        observed = naive.observed_counts(label_counts(Y), 500, a, b)
        expected = 1 / (1 + (np.log(500) - 1) * (b + 1) ** a * (observed + b) ** -a)
        assert np.allclose(planted_propensity(JainPropensity(a, b=b), Y), expected, rtol=1e-8)


def test_labels_are_dropped_at_their_propensity():
    Y = sparse.csr_array(np.ones((4000, 5)))
    chances = np.array([1.0, 0.9, 0.5, 0.2, 0.01])
    kept = drop_labels(Y, chances, random_state=1)
    deviation = np.sqrt(chances * (1 - chances) / 4000)
    assert (np.abs(label_counts(kept) / 4000 - chances) <= 4 * deviation).all()
    assert (drop_labels(Y, chances, random_state=1) - kept).nnz == 0
    assert kept.has_canonical_format and kept.dtype == np.float32 and set(kept.data) == {1}
    assert abs(drop_labels(Y, 0.3, random_state=2).nnz / Y.nnz - 0.3) < 0.02
    assert abs(drop_labels(Y, ConstantPropensity(0.3), random_state=2).nnz / Y.nnz - 0.3) < 0.02


def test_dropping_keeps_to_what_is_there():
    rng = np.random.default_rng(2)
    Y = sparse.csr_matrix(rng.random((50, 20)) < 0.2)
    Y.indptr = Y.indptr.astype(np.int64)
    Y.data.flags.writeable = Y.indices.flags.writeable = False
    kept = drop_labels(Y, random_state=0)
    assert (Y.toarray().astype(int) - kept.toarray()).min() == 0 and 0 < kept.nnz < Y.nnz
    fitted = JainPropensity().fit(kept)
    assert (drop_labels(Y, fitted, 0) - drop_labels(Y, fitted.propensity_, 0)).nnz == 0
    assert drop_labels(np.zeros((3, 2)), 0.5).nnz == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"n_samples": 0}, "n_samples=0"),
        ({"n_labels": 2.5}, "n_labels=2.5 must be an integer"),
        ({"labels_per_row": 0.5}, "labels_per_row=0.5"),
        ({"correlation": 2}, "correlation=2"),
        ({"test_fraction": 1.0}, "test_fraction=1.0"),
        ({"n_samples": 1, "test_fraction": 0.9}, "leaves no training row"),
        ({"propensity": 1.5}, "1.5"),
        ({"propensity": [0.5]}, "propensity has 1 entries but Y has 10 columns"),
        ({"random_state": "x"}, "random_state='x'"),
    ],
)
def test_refusals(arguments, problem):
    with pytest.raises(InvalidInput, match=problem):
        make_longtail(**{"n_samples": 20, "n_features": 10, "n_labels": 10, **arguments})


def test_tiny_sizes():
    data = make_longtail(1, 1, 1, labels_per_row=1, test_fraction=0)
    assert data.X_train.shape == (1, 1) and data.Y_train_complete.nnz == 1


@pytest.mark.parametrize("test_fraction", [0.0, 0.2])
def test_rows_written_as_they_are_drawn_are_the_same(test_fraction, tmp_path, monkeypatch):
    monkeypatch.setattr("tailwise.data.synthetic._ROWS_A_BLOCK", 70)
    shape = {"test_fraction": test_fraction, "random_state": 3, "labels_per_row": 2.5}
    expected = make_longtail(500, 120, 40, **shape)
    kept = write_longtail(tmp_path, 500, 120, 40, n_jobs=2, **shape)
    found = load_dataset(tmp_path)
    np.testing.assert_array_equal(kept, expected.propensity)
    for name in ("X_train", "Y_train", "X_test", "Y_test"):
        a, b = getattr(found, name), getattr(expected, name)
        if b is None:
            assert a is None
            continue
        assert a.shape == b.shape
        np.testing.assert_array_equal(a.indices, b.indices)
        np.testing.assert_allclose(a.data, b.data, rtol=1e-6)
