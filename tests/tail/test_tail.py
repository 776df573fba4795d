import numpy as np
import pytest
from contracts import make_rows
from naive.tail import neighbour_votes, population_loss, residual_blocks, union_of_candidates
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from tailwise import Centroid, JainPropensity, Popularity
from tailwise.base import TopK
from tailwise.errors import InvalidInput
from tailwise.kernels.networks.ranknet import (
    Layers,
    TrainingCandidates,
    TrainingOptions,
    apply_blocks,
    pair_loss,
    train_epoch,
)
from tailwise.tail import (
    Calibrated,
    CentroidReranker,
    Ensemble,
    NearestRows,
    PropensityReranker,
    RankNet,
    Stacked,
    Sublinear,
    TailAugmented,
    TradeOff,
    augment_rows,
    classifier_norms,
    expected_calibration_error,
    plot_classifier_norms,
)
from tailwise.tail.boosting import BoostedTrees
from tailwise.tail.calibrated import fit_curve
from tailwise.tail.candidates import unite_candidates
from tailwise.tail.wrapper import as_probabilities, is_hit, out_of_fold, sort_topk, split_folds


@pytest.fixture(scope="module")
def rows():
    return make_rows(n_samples=300, seed=5)


def test_out_of_fold_predictions_never_saw_their_row():
    n = 40
    X, Y = sparse.csr_array(np.eye(n, dtype=np.float32)), sparse.csr_array(np.eye(n, dtype=np.float32))
    top = out_of_fold(Centroid(), X, Y, 3, split_folds(Y, 4, 0))
    assert not is_hit(top.labels, Y).any(), "a label that only its own row carries cannot be known out of fold"
    seen = Centroid().fit(X, Y).predict_topk(X, 1)
    assert is_hit(seen.labels, Y).all()


def test_folds_count_what_their_models_have_seen(rows):
    Y = rows[1]
    folds = split_folds(Y, 3, 0)
    assert np.bincount(folds.fold).tolist() == [100, 100, 100]
    for f in range(3):
        np.testing.assert_array_equal(folds.counts[f], Y[folds.fold != f].sum(axis=0))
    assert folds.counts_seen(np.array([5]), np.array([1]))[0] == 200


def test_folds_need_enough_rows(rows):
    with pytest.raises(InvalidInput, match="n_folds=3 needs at least that many rows, but X has n_samples=2"):
        split_folds(rows[1][:2], 3, 0)


def test_is_hit_and_sort_topk():
    Y = sparse.csr_array(np.array([[1, 0, 1], [0, 0, 0]]))
    labels = np.array([[2, 1, -1], [0, 2, 1]], np.int32)
    np.testing.assert_array_equal(is_hit(labels, Y), [[True, False, False], [False] * 3])
    top = sort_topk(labels, np.array([[0.5, 0.5, 9.0], [0.1, 0.3, 0.3]], np.float32), 2)
    assert top.labels.tolist() == [[1, 2], [1, 2]]


def test_propensity_reranking_is_probability_times_inverse_propensity(rows):
    X, Y = rows
    model = PropensityReranker(NearestRows(), power=0.5).fit(X, Y)
    inverse = JainPropensity().fit(Y).inverse_
    top = NearestRows().fit(X, Y).predict_topk(X, Y.shape[1])
    gains = np.where(top.labels >= 0, top.scores * inverse[top.labels] ** 0.5, -np.inf)
    np.testing.assert_allclose(model.predict_topk(X, 5).scores, -np.sort(-gains, axis=1)[:, :5], rtol=1e-5)
    plain = PropensityReranker(NearestRows(), power=0).fit(X, Y).predict_topk(X, 5)
    np.testing.assert_array_equal(plain.labels, top.labels[:, :5])


def test_the_reranked_ranking_is_bayes_optimal_for_psp():
    """With true probabilities, ranking by P/p maximises the expected propensity-scored gain of the top k."""
    rng = np.random.default_rng(0)
    probability, inverse = rng.random((200, 12)).astype(np.float32), 1 + 5 * rng.random(12)
    labels = np.argsort(-probability, axis=1).astype(np.int32)
    top = TopK(labels, np.take_along_axis(probability, labels, axis=1))
    from tailwise.tail.reranker import rerank_by_propensity

    def expected_gain(chosen):
        return (np.take_along_axis(probability, chosen, axis=1) * inverse[chosen]).sum(axis=1)

    best = expected_gain(rerank_by_propensity(top, top.scores, inverse, 1.0, 3).labels)
    for _ in range(30):
        other = rng.permuted(np.tile(np.arange(12), (200, 1)), axis=1)[:, :3]
        assert (best >= expected_gain(other) - 1e-5).all()


def test_margins_become_likelihoods():
    scores = np.array([-np.inf, -1.0, 0.0, 1.0, 2.0], np.float32)
    np.testing.assert_allclose(as_probabilities(scores, Centroid()), [0, np.exp(-4), np.exp(-1), 1, 1], rtol=1e-6)
    np.testing.assert_allclose(as_probabilities(np.array([-np.inf, 0.3]), Popularity()), [0, 0.3], rtol=1e-6)


def test_centroid_reranking_moves_towards_the_nearest_mean(rows):
    X, Y = rows
    only_centroids = CentroidReranker(Popularity(), alpha=0.0).fit(X, Y).predict_topk(X, 3)
    popular = Popularity().fit(X, Y).predict_topk(X, 3)
    assert is_hit(only_centroids.labels, Y).mean() > is_hit(popular.labels, Y).mean() + 0.1


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_calibration_recovers_a_known_curve(method):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=40_000)
    truth = 1 / (1 + np.exp(-(2 * scores - 1)))
    curve = fit_curve(scores, rng.random(scores.size) < truth, method)
    assert np.abs(curve(scores) - truth).mean() < 0.015
    assert curve(np.array([-np.inf]))[0] == -np.inf


def test_expected_calibration_error_has_its_closed_form():
    probabilities, hits = np.full(1000, 0.8), np.arange(1000) < 500
    assert expected_calibration_error(probabilities, hits, n_bins=1) == pytest.approx(30.0)


def test_calibration_lowers_the_error_and_reports_it():
    X, Y = make_rows(n_samples=900, seed=5)
    model = Calibrated(NearestRows(k=2), random_state=0).fit(X, Y)
    report = model.calibration_error_
    assert set(report) == {"all", "head", "torso", "tail"}
    assert report["all"]["after"] < report["all"]["before"]
    fresh_X, fresh_Y = make_rows(n_samples=300, seed=6)
    errors = []
    for member in (model.base_, model):
        top = member.predict_topk(fresh_X, 15)
        present = top.labels >= 0
        errors.append(expected_calibration_error(top.scores[present], is_hit(top.labels, fresh_Y)[present]))
    assert errors[1] < 0.7 * errors[0]


def test_candidates_are_the_union_of_the_members(rows):
    X, Y = rows
    tops = [model.fit(X, Y).predict_topk(X[:20], 4) for model in (Centroid(), NearestRows(k=3), Popularity())]
    table = unite_candidates(tops, Y.shape[1])
    assert list(zip(table.rows.tolist(), table.labels.tolist(), strict=True)) == union_of_candidates(tops)
    for m, top in enumerate(tops):
        named = ~np.isnan(table.scores[:, m])
        assert named.sum() == (top.labels >= 0).sum()
        for pair in np.flatnonzero(named)[:50]:
            row, rank = table.rows[pair], int(table.ranks[pair, m])
            assert top.labels[row, rank] == table.labels[pair] and top.scores[row, rank] == table.scores[pair, m]
    hits = table.are_observed(Y[:20])
    assert hits.tolist() == [bool(Y[r, l]) for r, l in zip(table.rows, table.labels, strict=True)]


def test_boosted_trees_equal_scikit_learns_own():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(3000, 4)).astype(np.float32)
    features[rng.random(features.shape) < 0.2] = np.nan
    hits = np.nan_to_num(features[:, 0]) + np.isnan(features[:, 1]) > 0.3
    weights = 1 + rng.random(3000)
    settings = {"max_iter": 30, "random_state": 0, "early_stopping": False}
    theirs = HistGradientBoostingClassifier(**settings).fit(features, hits, sample_weight=weights)
    ours = BoostedTrees.fit(features, hits, weights, **settings)
    np.testing.assert_allclose(ours.probabilities(features), theirs.predict_proba(features)[:, 1], rtol=1e-5)
    constant = BoostedTrees.fit(features, np.zeros(3000, bool), None, **settings)
    assert constant.probabilities(features).max() < 1e-5


def test_stacking_beats_its_members_and_is_calibrated(rows):
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


def test_fitted_ensemble_weights_prefer_the_better_member(rows):
    X, Y = rows
    model = Ensemble([Centroid(), Popularity()], weights="fitted", random_state=0).fit(X, Y)
    assert model.weights_.sum() == pytest.approx(1.0) and model.weights_[0] > model.weights_[1]
    hits = is_hit(model.predict_topk(X, 15).labels, Y)
    scores = model.predict_topk(X, 15).scores
    present = np.isfinite(scores)
    assert log_loss(hits[present], np.clip(scores[present], 1e-6, 1 - 1e-6)) < 0.5


@pytest.mark.parametrize("sharpness", [1.0, 3.0])
def test_nearest_rows_equal_the_twin(rows, sharpness):
    X, Y = rows
    dense_X, dense_Y = X.toarray(), Y.toarray()
    top = NearestRows(k=7, sharpness=sharpness).fit(X, Y).predict_topk(X[:25], 15)
    for i in range(25):
        expected = neighbour_votes(dense_X, dense_Y, dense_X[i], 7, sharpness)
        order = top.labels[i][top.labels[i] >= 0]
        assert set(order) == set(np.flatnonzero(expected > 1e-7))
        np.testing.assert_allclose(top.scores[i][: len(order)], expected[order], rtol=1e-4)


def test_augmented_rows_keep_labels_and_values(rows):
    X, Y = rows
    more_X, more_Y = augment_rows(X, Y, n_aug=3, dropout=0.7, swap=0.5, random_state=0)
    assert more_X.shape == (3 * X.shape[0], X.shape[1])
    np.testing.assert_array_equal(more_Y.toarray(), np.tile(Y.toarray(), (3, 1)))
    assert 0.65 < more_X.nnz / (3 * X.nnz) < 0.75
    original, changed = X.toarray(), more_X.toarray()
    for i in range(len(changed)):
        source = original[i % X.shape[0]]
        assert set(np.flatnonzero(changed[i])) <= set(np.flatnonzero(source))
        assert set(changed[i]) <= set(source) | {0.0}
    swapped_X, _ = augment_rows(X, Y, n_aug=1, dropout=1.0, swap=1.0, random_state=0)
    np.testing.assert_array_equal(np.sort(swapped_X.toarray(), axis=1), np.sort(original, axis=1))
    assert (swapped_X.toarray() != original).any()


@pytest.mark.parametrize(
    ("bad", "message"),
    [({"n_aug": 0}, "n_aug=0"), ({"dropout": 0.0}, "dropout=0.0"), ({"swap": 2}, "swap=2 is outside")],
)
def test_augmentation_errors(rows, bad, message):
    with pytest.raises(InvalidInput, match=message):
        augment_rows(*rows, **bad)


def test_head_and_tail_are_split_by_frequency(rows):
    X, Y = rows
    model = TailAugmented(Centroid(), tau=0.2, random_state=0).fit(X, Y)
    counts = model.label_counts_
    assert counts[model.head_labels_].min() >= counts[model.tail_labels_].max()
    assert set(model.head_labels_) | set(model.tail_labels_) == set(np.flatnonzero(counts))
    for tau in (0.0, 1.0):
        assert TailAugmented(Centroid(), tau=tau, random_state=0).fit(X, Y).predict_topk(X).labels.max() > 0


def random_blocks(rng, n_labels=9, width=4, blocks=2):
    return tuple(
        rng.normal(size=shape).astype(np.float32)
        for shape in ((blocks, n_labels, width), (blocks, n_labels, width), (blocks, width))
    )


def test_ranknet_forward_equals_the_twin():
    rng = np.random.default_rng(0)
    W1, W2, b1 = random_blocks(rng)
    labels = np.array([[4, 2, 7, -1], [0, 8, 1, 5]], np.int32)
    scores = rng.random((2, 4)).astype(np.float32)
    out = np.empty((2, 4), np.float32)
    apply_blocks(labels, scores, (0, 2), Layers(W1, W2, b1), out)
    np.testing.assert_allclose(out[0, :3], residual_blocks(labels[0, :3], scores[0, :3], W1, W2, b1), rtol=1e-4)
    np.testing.assert_allclose(out[1], residual_blocks(labels[1], scores[1], W1, W2, b1), rtol=1e-4)
    assert out[0, 3] == -np.inf


def test_ranknet_loss_and_its_gradient_equal_the_twin():
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 50, size=9).astype(float)
    labels, relevant = np.arange(9, dtype=np.int32), np.arange(9) % 2 == 0
    sampled = np.array([1, 3, 7])
    final, slope = rng.normal(size=9).astype(np.float32), np.empty(9, np.float32)
    loss = pair_loss(labels, final, relevant, 9, counts, sampled, TrainingOptions(0.1, 0.5, 2.0, 20), slope)
    exact = final.astype(np.float64)
    assert loss == pytest.approx(population_loss(counts, exact, relevant, sampled, 0.5, 2.0), rel=1e-5)
    for c in range(9):
        step = np.eye(9)[c] * 1e-6
        up = population_loss(counts, exact + step, relevant, sampled, 0.5, 2.0)
        down = population_loss(counts, exact - step, relevant, sampled, 0.5, 2.0)
        assert slope[c] == pytest.approx((up - down) / 2e-6, abs=1e-4)


def test_ranknet_backpropagation_matches_finite_differences():
    """One plain step on one row moves every parameter against the numerical gradient."""
    rng = np.random.default_rng(3)
    parameters = random_blocks(rng)
    labels = np.array([[4, 2, 7, 0, 8]], np.int32)
    scores = rng.random((1, 5)).astype(np.float32)
    relevant = np.array([[True, False, True, False, True]])
    counts = rng.integers(1, 50, size=9).astype(float)

    def loss(W1, W2, b1):
        final = residual_blocks(labels[0], scores[0], W1, W2, b1)
        return population_loss(counts[labels[0]], final, relevant[0], [1, 3], 0.5, 2.0)

    # A huge Adagrad memory makes the step rate · gradient / sqrt(memory): proportional to the gradient.
    moved = Layers(*(part.copy() for part in parameters))
    memories = Layers(*(np.full(part.shape, 1e8, np.float32) for part in parameters))
    candidates, options = TrainingCandidates(labels, scores, relevant), TrainingOptions(1e3, 0.5, 2.0, 10)
    train_epoch(candidates, counts, np.array([0]), np.zeros(1, np.uint64), moved, memories, options)
    for which, part in enumerate(parameters):
        for index in list(np.ndindex(part.shape))[::5]:
            values = []
            for sign in (1, -1):
                probe = [p.astype(np.float64) for p in parameters]
                probe[which][index] += sign * 1e-5
                values.append(loss(*probe))
            gradient = (values[0] - values[1]) / 2e-5
            step = (part[index] - moved[which][index]) * 1e4 / 1e3
            assert step == pytest.approx(gradient, abs=0.02 + 0.02 * abs(gradient))


def test_ranknet_lowers_its_loss_and_lifts_rare_labels(rows):
    X, Y = rows
    model = RankNet(Centroid(), epochs=8, random_state=0).fit(X, Y)
    assert model.losses_[-1] < model.losses_[0]
    before, after = (m.predict_topk(X, 1).labels[:, 0] for m in (model.base_, model))
    counts = model.label_counts_
    assert np.median(counts[after]) <= np.median(counts[before])


def test_stacking_samples_easy_negatives_without_bias(rows):
    X, Y = rows
    members = [Centroid(), NearestRows(k=5)]
    whole, sampled = (Stacked(members, n_pairs=n, random_state=0) for n in (10**9, 1))
    for model in (whole, sampled):
        model.fit(X, Y)
    candidates, _ = sampled._fit_members(X, Y)
    hits = candidates.are_observed(Y)
    kept, weights = sampled._sample(candidates, hits)
    assert hits[kept].sum() == hits.sum(), "what is right is always kept"
    assert kept.size < 0.7 * hits.size
    assert abs(weights.sum() - hits.size) < 0.2 * hits.size
    kept, weights = whole._sample(candidates, hits)
    assert kept.size == hits.size
    assert (weights == 1).all()
    means = [model.predict_topk(X, 10).scores.mean() for model in (whole, sampled)]
    assert abs(means[0] - means[1]) < 0.1


def test_ranknet_on_training_scores_trusts_the_model_too_much():
    """1-nearest rows are perfect on their own rows: there the curve learns nothing, out of fold it learns the truth."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((200, 4)), (rng.random((200, 10)) < 0.2).astype(float)
    Y[:, 0] = 1
    honest, naive = (
        RankNet(NearestRows(k=1), scores=scores, random_state=0).fit(X, Y) for scores in ("out-of-fold", "train")
    )
    assert naive.curve_(np.float32([1.0]))[0] > 0.99
    assert honest.curve_(np.float32([1.0]))[0] < 0.6


def test_modules_understand_the_scale_of_augmented_scores(rows):
    """A label that the wrapped model finds impossible must not be lifted by a large 1/p."""
    X, Y = rows
    augmented = TailAugmented(Centroid(), random_state=0)
    plain = augmented.fit(X, Y).predict_topk(X, 1)
    kept = PropensityReranker(augmented, power=0.0).fit(X, Y).predict_topk(X, 1)
    np.testing.assert_array_equal(plain.labels, kept.labels)
    np.testing.assert_allclose(plain.scores, kept.scores)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_sublinear_equals_the_model_on_damped_rows(rows, power):
    X, Y = rows
    damped = np.sign(X.toarray()) * np.where(X.toarray() != 0, np.abs(X.toarray()) ** power, 0)
    norms = np.linalg.norm(damped, axis=1, keepdims=True)
    damped = damped / np.where(norms > 0, norms, 1)
    ours = Sublinear(Centroid(), power=power).fit(X, Y).predict_topk(X, 5)
    theirs = Centroid().fit(damped, Y).predict_topk(damped, 5)
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-4, atol=1e-5)


def test_isotonic_curve_keeps_the_order_of_scores():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=2000)
    hits = rng.random(2000) < 1 / (1 + np.exp(-2 * scores))
    curve = fit_curve(scores, hits, "isotonic")
    inside = np.linspace(curve.scores[0], curve.scores[-1], 500)
    assert (np.diff(curve(inside)) > 0).all()
    assert np.abs(curve(inside) - 1 / (1 + np.exp(-2 * inside))).mean() < 0.03


def test_trade_off_curve_and_constraint(rows):
    X, Y = rows
    model = TradeOff(NearestRows(), maximise="psp@3", max_loss={"p@3": 1.0}, random_state=0).fit(X, Y)
    curve = model.curve_
    i = int(np.argmin(np.abs(curve.steps - model.t_)))
    assert curve.column("p@3")[i] >= curve.column("p@3").max() - 1.0
    allowed = curve.column("p@3") >= curve.column("p@3").max() - 1.0
    assert curve.column("psp@3")[i] == curve.column("psp@3")[allowed].max()
    assert curve.plot(chosen=model.t_).get_xlabel() == "P@1"
    with pytest.raises(InvalidInput, match="the curve has no 'recall@5'; it has p@1"):
        curve.choose("recall@5")
    with pytest.raises(InvalidInput, match=r"t=1.5 is outside \[0, 1\]"):
        TradeOff(NearestRows(), t=1.5).fit(X, Y)


def test_classifier_norms_through_wrappers(rows):
    X, Y = rows
    centroid = Centroid().fit(X, Y)
    norms = classifier_norms(centroid)
    np.testing.assert_allclose(norms, np.linalg.norm(centroid.weights_.toarray(), axis=0), rtol=1e-6)
    wrapped = PropensityReranker(Centroid()).fit(X, Y)
    np.testing.assert_array_equal(classifier_norms(wrapped), norms)
    split = TailAugmented(Centroid(), random_state=0).fit(X, Y)
    np.testing.assert_allclose(classifier_norms(split), (centroid.label_counts_ > 0).astype(float), atol=1e-6)
    assert len(plot_classifier_norms({"plain": centroid, "split": split}).get_lines()) == 2
    with pytest.raises(InvalidInput, match="Popularity has no linear weights"):
        classifier_norms(Popularity().fit(X, Y))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PropensityReranker("DiSMEC"), "base='DiSMEC' is not a tailwise model"),
        (lambda: PropensityReranker(Centroid(), power=-1), "power=-1 is outside"),
        (lambda: Calibrated(Centroid(), method="beta"), "method='beta' is not one of 'isotonic', 'platt'"),
        (lambda: Ensemble([]), r"members=\[\] is empty"),
        (lambda: Stacked([Centroid(), None]), r"members\[1\]=None is not a tailwise model"),
        (lambda: RankNet(Centroid(), blocks=0), "blocks=0 is outside"),
        (lambda: Sublinear(Centroid(), power=-1), "power=-1 is outside"),
        (lambda: TailAugmented(Centroid(), tau=2), "tau=2 is outside"),
        (lambda: NearestRows(k=0), "k=0 is outside"),
    ],
)
def test_error_texts(rows, make, message):
    with pytest.raises(InvalidInput, match=message):
        make().fit(*rows)
