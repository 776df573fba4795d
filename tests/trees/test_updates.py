"""Label trees that learn further."""

import numpy as np
import pytest
from contracts import make_rows
from scipy import sparse

from tailwise import Bonsai, Parabel
from tailwise.trees.updating import held_labels, read_leaves


@pytest.mark.parametrize("make", [Bonsai, Parabel])
def test_a_new_label_hangs_beside_labels_of_its_rows(make):
    X, Y = make_rows(300, 60, 25)
    model = make(n_trees=1, max_leaf=4, random_state=0, beam=100).fit(X, Y)
    twin = sparse.csr_array((Y.T.tocsr()[[7]]).T)
    wide = sparse.csr_array(sparse.hstack([Y, twin], format="csr"))
    own = np.flatnonzero(twin.toarray().ravel())
    model.update(X[own], wide[own], rows=own, known=(X, Y))
    chunks = model.chunks_
    node_of = np.repeat(np.arange(chunks.bits.size), np.diff(chunks.first_edge))
    places = [int(node_of[chunks.target == ~label][0]) for label in (7, 25)]
    assert places[0] == places[1], "a label with the rows of another hangs where that one hangs"
    top = model.predict_topk(X[own], 5).labels
    assert ((top == 25).any(axis=1) == (top == 7).any(axis=1)).mean() > 0.9


def test_labels_without_rows_leave_and_untouched_ones_stay():
    X, Y = make_rows(300, 60, 25)
    model = Bonsai(n_trees=2, max_leaf=5, random_state=0).fit(X, Y)
    gone = sparse.lil_array(Y)
    own = np.flatnonzero(Y[:, [5]].toarray())
    gone[own, 5] = 0
    again = np.zeros(25, bool)
    before = [read_leaves(model.chunks_, tree, again, 60) for tree in range(2)]
    model.update(X[own], gone.tocsr()[own], rows=own, known=(X, Y))
    assert model.n_learnt_again == 0
    for tree in range(2):
        assert not held_labels(model.chunks_, tree, 25)[5]
        after = read_leaves(model.chunks_, tree, again, 60)
        others = np.setdiff1d(np.arange(25), [0, 5])
        np.testing.assert_allclose(before[tree].weights[others].toarray(), after.weights[others].toarray(), rtol=1e-6)
        np.testing.assert_array_equal(before[tree].bias[others], after.bias[others])
    assert not (model.predict_topk(X, 25).labels == 5).any()
