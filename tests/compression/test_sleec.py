"""SLEEC: neighbours in label space, their embedding against dense numpy, and who votes."""

import numpy as np
import pytest
from naive import compression as naive
from scipy import sparse

from tailwise import SLEEC
from tailwise.compression import neighbours
from tailwise.compression.neighbours import embed_neighbours, nearest_by_labels
from tailwise.errors import InvalidInput
from tailwise.rows import unit_rows


@pytest.fixture(scope="module")
def similar(rows):
    return unit_rows(rows[1])


def test_neighbours_have_the_largest_products(similar):
    near = nearest_by_labels(similar, 7)
    products = (similar @ similar.T).toarray()
    np.testing.assert_allclose(near.scores, -np.sort(-products, axis=1)[:, :7], rtol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(products, near.labels, axis=1), near.scores, rtol=1e-6)


def test_rows_with_nothing_in_common_are_no_neighbours():
    near = nearest_by_labels(sparse.csr_array(np.eye(3, dtype=np.float32)), 2)
    np.testing.assert_array_equal(near.labels, [[0, -1], [1, -1], [2, -1]])
    Z = embed_neighbours(near, 3, 60, np.random.default_rng(0))
    np.testing.assert_allclose(Z @ Z.T, np.eye(3), atol=1e-2)


@pytest.mark.parametrize("power_steps", [1, 60])
def test_the_embedding_is_that_of_dense_singular_value_projection(similar, power_steps, monkeypatch):
    monkeypatch.setattr(neighbours, "_POWER_STEPS", power_steps)
    near = nearest_by_labels(similar, 10)
    n = similar.shape[0]
    pairs = np.zeros((n, n))
    pairs[np.repeat(np.arange(n), 10), near.labels.ravel()] = 1
    pairs = (pairs + pairs.T) / 2
    G = (similar @ similar.T).toarray().astype(np.float64)
    M = naive.project_singular_values(G, pairs, 8, 30)
    Z = embed_neighbours(near, 8, 30, np.random.default_rng(0)).astype(np.float64)
    losses = [(pairs * (G - found) ** 2).sum() / (pairs * G**2).sum() for found in (Z @ Z.T, M)]
    assert losses[1] < 0.05
    # Eigenvectors to the last digit, or one step towards them.
    assert losses[0] == pytest.approx(losses[1], abs=1e-4 if power_steps > 1 else 0.01)
    if power_steps > 1:
        assert np.abs(Z @ Z.T - M).max() < 0.01


def test_more_rounds_come_nearer(similar):
    near = nearest_by_labels(similar, 10)
    losses = []
    for rounds in (2, 5, 20, 60):
        Z = embed_neighbours(near, 8, rounds, np.random.default_rng(0))
        products = np.einsum("id,ikd->ik", Z, Z[near.labels])
        losses.append(((near.scores - products) ** 2).sum())
    assert losses == sorted(losses, reverse=True)


def test_scores_are_shares_of_the_votes_of_the_nearest_rows_of_the_cluster(rows, scores_of):
    X, Y = rows
    model = SLEEC(6, n_learners=2, cluster_rows=50, k=4, random_state=0).fit(X, Y)
    expected = np.zeros((5, Y.shape[1]))
    for learner in model.learners_:
        for i, part in enumerate(learner.partition.of(X[:5])):
            own = slice(*learner.starts[part : part + 2])
            z = X[[i]] @ learner.projections[part]
            distance = ((learner.vectors[own, :-1] - z) ** 2).sum(axis=1)
            voters = model.row_numbers_[learner.members[own][np.argsort(distance, kind="stable")[:4]]]
            expected[i] += np.asarray(Y[voters].sum(axis=0)).ravel() / 8
    found = scores_of(model, X[:5])
    np.testing.assert_allclose(np.where(np.isneginf(found), 0, found), expected, atol=1e-6)


def test_without_labels_nothing_is_predicted():
    with pytest.warns(UserWarning, match="no row of Y has a label"):
        model = SLEEC(random_state=0).fit(np.eye(3), np.zeros((3, 4)))
    assert model.learners_ == []
    assert (model.predict_topk(np.eye(3), 2).labels == -1).all()


@pytest.mark.parametrize("name", ["n_learners", "cluster_rows", "n_pairs", "k", "rounds"])
def test_wrong_parameters_are_refused(name, rows):
    with pytest.raises(InvalidInput, match=rf"{name}=0 is outside \[1, inf\)"):
        SLEEC(**{name: 0}).fit(*rows)
