"""Models of one byte a weight: as good, smaller, opened from a folder, and honest about what they cannot do."""

import numpy as np
import pytest
from scipy import sparse

import tailwise
from tailwise.byte_weights import bytes_of_label, from_bytes, to_bytes
from tailwise.errors import InvalidInput, ModelFileError, Unsupported
from tailwise.kernels.sparse.bytes import ByteWeights


def random_weights(n_features, n_labels, density, seed=0):
    rng = np.random.default_rng(seed)
    W = sparse.random_array((n_features, n_labels), density=density, rng=rng, format="csr", dtype=np.float32)
    W.data = rng.normal(size=W.nnz).astype(np.float32)
    return W


@pytest.mark.parametrize("density", [0.0, 0.05, 0.5, 1.0])
def test_no_weight_moves_by_more_than_half_a_step_of_its_label(density):
    W = random_weights(40, 90, density)
    back = from_bytes(to_bytes(W))
    assert back.shape == W.shape and back.dtype == np.float32
    steps = abs(W).max(axis=0).toarray().ravel() / 127
    assert (abs(back - W).toarray() <= 0.501 * steps).all()


def test_labels_far_apart_are_found_again():
    W = sparse.csr_array((np.array([1.0, -2, 3], np.float32), ([0, 0, 1], [0, 199_999, 70_000])), shape=(2, 200_000))
    packed = to_bytes(W)
    assert packed.gaps.size == 3 + 3 + 1
    np.testing.assert_allclose(from_bytes(packed).toarray(), W.toarray())
    assert bytes_of_label(packed, np.array([0, 1]), 199_999).tolist() == [-2.0, 0.0]


def test_weights_in_any_order_are_packed_alike():
    W = random_weights(20, 30, 0.3)
    shuffled = W.copy()
    for f in range(20):
        own = slice(W.indptr[f], W.indptr[f + 1])
        shuffled.indices[own], shuffled.data[own] = W.indices[own][::-1], W.data[own][::-1]
    shuffled.has_sorted_indices = False
    for one, other in zip(to_bytes(W), to_bytes(shuffled), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def data():
    return tailwise.make_longtail(1500, n_features=3000, n_labels=300, random_state=1)


def test_a_compact_model_is_smaller_and_about_as_good(data, tmp_path):
    model = tailwise.DiSMEC(random_state=0).fit(data.X_train, data.Y_train)
    small = tailwise.compact(model)
    assert isinstance(small.weights_, ByteWeights) and small.dual_ is None
    assert small.weights_.gaps.size and small.weights_.dense.size
    assert not isinstance(model.weights_, ByteWeights) and model.dual_ is not None
    hits = [tailwise.evaluate(data.Y_test, m.predict_topk(data.X_test), ["p@5"])["p@5"].value for m in (model, small)]
    assert abs(hits[0] - hits[1]) < 0.5
    for one, name in ((model, "model"), (small, "small")):
        one.save(tmp_path / name)
    sizes = [sum(file.stat().st_size for file in (tmp_path / name).iterdir()) for name in ("model", "small")]
    assert sizes[1] < 0.45 * sizes[0]
    opened = tailwise.load(tmp_path / "small")
    for one, other in zip(opened.predict_topk(data.X_test), small.predict_topk(data.X_test), strict=True):
        np.testing.assert_array_equal(one, other)
    alone = opened.predict_topk(data.X_test[:1])
    np.testing.assert_array_equal(alone.scores[0], small.predict_topk(data.X_test).scores[0])


def test_a_compact_model_explains_and_has_coefficients(data):
    model = tailwise.DiSMEC(random_state=0).fit(data.X_train, data.Y_train)
    small = tailwise.compact(model)
    top = small.predict_topk(data.X_test[:3])
    for row in range(3):
        label = int(top.labels[row, 0])
        assert small.explain(data.X_test[row : row + 1], label).score == pytest.approx(top.scores[row, 0], abs=1e-4)
    assert small.coef_.shape == model.coef_.shape
    np.testing.assert_allclose(small.coef_.toarray(), model.coef_.toarray(), atol=abs(model.coef_).max() / 254)


def test_models_inside_others_become_compact_and_the_whole_does_not_learn(data):
    stack = tailwise.Stacked([tailwise.DiSMEC(random_state=0), tailwise.Centroid()], random_state=0)
    tagger = tailwise.Tagger(stack, keep_training_data=True).fit(data.X_train, data.Y_train)
    small = tailwise.compact(tagger)
    assert small.training_ is None and tagger.training_ is not None
    inside = small.model_
    while not hasattr(inside, "members_"):
        inside = inside.base_
    assert all(isinstance(member.weights_, ByteWeights) for member in inside.members_)
    with pytest.raises(Unsupported, match="DiSMEC was made compact"):
        tailwise.compact(tailwise.DiSMEC().fit(data.X_train, data.Y_train)).update(data.X_test, data.Y_test)


def test_what_cannot_be_made_compact_is_told(data):
    with pytest.raises(InvalidInput, match="Parabel holds no weights that could be made smaller"):
        tailwise.compact(tailwise.Parabel(n_trees=1, random_state=0).fit(data.X_train, data.Y_train))
    with pytest.raises(InvalidInput, match="model='x' is not a model of tailwise"):
        tailwise.compact("x")
    with pytest.raises(InvalidInput, match="DiSMEC holds no weights"):
        tailwise.compact(tailwise.DiSMEC())


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("gaps", lambda a: a + np.uint16(300), "lead to label"),
        ("places", lambda a: a + np.int32(9000), "outside"),
        ("scale", lambda a: -a, "outside"),
        ("values", lambda a: a[:-1], "shape"),
        ("indptr", lambda a: a[::-1].copy(), "does not rise"),
        ("dense", lambda a: a[:, :-1].copy(), "shape"),
    ],
)
def test_a_folder_with_impossible_bytes_is_refused(data, tmp_path, name, change, why):
    small = tailwise.compact(tailwise.DiSMEC(random_state=0).fit(data.X_train, data.Y_train))
    small.weights_ = small.weights_._replace(**{name: change(getattr(small.weights_, name))})
    small.save(tmp_path / "small")
    with pytest.raises(ModelFileError, match=why):
        tailwise.load(tmp_path / "small")
