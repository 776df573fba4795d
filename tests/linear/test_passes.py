"""Rows on disk, solved in passes: the same bits as rows in memory, whatever memory there is."""

import numpy as np
import pytest
from contracts import assert_same_bits
from scipy import sparse

import tailwise
from tailwise import memory
from tailwise.data.mapped import read_rows, write_rows
from tailwise.kernels.solvers import sweeps
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


@pytest.mark.parametrize("room", [1, 200_000, 10**8])
@pytest.mark.parametrize("options", [Options(), Options(loss="hinge", tol=1e-3, max_rounds=60), Options(max_rounds=1)])
def test_any_memory_gives_the_same_bits(drawn, room, options):
    X, Y = drawn
    expected = solve_block(pack_rows(csr_parts(X), X.shape[1]), labels_of(Y), options)
    far = pack_rows(csr_parts(X), X.shape[1], memory=room)
    if room < 10**8:
        assert isinstance(far, FarRows)
    else:
        far = FarRows(far, far.indptr[:-1], room)
    assert_equal_weights(solve_block(far, labels_of(Y), options), expected)


@pytest.mark.parametrize("options", [Options(), Options(loss="logistic"), Options(loss="hinge", l1=0.2)])
def test_chosen_rows_are_the_same_problem_near_and_far(drawn, options):
    X, Y = drawn
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


@pytest.mark.parametrize("memory", [1, 30_000_000, 80_000_000])
def test_working_sets_of_several_blocks(memory):
    """Labels on a third, a tenth and few of many rows: those sets are visited by blocks, side by side where rows are
    far; with some memory what remains of them is kept together."""
    rng = np.random.default_rng(0)
    n_rows, words = 36_000, 200
    indices = np.sort(rng.integers(0, 250, (n_rows, words)) + 250 * np.arange(words), axis=1)
    indptr = np.arange(n_rows + 1) * words
    values = rng.random(n_rows * words, np.float32)
    X = sparse.csr_array((values, indices.ravel(), indptr), shape=(n_rows, 250 * words))
    first = values.reshape(n_rows, words)[:, :3]
    on = first > [0.66, 0.9, 0.995]
    assert X.nnz > sweeps._BLOCK_VALUES
    assert (on.sum(axis=0) * words > sweeps._WHOLE_VALUES).tolist() == [True, True, False]
    rows = pack_rows(csr_parts(tailwise.rows.unit_rows(X)), X.shape[1])
    options = Options(max_rounds=4, max_sweeps=7)
    labels = labels_of(sparse.csr_array(on.astype(np.float32)))
    far = FarRows(rows, rows.indptr[:-1], memory)
    assert_equal_weights(solve_block(far, labels, options), solve_block(rows, labels, options))


@pytest.mark.parametrize("model", [tailwise.DiSMEC(random_state=0), tailwise.Bonsai(random_state=0, max_leaf=20)])
@pytest.mark.parametrize("run", [False, True])
def test_mapped_rows_that_do_not_fit_give_the_same_bits(drawn, tmp_path, monkeypatch, model, run):
    X, Y = drawn
    expected = model.fit(X, Y)
    write_rows(tmp_path / "a.rows", [(X, Y)], n_features=X.shape[1], n_labels=Y.shape[1])
    mapped = read_rows(tmp_path / "a.rows")
    passes = []
    monkeypatch.setattr(memory, "free_memory", lambda: 50_000)
    monkeypatch.setattr(dismec, "_LARGE", 1)
    solve = tailwise.kernels.solvers.solve.solve_svm_in_passes
    monkeypatch.setattr(
        tailwise.kernels.solvers.solve, "solve_svm_in_passes", lambda *problem: passes.append(1) or solve(*problem)
    )
    found = type(model)(**model.get_params())
    if run:
        with tailwise.workdir(tmp_path / "run"):
            found.fit(*mapped)
    else:
        found.fit(*mapped)
    assert passes
    assert_same_bits(found.predict_topk(X), expected.predict_topk(X))
