"""PDSparse against its duality gap and against a generic solver of its dual."""

import numpy as np
import pytest
from contracts import make_rows
from naive import linear as naive
from scipy import optimize, sparse

from tailwise import PDSparse, evaluate
from tailwise.early_stopping import HeldOut
from tailwise.linear.max_margin import MaxMargin

ALL_ROWS = {"early_stopping": False, "random_state": 0}


def best_of_generic_solver(X, Y, C, l1):
    """The best objective by SLSQP on the dual with every variable."""
    pairs = [(i, l) for i in range(len(X)) for l in np.flatnonzero(Y.any(axis=0)) if 0 < Y[i].sum() < Y.shape[1]]
    sign = np.array([1 if Y[i, l] else -1 for i, l in pairs])
    rows = np.array([i for i, _ in pairs])

    def v(alpha):
        out = np.zeros((X.shape[1], Y.shape[1]))
        for a, s, (i, l) in zip(alpha, sign, pairs, strict=True):
            out[:, l] += a * s * X[i]
        return out

    def value(alpha):
        return 0.5 * (naive.soft(v(alpha), l1) ** 2).sum() - alpha[sign > 0].sum()

    def slope(alpha):
        scores = X @ naive.soft(v(alpha), l1)
        return np.array([s * scores[i, l] - (s > 0) for s, (i, l) in zip(sign, pairs, strict=True)])

    balance = np.array([(rows == i) * sign for i in np.unique(rows)], float)
    own = np.array([(rows == i) * (sign > 0) for i in np.unique(rows)], float)
    found = optimize.minimize(
        value,
        np.zeros(len(pairs)),
        jac=slope,
        bounds=[(0, None)] * len(pairs),
        constraints=[
            {"type": "eq", "fun": lambda a: balance @ a, "jac": lambda a: balance},
            {"type": "ineq", "fun": lambda a: C - own @ a, "jac": lambda a: -own},
        ],
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 500},
    )
    assert found.success
    return -found.fun


@pytest.mark.parametrize(("C", "l1"), [(0.3, 0.0), (1.0, 0.05), (5.0, 0.2)])
def test_the_objective_is_that_of_a_generic_solver(C, l1):
    X, Y = make_rows(n_samples=9, n_features=6, n_labels=5, seed=3)
    Y = sparse.lil_array(Y)
    Y[:, 1] = 0
    Y[:4, 1], Y[8] = 1, 0
    model = PDSparse(C, l1=l1, tol=1e-4, max_rounds=500, normalize=False, **ALL_ROWS).fit(X, Y.tocsr())
    found = naive.max_margin_primal(model.weights_.toarray().astype(float), X.toarray(), Y.toarray(), C, l1)
    assert model.gap_ <= 1e-4 and model.n_rounds_ < 500
    assert found == pytest.approx(best_of_generic_solver(X.toarray(), Y.toarray(), C, l1), rel=1e-3)


def test_the_bounds_close_in_on_the_objective():
    X, Y = make_rows()
    problem = MaxMargin(X, Y, C=np.ones(X.shape[0]), l1=0.05, rng=np.random.default_rng(0), n_jobs=1)
    duals = []
    for _ in range(40):
        found, bounds = problem.search()
        primal = naive.max_margin_primal(problem.weights.toarray().astype(float), X.toarray(), Y.toarray(), 1.0, 0.05)
        assert bounds.primal == pytest.approx(primal, rel=1e-4)
        duals.append(bounds.dual)
        problem.improve(found)
    assert (np.diff(duals) > -1e-3 * duals[-1]).all(), "the dual objective never falls"
    assert max(duals) <= primal and bounds.gap < 1e-3


def test_l1_makes_weights_sparse_and_the_gap_stops_training():
    X, Y = make_rows()
    loose, tight = (PDSparse(1.0, l1=0.01, tol=tol, **ALL_ROWS).fit(X, Y) for tol in (0.3, 0.01))
    assert tight.gap_ <= 0.01 < loose.gap_ <= 0.3 and loose.n_rounds_ < tight.n_rounds_ == tight.best_round_
    sparser = PDSparse(1.0, l1=0.5, **ALL_ROWS).fit(X, Y)
    assert 0 < sparser.weights_.nnz < tight.weights_.nnz / 2
    assert PDSparse(tol=1e-9, max_rounds=2, **ALL_ROWS).fit(X, Y).n_rounds_ == 2


def test_held_out_rows_choose_the_round(monkeypatch):
    X, Y = make_rows(n_samples=150)
    values = iter([10.0, 30.0, 20.0, 25.0, 99.0])
    monkeypatch.setattr(HeldOut, "measure", lambda self, predict: next(values))
    stopped = PDSparse(tol=1e-9, patience=2, random_state=0).fit(X, Y)
    assert (stopped.n_rounds_, stopped.best_round_) == (4, 2)
    values = iter([10.0, 30.0])
    again = PDSparse(tol=1e-9, max_rounds=2, random_state=0).fit(X, Y)
    assert (again.weights_ != stopped.weights_).nnz == 0 and again.gap_ == stopped.gap_ > 0


def test_many_labels_a_row_do_not_spoil_the_ranking():
    """One label that features tell and many that they do not: at the optimum the latter outweigh the former."""
    rng = np.random.default_rng(0)
    topic = np.eye(6)[rng.integers(6, size=600)]
    X, chance = topic + 0.3 * rng.random((600, 6)), np.hstack([0.9 * topic, np.full((600, 60), 0.2)])
    Y = (rng.random(chance.shape) < chance).astype(int)

    def precision(**params):
        top = PDSparse(random_state=0, **params).fit(X[:500], Y[:500]).predict_topk(X[500:], 1)
        return evaluate(Y[500:], top, ["p@1"], confidence=None)["p@1"].value

    assert precision() > precision(early_stopping=False) + 10
