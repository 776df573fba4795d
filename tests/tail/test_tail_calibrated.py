import numpy as np
import pytest
from contracts import make_rows
from scipy import sparse

from tailwise import Centroid, DiSMEC, NearestRows, Popularity, TailCentroids, evaluate, load, make_longtail
from tailwise.base import TopK
from tailwise.errors import InvalidInput
from tailwise.rows import RowView
from tailwise.tail import Calibrated, TailCalibrated, expected_calibration_error
from tailwise.tail.candidates import is_hit
from tailwise.tail.companions import companions, company
from tailwise.tail.nearness import Nearness
from tailwise.tail.solved_votes import solved_votes
from tailwise.tail.surface import Surface


def naive_companions(Y, weight):
    Y = Y.toarray()
    found = np.zeros((Y.shape[1], Y.shape[1]))
    for row, times in zip(Y, weight, strict=True):
        on_row = np.flatnonzero(row)
        for a in on_row:
            for b in on_row:
                found[a, b] += times * (a != b)
    return found / np.maximum(found.sum(axis=1, keepdims=True), 1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_companions_are_counted_shares(weighted):
    Y = sparse.random_array((50, 9), density=0.3, rng=3, format="csr").astype(np.float32)
    Y.data[:] = 1
    weight = np.random.default_rng(0).random(50) if weighted else None
    expected = naive_companions(Y, np.ones(50) if weight is None else weight)
    np.testing.assert_allclose(companions(Y, weight).toarray(), expected.T, rtol=1e-5, atol=1e-7)


def test_company_sums_over_the_candidates_of_a_row():
    rng = np.random.default_rng(0)
    labels = np.argsort(rng.random((2000, 12)), axis=1)[:, :5].astype(np.int32)
    labels[::3, 3:] = -1
    labels[7] = -1
    scores = np.where(labels >= 0, rng.random((2000, 5)), -np.inf).astype(np.float32)
    shares = sparse.random_array((12, 12), density=0.4, rng=1, format="csr").astype(np.float32)
    dense, expected = shares.toarray(), np.zeros((2000, 5))
    for row in range(2000):
        named = np.flatnonzero(labels[row] >= 0)
        for a in named:
            expected[row, a] = sum(dense[labels[row, b], labels[row, a]] * scores[row, b] for b in named)
    np.testing.assert_allclose(company(TopK(labels, scores), shares, n_jobs=2), expected, rtol=1e-5, atol=1e-6)


def lengthened(rows, weights):
    """Dense rows, weighted, of unit length."""
    rows = rows.toarray() * weights
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def naive_nearness(X, Y, seen, labels, idf):
    """Pair by pair, from rows without weights."""
    cosines, plain = (np.maximum(lengthened(seen, w) @ lengthened(X, w).T, 0) for w in (idf, np.ones_like(idf)))
    Y, found = Y.toarray(), np.zeros((*labels.shape, 5))
    solved = [naive_solved_votes(row, lengthened(X, np.ones_like(idf))) for row in plain]
    for row, place in zip(*np.nonzero(labels >= 0), strict=True):
        own = Y[:, labels[row, place]] > 0
        votes = [
            np.log(0.003 + alike[own].sum() / max(alike.sum(), 1e-30)) for alike in (cosines[row] ** 8, plain[row] ** 4)
        ]
        nearest = max(cosines[row][own], default=0.0) - max(cosines[row], default=0.0)
        found[row, place, :4] = [nearest, *votes, solved[row][own].sum()]
    for row in range(labels.shape[0]):
        named = labels[row] >= 0
        found[row, named, 4] = found[row, named, 3] - max(found[row, named, 3], default=0.0)
    return found


def naive_solved_votes(alike, rows):
    """Of all rows, by an inverse."""
    near = sorted(i for i in np.lexsort((np.arange(alike.size), -alike))[:128] if alike[i] > 0)
    votes = np.zeros(alike.size)
    kernel = np.maximum(rows[near] @ rows[near].T, 0) ** 2
    votes[near] = np.linalg.inv(kernel + 0.2 * np.eye(len(near))) @ alike[near] ** 2
    return votes


@pytest.mark.parametrize("n_rows", [1, 60, 400])
def test_solved_votes_equal_the_twin(n_rows):
    rng = np.random.default_rng(n_rows)
    X = sparse.random_array((n_rows, 30), density=0.3, rng=rng, format="csr").astype(np.float32)
    rows = RowView(unit=True)(X)
    alike = (rows[:50] @ rows.T).toarray()
    found = solved_votes(alike, rows)
    expected = [naive_solved_votes(np.maximum(row, 0), rows.toarray()) for row in alike.astype(float)]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (np.count_nonzero(found, axis=1) <= 128).all()


def test_of_rows_that_are_equally_alike_the_first_vote():
    rows = sparse.csr_array(np.eye(200, dtype=np.float32))
    found = solved_votes(np.full((1, 200), 0.5, np.float32), rows)[0]
    np.testing.assert_allclose(found, np.where(np.arange(200) < 128, 0.25 / 1.2, 0.0), rtol=1e-6)


def test_a_row_that_comes_twice_votes_once():
    rng = np.random.default_rng(0)
    rows = RowView(unit=True)(sparse.csr_array(rng.random((6, 4)).astype(np.float32)))
    twice = sparse.csr_array(sparse.vstack([rows, *[rows[[0]]] * 9]))
    once, more = (solved_votes((rows[[1]] @ part.T).toarray(), part)[0] for part in (rows, twice))
    assert abs(more[0] + more[6:].sum()) < abs(once[0]) * 2
    np.testing.assert_allclose(more[[0, *range(7, 15)]], more[6], rtol=1e-3)


@pytest.mark.parametrize("n_rows", [0, 1, 3000])
def test_nearness_is_that_of_the_rows_with_the_label(n_rows):
    rng = np.random.default_rng(0)
    X, seen = (sparse.random_array((n, 20), density=0.2, rng=n, format="csr") for n in (n_rows, 700))
    idf = (1 + 2 * rng.random(20)).astype(np.float32)
    Y = sparse.csr_array((rng.random((n_rows, 9)) < [0.0, *[0.2] * 8]).astype(np.float32))
    labels = rng.integers(-1, 9, (700, 4)).astype(np.int32)
    named = labels >= 0
    view = RowView(weights=idf, unit=True)
    rows, asked = (view(part.astype(np.float32)) for part in (X, seen))
    found = Nearness.of(rows, Y, idf)(asked, labels, n_jobs=2)
    np.testing.assert_allclose(found[named], naive_nearness(X, Y, seen, labels, idf)[named], atol=2e-4)


@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("base", [DiSMEC(random_state=0), NearestRows(k=5)])
def test_scores_are_the_surface_of_what_is_known(rows, base, nearest):
    X, Y = rows
    model = TailCalibrated(base, random_state=0, n_candidates=6, nearest=nearest).fit(X, Y)
    own, counts = model.base_, np.asarray(Y.sum(axis=0)).ravel()
    means, shares = TailCentroids().fit(X, Y), naive_companions(Y, np.ones(Y.shape[0]))
    top, found = own.predict_topk(X[:20], 6), model.predict_topk(X[:20], 6)
    near = means.log_scores(X[:20], top.labels)
    like = naive_nearness(X, Y, X[:20], top.labels, means.rows_.weights)
    for row in range(20):
        named = top.labels[row] >= 0
        labels, s = top.labels[row][named], top.scores[row][named].astype(float)
        if own.scores_are_probabilities:
            s = np.clip(s, 1e-6, 1 - 1e-6)
            s = np.log(s / (1 - s))
        g = [sum(shares[a, b] * (s[j] - s.min()) for j, b in enumerate(labels)) for a in labels]
        inputs = np.column_stack([s, s.max() - s, np.log1p(counts[labels]), near[row][named], g])
        if nearest:
            inputs = np.column_stack([inputs, like[row][named]])
        expected = dict(zip(labels.tolist(), model.surface_(inputs).tolist(), strict=True))
        ranked = {int(a): float(p) for a, p in zip(found.labels[row], found.scores[row], strict=True) if a >= 0}
        assert ranked.keys() == expected.keys()
        np.testing.assert_allclose([ranked[a] for a in expected], list(expected.values()), rtol=2e-3, atol=1e-5)
    assert (found.scores[:, 1:] <= found.scores[:, :-1]).all()


def test_a_model_from_before_training_rows_voted_still_predicts(rows, tmp_path):
    X, Y = rows
    model = TailCalibrated(Centroid(), random_state=0, n_candidates=6, nearest=True).fit(X, Y)
    model.nearest_ = Nearness(model.nearest_.rows, model.nearest_.labels)
    rng = np.random.default_rng(0)
    model.surface_ = Surface.fit(rng.normal(size=(500, 7)), rng.random(500) < 0.5)
    model.save(tmp_path / "m")
    old, means, top = load(tmp_path / "m"), TailCentroids().fit(X, Y), model.base_.predict_topk(X, 6)
    found, q = old.predict_topk(X, 6), means.log_scores(X, top.labels)
    _, inputs = old._known().describe(X, 6, None)
    like = naive_nearness(X, Y, X, top.labels, means.rows_.weights)
    np.testing.assert_allclose(inputs[..., 5], q - q.max(axis=1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(inputs[..., 6], like[..., 0], atol=1e-5)
    np.testing.assert_array_equal(found.scores, model.predict_topk(X, 6).scores)


def test_a_model_from_before_votes_were_solved_still_predicts(rows, tmp_path):
    X, Y = rows
    model = TailCalibrated(Centroid(), random_state=0, n_candidates=6, nearest=True).fit(X, Y)
    _, now = model._known().describe(X, 6, None)
    model.nearest_ = model.nearest_._replace(bare=None)
    rng = np.random.default_rng(0)
    model.surface_ = Surface.fit(rng.normal(size=(500, 8)), rng.random(500) < 0.5, n_cubic=5)
    model.save(tmp_path / "m")
    old = load(tmp_path / "m")
    _, before = old._known().describe(X, 6, None)
    np.testing.assert_array_equal(before, now[..., :8])
    np.testing.assert_array_equal(old.predict_topk(X, 6).scores, model.predict_topk(X, 6).scores)


def test_probabilities_are_true_on_other_rows():
    X, Y = make_rows(n_samples=900, seed=5)
    model = TailCalibrated(NearestRows(k=2), random_state=0).fit(X, Y)
    other_X, other_Y = make_rows(n_samples=300, seed=6)
    errors = []
    for one in (model.base_, model):
        top = one.predict_topk(other_X, 15)
        present = top.labels >= 0
        errors.append(expected_calibration_error(top.scores[present], is_hit(top.labels, other_Y)[present]))
    assert errors[1] < 0.7 * errors[0]


def test_it_finds_more_than_one_curve_for_all_labels():
    data = make_longtail(2500, n_features=2000, n_labels=400, random_state=1)
    values = []
    for wrapper in (Calibrated, TailCalibrated):
        model = wrapper(DiSMEC(random_state=0), random_state=0).fit(data.X_train, data.Y_train)
        values.append(evaluate(data.Y_test, model.predict_topk(data.X_test, 5), ["p@5"], confidence=None)["p@5"].value)
    assert values[1] > values[0] + 0.5


def test_labels_beyond_the_candidates_follow_and_are_explained(rows, tmp_path):
    X, Y = rows
    model = TailCalibrated(Popularity(), n_candidates=3, random_state=0).fit(X, Y)
    all_labels, few = model.predict_topk(X[:5], Y.shape[1]), model.predict_topk(X[:5], 3)
    np.testing.assert_array_equal(all_labels.labels[:, :3], few.labels)
    for place in (0, 4):
        label = int(all_labels.labels[0, place])
        assert model.explain(X[[0]], label).score == pytest.approx(float(all_labels.scores[0, place]), rel=1e-6)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict_topk(X, 5).scores, model.predict_topk(X, 5).scores)


def test_wrong_parameters_say_what_is_wrong(rows):
    with pytest.raises(InvalidInput, match="n_folds=1 is outside"):
        TailCalibrated(Centroid(), n_folds=1).fit(*rows)
