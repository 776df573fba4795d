import numpy as np
import pytest
from naive.tail import population_loss, population_slope, residual_blocks
from scipy import sparse

from tailwise import Centroid, NearestRows, Popularity
from tailwise.errors import InvalidInput
from tailwise.kernels.networks.ranknet import (
    Layers,
    TrainingCandidates,
    TrainingOptions,
    apply_blocks,
    pair_loss,
    train_epoch,
)
from tailwise.persistence.checks import Violation
from tailwise.tail import RankNet
from tailwise.tail.linear_block import as_matrix, rank_by_linear_block, train_linear_block


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
    candidates, options = (
        TrainingCandidates(labels, scores, relevant, np.ones(len(labels), np.float32)),
        TrainingOptions(1e3, 0.5, 2.0, 10),
    )
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
    before, after = (model.label_counts_[m.predict_topk(X, 3).labels].mean() for m in (model.base_, model))
    assert after < 0.9 * before


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


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RankNet(Centroid(), blocks=0), "blocks=0 is outside"),
        (RankNet(Centroid(), scores="all"), "scores='all' is not one of"),
        (RankNet(Centroid(), bottleneck=None, blocks=2), "blocks=2 with bottleneck=None: linear blocks in a row are"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(rows, model, message):
    with pytest.raises(InvalidInput, match=message):
        model.fit(*rows)


def candidates_of(labels, scores, n_labels=9):
    return as_matrix(np.asarray(labels, np.int32), np.asarray(scores, np.float32), n_labels)


def test_sums_count_every_pair_in_both_orders():
    rng = np.random.default_rng(5)
    counts, final = rng.integers(1, 50, size=9).astype(float), rng.normal(size=9)
    relevant, sampled = np.arange(9) % 2 == 0, np.array([1, 3, 7])
    own = np.flatnonzero(relevant)
    expected = sum(
        max(0.0, (counts[i] - counts[j]) / (counts[i] + counts[j]) * (final[i] - final[j])) for i in own for j in own
    ) + 2.0 * sum(max(0.0, final[k] - final[i] + 0.5) for i in own for k in sampled)
    slope, options = np.empty(9, np.float32), TrainingOptions(0.1, 0.5, 2.0, 20, True)
    loss = pair_loss(np.arange(9, dtype=np.int32), final, relevant, 9, counts, sampled, options, slope)
    assert loss == pytest.approx(expected)
    naive = population_slope(counts, final, relevant, sampled, 0.5, 2.0, sums=True)
    np.testing.assert_allclose(slope, naive, rtol=1e-5)


def test_linear_block_ranks_as_the_formula_reads():
    """F = ŷ + W ŷ over all labels; one that the model did not name is ranked where F is positive."""
    rng = np.random.default_rng(6)
    W = rng.normal(size=(9, 9)).astype(np.float32)
    inputs = candidates_of([[4, 2, 7, -1], [0, 8, 1, 5], [-1, -1, -1, -1]], rng.random((3, 4)))
    whole = inputs.toarray() @ W + inputs.toarray()
    top = rank_by_linear_block(inputs, W, 9, 1)
    for i, row in enumerate(whole):
        ranked = [label for label in np.argsort(-row) if row[label] > 0 or inputs.toarray()[i, label] > 0]
        assert top.labels[i, : len(ranked)].tolist() == ranked
        np.testing.assert_allclose(top.scores[i, : len(ranked)], row[ranked], rtol=1e-4)
        assert (top.labels[i, len(ranked) :] == -1).all()


def test_linear_block_steps_against_the_gradient():
    """One row, every irrelevant label drawn: Adagrad's first step is that of the numerical gradient at W = 0."""
    rng = np.random.default_rng(7)
    inputs = candidates_of([[4, 2, 7]], rng.random((1, 3)))
    Y = sparse.csr_array(np.isin(np.arange(9), [4, 0, 8]).astype(np.float32)[None])
    counts = rng.integers(1, 50, size=9).astype(float)
    for sums in (False, True):
        options = TrainingOptions(0.1, 0.5, 2.0, 1000, sums)
        W, losses = train_linear_block(inputs, Y, counts, np.ones(1, np.float32), options, 1, np.random.default_rng(0))
        own, others = np.array([0, 4, 8]), np.array([1, 2, 3, 5, 6, 7])

        def loss(W, sums=sums, own=own, others=others):
            final = (inputs.toarray() @ W + inputs.toarray())[0][np.append(own, others)]
            relevant = np.arange(9) < 3
            return population_loss(counts[np.append(own, others)], final, relevant, range(3, 9), 0.5, 2.0, sums=sums)

        assert losses[0] == pytest.approx(loss(np.zeros((9, 9))), rel=1e-5)
        for index in np.ndindex(9, 9):
            step = np.zeros((9, 9))
            step[index] = 1e-6
            gradient = (loss(step) - loss(-step)) / 2e-6
            assert W[index] == pytest.approx(-0.1 * gradient / np.sqrt(1e-3 + gradient**2), abs=1e-3)


def test_linear_block_learns_labels_that_the_model_does_not_name():
    """Label 2 goes with label 0 and is never among the candidates: the block names it."""
    rng = np.random.default_rng(8)
    has = rng.random(300) < 0.3
    Y = np.stack([has, ~has, has], axis=1).astype(np.float32)
    inputs = as_matrix(np.where(has, 0, 1)[:, None].astype(np.int32), np.full((300, 1), 0.9, np.float32), 3)
    options = TrainingOptions(0.05, 0.5, 1.0, 10, False)
    W, losses = train_linear_block(
        inputs, sparse.csr_array(Y), Y.sum(axis=0), np.ones(300, np.float32), options, 5, np.random.default_rng(0)
    )
    assert losses[-1] < losses[0] / 2
    top = rank_by_linear_block(inputs, W, 3, 1).labels
    assert all(2 in row for row in top[has]) and not any(2 in row[:1] for row in top[~has])


def test_the_published_setting_is_one_line(rows):
    X, Y = rows
    model = RankNet.as_published(Centroid(), random_state=0).fit(X, Y)
    assert model.curve_ is None and model.W_.shape == (Y.shape[1], Y.shape[1])
    np.testing.assert_array_equal(model.gains_, 1)
    assert RankNet.as_published(Centroid(), margin=0.3).margin == 0.3
    assert model.losses_[-1] < model.losses_[0]


def test_a_matrix_that_is_too_large_is_refused_before_any_work(monkeypatch):
    X, Y = np.eye(3), np.eye(3)
    monkeypatch.setattr("tailwise.tail.linear_block.MAX_LABELS", 2)
    with pytest.raises(InvalidInput, match=r"bottleneck=None makes a matrix of 3² numbers .* at most 2 labels; pass a"):
        RankNet(Popularity(), bottleneck=None).fit(X, Y)


def test_refit_with_another_kind_of_block(rows):
    model = RankNet(Centroid(), bottleneck=None, epochs=1, random_state=0).fit(*rows)
    model.set_params(bottleneck=4).fit(*rows)
    again = RankNet(Centroid(), bottleneck=4, epochs=1, random_state=0).fit(*rows)
    assert model.W_ is None
    np.testing.assert_array_equal(model.predict_topk(rows[0]).scores, again.predict_topk(rows[0]).scores)


def test_a_matrix_of_another_shape_is_refused(rows):
    model = RankNet(Centroid(), bottleneck=None, epochs=1, random_state=0).fit(*rows)
    model._check_state()
    model.W_ = model.W_[:, :-1].copy()
    with pytest.raises(Violation, match="W_ has shape"):
        model._check_state()
