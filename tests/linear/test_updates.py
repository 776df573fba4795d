"""One-vs-rest models that learn further end where training anew ends."""

import numpy as np
import pytest
from contracts import make_rows
from naive import linear as naive
from scipy import sparse

from tailwise import DiSMEC, PPDSparse, ProXML, PWDiSMEC
from tailwise.kernels.solvers import solve

PARTS = [
    lambda: DiSMEC(tol=1e-4, prune=0.0),
    lambda: DiSMEC(tol=1e-4, prune=0.0, loss="logistic"),
    lambda: PWDiSMEC(tol=1e-4, prune=0.0),
    lambda: PPDSparse(tol=1e-4),
    lambda: ProXML(tol=1e-3),
]


@pytest.fixture
def every_label_to_the_end(monkeypatch):
    """An update that spares nothing."""
    monkeypatch.setattr("tailwise.changes.GROWTH", 0.0)
    for name in ("RESUMED", "RESUMED_SPARSE"):
        monkeypatch.setattr(solve, name, {"max_rounds": 300, "max_sweeps": 2000})


@pytest.mark.parametrize("make", PARTS)
def test_an_update_reaches_the_optimum_of_training_anew(make, every_label_to_the_end):
    X, Y = make_rows()
    old, new = make().set_params(random_state=0), make().set_params(random_state=0)
    old.fit(X[:80], Y[:80]).update(X[80:], Y[80:], known=(X[:80], Y[:80]))
    new.fit(X, Y)
    touched = np.flatnonzero(Y[80:].sum(axis=0))
    np.testing.assert_allclose(old.bias_[touched], new.bias_[touched], atol=0.02)
    np.testing.assert_allclose(
        old.weights_[:, touched].toarray(), new.weights_[:, touched].toarray(), atol=0.03, rtol=0.02
    )


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_an_update_has_the_objective_of_the_naive_solver(loss, every_label_to_the_end):
    X, Y = make_rows(60, 12, 6)
    model = DiSMEC(tol=1e-4, prune=0.0, normalize=False, loss=loss, random_state=0).fit(X[:40], Y[:40])
    model.update(X[40:], Y[40:], known=(X[:40], Y[:40]))
    rows = X.toarray().astype(np.float64)
    for label in range(2, 6):
        z, costs = np.where(Y[:, [label]].toarray().ravel() > 0, 1.0, -1.0), np.ones(60)
        form = {"centre": -1.0, "scale": 1.0}
        if loss == "hinge":
            best = naive.solve_hinge_dual(rows, z, costs, l1=0.0, iterations=6000, **form)
        else:
            best = naive.objective(rows, z, costs, *naive.solve_smooth(rows, z, costs, **form), **form)
        weights, bias = model.weights_[:, [label]].toarray().ravel().astype(np.float64), float(model.bias_[label])
        assert naive.objective(rows, z, costs, weights, bias, loss=loss, **form) == pytest.approx(best, rel=3e-3)


def test_labels_that_stay_keep_their_bits_and_new_ones_come_last():
    X, Y = make_rows()
    few = sparse.csr_array(np.eye(1, 17, 16, dtype=np.float32) + np.eye(1, 17, 5, dtype=np.float32))
    old = DiSMEC(random_state=0).fit(X, Y)
    new = DiSMEC(random_state=0).fit(X, Y).update(X[[3]] * 2, few, known=(X, Y))
    assert new.n_labels_ == 17 and new.n_learnt_again == 1, "one row more is nothing to a label of twelve"
    for label in range(15):
        np.testing.assert_array_equal(old.weights_[:, [label]].toarray(), new.weights_[:, [label]].toarray())
    np.testing.assert_array_equal(old.bias_, new.bias_[:15])
    assert np.isneginf(new.bias_[15]) and np.isfinite(new.bias_[16])
    assert new.predict_topk(X[[3]], 5).labels[0].tolist().count(16) == 1


def test_a_label_that_lost_its_last_row_is_not_predicted():
    X, Y = make_rows()
    alone = sparse.lil_array(Y)
    alone[0, 0] = 1
    first = alone.tocsr()
    model = DiSMEC(random_state=0).fit(X, first)
    assert (model.predict_topk(X, 15).labels == 0).any()
    model.update(X[[0]], Y[[0]], rows=[0], known=(X, first))
    assert not (model.predict_topk(X, 15).labels == 0).any()


def test_several_steps_remember_what_was_not_solved():
    X, Y = make_rows(200)
    model, known = DiSMEC(random_state=0).fit(X[:100], Y[:100]), 100
    for now in (110, 120, 130, 200):
        model.update(X[known:now], Y[known:now], known=(X[:known], Y[:known]))
        assert (model.solved_rows_ <= now).all()
        known = now
    anew = DiSMEC(random_state=0).fit(X, Y)
    same = (model.predict_topk(X, 3).labels == anew.predict_topk(X, 3).labels).mean()
    assert same > 0.9
