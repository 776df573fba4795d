"""How models see rows, against dense arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, rows_and_labels

import tailwise
from tailwise import rows
from tailwise.rows import AS_THEY_ARE, UNIT_LENGTH, RowView, idf_weights, with_values
from tailwise.validation import check_features


def dense_view(view, dense):
    dense = dense.astype(np.float64)
    if view.columns is not None:
        dense = dense[:, view.columns]
    dense = np.sign(dense) * np.where(dense != 0, np.abs(dense) ** view.power, 0)
    if view.weights is not None:
        dense = dense * view.weights
    if view.unit:
        length = np.linalg.norm(dense, axis=1, keepdims=True)
        dense = dense / np.where(length > 0, length, 1)
    return dense


def test_threads_that_share_the_scaling_give_the_same_bits(monkeypatch):
    X = check_features(np.arange(1.0, 301).reshape(100, 3))
    whole = UNIT_LENGTH(X)
    monkeypatch.setattr(rows, "_ROWS_A_BLOCK", 7)
    for n_jobs in (1, 2):
        np.testing.assert_array_equal(UNIT_LENGTH(X, n_jobs).data, whole.data)


@examples(60)
@given(
    rows_and_labels((1, 12), (1, 9), (1, 3), signed=True),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_a_view_equals_dense_arithmetic(rows, power, weighted, unit, data):
    X = check_features(rows[0])
    n = X.shape[1]
    columns = data.draw(st.none() | st.sets(st.integers(0, n - 1), min_size=1).map(lambda s: np.array(sorted(s))))
    n_seen = n if columns is None else columns.size
    weights = np.linspace(0.5, 2, n_seen).astype(np.float32) if weighted else None
    view = RowView(columns, power, weights, unit)
    before = X.toarray()
    seen = view(X)
    np.testing.assert_allclose(seen.toarray(), dense_view(view, before), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(X.toarray(), before)
    assert seen.has_sorted_indices


def test_rows_as_they_are_are_the_same_object():
    X = check_features([[1.0, 2.0]])
    assert AS_THEY_ARE(X) is X


def test_values_are_replaced_in_a_copy():
    X = check_features([[1.0, 2.0]])
    other = with_values(X, np.array([3.0, 4.0], np.float32))
    assert other.toarray().tolist() == [[3, 4]] and X.toarray().tolist() == [[1, 2]]


def test_idf_counts_the_rows_that_have_a_feature():
    X = check_features(np.array([[1.0, 0, 2], [1, 0, 0], [3, 0, 0]]))
    np.testing.assert_allclose(idf_weights(X), np.log(4 / (1 + np.array([3, 0, 1]))) + 1, rtol=1e-6)


@pytest.mark.parametrize("model", [tailwise.DiSMEC(), tailwise.Bonsai(), tailwise.FastXML(n_trees=2)])
def test_a_table_must_have_the_columns_of_training(model):
    class Table:
        """What of a DataFrame matters: names of columns, and the values."""

        def __init__(self, columns, values):
            self.columns, self.values = columns, np.asarray(values, float)

        def __array__(self, dtype=None, copy=None):
            return self.values.astype(dtype or float)

    X, Y = np.eye(4), np.eye(4)
    model.fit(Table(list("abcd"), X), Y)
    assert model.feature_names_in_.tolist() == list("abcd")
    expected = model.predict_topk(X, 1)
    np.testing.assert_array_equal(model.predict_topk(Table(list("abcd"), X), 1).labels, expected.labels)
    with pytest.raises(tailwise.TailwiseError, match=r"in another order .column 0 is 'b', .* expects 'a'.; reorder"):
        model.predict_topk(Table(list("bacd"), X))
    with pytest.raises(tailwise.TailwiseError, match=r"1 unknown .'e'., 1 missing .'d'."):
        model.predict_topk(Table(list("abce"), X))
    model.fit(X, Y)
    assert not hasattr(model, "feature_names_in_")
