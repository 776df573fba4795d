"""Label trees that learn further."""

import numpy as np
import pytest
from contracts import make_rows
from scipy import sparse

import tailwise
from tailwise import Bonsai, Parabel
from tailwise.errors import ModelFileError
from tailwise.trees import model as tree_model
from tailwise.trees.explaining import unpack_node
from tailwise.trees.updating import homes_of_labels, regrow


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

    def read(tree):
        """Dense weights and biases of all labels that the tree holds."""
        chunks, home = model.chunks_, homes_of_labels(model.chunks_, tree, 25)
        nodes = [unpack_node(chunks, node, 60).toarray() for node in range(chunks.bits.size)]
        return home, np.concatenate(nodes)[home], chunks.bias[home]

    before = [read(tree) for tree in range(2)]
    model.update(X[own], gone.tocsr()[own], rows=own, known=(X, Y))
    assert model.n_learnt_again == 0
    for tree in range(2):
        home, weights, bias = read(tree)
        assert home[5] == -1
        others = np.setdiff1d(np.arange(25), [0, 5])
        np.testing.assert_allclose(before[tree][1][others], weights[others], rtol=1e-6)
        np.testing.assert_array_equal(before[tree][2][others], bias[others])
    assert not (model.predict_topk(X, 25).labels == 5).any()


@pytest.mark.parametrize("make", [Bonsai, Parabel, lambda **rest: Bonsai(negatives="siblings", **rest)])
def test_an_update_has_the_same_bits_for_any_threads_and_after_loading(make, tmp_path):
    X, Y = make_rows(300, 60, 25)
    first = make(n_trees=2, max_leaf=4, random_state=0, n_jobs=1).fit(X[:250], Y[:250])
    first.save(tmp_path / "model")
    again = tailwise.load(tmp_path / "model").set_params(n_jobs=3)
    for model in (first, again):
        model.update(X[250:], Y[250:], known=(X[:250], Y[:250]))
    assert first.n_learnt_again == again.n_learnt_again > 0
    for one, other in zip((*first.chunks_, *first.dual_), (*again.chunks_, *again.dual_), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", [Bonsai, Parabel])
def test_steps_end_near_training_anew(make):
    X, Y = make_rows(400, 60, 25)
    model, known = make(n_trees=1, max_leaf=4, random_state=0).fit(X[:200], Y[:200]), 200
    for now in (220, 242, 400):
        model.update(X[known:now], Y[known:now], known=(X[:known], Y[:known]))
        known = now
    anew = make(n_trees=1, max_leaf=4, random_state=0).fit(X, Y)
    found = [(np.take_along_axis(Y.toarray(), m.predict_topk(X, 3).labels, 1) > 0).mean() for m in (model, anew)]
    assert found[0] > found[1] - 0.02


def test_the_dual_of_every_edge_gives_its_weights_again():
    X, Y = make_rows(300, 60, 25)
    model = Bonsai(n_trees=2, max_leaf=5, prune=0.0, random_state=0).fit(X, Y)
    rows, dual, chunks = model.rows_(sparse.csr_array(X)), model.dual_, model.chunks_
    effort = tree_model.EFFORT["squared_hinge"]
    assert dual.n_rows == 300 and dual.indptr.size == chunks.target.size + 1
    edge = 0
    for node in range(chunks.bits.size):
        for weights in unpack_node(chunks, node, 60).toarray():
            own = slice(*dual.indptr[edge : edge + 2])
            stood = rows[dual.rows[own]].T @ dual.values[own].astype(np.float32)
            np.testing.assert_allclose(stood, weights, atol=0.02)
            total = effort["bias_scale"] ** 2 * dual.values[own].astype(np.float64).sum()
            assert chunks.bias[edge] == pytest.approx(effort["bias_centre"] + total, abs=0.01)
            edge += 1


def test_what_has_no_dual_to_go_on_from_keeps_none_and_learns_all_the_same(tmp_path):
    X, Y = make_rows(300, 60, 25)
    for model in (
        Bonsai(loss="logistic", random_state=0).fit(X[:250], Y[:250]),
        Bonsai(random_state=0).fit(X[:250], Y[:250], np.full(250, 2)),
    ):
        assert model.dual_ is None
        assert model.update(X[250:], Y[250:], known=(X[:250], Y[:250])).n_learnt_again > 0
        assert model.dual_ is None, "what stayed has none"


def test_a_model_of_many_edges_keeps_no_duals(monkeypatch):
    X, Y = make_rows(300, 60, 25)
    n_edges = Bonsai(random_state=0).fit(X, Y).chunks_.target.size
    for most, keeps in ((n_edges, True), (n_edges - 1, False)):
        monkeypatch.setattr("tailwise.trees.model._MOST_DUALS", most)
        assert (Bonsai(random_state=0).fit(X, Y).dual_ is not None) == keeps
    monkeypatch.undo()
    assert tree_model._MOST_DUALS == 2**18, "docs/learning.md says so"


def test_a_dual_of_other_edges_is_refused(tmp_path):
    X, Y = make_rows(300, 60, 25)
    model = Bonsai(random_state=0).fit(X, Y)
    model.dual_ = model.dual_._replace(indptr=model.dual_.indptr[:-1])
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"dual_\.indptr"):
        tailwise.load(tmp_path / "model")


@pytest.mark.parametrize("make", [Bonsai, Parabel])
def test_known_rows_are_visited_once_after_new_ones(make, monkeypatch):
    """A tenth of new rows costs one sweep over all; twice the rows cost five."""
    X, Y = make_rows(400, 60, 25)
    sweeps = []
    go_on = tree_model.go_on_together

    def watched(*problems):
        *_, marks, options = problems
        sweeps.append((options.max_sweeps, marks[0].sum()))
        return go_on(*problems)

    monkeypatch.setattr(tree_model, "go_on_together", watched)
    for n_new, expected in ((20, 1), (200, 5)):
        sweeps.clear()
        model = make(n_trees=1, max_leaf=4, random_state=0).fit(X[:200], Y[:200])
        model.update(X[200 : 200 + n_new], Y[200 : 200 + n_new], known=(X[:200], Y[:200]))
        assert {number for number, _ in sweeps} == {expected}
        assert max(fresh for _, fresh in sweeps) >= n_new, "the root sees all new rows"


def test_nodes_without_a_change_keep_their_bytes_when_features_come():
    """Bitmaps get words for the new features, which no weight has."""
    X, Y = make_rows(300, 60, 25)
    model = Bonsai(n_trees=1, max_leaf=4, random_state=0).fit(X, Y)
    before = model.chunks_
    wide = sparse.csr_array(sparse.hstack([X, sparse.csr_array((300, 200))], format="csr"))
    lone = sparse.csr_array(wide[[0]].multiply(0) + sparse.csr_array(([1.0], ([0], [250])), shape=(1, 260)))
    label = sparse.csr_array(([1.0], ([0], [3])), shape=(1, 25))
    model.update(lone, label, known=(X, Y))
    after = model.chunks_
    for node in range(before.bits.size):
        target = before.target[slice(*before.first_edge[node : node + 2])]
        if ~3 not in target and (target < 0).all():
            expected = unpack_node(before, node, 60).toarray()
            np.testing.assert_array_equal(unpack_node(after, node, 260).toarray()[:, :60], expected)
    assert model.predict_topk(wide, 3).labels.shape == (300, 3)


def test_new_labels_hang_where_they_would_in_a_tree_made_anew():
    X, Y = make_rows(300, 60, 25)
    chunks, counts = Bonsai(n_trees=2, max_leaf=4, random_state=0).fit(X, Y).chunks_, np.ones(30, int)
    for tree in range(2):
        for beside in ({}, {25: 3}, {27: 3, 25: 3, 29: -1, 26: 7}):
            grown = regrow(chunks, tree, beside, counts)
            home = homes_of_labels(chunks, tree, 25)
            # That of a label without rows, which leaves.
            gone = np.arange(30) == np.flatnonzero(home >= 0)[-1]
            less = regrow(chunks, tree, beside, counts - gone)
            assert less.order.size == grown.order.size - 1
            rest = grown.order[~gone[grown.order]]
            np.testing.assert_array_equal(less.order, rest)
            np.testing.assert_array_equal(np.sort(grown.order), np.sort([*np.flatnonzero(home >= 0), *beside]))
