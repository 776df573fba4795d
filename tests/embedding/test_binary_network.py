import numpy as np
import pytest
from contracts import ModelContract, make_rows
from scipy import sparse

torch = pytest.importorskip("torch")

from tailwise.embedding import binary_network  # noqa: E402
from tailwise.embedding.binary_network import BinaryNetwork  # noqa: E402
from tailwise.errors import InvalidInput, MissingExtra  # noqa: E402
from tailwise.losses import unbiased  # noqa: E402


class TestBinaryNetwork(ModelContract):
    def make(self, **params):
        return BinaryNetwork(**{"hidden": (16,), "epochs": 15, "learning_rate": 0.01, "batch_size": 32, **params})


def one_feature(counts, n_rows=200):
    """Rows that differ in nothing but their labels: the best score of a label has a closed form."""
    labels = np.zeros((n_rows, len(counts)))
    for label, count in enumerate(counts):
        labels[:count, label] = 1
    return np.ones((n_rows, 1)), labels


def train_to_the_end(X, Y, **params):
    return BinaryNetwork(hidden=(), epochs=300, batch_size=200, learning_rate=0.05, random_state=0, **params).fit(X, Y)


@pytest.mark.parametrize("loss", ["cross_entropy", "squared_error"])
def test_best_score_is_the_frequency_and_unbiased_the_true_one(loss):
    X, Y = one_feature([10, 40, 60])
    propensity = np.array([0.2, 0.5, 1.0])
    for correction, expected in (("none", [0.05, 0.2, 0.3]), ("unbiased", [0.25, 0.4, 0.3])):
        model = train_to_the_end(X, Y, loss=loss, correction=correction, propensity=propensity)
        scores = model.raw_scores(X[:1])[0]
        given = 1 / (1 + np.exp(-scores)) if loss == "cross_entropy" else scores
        np.testing.assert_allclose(given, expected, atol=2e-3)


def test_probabilities_are_the_sigmoid_of_the_scores():
    X, Y = one_feature([10, 40, 60])
    model = train_to_the_end(X, Y)
    top = model.predict_topk(X[:1], 3)
    scores = model.raw_scores(X[:1])[0]
    np.testing.assert_allclose(top.scores[0], 1 / (1 + np.exp(-scores[top.labels[0]])), rtol=1e-5)
    assert not BinaryNetwork(loss="hinge").scores_are_probabilities
    assert not BinaryNetwork(correction="convex").scores_are_probabilities


@pytest.mark.parametrize("loss", ["cross_entropy", "squared_error", "hinge", "squared_hinge"])
@pytest.mark.parametrize("correction", ["none", "unbiased", "convex", "tail"])
def test_every_loss_falls(loss, correction):
    X, Y = make_rows()
    model = BinaryNetwork(
        loss=loss, correction=correction, propensity=np.full(15, 0.6), epochs=5, hidden=(8,), random_state=0
    ).fit(X, Y)
    assert model.losses_[-1] < model.losses_[0]


def test_first_loss_is_that_of_the_untrained_network():
    X, Y = make_rows()
    p = np.linspace(0.2, 1, 15)
    model = BinaryNetwork(
        correction="unbiased", propensity=p, epochs=1, batch_size=120, hidden=(8,), learning_rate=1e-12, random_state=0
    ).fit(X, Y)
    scores = model.raw_scores(X)
    expected = unbiased("cross_entropy", p)(scores, Y.toarray()).sum() / X.shape[0]
    assert model.losses_[0] == pytest.approx(expected, rel=1e-5)


def test_dense_and_sparse_batches_train_alike(monkeypatch):
    X, Y = make_rows()
    seen = []
    to_torch = binary_network._to_torch
    monkeypatch.setattr(binary_network, "_to_torch", lambda rows: seen.append(1) or to_torch(rows))
    params = {"epochs": 3, "hidden": (8,), "random_state": 0}
    dense = BinaryNetwork(**params).fit(X, Y)
    # Whole batches in training; one more time for the rows that fit predicts.
    predicted = len(seen)
    monkeypatch.setattr(binary_network, "_DENSE_ABOVE", 1.0)
    thin = BinaryNetwork(**params).fit(X, Y)
    assert len(seen) > 2 * predicted
    assert thin.losses_ == pytest.approx(dense.losses_, rel=1e-4)


def test_scores_of_a_row_do_not_depend_on_the_rows_around_it():
    rng = np.random.default_rng(0)
    X = sparse.random_array((70, 300), density=0.1, format="csr", dtype=np.float32, rng=rng)
    Y = sparse.csr_array((rng.random((70, 101)) < 0.05).astype(np.float32))
    model = BinaryNetwork(hidden=(33, 17), epochs=1, random_state=0).fit(X, Y)
    whole = model.raw_scores(X)
    np.testing.assert_array_equal(model.raw_scores(X[7:]), whole[7:])
    np.testing.assert_array_equal(model.raw_scores(X[41:42]), whole[41:42])


class Normalised(BinaryNetwork):
    def build_network(self, n_features, n_labels):
        return torch.nn.Sequential(
            torch.nn.LayerNorm(n_features),
            torch.nn.Linear(n_features, 8),
            torch.nn.Tanh(),
            torch.nn.Linear(8, n_labels),
        )


def test_another_architecture_trains_and_predicts():
    X, Y = make_rows()
    model = Normalised(epochs=30, learning_rate=0.01, random_state=0).fit(X, Y)
    top = model.predict_topk(X, 1).labels[:, 0]
    assert np.mean([Y[i, label] > 0 for i, label in enumerate(top)]) > 0.5


def test_training_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    X, Y = make_rows()
    BinaryNetwork(epochs=1, random_state=0).fit(X, Y).predict_topk(X)
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "zero_one"}, "loss='zero_one' is not one of 'squared_error'"),
        ({"correction": "half"}, "correction='half' is not one of 'none', 'unbiased'"),
        ({"hidden": 64}, r"hidden=64 must be a tuple of layer widths, such as \(256,\)"),
        ({"hidden": (0,)}, r"hidden=0 is outside \[1, inf\)"),
        ({"epochs": 0}, r"epochs=0 is outside"),
        ({"learning_rate": 0}, r"learning_rate=0 is outside \(0, inf\)"),
        ({"correction": "unbiased", "propensity": np.ones(3)}, "propensity"),
    ],
)
def test_error_texts(params, message):
    X, Y = make_rows()
    with pytest.raises(InvalidInput, match=message):
        BinaryNetwork(**params).fit(X, Y)


def test_without_torch_the_extra_is_named(monkeypatch):
    def absent(module, extra, purpose):
        raise MissingExtra(f"{purpose} needs {module}; install it with: pip install 'tailwise[{extra}]'")

    monkeypatch.setattr("tailwise.embedding.runtime.import_extra", absent)
    with pytest.raises(MissingExtra, match=r"BinaryNetwork needs torch; .*tailwise\[neural\]"):
        BinaryNetwork().fit(*make_rows())
