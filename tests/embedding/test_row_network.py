"""RowNetwork: any body of rows, trained by the losses of SampledSoftmax."""

import numpy as np
import pytest
import torch
from scipy import sparse

from tailwise.embedding import RowNetwork, SampledSoftmax
from tailwise.embedding.label_loss import LabelLoss
from tailwise.embedding.residual import ResidualNetwork
from tailwise.errors import InvalidInput, NotFitted


def blobs(n=120, n_labels=6, seed=0):
    """Rows (n, 2, 3) around a mean a label, and one label each, the first most often."""
    rng = np.random.default_rng(seed)
    means = 2 * rng.normal(size=(n_labels, 2, 3))
    y = np.minimum(rng.geometric(0.35, n) - 1, n_labels - 1)
    return (means[y] + 0.5 * rng.normal(size=(n, 2, 3))).astype(np.float32), y


def body():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))


def fitted(rows, y, n_labels=6, **params):
    settings = {"epochs": 20, "batch_size": 16, "n_negatives": 4, "learning_rate": 0.05, "random_state": 0}
    return RowNetwork(body, **settings | params).fit(rows, np.eye(n_labels)[y])


def test_it_is_plain_sgd_on_the_cross_entropy():
    """The full softmax of single labels against torch's own loop."""
    rows, y = blobs(40)
    ours = fitted(rows, y, sampler=None, epochs=3)
    rng = np.random.default_rng(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**62)))
        network, labels = body(), torch.randn(6, 8) * 8**-0.5
    labels.requires_grad_()
    optimiser = torch.optim.SGD([*network.parameters(), labels], 0.05, momentum=0.9, weight_decay=1e-4)
    done = 0
    for _ in range(3):
        for batch in np.array_split(rng.permutation(40), 3):
            optimiser.param_groups[0]["lr"] = 0.05 * 0.5 * (1 + np.cos(np.pi * done / 9))
            scores = network(torch.from_numpy(rows[batch])) @ labels.T
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(scores, torch.from_numpy(y[batch])).backward()
            optimiser.step()
            done += 1
    np.testing.assert_allclose(ours.label_vectors_, labels.detach().numpy(), atol=1e-4)


@pytest.mark.parametrize(
    "params",
    [
        {"sampler": None},
        {"sampler": None, "loss": "logit_adjusted"},
        {"sampler": None, "loss": "contrastive"},
        {"sampler": "uniform", "weighting": "importance"},
        {"sampler": "within_batch", "weighting": "tail"},
        {"sampler": "model", "weighting": "importance"},
        {"sampler": "uniform", "weighting": "importance", "loss": "contrastive"},
        {"sampler": "within_batch", "weighting": "constant", "loss": "contrastive"},
    ],
    ids=str,
)
def test_every_loss_and_sampler_learns(params):
    rows, y = blobs()
    model = fitted(rows, y, **params)
    found = model.predict_topk(rows, 2)
    assert (found.labels[:, 0] == y).mean() > 0.9
    assert model.losses_[-1] < model.losses_[0]
    scores = model.raw_scores(rows)
    assert scores.shape == (120, 6) and (found.labels[:, 0] == scores.argmax(1)).all()
    if model.on_sphere:
        np.testing.assert_allclose(np.linalg.norm(model.label_vectors_, axis=1), 1, rtol=1e-5)
        assert np.abs(scores).max() <= 1 + 1e-5
    assert isinstance(model, LabelLoss) and model.margin_ == _margin_of_sampled_softmax(y, params)


def _margin_of_sampled_softmax(y, params):
    made = SampledSoftmax(dim=4, epochs=1, n_negatives=4, early_stopping=False, random_state=0, **params)
    return made.fit(np.eye(y.size, dtype=np.float32), np.eye(6)[y]).margin_


def test_the_same_seed_gives_the_same_bits():
    rows, y = blobs()
    params = {"sampler": "within_batch", "epochs": 2}
    first, again, other = (fitted(rows, y, **params, random_state=seed).label_vectors_ for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_rows_may_have_several_labels_or_none_and_labels_no_rows():
    rows, y = blobs()
    Y = np.zeros((120, 8))
    Y[np.arange(120), y] = 1
    Y[::3, 6] = 1
    Y[:10] = 0
    model = RowNetwork(body, sampler="uniform", weighting="importance", epochs=5, random_state=0)
    scores = model.fit(rows, sparse.csr_array(Y)).raw_scores(rows)
    assert np.isneginf(scores[:, 7]).all() and np.isfinite(scores[:, :7]).all()
    assert (model.label_vectors_[7] == 0).all() and model.label_counts_.tolist() == Y.sum(0).tolist()
    assert model.predict_topk(rows, 8).labels[:, 7].tolist() == [-1] * 120


def test_rows_are_augmented_in_training_only():
    rows, y = blobs(40)
    seen = []

    def turn(batch, rng):
        seen.append((tuple(batch.shape[1:]), rng.random()))
        return -batch

    model = fitted(rows, y, sampler=None, augment=turn)
    assert len(seen) == 20 * 3 and seen[0][0] == (2, 3) and len(set(seen)) == len(seen)
    assert (model.predict_topk(-rows, 1).labels[:, 0] == y).mean() > 0.9


def test_a_residual_network_of_images_learns_and_predicts_row_by_row():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    images = rng.normal(size=(60, 1, 9, 9)).astype(np.float32)
    images[y == 1, 0, 4, :] += 4
    images[y == 2, 0, :, 4] += 4
    model = RowNetwork(
        lambda: ResidualNetwork(1, width=4, blocks=2, first_stride=2),
        sampler="within_batch",
        n_negatives=2,
        epochs=20,
        batch_size=20,
        random_state=0,
    ).fit(images, np.eye(3)[y])
    scores = model.raw_scores(images)
    assert model.label_vectors_.shape == (3, 16) and (scores.argmax(1) == y).mean() > 0.9
    np.testing.assert_allclose(model.raw_scores(images[7:8]), scores[7:8], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"body": 3}, "body=3 must be a function"),
        ({"augment": "flip"}, "augment='flip' must be a function"),
        ({"momentum": 1.0}, r"momentum=1.0 is outside \[0, 1\)"),
        ({"sampler": "guess"}, "sampler='guess' is not one of 'uniform', 'within_batch', 'model', None"),
        ({"loss": "equalised", "sampler": "uniform"}, "loss='equalised' sums over every label"),
        ({"body": lambda: torch.nn.Identity()}, r"body gives \(2, 3\) values a row; let it give one vector each"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    rows, y = blobs(20)
    with pytest.raises(InvalidInput, match=message):
        RowNetwork(**{"body": body} | params).fit(rows, np.eye(6)[y])


def test_wrong_rows_are_named():
    rows, y = blobs(20)
    with pytest.raises(InvalidInput, match=r"rows has shape \(20,\); pass an array of one entry a row"):
        RowNetwork(body).fit(y, np.eye(6)[y])
    with pytest.raises(InvalidInput, match="rows holds values that are not finite"):
        RowNetwork(body).fit(rows * np.nan, np.eye(6)[y])
    with pytest.raises(InvalidInput, match="no row of Y has a label"):
        RowNetwork(body).fit(rows, np.zeros((20, 6)))
    with pytest.raises(NotFitted, match="call fit"):
        RowNetwork(body).predict_topk(rows)
