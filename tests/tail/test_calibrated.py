import numpy as np
import pytest
from contracts import make_rows

from tailwise import Centroid, NearestRows
from tailwise.errors import InvalidInput
from tailwise.tail import Calibrated, expected_calibration_error
from tailwise.tail.calibrated import fit_curve
from tailwise.tail.candidates import is_hit


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_calibration_recovers_a_known_curve(method):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=40_000)
    truth = 1 / (1 + np.exp(-(2 * scores - 1)))
    curve = fit_curve(scores, rng.random(scores.size) < truth, method)
    assert np.abs(curve(scores) - truth).mean() < 0.015
    assert curve(np.array([-np.inf]))[0] == -np.inf


def test_expected_calibration_error_has_its_closed_form():
    probabilities, hits = np.full(1000, 0.8), np.arange(1000) < 500
    assert expected_calibration_error(probabilities, hits, n_bins=1) == pytest.approx(30.0)


def test_calibration_lowers_the_error_and_reports_it():
    X, Y = make_rows(n_samples=900, seed=5)
    model = Calibrated(NearestRows(k=2), random_state=0).fit(X, Y)
    report = model.calibration_error_
    assert set(report) == {"all", "head", "torso", "tail"}
    assert report["all"]["after"] < report["all"]["before"]
    fresh_X, fresh_Y = make_rows(n_samples=300, seed=6)
    errors = []
    for member in (model.base_, model):
        top = member.predict_topk(fresh_X, 15)
        present = top.labels >= 0
        errors.append(expected_calibration_error(top.scores[present], is_hit(top.labels, fresh_Y)[present]))
    assert errors[1] < 0.7 * errors[0]


def test_isotonic_curve_keeps_the_order_of_scores():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=2000)
    hits = rng.random(2000) < 1 / (1 + np.exp(-2 * scores))
    curve = fit_curve(scores, hits, "isotonic")
    inside = np.linspace(curve.scores[0], curve.scores[-1], 500)
    assert (np.diff(curve(inside)) > 0).all()
    assert np.abs(curve(inside) - 1 / (1 + np.exp(-2 * inside))).mean() < 0.03


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Calibrated(Centroid(), method="beta"), "method='beta' is not one of 'isotonic', 'platt'"),
        (Calibrated(Centroid(), per="label"), "per='label' is not one of 'model', 'frequency-bin'"),
        (Calibrated(Centroid(), n_folds=1), "n_folds=1 is outside"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(rows, model, message):
    with pytest.raises(InvalidInput, match=message):
        model.fit(*rows)
