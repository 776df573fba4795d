import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.sparse import topk
from scipy import sparse
from strategies import examples, generators, sparse_rows

from tailwise import scoring
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.kernels.sparse.topk import topk_csr, topk_dense
from tailwise.scoring import predict_topk_linear

coarse = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 0.5, 2.0])


@examples(40)
@given(st.integers(1, 6), st.lists(st.lists(coarse, min_size=7, max_size=7), min_size=1, max_size=5), st.integers(1, 6))
def test_topk_dense_in_blocks_equals_the_twin(k, rows, cut):
    scores = np.array(rows, np.float32)
    labels, best = np.full((len(rows), k), -1, np.int32), np.full((len(rows), k), -np.inf, np.float32)
    topk_dense(np.ascontiguousarray(scores[:, :cut]), 0, labels, best)
    topk_dense(np.ascontiguousarray(scores[:, cut:]), cut, labels, best)
    expected = topk(scores, k)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_array_equal(best, expected[1])


@examples(40)
@given(
    st.integers(1, 6),
    st.lists(st.lists(coarse, min_size=7, max_size=7), min_size=1, max_size=5),
    st.permutations(range(7)),
)
def test_topk_csr_takes_any_index_order(k, rows, order):
    scores = np.array(rows, np.float32)
    n = len(rows)
    indptr = np.arange(0, 7 * n + 1, 7)
    labels, best = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    topk_csr(csr_parts(Csr(indptr, np.tile(order, n), scores[:, order].ravel())), labels, best)
    expected = topk(scores, k)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_array_equal(best, expected[1])


@examples(20)
@given(sparse_rows((1, 20), 8, signed=True), sparse_rows(8, (1, 12), signed=True), generators())
def test_sparse_linear_scores_of_any_structure_equal_the_dense_product(X, W, rng):
    bias = np.where(rng.random(W.shape[1]) < 0.2, -np.inf, rng.normal(size=W.shape[1])).astype(np.float32)
    k = W.shape[1] + 1
    top = predict_topk_linear(X, W, bias, k, n_jobs=1)
    dense = X.toarray() @ W.toarray() + bias
    np.testing.assert_allclose(top.scores, topk(dense, k)[1], rtol=1e-4, atol=1e-5)
    present = top.labels >= 0
    np.testing.assert_array_equal(present, np.isfinite(top.scores))
    np.testing.assert_allclose(
        np.take_along_axis(dense, top.labels, 1)[present], top.scores[present], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sparse_linear_scores_equal_the_dense_product(wide, n_jobs):
    rng = np.random.default_rng(3)
    X = sparse.random_array((600, 30), density=0.2, rng=rng, format="csr", dtype=np.float32)
    W = sparse.random_array((30, 50), density=0.3, rng=rng, format="csr", dtype=np.float32)
    W.sort_indices()
    bias = rng.normal(size=50).astype(np.float32)
    bias[7] = -np.inf
    if wide:
        for part in (X, W):
            part.indptr, part.indices = part.indptr.astype(np.int64), part.indices.astype(np.int64)
    for array in (X.data, X.indices, X.indptr, W.data, W.indices, W.indptr, bias):
        array.flags.writeable = False
    top = predict_topk_linear(X, W, bias, 50, n_jobs=n_jobs)
    dense = X.toarray() @ W.toarray() + bias
    assert (top.labels[:, -1] == -1).all() and not (top.labels == 7).any()
    np.testing.assert_allclose(top.scores, topk(dense, 50)[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(top.labels[:, 0], topk(dense, 1)[0][:, 0])


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("at_once", [1, 2**23], ids=["in turns", "at once"])
def test_many_rows_have_the_bits_of_each_row_alone_whichever_way_their_labels_are_scored(monkeypatch, at_once, n_jobs):
    rng = np.random.default_rng(5)
    X = sparse.random_array((2500, 40), density=0.4, rng=rng, format="csr", dtype=np.float32)
    dense = rng.random((40, 130)) < np.where(np.arange(130) % 3 == 0, 0.02, 0.7)
    W = sparse.csr_array((rng.normal(size=(40, 130)) * dense).astype(np.float32))
    bias = np.where(rng.random(130) < 0.1, -np.inf, rng.normal(size=130)).astype(np.float32)
    seen = []
    monkeypatch.setattr(scoring, "_FLOATS_SIDE_BY_SIDE", at_once)
    monkeypatch.setattr(scoring, "_MANY_SCORES", 10_000)
    kernel = scoring.predict_side_by_side
    monkeypatch.setattr(scoring, "predict_side_by_side", lambda *given: (seen.append(given[3].max()), kernel(*given)))
    together = predict_topk_linear(X, W, bias, 9, n_jobs=n_jobs)
    assert len(seen) == 3 * (3 if at_once == 1 else 1) and max(seen) % 3
    seen.clear()
    for i in range(0, 2500, 7):
        alone = predict_topk_linear(X[i : i + 1], W, bias, 9, n_jobs=1)
        np.testing.assert_array_equal(alone.labels[0], together.labels[i])
        np.testing.assert_array_equal(alone.scores[0], together.scores[i])
    assert not seen
