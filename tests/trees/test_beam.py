import numpy as np
import pytest
from contracts import assert_same_bits, make_rows
from naive.trees import search, unpack
from scipy import sparse
from sklearn.preprocessing import normalize

import tailwise
from tailwise import Bonsai, Parabel, TopK
from tailwise.kernels.solvers.problems import SQUARED_HINGE, Weights
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.trees.chunks import BITMAP, pack_chunk
from tailwise.rows import AS_THEY_ARE
from tailwise.trees.packing import join_trees
from tailwise.trees.problems import Planted
from tailwise.trees.searching import find_labels
from tailwise.trees.structure import tree_from_nested
from tailwise.trees.training import train_trees


@pytest.fixture(scope="module")
def rows():
    return make_rows(n_samples=150, n_features=60, n_labels=40)


@pytest.fixture(scope="module", params=["squared_hinge", "logistic"])
def model(request, rows):
    return Bonsai(n_trees=2, arity=4, max_leaf=3, max_depth=4, loss=request.param, prune=0.02, random_state=0).fit(
        *rows
    )


@pytest.mark.parametrize("beam", [1, 3, 10_000])
def test_search_equals_the_twin(model, rows, beam):
    X, Y = rows
    scores = model.set_params(beam=beam).predict_topk(X[:12], Y.shape[1])
    for i in range(12):
        row = normalize(X[[i]].toarray().astype(np.float64)).ravel()
        expected = search(model.chunks_, row, [beam], model.loss, Y.shape[1], model.path_weight_)
        got = np.full(Y.shape[1], -np.inf)
        present = scores.labels[i] >= 0
        got[scores.labels[i][present]] = scores.scores[i][present]
        np.testing.assert_allclose(got, expected, atol=1e-5)


def test_the_widest_beam_is_exhaustive(model, rows):
    X, Y = rows
    top = model.set_params(beam=model.chunks_.bits.size).predict_topk(X, Y.shape[1])
    assert ((top.labels >= 0).sum(axis=1) == (np.diff(Y.tocsc().indptr) > 0).sum()).all()
    assert_same_bits(model.set_params(beam=10_000).predict_topk(X, Y.shape[1]), top)
    narrow = model.set_params(beam=2).predict_topk(X, 1)
    assert (top.scores[:, :1] >= narrow.scores - 1e-6).all()


@pytest.mark.parametrize("width", [3, 15, 16, 33, 100, 300])
@pytest.mark.parametrize("density", [0.1, 0.25, 0.9])
def test_wide_nodes_give_many_rows_the_bits_of_one(width, density):
    """Places with few weights list them, and many rows spread them out side by side, as they lie in full places."""
    rng, n_features = np.random.default_rng(0), 90
    X = sparse.csr_array(rng.normal(size=(60, n_features)).astype(np.float32))
    weights = sparse.random_array((width, n_features), density=density, rng=rng, dtype=np.float32, format="csr")
    solved = Weights(*csr_parts(weights), rng.normal(size=width).astype(np.float32))
    tree, costs = tree_from_nested(list(range(width))), np.ones(width)
    Y = sparse.csr_array(np.ones((60, width), np.float32))
    chunks = join_trees([[train_trees(X, Y, [Planted(tree, costs, costs)], lambda *_: solved, n_jobs=1)]])
    sizes = np.diff(chunks.runs)
    assert (sizes.size == 0 or (sizes == width).all()) == (density == 0.9 or width == 3)
    assert density != 0.25 or width == 3 or 0 < (sizes == width).sum() < sizes.size
    together = find_labels(chunks, X, width, SQUARED_HINGE, 10, 1.0, n_jobs=1)
    for some in (*range(X.shape[0]), slice(2)):
        few = find_labels(
            chunks, sparse.csr_array(X[some].reshape(-1, n_features)), width, SQUARED_HINGE, 10, 1.0, n_jobs=1
        )
        assert_same_bits(few, TopK(*(part[some].reshape(-1, width) for part in together)))
    expected = search(chunks, X[[0]].toarray().ravel().astype(np.float64), [10], "squared_hinge", width)
    np.testing.assert_allclose(together.scores[0], np.sort(expected)[::-1], atol=1e-5)


def test_batches_single_rows_and_mapped_files_give_the_same_bits(model, rows, tmp_path):
    X, _ = rows
    model.set_params(beam=5).save(tmp_path / "model")
    mapped = tailwise.load(tmp_path / "model", verify=False)
    whole = model.predict_topk(X)
    for other in (model, mapped):
        for i in range(0, X.shape[0], 7):
            assert_same_bits(other.predict_topk(X[[i]]), type(whole)(*(part[i : i + 1] for part in whole)))
    assert not mapped.chunks_.weights.flags.writeable


def random_weights(seed, n_children, n_features, density):
    rng = np.random.default_rng(seed)
    return sparse.random_array(
        (n_children, n_features),
        density=density,
        format="csr",
        dtype=np.float32,
        rng=rng,
        data_sampler=rng.standard_normal,
    )


@pytest.mark.parametrize(
    ("n_children", "n_features", "density", "bitmap", "dense"),
    [
        (2, 50, 0.9, True, True),
        (3, 40, 0.9, True, True),
        (40, 60, 0.1, True, False),
        (2, 20_000, 0.005, False, True),
        (30, 20_000, 0.0005, False, False),
        (2, 30, 0.0, False, True),
    ],
)
def test_every_form_of_chunk_is_read_back_and_searched(n_children, n_features, density, bitmap, dense):
    weights = random_weights(n_children, n_children, n_features, density)
    rng = np.random.default_rng(0)
    bias = rng.standard_normal(n_children).astype(np.float32)
    chunk = pack_chunk(Weights(*csr_parts(weights), bias), np.zeros((2, n_features), np.int64))
    assert ((chunk.bits == BITMAP) == bitmap or weights.nnz == 0) and (chunk.runs.size == 0) == dense
    X = random_weights(9, 300, n_features, 0.05)
    Y = sparse.csr_array(np.ones((300, n_children), np.float32))
    given = []

    def give(rows, labels):
        first = sum(given)
        given.append(labels.indptr.size - 1)
        part = weights[first : first + given[-1]]
        return Weights(
            part.indptr.astype(np.int64), part.indices.astype(np.int32), part.data, bias[first : first + part.shape[0]]
        )

    ones = np.ones(n_children)
    tree = tree_from_nested(list(range(n_children)))
    chunks = train_trees(X, Y, [Planted(tree, ones, ones)], give, n_jobs=1)
    np.testing.assert_allclose(unpack(chunks, n_features), weights.toarray(), atol=float(chunk.scale.max(initial=0)))
    model = Parabel(n_trees=1, normalize=False)
    model.rows_ = AS_THEY_ARE
    model.chunks_, model.n_features_in_, model.n_labels_ = chunks, n_features, n_children
    model.label_counts_, model.path_weight_ = np.ones(n_children), 1.0
    top = model.predict_topk(X, n_children)
    for i in (0, 100, 299):
        expected = search(chunks, X[[i]].toarray().ravel().astype(np.float64), [1], "squared_hinge", n_children)
        np.testing.assert_allclose(top.scores[i], expected[top.labels[i]], atol=1e-5)
        assert_same_bits(model.predict_topk(X[[i]], n_children), type(top)(*(part[i : i + 1] for part in top)))
