"""What the one-vs-rest models promise beyond the contract of every model."""

import os
import signal
import time
from itertools import count

import numpy as np
import pytest
from contracts import make_rows
from naive.linear import objective
from scipy import sparse
from sklearn.base import clone

from tailwise import DiSMEC, PPDSparse, ProXML, PWDiSMEC, load
from tailwise.errors import InvalidInput, NotFitted
from tailwise.rows import unit_rows

ROWS = make_rows(n_samples=200, n_labels=30, seed=1)


def same_weights(a, b):
    np.testing.assert_array_equal(a.weights_.toarray(), b.weights_.toarray())
    np.testing.assert_array_equal(a.bias_, b.bias_)


def test_convex_weighting_of_complete_labels_is_dismec():
    X, Y = ROWS
    plain = DiSMEC(random_state=0).fit(X, Y)
    same_weights(PWDiSMEC(weighting="convex", propensity=np.ones(30), random_state=0).fit(X, Y), plain)
    same_weights(PWDiSMEC(weighting="none", random_state=0).fit(X, Y), plain)


def test_weightings_are_costs_of_positives():
    X, Y = ROWS
    p = np.linspace(0.2, 0.9, 30)
    by_name = PWDiSMEC(weighting="tail", propensity=p, random_state=0).fit(X, Y)
    same_weights(by_name, DiSMEC(positive_weight=1 / p - 1, random_state=0).fit(X, Y))
    same_weights(by_name, PWDiSMEC(weighting=lambda p: 1 / p - 1, propensity=p, random_state=0).fit(X, Y))


def test_proxml_weighs_rows_alike_unless_told():
    X, Y = ROWS
    p = np.linspace(0.2, 0.9, 30)
    plain = ProXML(random_state=0).fit(X, Y)
    assert plain.get_params()["weighting"] == "none"
    same_weights(plain, ProXML(propensity=p, random_state=0).fit(X, Y))
    weighted = ProXML(weighting="tail", propensity=p, random_state=0).fit(X, Y)
    same_weights(weighted, ProXML(positive_weight=1 / p - 1, random_state=0).fit(X, Y))
    assert (weighted.weights_ != plain.weights_).nnz


def test_the_fitted_model_minimises_its_objective():
    X, Y = ROWS
    model = DiSMEC(C=2.0, prune=0.0, tol=1e-3, positive_weight=3.0).fit(X, Y)
    rows, W = unit_rows(X).toarray().astype(float), model.weights_.toarray().astype(float)
    z = 2 * Y.toarray()[:, 5] - 1
    costs = np.where(z > 0, 6.0, 2.0) * (z > 0).sum() ** -0.2
    best = objective(rows, z, costs, W[:, 5], float(model.bias_[5]))
    rng = np.random.default_rng(0)
    for _ in range(20):
        away = W[:, 5] + rng.normal(scale=0.01, size=W.shape[0])
        assert objective(rows, z, costs, away, float(model.bias_[5])) > best


def test_only_pruned_sparse_weights_are_kept():
    X, Y = ROWS
    model = DiSMEC(prune=0.05).fit(X, Y)
    assert isinstance(model.weights_, sparse.csr_array) and model.weights_.shape == (40, 30)
    assert np.abs(model.weights_.data).min() >= np.float32(0.05)
    assert model.weights_.has_sorted_indices and model.weights_.dtype == np.float32
    assert np.isneginf(model.bias_[0]), "label 0 has no row"


@pytest.mark.parametrize("model", [PPDSparse(l1=2.0), ProXML(C=2.0)])
def test_l1_is_sparser(model):
    X, Y = ROWS
    assert model.fit(X, Y).weights_.nnz < 0.5 * DiSMEC(prune=0.0).fit(X, Y).weights_.nnz


def test_logistic_scores_are_calibrated_probabilities():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(4000, 3)).astype(np.float32)
    truth = np.array([0.1, 0.3, 0.6])[:, None] * np.ones(3)
    Y = (rng.random((4000, 3)) < (X @ truth / 2)).astype(np.float32)
    model = DiSMEC(C=10.0, loss="logistic", normalize=False, prune=0.0).fit(X, Y)
    assert model.scores_are_probabilities
    by_label = model.predict_topk(X, 3).to_csr(3, binary=False)
    np.testing.assert_allclose(by_label.sum(axis=0), Y.sum(axis=0), rtol=0.02)


def test_the_default_C_is_that_of_the_loss():
    X, Y = ROWS
    for model, C in ((DiSMEC(), 1.0), (PWDiSMEC(loss="hinge"), 1.0), (DiSMEC(loss="logistic"), 16.0), (DiSMEC(2), 2)):
        assert model.fit(X, Y).C_ == C
    assert DiSMEC(loss="logistic").fit(X, Y).get_params()["C"] is None
    by_default, by_name = DiSMEC(loss="logistic", random_state=0), DiSMEC(C=16, loss="logistic", random_state=0)
    same_weights(by_default.fit(X, Y), by_name.fit(X, Y))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("model", [DiSMEC(), DiSMEC(loss="logistic"), PPDSparse(), ProXML()], ids=str)
def test_ctrl_c_stops_training_and_leaves_the_model_as_it_was(model, n_jobs, monkeypatch):
    X, Y = ROWS
    solve = type(model)._solve

    def interrupted():
        turns = count()

        def solve_until_ctrl_c(self, *arguments):
            turn = next(turns)
            if turn == 3:
                os.kill(os.getpid(), signal.SIGINT)
            assert turn < 25, "training goes on"
            time.sleep(0.02)
            return solve(self, *arguments)

        return solve_until_ctrl_c

    monkeypatch.setattr(type(model), "_labels_a_block", 1)
    model = clone(model).set_params(n_jobs=n_jobs)
    monkeypatch.setattr(type(model), "_solve", interrupted())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(NotFitted):
        model.predict_topk(X)
    monkeypatch.setattr(type(model), "_solve", solve)
    before = model.fit(X, Y).predict_topk(X)
    monkeypatch.setattr(type(model), "_solve", interrupted())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :20], Y)
    np.testing.assert_array_equal(model.predict_topk(X).scores, before.scores)


def test_models_come_back_from_disk_with_the_same_predictions(tmp_path):
    X, Y = ROWS
    model = PWDiSMEC(loss="logistic").fit(X, Y)
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    np.testing.assert_array_equal(back.predict_topk(X).scores, model.predict_topk(X).scores)
    assert back.scores_are_probabilities


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DiSMEC(C=0), r"C=0 is outside"),
        (ProXML(C=None), "C=None must be a number"),
        (DiSMEC(loss="huber"), "loss='huber' is not one of"),
        (
            DiSMEC(positive_weight=[1.0, 2.0]),
            "positive_weight has 2 entries; pass a number, or one for each of the 30",
        ),
        (DiSMEC(positive_weight=-1.0), "positive_weight=-1.0; every weight must be finite and above 0"),
        (DiSMEC(tol=0.0), "tol=0.0 is outside"),
        (PWDiSMEC(weighting="head"), "weighting='head' is not one of 'tail', 'convex', 'mild', 'steep', 'none'"),
        (PWDiSMEC(weighting=lambda p: p[:2]), r"returned shape \(2,\)"),
        (PPDSparse(l1=-0.1), "l1=-0.1 is outside"),
        (PPDSparse(loss="logistic"), "loss='logistic' is not one of 'squared_hinge', 'hinge'"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(model, message):
    with pytest.raises(InvalidInput, match=message):
        model.fit(*ROWS)
