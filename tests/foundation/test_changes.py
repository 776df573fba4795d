"""What an update brings, joined and checked."""

import numpy as np
import pytest
from scipy import sparse

from tailwise.changes import check_known, join_rows, labels_to_solve, solved_rows
from tailwise.errors import InvalidInput, Unsupported
from tailwise.label_lists import more_labels
from tailwise.validation import label_counts

X = sparse.csr_array(np.array([[1.0, 0], [0, 2], [3, 0]], np.float32))
Y = sparse.csr_array(np.array([[1.0, 0], [1, 1], [0, 1]], np.float32))


def test_rows_take_their_places_and_new_ones_follow():
    change = join_rows((X, Y), [[0.0, 2, 9], [4, 4, 4]], [[0, 1, 0], [0, 0, 1]], rows=[1, -1])
    assert change.X.toarray().tolist() == [[1, 0, 0], [0, 2, 9], [3, 0, 0], [4, 4, 4]]
    assert change.Y.toarray().tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert change.n_known == 3
    # The row reads otherwise: label 1 stays on it and must be solved again all the same.
    assert change.relabelled.tolist() == [0, 1] and change.touched.tolist() == [0, 1, 2]


def test_only_labels_that_a_row_got_or_lost_are_relabelled():
    change = join_rows((X, Y), X[[1]], [[1, 0]], rows=[1])
    assert change.relabelled.tolist() == [1] and change.X.shape == X.shape


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0], "rows has the shape"),
        ([0, 3], r"rows\[1\]=3 is no training row; pass 0…2, -1 for new"),
        ([1, 1], "rows has 1 twice"),
        ([0.5, 1.0], "an integer for each"),
    ],
)
def test_wrong_places_are_refused(rows, message):
    with pytest.raises(InvalidInput, match=message):
        join_rows((X, Y), X[:2], Y[:2], rows=rows)


def test_what_a_model_has_learnt_from_must_be_what_it_is_told():
    counts = label_counts(Y)
    assert check_known((X, Y), 2, counts, "M")[0].shape == (3, 2)
    with pytest.raises(Unsupported, match=r"M keeps no training rows.*keep_training_data=True"):
        check_known(None, 2, counts, "M")
    with pytest.raises(InvalidInput, match="must be a pair"):
        check_known(X, 2, counts, "M")
    with pytest.raises(InvalidInput, match="label 0 on 1 rows, but M learnt it from 2"):
        check_known((X[:1], Y[:1]), 2, counts, "M")


def test_labels_are_solved_again_when_they_have_grown():
    old = sparse.csr_array(np.repeat([[1.0, 1, 0, 0]], 20, axis=0) * (np.arange(20)[:, None] < [20, 4, 1, 1]))
    new = sparse.csr_array(np.array([[1.0, 1, 1, 0]]))
    change = join_rows((sparse.csr_array(np.ones((20, 1))), old), [[1.0]], new)
    solved = solved_rows(None, change)
    assert labels_to_solve(change, solved).tolist() == [1, 2]
    # The row that label 0 got and was not solved for counts when the next ones come.
    later = join_rows((change.X, change.Y), np.ones((2, 1)), np.array([[1.0, 0, 0, 0, 1]] * 2))
    solved[[1, 2]] = 21
    assert labels_to_solve(later, solved_rows(solved, later)).tolist() == [0, 4]


def test_labels_by_name_find_their_columns():
    table, names = more_labels(np.array([[1, 0], [0, 1]]), np.array(["a"]))
    assert names.tolist() == ["a"] and np.array_equal(table, [[1, 0], [0, 1]]), "a matrix without names stays"
    table, names = more_labels([["z", "a"], ["b"]], np.array(["b", "z"]))
    assert names.tolist() == ["b", "z", "a"] and table.toarray().tolist() == [[0, 1, 1], [1, 0, 0]]
