"""Rows on disk, solved in passes: the same bits as rows in memory, whatever memory there is."""

import numpy as np
import pytest
from contracts import assert_same_bits
from scipy import sparse

import tailwise
from tailwise import memory
from tailwise.data.mapped import read_rows, write_rows
from tailwise.kernels.solvers import problems, solve
from tailwise.kernels.solvers.passes import Plan
from tailwise.kernels.solvers.problems import FarRows, Labels, Options, Start, pack_rows
from tailwise.kernels.solvers.solve import solve_block
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.linear import dismec

SET = {"n_samples": 700, "n_features": 400, "n_labels": 90, "test_fraction": 0.0, "random_state": 3}


def labels_of(Y):
    by_label = sparse.csc_array(Y)
    rng = np.random.default_rng(0)
    costs = rng.uniform(0.5, 2.0, by_label.nnz).astype(np.float32)
    return Labels(by_label.indptr, by_label.indices, costs, rng.uniform(0.5, 2.0, Y.shape[1]).astype(np.float32))


def assert_equal_weights(found, expected):
    for one, other in zip(
        (*found[:4], *(found.support or ())), (*expected[:4], *(expected.support or ())), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def drawn():
    data = tailwise.make_longtail(**SET)
    return data.X_train, data.Y_train


@pytest.fixture
def many(monkeypatch):
    """Say that rows are many from now on, and are cut into some ten blocks."""

    def say():
        monkeypatch.setattr(solve, "_MANY_VALUES", 1)
        monkeypatch.setattr(solve, "PLAN", Plan(block=4096, passes=500))

    return say


@pytest.mark.parametrize("room", [1, 200_000, 10**8])
@pytest.mark.parametrize("options", [Options(), Options(loss="hinge", tol=1e-3, max_rounds=60), Options(max_rounds=1)])
@pytest.mark.parametrize("are_many", [False, True])
def test_any_memory_gives_the_same_bits(drawn, many, room, options, are_many):
    X, Y = drawn
    if are_many:
        many()
    expected = solve_block(pack_rows(csr_parts(X), X.shape[1]), labels_of(Y), options)
    far = pack_rows(csr_parts(X), X.shape[1], memory=room)
    if room < 10**8:
        assert isinstance(far, FarRows)
    else:
        far = FarRows(far, far.indptr[:-1], room)
    assert_equal_weights(solve_block(far, labels_of(Y), options), expected)


@pytest.mark.parametrize("options", [Options(), Options(loss="logistic"), Options(loss="hinge", l1=0.2)])
@pytest.mark.parametrize("are_many", [False, True])
def test_chosen_rows_are_the_same_problem_near_and_far(drawn, many, options, are_many):
    X, Y = drawn
    if are_many:
        many()
    chosen = np.flatnonzero(np.arange(X.shape[0]) % 3)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, chosen.size)
    near = pack_rows(csr_parts(X), X.shape[1], chosen, weights)
    far = pack_rows(csr_parts(X), X.shape[1], chosen, weights, memory=1)
    assert isinstance(far, FarRows)
    labels = labels_of(Y[chosen])
    assert_equal_weights(solve_block(far, labels, options), solve_block(near, labels, options))


def test_an_old_solution_is_gone_on_from(drawn):
    X, Y = drawn
    rows, labels = pack_rows(csr_parts(X), X.shape[1]), labels_of(Y)
    old = solve_block(rows, labels)
    start = Start(*old[:4], np.full(Y.shape[1], X.shape[0]))
    far = FarRows(rows, rows.indptr[:-1], 1)
    assert_equal_weights(solve_block(far, labels, start=start), solve_block(rows, labels, start=start))


def test_many_rows_come_close_to_the_optimum(drawn, many):
    X, Y = drawn
    rows, labels = pack_rows(csr_parts(X), X.shape[1]), labels_of(Y)

    def objective(weights):
        found = sparse.csr_array((weights.values, weights.features, weights.indptr), shape=(Y.shape[1], X.shape[1]))
        z = 2 * Y.toarray() - 1
        losses = np.maximum(0, 1 - z * ((X @ found.T).toarray() + weights.bias)) ** 2
        costs = np.where(z > 0, 0, labels.negative_costs)
        costs[labels.positions, np.repeat(np.arange(Y.shape[1]), np.diff(labels.indptr))] = labels.positive_costs
        return (found.power(2).sum(axis=1) + (weights.bias + 1) ** 2) / 2 + (costs * losses).sum(axis=0)

    few = objective(solve_block(rows, labels, Options(prune=0, max_rounds=100)))
    many()
    assert objective(solve_block(rows, labels, Options(prune=0, max_rounds=3))).sum() < 1.01 * few.sum()
    assert objective(solve_block(rows, labels, Options(prune=0, max_rounds=100))).sum() < 1.002 * few.sum()


def test_rows_sorted_by_label_need_no_more_passes(drawn, many):
    X, Y = drawn
    many()
    order = np.argsort(Y.argmax(axis=1), kind="stable")
    rows, labels = (pack_rows(csr_parts(X[order]), X.shape[1]), labels_of(Y[order]))
    exact = solve_block(rows, labels, Options(prune=0, tol=1e-4, max_rounds=500))
    assert np.abs(exact.bias - solve_block(rows, labels, Options(prune=0, max_rounds=12)).bias).max() < 0.05


@pytest.mark.parametrize("model", [tailwise.DiSMEC(random_state=0), tailwise.Bonsai(random_state=0, max_leaf=20)])
@pytest.mark.parametrize("run", [False, True])
def test_mapped_rows_that_do_not_fit_give_the_same_bits(drawn, tmp_path, monkeypatch, many, model, run):
    X, Y = drawn
    many()
    expected = model.fit(X, Y)
    write_rows(tmp_path / "a.rows", [(X, Y)], n_features=X.shape[1], n_labels=Y.shape[1])
    mapped = read_rows(tmp_path / "a.rows")
    far = []
    monkeypatch.setattr(memory, "free_memory", lambda: 50_000)
    monkeypatch.setattr(dismec, "_LARGE", 1)
    for module in (problems, dismec):
        monkeypatch.setattr(module, "FarRows", lambda *parts: far.append(parts) or FarRows(*parts))
    found = type(model)(**model.get_params())
    if run:
        with tailwise.workdir(tmp_path / "run"):
            found.fit(*mapped)
    else:
        found.fit(*mapped)
    assert far
    assert_same_bits(found.predict_topk(X), expected.predict_topk(X))
