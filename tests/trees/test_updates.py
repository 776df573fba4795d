"""Label trees that learn further."""

import numpy as np
import pytest
from contracts import make_rows
from scipy import sparse

from tailwise import Bonsai, Parabel
from tailwise.kernels.solvers import solve
from tailwise.trees.explaining import unpack_labels
from tailwise.trees.updating import held_labels


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
    before = [leaves_of(model.chunks_, tree) for tree in range(2)]
    model.update(X[own], gone.tocsr()[own], rows=own, known=(X, Y))
    assert model.n_learnt_again == 0
    for tree in range(2):
        assert not held_labels(model.chunks_, tree, 25)[5]
        after = leaves_of(model.chunks_, tree)
        others = np.setdiff1d(np.arange(25), [0, 5])
        np.testing.assert_allclose(before[tree][others], after[others], rtol=1e-6)
    assert not (model.predict_topk(X, 25).labels == 5).any()


def leaves_of(chunks, tree):
    """The weights of labels in one of two trees: (n_labels, n_features)."""
    ends = np.append(chunks.roots, chunks.bits.size)
    own = chunks._replace(target=chunks.target.copy(), roots=chunks.roots[:1])
    for node in set(range(chunks.bits.size)) - set(range(ends[tree], ends[tree + 1])):
        own.target[slice(*chunks.first_edge[node : node + 2])] = 0
    return unpack_labels(own, 25, 60).toarray()


@pytest.mark.parametrize(("effort", "least"), [(solve.RESUMED, 0.0), ({"max_rounds": 300, "max_sweeps": 2000}, 0.94)])
def test_an_update_ends_near_training_anew(effort, least, monkeypatch):
    """Edges between nodes and to labels begin from what they had, and come closer to training anew."""
    monkeypatch.setattr("tailwise.changes.GROWTH", 0.0)
    monkeypatch.setattr(solve, "RESUMED", effort)
    X, Y = make_rows(600, 60, 25)
    tree = [list(range(a, a + 5)) for a in range(0, 25, 5)]
    options = {"n_trees": 1, "max_leaf": 5, "random_state": 0, "beam": 100, "tol": 0.01, "tree": tree}
    model, anew = Bonsai(**options).fit(X[:500], Y[:500]), Bonsai(**options).fit(X, Y)
    before, wanted = model.predict_topk(X, 3), anew.predict_topk(X, 3)
    model.update(X[500:], Y[500:], known=(X[:500], Y[:500]))
    same = (model.predict_topk(X, 3).labels == wanted.labels).mean()
    assert same > max(least, (before.labels == wanted.labels).mean() + 0.02)
