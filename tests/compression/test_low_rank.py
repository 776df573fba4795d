"""CPLST, ML-CSSP and LEML against dense numpy."""

import numpy as np
import pytest
from naive import compression as naive
from scipy import sparse

from tailwise import CPLST, LEML, MLCSSP
from tailwise.compression import cplst
from tailwise.errors import InvalidInput

RANKED = slice(1, None)
"""Label 0 has no rows."""


@pytest.mark.parametrize("dim", [2, 4, 20])
def test_cplst_finds_the_eigenvectors(rows, dense, scores_of, dim, monkeypatch):
    monkeypatch.setattr(cplst, "_LEAST_GAIN", 0.0)
    monkeypatch.setattr(cplst, "_MAX_ROUNDS", 200)
    model = CPLST(dim, l2=0.3, tol=1e-6).fit(*rows)
    expected = naive.cplst_scores(*dense, dense[0][:20], min(dim, 10), 0.3)
    np.testing.assert_allclose(scores_of(model, rows[0][:20])[:, RANKED], expected[:, RANKED], atol=5e-3)


def test_cplst_predicts_the_labels_better_than_their_principal_directions(rows, dense, scores_of, monkeypatch):
    Y = dense[1]
    errors = []
    for rounds in (1, 10):
        monkeypatch.setattr(cplst, "_MAX_ROUNDS", rounds)
        found = scores_of(CPLST(3, l2=0.3, tol=1e-4).fit(*rows), rows[0])
        errors.append(((found - Y)[:, RANKED] ** 2).sum())
    assert errors[1] < errors[0]


def test_mlcssp_decodes_by_the_pseudo_inverse(rows, dense, scores_of):
    model = MLCSSP(5, l2=0.3, tol=1e-6, random_state=3).fit(*rows)
    assert model.chosen_.size == 5 and 0 not in model.chosen_
    expected = naive.mlcssp_scores(*dense, dense[0][:20], model.chosen_, 0.3)
    np.testing.assert_allclose(scores_of(model, rows[0][:20])[:, RANKED], expected[:, RANKED], atol=2e-3)


def test_mlcssp_draws_other_labels_from_another_seed_and_all_where_dim_allows(rows):
    drawn = {tuple(MLCSSP(4, random_state=seed).fit(*rows).chosen_) for seed in range(8)}
    assert len(drawn) > 1
    assert list(MLCSSP(100, random_state=0).fit(*rows).chosen_) == list(range(1, 12))


def test_labels_are_drawn_by_their_leverage():
    Y = np.zeros((60, 8), np.float32)
    Y[:50, 0], Y[50:, 1] = 1, 1
    Y[0, 2:] = 1
    X = np.random.default_rng(0).random((60, 4))
    drawn = np.concatenate([MLCSSP(2, random_state=seed).fit(X, Y).chosen_ for seed in range(30)])
    assert np.bincount(drawn, minlength=8)[:2].min() > np.bincount(drawn, minlength=8)[2:].max()


def test_leml_never_raises_its_objective_and_reports_it(rows, dense):
    model = LEML(4, l2=0.2, max_rounds=12, tol=1e-4).fit(*rows)
    assert len(model.objective_) > 2
    assert (np.diff(model.objective_) <= 0).all()
    W, H = model.projection_.astype(np.float64), np.zeros((12, model.projection_.shape[1]))
    H[RANKED] = model.vectors_[:, :-1]
    assert naive.leml_objective(*dense, W, H, 0.2) == pytest.approx(model.objective_[-1], rel=1e-4)


def test_leml_ends_where_its_gradient_vanishes(rows, dense):
    X, Y = (naive.centred(part) for part in dense)
    model = LEML(6, l2=0.2, max_rounds=300, tol=1e-5).fit(*rows)
    W, H = model.projection_.astype(np.float64), model.vectors_[:, :-1].astype(np.float64)
    residual = X @ W @ H.T - Y[:, RANKED]
    assert np.abs(X.T @ residual @ H + 0.2 * W).max() < 0.1
    assert np.abs(residual.T @ X @ W + 0.2 * H).max() < 0.1


def test_a_large_penalty_leaves_the_frequencies(rows, scores_of):
    for model in (LEML(4, l2=1e6), CPLST(4, l2=1e6)):
        found = scores_of(model.fit(*rows), rows[0][:3])
        np.testing.assert_allclose(found[:, RANKED], np.tile(rows[1].mean(axis=0)[RANKED], (3, 1)), atol=1e-3)


@pytest.mark.parametrize("model", [LEML(), CPLST(), MLCSSP(random_state=0)], ids=lambda m: type(m).__name__)
def test_without_labels_nothing_is_predicted(model):
    with pytest.warns(UserWarning, match="no row of Y has a label"):
        top = model.fit(np.eye(3), np.zeros((3, 4))).predict_topk(np.eye(3), 2)
    assert (top.labels == -1).all()
    assert np.isneginf(model.explain(np.eye(3)[:1], 0).score)


@pytest.mark.parametrize("model", [LEML, CPLST, MLCSSP])
def test_weights_by_label_are_those_of_the_scores(model, rows, scores_of):
    model = model(5, l2=0.3).fit(*rows)
    found = scores_of(model, rows[0][:9])[:, RANKED] - model.vectors_[:, -1]
    weights = model.label_weights()
    assert isinstance(weights, sparse.csr_array)
    np.testing.assert_allclose(found, (rows[0][:9] @ weights.T).toarray()[:, RANKED], atol=1e-4)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"dim": 0}, r"dim=0 is outside \[1, inf\)"),
        ({"l2": 0}, r"l2=0 is outside \(0, inf\)"),
        ({"tol": -1}, r"tol=-1 is outside \(0, inf\)"),
    ],
)
@pytest.mark.parametrize("model", [LEML, CPLST, MLCSSP])
def test_wrong_parameters_are_refused(model, params, message, rows):
    with pytest.raises(InvalidInput, match=message):
        model(**params).fit(*rows)
