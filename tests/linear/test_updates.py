"""One-vs-rest models that learn further end where training anew ends."""

import numpy as np
import pytest
from contracts import make_rows
from naive import linear as naive
from scipy import sparse

import tailwise
from tailwise import DiSMEC, PPDSparse, ProXML, PWDiSMEC
from tailwise.dual_state import DualStore
from tailwise.errors import ModelFileError
from tailwise.kernels.solvers import resuming
from tailwise.kernels.solvers.problems import Options, Standing, Support
from tailwise.kernels.solvers.solve import _compiled
from tailwise.kernels.solvers.sweeps import WorkingSet
from tailwise.linear import one_vs_rest

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
    monkeypatch.setattr(one_vs_rest, "_LITTLE", {"max_rounds": 300, "max_sweeps": 2000})
    monkeypatch.setattr(one_vs_rest, "GOING_ON", {"max_sweeps": 2000})
    monkeypatch.setattr(one_vs_rest, "_WITHOUT_ROWS", {"max_sweeps": 2000})
    monkeypatch.setattr(one_vs_rest, "_NEW_ROUNDS", 300)
    monkeypatch.setattr(one_vs_rest, "rounds_to_go", lambda n_fresh, n_known: 300)
    monkeypatch.setattr(one_vs_rest, "rounds_without", lambda n_before, n_left: 300)
    monkeypatch.setattr(one_vs_rest, "_WORTH_GOING_ON", 0)


@pytest.mark.parametrize("keeps_dual", [True, False])
@pytest.mark.parametrize("make", PARTS)
def test_an_update_reaches_the_optimum_of_training_anew(make, keeps_dual, every_label_to_the_end):
    X, Y = make_rows()
    old, new = make().set_params(random_state=0), make().set_params(random_state=0)
    old.fit(X[:80], Y[:80])
    if not keeps_dual:
        old.dual_ = None
    old.update(X[80:], Y[80:], known=(X[:80], Y[:80]))
    new.fit(X, Y)
    touched = np.flatnonzero(Y[80:].sum(axis=0))
    np.testing.assert_allclose(old.bias_[touched], new.bias_[touched], atol=0.02)
    np.testing.assert_allclose(
        old.weights_[:, touched].toarray(), new.weights_[:, touched].toarray(), atol=0.03, rtol=0.02
    )


@pytest.mark.parametrize("make", PARTS)
def test_a_part_of_the_rows_reaches_the_optimum_of_training_anew(make, every_label_to_the_end, monkeypatch):
    X, Y = make_rows()
    rows = np.flatnonzero(np.arange(X.shape[0]) % 3)
    whole = make().set_params(random_state=0).fit(X, Y)
    anew = make().set_params(random_state=0).fit(X[rows], Y[rows])
    begun = []
    solve = type(whole)._solve
    monkeypatch.setattr(type(whole), "_solve", lambda self, *a: begun.append(a[-1]) or solve(self, *a))
    part = whole.fit_part(X[rows], Y[rows], rows)
    assert all(isinstance(start, Standing) for start in begun) == (whole.dual_ is not None)
    np.testing.assert_allclose(part.bias_, anew.bias_, atol=0.02)
    np.testing.assert_allclose(part.weights_.toarray(), anew.weights_.toarray(), atol=0.03, rtol=0.02)
    assert part.dual_ is None or part.dual_.n_rows == rows.size


def test_a_part_of_few_rows_begins_anew():
    X, Y = make_rows()
    rows = np.arange(60)
    anew = DiSMEC(random_state=0).fit(X[rows], Y[rows])
    part = DiSMEC(random_state=0).fit(X, Y).fit_part(X[rows], Y[rows], rows)
    np.testing.assert_array_equal(part.weights_.toarray(), anew.weights_.toarray())


def test_a_part_begins_anew_where_rows_weigh_differently(monkeypatch):
    monkeypatch.setattr(one_vs_rest, "_WORTH_GOING_ON", 0)
    X, Y = make_rows()
    rows, weight = np.arange(60), np.linspace(1, 2, 60)
    anew = DiSMEC(random_state=0).fit(X[rows], Y[rows], weight)
    part = DiSMEC(random_state=0).fit(X, Y).fit_part(X[rows], Y[rows], rows, weight)
    np.testing.assert_array_equal(part.weights_.toarray(), anew.weights_.toarray())


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_an_update_has_the_objective_of_the_naive_solver(loss, every_label_to_the_end):
    X, Y = make_rows(60, 12, 6)
    model = DiSMEC(tol=1e-4, prune=0.0, normalize=False, loss=loss, random_state=0).fit(X[:40], Y[:40])
    model.update(X[40:], Y[40:], known=(X[:40], Y[:40]))
    rows = X.toarray().astype(np.float64)
    for label in range(2, 6):
        z = np.where(Y[:, [label]].toarray().ravel() > 0, 1.0, -1.0)
        costs = np.full(60, (z > 0).sum() ** (-0.2 if loss == "squared_hinge" else 0.0))
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
    stays = np.flatnonzero(np.arange(15) != 5)
    assert new.n_labels_ == 17 and new.n_learnt_again == 2
    for label in stays:
        np.testing.assert_array_equal(old.weights_[:, [label]].toarray(), new.weights_[:, [label]].toarray())
    np.testing.assert_array_equal(old.bias_[stays], new.bias_[stays])
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


@pytest.mark.parametrize("keeps_dual", [True, False])
def test_several_steps_remember_what_was_not_solved(keeps_dual):
    X, Y = make_rows(200)
    model, known = DiSMEC(random_state=0).fit(X[:100], Y[:100]), 100
    for now in (110, 120, 130, 200):
        if not keeps_dual:
            model.dual_ = None
        model.update(X[known:now], Y[known:now], known=(X[:known], Y[:known]))
        assert keeps_dual or (model.solved_rows_ <= now).all()
        known = now
    anew = DiSMEC(random_state=0).fit(X, Y)
    same = (model.predict_topk(X, 3).labels == anew.predict_topk(X, 3).labels).mean()
    assert same > 0.9


def test_the_dual_that_is_kept_gives_the_weights_again():
    X, Y = make_rows(120)
    model = DiSMEC(random_state=0, prune=0.0).fit(X, Y)
    rows, dual = model.rows_(sparse.csr_array(X)), model.dual_
    assert dual.n_rows == 120 and dual.rows.dtype == np.uint16 and dual.values.dtype == np.float16
    for label in np.flatnonzero(model.label_counts_):
        own = slice(*dual.indptr[label : label + 2])
        weights = rows[dual.rows[own]].T @ dual.values[own].astype(np.float32)
        np.testing.assert_allclose(weights, model.weights_[:, [label]].toarray().ravel(), atol=5e-3)
        assert model.bias_[label] == pytest.approx(dual.values[own].astype(np.float64).sum() - 1, abs=0.02)


@pytest.mark.parametrize("make", [DiSMEC, PPDSparse, lambda **rest: DiSMEC(loss="hinge", **rest)])
def test_an_update_has_the_same_bits_for_any_threads_and_after_loading(make, tmp_path):
    X, Y = make_rows(160)
    first = make(random_state=0, n_jobs=1).fit(X[:120], Y[:120])
    first.save(tmp_path / "model")
    again = tailwise.load(tmp_path / "model").set_params(n_jobs=3)
    for model in (first, again):
        model.update(X[120:], Y[120:], known=(X[:120], Y[:120]))
    np.testing.assert_array_equal(first.weights_.toarray(), again.weights_.toarray())
    for one, other in zip(first.dual_, again.dual_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_that_change_sides_lose_their_alpha(every_label_to_the_end):
    X, Y = make_rows()
    changed = Y.toarray()
    changed[:10, 3] = 1 - changed[:10, 3]
    changed = sparse.csr_array(changed)
    settings = {"tol": 1e-4, "prune": 0.0, "random_state": 0}
    model = DiSMEC(**settings).fit(X, Y).update(X[:10], changed[:10], rows=np.arange(10), known=(X, Y))
    anew = DiSMEC(**settings).fit(X, changed)
    np.testing.assert_allclose(model.weights_[:, [3]].toarray(), anew.weights_[:, [3]].toarray(), atol=0.03)


def test_what_has_no_dual_to_go_on_from_keeps_none():
    X, Y = make_rows()
    assert ProXML(random_state=0).fit(X, Y).dual_ is None
    assert DiSMEC(loss="logistic", random_state=0).fit(X, Y).dual_ is None
    assert DiSMEC(random_state=0).fit(X, Y, np.arange(X.shape[0]) % 3).dual_ is None, "rows would have other numbers"


@pytest.mark.parametrize(
    ("part", "damage", "words"),
    [
        ("n_rows", lambda n: 3, "dual_.rows"),
        ("indptr", lambda a: a[:-1], "dual_.indptr"),
        ("rows", lambda a: a[::-1].copy(), "does not rise"),
        ("rows", lambda a: a.astype(np.int64), "dual_.rows"),
        ("values", lambda a: np.full_like(a, np.nan), "dual_.values"),
        ("values", lambda a: a.astype(np.float32), "dual_.values"),
    ],
)
def test_a_damaged_dual_is_refused(part, damage, words, tmp_path):
    X, Y = make_rows()
    model = DiSMEC(random_state=0).fit(X, Y)
    model.dual_ = model.dual_._replace(**{part: damage(getattr(model.dual_, part))})
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=words):
        tailwise.load(tmp_path / "model")


def test_rows_above_two_bytes_take_four():
    store = DualStore(70_000, 2)
    store.add(np.array([1]), Support(np.array([0, 2]), np.array([4, 69_999]), np.array([1e9, -0.5])))
    dual = store.finish()
    assert dual.rows.dtype == np.int32 and dual.rows.tolist() == [4, 69_999] and dual.values.tolist() == [65504.0, -0.5]
    dual.check(2)
    assert dual.of(np.array([5, 1, 0])).indptr.tolist() == [0, 0, 2, 2]


def test_many_threads_lay_duals_as_one_does():
    found = []
    for n_jobs in (1, 3):
        store = DualStore(50, 40)
        for label in reversed(range(40)):
            rows = np.arange(label % 7)
            store.add(np.array([label]), Support(np.array([0, rows.size]), rows, rows + label + 1.0))
        found.append(store.finish(n_jobs))
    for one, many in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_array_equal(one, many)
    assert found[1].of(np.array([13])).values.tolist() == [14, 15, 16, 17, 18, 19]


def test_negatives_make_up_for_new_positives_so_that_the_bias_stays():
    own = WorkingSet(
        np.arange(3, dtype=np.int32), np.array([1, -1, -1], np.float32), np.array([0.6, 0.1, 0.2], np.float32)
    )
    weights, against = np.array([0.5, 0.1], np.float32), np.array([-0.1, -0.2], np.float32)
    bias = resuming._balance(own, weights, against, np.float32(-1.3), _compiled(Options(), -1.0))
    assert bias == np.float32(-1.3)
    np.testing.assert_allclose(own.alphas, [0.6, 0.3, 0.6], rtol=1e-5)
    np.testing.assert_allclose(weights, [0.3, -0.3], rtol=1e-5)


def test_both_sides_of_a_label_are_as_large_as_is_best_after_one_sweep(monkeypatch):
    X, Y = make_rows(120, 30, 8)
    old, new = (X[:100], Y[:100]), (X[100:], Y[100:])
    monkeypatch.setattr(one_vs_rest, "GOING_ON", {"max_sweeps": 1})
    model = DiSMEC(C_decay=0.0, normalize=False, prune=0.0, random_state=0).fit(*old).update(*new, known=old)
    rows = X.toarray().astype(np.float64)
    for label in range(2, 8):  # label 0 is on no row, label 1 on every row
        support = model.dual_.of(np.array([label]))
        z = np.where(Y[:, [label]].toarray().ravel() > 0, 1.0, -1.0)[support.positions]
        alphas = np.abs(support.values.astype(np.float64))
        own = rows[support.positions]
        gradient = z * (own @ (own.T @ (alphas * z)) - 1 + (alphas * z).sum()) - 1 + alphas / 2
        for side in (z > 0, z < 0):
            assert abs((alphas * gradient)[side].sum()) < 5e-3 * alphas[side].sum()
