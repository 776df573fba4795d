import numpy as np
import pytest
from contracts import make_rows
from scipy import sparse

from tailwise import Centroid, DiSMEC, NearestRows, Popularity, evaluate, make_longtail
from tailwise.errors import InvalidInput
from tailwise.tail import Ensemble, Stacked, TailCalibrated, candidates, expected_calibration_error
from tailwise.tail.candidates import gather_candidates, is_hit


def test_stacking_beats_its_members_and_is_calibrated():
    X, Y = make_rows(n_samples=600, seed=7)
    fresh_X, fresh_Y = make_rows(n_samples=600, seed=8)
    members = [Centroid(), NearestRows(k=10), Popularity()]
    stacked = Stacked(members, random_state=0, max_iter=40, learning_rate=0.1).fit(X, Y)
    precision = {
        type(m).__name__: is_hit(m.predict_topk(fresh_X, 3).labels, fresh_Y).mean()
        for m in [stacked, *(member.fit(X, Y) for member in members)]
    }
    assert precision["Stacked"] >= max(precision.values())
    top = stacked.predict_topk(fresh_X, 15)
    assert (
        expected_calibration_error(
            top.scores.ravel()[top.labels.ravel() >= 0], is_hit(top.labels, fresh_Y)[top.labels >= 0]
        )
        < 5
    )


def test_propensity_weights_raise_rare_candidates(rows):
    X, Y = rows
    plain = Stacked([Centroid(), NearestRows()], max_iter=15, random_state=0).fit(X, Y).predict_topk(X, 5)
    weighted = Stacked([Centroid(), NearestRows()], max_iter=15, sample_weights="propensity", random_state=0)
    assert weighted.fit(X, Y).predict_topk(X, 5).scores.mean() > plain.scores.mean()


def test_stacking_samples_easy_negatives_without_bias(rows):
    X, Y = rows
    members = [Centroid(), NearestRows(k=5)]
    whole, sampled = (Stacked(members, n_pairs=n, random_state=0) for n in (10**9, 1))
    for model in (whole, sampled):
        model.fit(X, Y)
    means = [model.predict_topk(X, 10).scores.mean() for model in (whole, sampled)]
    assert abs(means[0] - means[1]) < 0.1


def test_a_row_does_not_vote_for_itself():
    own = np.eye(40, dtype=np.float32)
    X = sparse.csr_array(np.column_stack([own, np.ones(40)]).astype(np.float32))  # one word in all: all are neighbours
    Y = sparse.csr_array(np.tile(own[:20, :20], (2, 1)))
    model = Stacked([Popularity()], n_candidates=40, nearest=True, random_state=0).fit(X, Y)
    seen = 0
    for part in model._fit_members(X, Y, None):
        hits = part.candidates.are_hits(sparse.csr_array(Y[part.rows]))
        votes = part.described[:, -4:-2]
        assert np.nanmax(votes[hits], initial=-np.inf) < np.log(0.2)
        seen += hits.sum()
    described = model._features_of(X, model._candidates(X))
    assert seen
    assert described[:, -4].max() > np.log(0.2), "a row that is asked for may be a training row"


@pytest.mark.parametrize("base", [DiSMEC(random_state=0), NearestRows(k=5)])
def test_evidence_is_that_of_the_labels_and_training_rows(rows, base):
    X, Y = rows
    model = Stacked([base, Centroid()], n_candidates=4, max_iter=5, nearest=True, random_state=0).fit(X, Y)
    candidates = model._candidates(X[:30])
    found = model._features_of(X[:30], candidates)
    assert found.shape[1] == len(model._inputs()) == 15
    one = TailCalibrated(base, n_candidates=Y.shape[1], nearest=True, random_state=0).fit(X, Y)
    top, inputs = one._known().describe(X[:30], Y.shape[1], None)
    for pair, (row, label) in enumerate(zip(candidates.rows, candidates.labels, strict=True)):
        place = np.flatnonzero(top.labels[row] == label)
        if place.size:
            np.testing.assert_allclose(found[pair, 8], inputs[row, place[0], 3], rtol=1e-5)
            np.testing.assert_allclose(found[pair, -5:-1], inputs[row, place[0], 5:9], rtol=1e-4, atol=1e-5)


def test_nearest_finds_more_rare_labels():
    data = make_longtail(1500, n_features=1000, n_labels=300, random_state=1)
    values = []
    for nearest in (False, True):
        model = Stacked([DiSMEC(random_state=0)], nearest=nearest, n_candidates=20, max_iter=40, random_state=0)
        top = model.fit(data.X_train, data.Y_train).predict_topk(data.X_test, 5)
        values.append(evaluate(data.Y_test, top, ["p@5"], confidence=None)["p@5"].value)
    assert values[1] > values[0]


@pytest.mark.parametrize("model", [Stacked, Ensemble])
def test_candidates_are_never_there_for_all_rows_at_once(rows, model, monkeypatch):
    X, Y = rows
    whole = model([Centroid(), NearestRows(k=5)], n_candidates=4, random_state=0).fit(X, Y)
    sizes = []

    def seen(tops, n_labels):
        sizes.append(tops[0].labels.shape[0])
        return gather_candidates(tops, n_labels)

    monkeypatch.setattr(candidates, "_ROWS_A_BLOCK", 7)
    monkeypatch.setattr(candidates, "gather_candidates", seen)
    streamed = model([Centroid(), NearestRows(k=5)], n_candidates=4, random_state=0).fit(X, Y)
    for k in (3, 9):
        expected, found = whole.predict_topk(X, k), streamed.predict_topk(X, k)
        np.testing.assert_array_equal(found.labels, expected.labels)
        np.testing.assert_array_equal(found.scores, expected.scores)
    assert max(sizes) == 7


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Stacked([Centroid(), None]), "members\\[1\\]=None is not a tailwise model"),
        (Stacked([Centroid()], n_candidates=0), "n_candidates=0 is outside"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(rows, model, message):
    with pytest.raises(InvalidInput, match=message):
        model.fit(*rows)
