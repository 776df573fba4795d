from fractions import Fraction

import numpy as np
import pytest
from contracts import input_forms, make_rows
from hypothesis import given
from scipy import sparse
from strategies import examples, rows_and_labels

from tailwise.errors import InvalidInput
from tailwise.rows import unit_rows
from tailwise.validation import (
    as_rng,
    check_choice,
    check_features,
    check_labels,
    check_number,
    label_counts,
)


@examples(40)
@given(rows_and_labels(signed=True, untidy=True))
def test_whatever_is_stored_becomes_canonical_csr_and_stays_as_it_was(rows):
    for matrix, check in zip(rows, (check_features, check_labels), strict=True):
        before = [part.copy() for part in (matrix.data, matrix.indices, matrix.indptr)]
        checked = check(matrix)
        assert type(checked) is sparse.csr_array and checked.has_canonical_format and checked.dtype == np.float32
        assert checked.indices.dtype == checked.indptr.dtype == np.int32
        np.testing.assert_array_equal(checked.toarray(), matrix.toarray())
        for part, old in zip((matrix.data, matrix.indices, matrix.indptr), before, strict=True):
            np.testing.assert_array_equal(part, old)


def test_every_form_becomes_the_same_canonical_csr():
    X, _ = make_rows()
    forms = input_forms(X)
    assert not forms["unsorted"].has_sorted_indices and not forms["duplicates"].has_canonical_format
    for name, form in forms.items():
        checked = check_features(form)
        assert checked.has_canonical_format and checked.dtype == np.float32, name
        assert checked.indices.dtype == checked.indptr.dtype == np.int32, name
        np.testing.assert_array_equal(checked.toarray(), X.toarray())


def test_checked_csr_is_not_copied():
    X, Y = make_rows()
    assert np.shares_memory(check_features(X).data, X.data)
    assert np.shares_memory(check_labels(Y).indices, Y.indices)


def test_the_callers_matrix_is_never_changed():
    X, _ = make_rows()
    unsorted = input_forms(X)["unsorted"]
    before = unsorted.indices.copy()
    check_features(unsorted)
    np.testing.assert_array_equal(unsorted.indices, before)


@pytest.mark.parametrize("kind", [bool, np.int8, np.int64, np.float64])
def test_labels_of_any_binary_dtype(kind):
    checked = check_labels(np.array([[0, 1], [1, 1]]).astype(kind))
    assert checked.nnz == 3 and (checked.data == 1).all()
    np.testing.assert_array_equal(label_counts(checked), [1, 2])


def test_explicit_zeros_are_no_labels():
    Y = sparse.csr_array((np.array([1.0, 0.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    assert check_labels(Y).indices.tolist() == [0]
    assert Y.nnz == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_features(np.ones(3)), r"X has shape \(3,\); pass a 2-D matrix"),
        (lambda: check_features([["a"]]), "X has dtype <U1"),
        (lambda: check_features(np.ones((2, 0))), r"0 feature\(s\)"),
        (lambda: check_features([[1.0, np.nan]]), "X has NaN at row 0, column 1; replace"),
        (lambda: check_features([[0.0], [1e39]]), "X has infinity .* at row 1, column 0"),
        (lambda: check_features([[1j]]), "Complex data not supported"),
        (lambda: check_features([[1.0]], n_features=2), "X has 1 features, but this model is expecting 2"),
        (lambda: check_labels([[0.5]]), "Y has the value 0.5 at row 0, column 0"),
        (lambda: check_labels([[1]], n_rows=2), "Y has 1 rows but X has 2"),
        (lambda: check_labels([[1]], n_labels=3), "Y has 1 columns but 3 labels were expected"),
        (lambda: check_labels(None), "Y is None"),
        (lambda: check_number("C", -1, low=0, open_low=True), r"C=-1 is outside \(0, inf\)"),
        (lambda: check_number("C", "1"), "C='1' must be a number"),
        (lambda: check_number("n_trees", True, integer=True), "n_trees=True must be an integer"),
        (lambda: check_number("C", np.nan), r"C=nan is outside"),
        (lambda: check_number("k", 10**5000, integer=True), r"k has 16,610 bits; pass a number that compiled code"),
        (lambda: check_number("C", Fraction(1, 3)), r"C=Fraction\(1, 3\) must be a number"),
        (lambda: check_features([[1, 2], [3]]), r"X cannot be read as a matrix .*rows of equal length"),
        (
            lambda: check_choice("loss", "hinges", ("hinge", "logistic")),
            "loss='hinges' is not one of 'hinge', 'logistic'",
        ),
        (lambda: as_rng("seed"), "random_state='seed'; pass an integer"),
    ],
)
def test_messages_name_the_argument_and_the_value(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


def test_a_large_dense_array_warns_with_its_cost():
    with pytest.warns(UserWarning, match=r"dense array of 12,000,000 entries"):
        check_features(np.zeros((3000, 4000), np.float32))


def test_unit_rows_keeps_empty_rows():
    X = check_features([[3.0, 4.0], [0.0, 0.0], [0.0, 2.0]])
    np.testing.assert_allclose(unit_rows(X).toarray(), [[0.6, 0.8], [0, 0], [0, 1]], rtol=1e-6)
    np.testing.assert_array_equal(X.toarray()[0], [3, 4])
    assert unit_rows(check_features(np.zeros((2, 2)))).nnz == 0


def test_rng_from_each_kind_of_seed():
    assert as_rng(3).random() == as_rng(3).random()
    assert as_rng(np.random.RandomState(3)).random() == as_rng(np.random.RandomState(3)).random()
    generator = np.random.default_rng(1)
    assert as_rng(generator) is generator
