import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.sparse import topk
from scipy import sparse
from strategies import examples, generators, label_rows

from tailwise import Centroid, DiSMEC, Popularity, Sublinear
from tailwise.errors import InvalidInput
from tailwise.tail.candidates import is_hit
from tailwise.tail.folds import out_of_fold, split_folds
from tailwise.tail.ranking import sort_topk
from tailwise.tail.wrapper import as_probabilities


def test_out_of_fold_predictions_never_saw_their_row():
    n = 40
    X, Y = sparse.csr_array(np.eye(n, dtype=np.float32)), sparse.csr_array(np.eye(n, dtype=np.float32))
    top = out_of_fold(Centroid(), X, Y, 3, split_folds(Y, 4, 0))
    assert not is_hit(top.labels, Y).any(), "a label that only its own row carries cannot be known out of fold"
    for model in (Centroid(), DiSMEC(), Sublinear(DiSMEC())):
        begun = out_of_fold(model.fit(X, Y), X, Y, 3, split_folds(Y, 4, 0), knows_all=True)
        assert not is_hit(begun.labels, Y).any(), "nor by a model that begins where one of all rows stands"
    seen = Centroid().fit(X, Y).predict_topk(X, 1)
    assert is_hit(seen.labels, Y).all()


def test_folds_count_what_their_models_have_seen(rows):
    Y = rows[1]
    folds = split_folds(Y, 3, 0)
    assert np.bincount(folds.fold).tolist() == [100, 100, 100]
    for f in range(3):
        np.testing.assert_array_equal(folds.counts[f], Y[folds.fold != f].sum(axis=0))
    assert folds.counts_seen(np.array([5]), np.array([1]))[0] == 200


@pytest.mark.parametrize(("n_rows", "sizes"), [(None, [100] * 3), (240, [100] * 2), (140, [100]), (40, [40])])
def test_of_many_rows_about_as_many_as_wanted_are_in_a_fold(rows, n_rows, sizes):
    folds = split_folds(rows[1], 3, 0, n_rows)
    assert np.bincount(folds.fold + 1)[1:].tolist() == sizes
    assert folds.counts.shape[0] == len(sizes)


def test_folds_need_enough_rows(rows):
    with pytest.raises(InvalidInput, match="n_folds=3 needs at least that many rows, but X has n_samples=2"):
        split_folds(rows[1][:2], 3, 0)


@examples(30)
@given(label_rows((1, 10), 6), generators(), st.integers(1, 8))
def test_hits_and_order_equal_the_twins(Y, rng, k):
    labels = rng.permuted(np.tile(np.arange(6, dtype=np.int32), (Y.shape[0], 1)), axis=1)[:, :4]
    labels[rng.random(labels.shape) < 0.2] = -1
    hits = [
        [label >= 0 and bool(dense[label]) for label in row] for row, dense in zip(labels, Y.toarray(), strict=True)
    ]
    np.testing.assert_array_equal(is_hit(labels, Y), hits)
    scores = rng.choice([-1.0, 0.0, 0.5], labels.shape).astype(np.float32)
    dense = np.full((Y.shape[0], 7), -np.inf, np.float32)
    np.put_along_axis(dense, labels, scores, axis=1)
    expected = topk(dense[:, :6], k)
    top = sort_topk(labels, scores, k)
    np.testing.assert_array_equal(top.labels, expected[0])
    np.testing.assert_array_equal(top.scores, expected[1])


def test_is_hit_and_sort_topk():
    Y = sparse.csr_array(np.array([[1, 0, 1], [0, 0, 0]]))
    labels = np.array([[2, 1, -1], [0, 2, 1]], np.int32)
    np.testing.assert_array_equal(is_hit(labels, Y), [[True, False, False], [False] * 3])
    top = sort_topk(labels, np.array([[0.5, 0.5, 9.0], [0.1, 0.3, 0.3]], np.float32), 2)
    assert top.labels.tolist() == [[1, 2], [1, 2]]


def test_margins_become_likelihoods():
    scores = np.array([-np.inf, -1.0, 0.0, 1.0, 2.0], np.float32)
    np.testing.assert_allclose(as_probabilities(scores, Centroid()), [0, np.exp(-4), np.exp(-1), 1, 1], rtol=1e-6)
    np.testing.assert_allclose(as_probabilities(np.array([-np.inf, 0.3]), Popularity()), [0, 0.3], rtol=1e-6)
