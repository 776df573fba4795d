import numpy as np
import pytest

from tailwise import Centroid, JainPropensity, NearestRows, PfastreXML, Popularity
from tailwise.base import TopK
from tailwise.errors import InvalidInput
from tailwise.tail import CentroidReranker, PropensityReranker, TailAugmented
from tailwise.tail.candidates import is_hit
from tailwise.tail.ranking import sort_topk
from tailwise.tail.reranker import gains


def test_propensity_reranking_is_probability_times_inverse_propensity(rows):
    X, Y = rows
    model = PropensityReranker(NearestRows(), tail=0.5).fit(X, Y)
    inverse = JainPropensity().fit(Y).inverse_
    top = NearestRows().fit(X, Y).predict_topk(X, Y.shape[1])
    expected = np.where(top.labels >= 0, top.scores * inverse[top.labels] ** 0.5, -np.inf)
    np.testing.assert_allclose(model.predict_topk(X, 5).scores, -np.sort(-expected, axis=1)[:, :5], rtol=1e-5)
    plain = PropensityReranker(NearestRows(), tail=0).fit(X, Y).predict_topk(X, 5)
    np.testing.assert_array_equal(plain.labels, top.labels[:, :5])


def test_the_reranked_ranking_is_bayes_optimal_for_psp():
    """With true probabilities, ranking by P/p maximises the expected propensity-scored gain of the top k."""
    rng = np.random.default_rng(0)
    probability, inverse = rng.random((200, 12)).astype(np.float32), 1 + 5 * rng.random(12)
    labels = np.argsort(-probability, axis=1).astype(np.int32)
    top = TopK(labels, np.take_along_axis(probability, labels, axis=1))

    def expected_gain(chosen):
        return (np.take_along_axis(probability, chosen, axis=1) * inverse[chosen]).sum(axis=1)

    best = expected_gain(sort_topk(labels, gains(top.scores, labels, inverse, 1.0), 3).labels)
    for _ in range(30):
        other = rng.permuted(np.tile(np.arange(12), (200, 1)), axis=1)[:, :3]
        assert (best >= expected_gain(other) - 1e-5).all()


def test_centroid_reranking_moves_towards_the_nearest_mean(rows):
    X, Y = rows
    only_centroids = CentroidReranker(Popularity(), alpha=0.0).fit(X, Y).predict_topk(X, 3)
    popular = Popularity().fit(X, Y).predict_topk(X, 3)
    assert is_hit(only_centroids.labels, Y).mean() > is_hit(popular.labels, Y).mean() + 0.1


def test_centroids_rerank_as_in_pfastrexml(rows):
    X, Y = rows
    ours = CentroidReranker(Centroid()).fit(X, Y).centroids_
    theirs = PfastreXML(n_trees=1, random_state=0).fit(X, Y).centroids_
    assert ours.get_params() == theirs.get_params() == {"gamma": 30.0, "idf": True, "n_jobs": None, "shape": "cone"}
    top = Centroid().fit(X, Y).predict_topk(X, 15)
    np.testing.assert_array_equal(ours.log_scores(X, top.labels), theirs.log_scores(X, top.labels))
    expected = 0.8 * -(np.maximum(0, 1 - top.scores) ** 2) + 0.2 * theirs.log_scores(X, top.labels)
    expected = -np.sort(-np.where(top.labels >= 0, expected, -np.inf), axis=1)
    np.testing.assert_allclose(CentroidReranker(Centroid()).fit(X, Y).predict_topk(X, 15).scores, expected, rtol=1e-4)


def test_modules_understand_the_scale_of_augmented_scores(rows):
    """A label that the wrapped model finds impossible must not be lifted by a large 1/p."""
    X, Y = rows
    augmented = TailAugmented(Centroid(), random_state=0)
    plain = augmented.fit(X, Y).predict_topk(X, 1)
    kept = PropensityReranker(augmented, tail=0.0).fit(X, Y).predict_topk(X, 1)
    np.testing.assert_array_equal(plain.labels, kept.labels)
    np.testing.assert_allclose(plain.scores, kept.scores)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PropensityReranker("DiSMEC"), "base='DiSMEC' is not a tailwise model"),
        (PropensityReranker(Centroid(), tail=-1), "tail=-1 is outside"),
        (CentroidReranker(Centroid(), alpha=2), "alpha=2 is outside"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(rows, model, message):
    with pytest.raises(InvalidInput, match=message):
        model.fit(*rows)
