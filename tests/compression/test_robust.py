"""RobustXML: the objective against dense numpy, and what the sparse part is for."""

import numpy as np
import pytest
from naive import compression as naive
from scipy import sparse

from tailwise import LEML, RobustXML
from tailwise.errors import InvalidInput


def parts(model):
    """W, H and S as dense arrays."""
    n = model.n_features_in_
    weights = model.weights_.toarray().astype(np.float64)
    return model.projection_.astype(np.float64), weights[n:].T, weights[:n]


def test_the_objective_is_reported_and_never_rises(rows, dense):
    model = RobustXML(3, l1=0.2, l2=0.3, rounds=8, tol=1e-4).fit(*rows)
    assert (np.diff(model.objective_) < 0).all()
    assert naive.robust_objective(*dense, *parts(model), 0.2, 0.3) == pytest.approx(model.objective_[-1], rel=1e-4)


def test_more_proximal_steps_lower_it_further(rows):
    last = [RobustXML(3, l1=0.2, rounds=1, steps=steps).fit(*rows).objective_[-1] for steps in (1, 3, 30)]
    assert last == sorted(last, reverse=True) and last[0] > last[-1]


def test_the_sparse_part_ends_where_its_optimality_holds(rows, dense):
    model = RobustXML(2, l1=0.5, l2=0.3, rounds=1, steps=3000).fit(*rows)
    W, H, S = parts(model)
    X, Y = (naive.centred(part) for part in dense)
    gradient = (X.T @ (Y - X @ (W @ H.T + S)))[:, 1:]
    S = S[:, 1:]
    assert np.abs(gradient).max() < 0.5 + 5e-3
    np.testing.assert_allclose(gradient[S != 0], 0.5 * np.sign(S[S != 0]), atol=2e-2)


def test_a_larger_penalty_is_sparser_until_leml_is_left(rows):
    X, Y = rows
    entries = [np.count_nonzero(parts(RobustXML(3, l1=l1).fit(X, Y))[2]) for l1 in (0.05, 0.5, 1e3)]
    assert entries[0] > entries[1] > entries[2] == 0
    plain, robust = LEML(3, max_rounds=2).fit(X, Y), RobustXML(3, l1=1e3, rounds=2).fit(X, Y)
    np.testing.assert_allclose(robust.predict_topk(X).scores, plain.predict_topk(X).scores, atol=1e-4)


def test_weights_by_label_are_those_of_the_scores(rows, scores_of):
    X, Y = rows
    model = RobustXML(3, l1=0.1).fit(X, Y)
    weights = model.label_weights()
    assert isinstance(weights, sparse.csr_array)
    found = scores_of(model, X[:9])[:, 1:] - model.bias_[1:]
    np.testing.assert_allclose(found, (X[:9] @ weights.T).toarray()[:, 1:], atol=1e-4)


def test_without_labels_nothing_is_predicted():
    with pytest.warns(UserWarning, match="no row of Y has a label"):
        top = RobustXML().fit(np.eye(3), np.zeros((3, 4))).predict_topk(np.eye(3), 2)
    assert (top.labels == -1).all()


@pytest.mark.parametrize("name", ["l1", "rounds", "steps"])
def test_wrong_parameters_are_refused(name, rows):
    with pytest.raises(InvalidInput, match=rf"{name}=0 is outside"):
        RobustXML(**{name: 0}).fit(*rows)
