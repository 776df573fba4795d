"""Compressed sensing: what pursuit finds again, and why."""

import numpy as np
import pytest
from scipy import sparse

from tailwise import CS
from tailwise.errors import InvalidInput


def sparse_problem(n_labels=60, a_row=3, n=80):
    """Rows that share no feature, so that regression can tell each; exactly ``a_row`` labels each."""
    rng = np.random.default_rng(0)
    Y = np.zeros((n, n_labels), np.float32)
    for row in Y:
        row[rng.choice(n_labels, a_row, replace=False)] = 1
    return sparse.csr_array(np.eye(n, dtype=np.float32)), Y


def test_exactly_sparse_rows_are_recovered():
    X, Y = sparse_problem()
    model = CS(dim=50, max_labels=3, l2=1e-5, tol=1e-5, random_state=0).fit(X, Y)
    assert (model.predict(X, 3).toarray() == Y).all()
    np.testing.assert_allclose(model.predict_topk(X, 3).scores, 1, atol=2e-3)


def test_too_few_dimensions_do_not_recover_them():
    X, Y = sparse_problem()
    model = CS(dim=5, max_labels=3, l2=1e-5, tol=1e-5, random_state=0).fit(X, Y)
    assert (model.predict(X, 3).toarray() == Y).mean(axis=1).min() < 1


def test_no_more_labels_than_are_decoded(rows):
    X, Y = rows
    top = CS(dim=30, max_labels=2, random_state=0).fit(X, Y).predict_topk(X, 5)
    assert (top.labels[:, 2:] == -1).all() and (top.labels[:, 0] >= 0).all()


def test_a_label_that_was_not_chosen_says_so(rows):
    X, Y = rows
    model = CS(dim=30, max_labels=1, random_state=0).fit(X, Y)
    other = next(label for label in range(1, 12) if label != model.predict_topk(X[[0]], 1).labels[0, 0])
    assert "pursuit does not choose" in model.explain(X[[0]], other).parts[0].name


@pytest.mark.parametrize(
    ("params", "message"),
    [({"max_labels": 0}, r"max_labels=0 is outside"), ({"dim": 1.5}, r"dim=1.5 must be an integer")],
)
def test_wrong_parameters_are_refused(params, message, rows):
    with pytest.raises(InvalidInput, match=message):
        CS(**params).fit(*rows)
