"""WSABIE: what ranks, norms and draws do to what is learnt."""

import numpy as np
import pytest
from contracts import make_rows
from scipy import sparse

import tailwise
from tailwise import WSABIE, FaissIndex
from tailwise.errors import InvalidInput


def test_the_loss_falls_and_vectors_stay_within_their_norm():
    X, Y = make_rows()
    model = WSABIE(dim=8, max_norm=1.5, epochs=15, random_state=0).fit(X, Y)
    assert model.losses_[-1] < model.losses_[0] / 2
    for vectors in (model.tower_.features, model.label_vectors_):
        assert np.linalg.norm(vectors, axis=1).max() <= 1.5 * (1 + 1e-5)


def test_more_tries_find_more_violations():
    X, Y = make_rows()
    first = [WSABIE(dim=8, epochs=1, n_tries=n, random_state=0).fit(X, Y).losses_[0] for n in (1, 50)]
    assert first[0] != first[1]


def test_scores_are_inner_products_of_the_vectors():
    X, Y = make_rows()
    model = WSABIE(dim=8, random_state=0).fit(X, Y)
    top = model.predict_topk(X, 3)
    scores = model.encode(X) @ model.label_vectors_.T
    np.testing.assert_allclose(np.take_along_axis(scores, top.labels, axis=1), top.scores, rtol=1e-4, atol=1e-5)


def test_an_approximate_index_finds_the_same_labels():
    pytest.importorskip("faiss")
    X, Y = make_rows()
    exact, near = (WSABIE(dim=8, index=index, random_state=0).fit(X, Y) for index in (None, FaissIndex(min_recall=1.0)))
    assert (exact.predict_topk(X).labels == near.predict_topk(X).labels).mean() > 0.99


def test_a_label_on_every_row_and_rows_with_all_labels():
    model = WSABIE(dim=4, random_state=0).fit(np.eye(3), np.ones((3, 2)))
    assert model.losses_ == [0.0] * 10
    with pytest.raises(InvalidInput, match=r"max_norm=0 is outside \(0, inf\)"):
        WSABIE(max_norm=0).fit(np.eye(3), np.ones((3, 2)))


def test_other_losses_than_epochs_are_refused(tmp_path):
    model = WSABIE(dim=4, random_state=0).fit(np.eye(3), sparse.eye_array(3))
    model.losses_.pop()
    model.save(tmp_path / "m")
    with pytest.raises(tailwise.errors.ModelFileError, match="losses_ has 9 epochs, not 10"):
        tailwise.load(tmp_path / "m")
