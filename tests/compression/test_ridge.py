"""The regression and the label directions that the models share, against dense numpy."""

import numpy as np
import pytest
from naive import compression as naive
from scipy import sparse

from tailwise.compression.ridge import TARGETS_A_BLOCK, CentredRows, ridge
from tailwise.compression.spectrum import top_right_vectors


def test_ridge_equals_the_normal_equations(rows, dense):
    X, Y = dense
    penalty = np.linspace(0.05, 3, Y.shape[1])
    W = ridge(CentredRows(rows[0]), Y, penalty, tol=1e-6)
    np.testing.assert_allclose(W, naive.ridge(X, Y, penalty), atol=2e-4)


def test_ridge_is_the_same_for_any_start_and_any_number_of_threads(rows, dense):
    X, Y = CentredRows(rows[0]), np.tile(dense[1], (1, 6))
    assert Y.shape[1] > 2 * TARGETS_A_BLOCK
    W = ridge(X, Y, 0.5, tol=1e-6, n_jobs=1)
    np.testing.assert_array_equal(W, ridge(X, Y, 0.5, tol=1e-6, n_jobs=2))
    start = np.random.default_rng(0).standard_normal(W.shape)
    np.testing.assert_allclose(ridge(X, Y, 0.5, start=start, tol=1e-6), W, atol=2e-4)


def test_a_looser_tolerance_takes_fewer_passes(rows, dense, monkeypatch):
    passes = []
    times = CentredRows.times
    monkeypatch.setattr(CentredRows, "times", lambda self, W: passes.append(1) or times(self, W))
    counts = []
    for tol in (1e-1, 1e-6):
        ridge(CentredRows(rows[0]), dense[1], 0.1, tol=tol, n_jobs=1)
        counts.append(len(passes))
        passes.clear()
    assert 0 < counts[0] < counts[1]


def test_constant_targets_and_empty_rows_are_solved_by_zero():
    X = CentredRows(sparse.csr_array((4, 3), dtype=np.float32))
    assert not ridge(X, np.ones((4, 2)), 1.0).any()


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("n_labels", [40, 700])
def test_top_right_vectors_are_numpys(n_labels, centre):
    rng = np.random.default_rng(1)
    Y = (rng.random((120, n_labels)) < np.linspace(0.5, 0.01, n_labels)).astype(np.float32)
    Y[:, 1] = Y[:, 0]
    dim = 6
    rows = CentredRows(sparse.csr_array((120, 3), dtype=np.float32)) if centre else None
    V = top_right_vectors(sparse.csr_array(Y), dim, rows)
    expected = np.linalg.svd(naive.centred(Y) if centre else Y)[2][:dim].T
    np.testing.assert_allclose(V.T @ V, np.eye(dim), atol=1e-6)
    np.testing.assert_allclose(np.abs((V * expected).sum(axis=0)), 1, atol=1e-3)


def test_directions_without_variance_are_left_out():
    Y = sparse.csr_array(np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]))
    rows = CentredRows(sparse.csr_array((3, 2), dtype=np.float32))
    assert top_right_vectors(Y, 3).shape == (3, 2)
    assert top_right_vectors(Y, 3, rows).shape == (3, 1)
    assert top_right_vectors(sparse.csr_array((3, 0)), 5, rows).shape == (0, 0)
