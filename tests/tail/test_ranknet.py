import numpy as np
import pytest
from naive.tail import population_loss, residual_blocks

from tailwise import Centroid, NearestRows
from tailwise.errors import InvalidInput
from tailwise.kernels.networks.ranknet import (
    Layers,
    TrainingCandidates,
    TrainingOptions,
    apply_blocks,
    pair_loss,
    train_epoch,
)
from tailwise.tail import RankNet


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
    ],
)
def test_wrong_parameters_say_what_is_wrong(rows, model, message):
    with pytest.raises(InvalidInput, match=message):
        model.fit(*rows)
