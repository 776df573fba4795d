"""Rows that are known again by eight bytes each."""

import numpy as np
import pytest
from scipy import sparse

from tailwise.data.digests import count_known, known_digests, row_digests


def test_texts_are_known_again_whatever_their_spaces():
    known = known_digests(["law of the sea", "tax", "tax", ""])
    assert known.size == 2 and (np.diff(known) > 0).all()
    assert count_known(["Law of the sea", " law of\nthe sea", "tax", "", "  "], known) == 2


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, np.asarray])
def test_rows_of_x_are_known_again_in_every_form(kind):
    X = np.array([[0, 1.5, 2], [0, 0, 0], [1, 0, 0]], np.float32)
    known = known_digests(sparse.csr_array(X[:2]))
    assert known.size == 1
    assert count_known(kind(X), known) == 1


def test_the_order_of_a_row_does_not_matter_but_its_columns_do():
    sorted_row = sparse.csr_array((np.ones(2, np.float32), [0, 2], [0, 2]), shape=(1, 3))
    turned = sparse.csr_array((np.ones(2, np.float32), [2, 0], [0, 2]), shape=(1, 3))
    other = sparse.csr_array((np.ones(2, np.float32), [0, 1], [0, 2]), shape=(1, 3))
    assert row_digests(sorted_row) == row_digests(turned) != row_digests(other)


def test_digests_are_the_same_everywhere():
    assert row_digests(["sea"]).tolist() == [PINNED]


PINNED = 17716460510745679345
