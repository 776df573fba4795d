import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from naive import forest as naive
from scipy import sparse
from strategies import examples, generators, label_rows

from tailwise.forest.growth import ideal_scale
from tailwise.kernels.forest.ndcg_split import NodeLabels, alternate_sides, discount_of_rank


@examples(30)
@given(label_rows((1, 40), (1, 30)), st.booleans(), generators())
def test_equals_the_twin_and_the_loss_never_rises(Y, weighted, rng):
    n, n_labels = Y.shape
    worth = rng.uniform(1, 20, n_labels).astype(np.float32) if weighted else np.ones(n_labels, np.float32)
    dense = Y.toarray()
    gains = (dense * ideal_scale(dense.sum(axis=1).astype(int))[:, None]).astype(np.float32) * worth
    csr = sparse.csr_array(gains)
    start = rng.random(n) < 0.5

    positive = start.copy()
    labels = NodeLabels(csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data, n_labels)
    trace = alternate_sides(labels, discount_of_rank(n_labels), positive)

    expected, losses = naive.alternate_sides(gains, start)
    np.testing.assert_array_equal(positive, expected)
    np.testing.assert_allclose(trace, losses, rtol=1e-6)
    assert (np.diff(trace) <= 1e-6 * np.abs(trace[0])).all()


def test_a_perfect_parting_has_ndcg_one_for_every_row():
    csr = sparse.csr_array(np.eye(2, dtype=np.float32)[[0, 0, 1, 1]] * ideal_scale(np.array([1])))
    labels = NodeLabels(csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data, 2)
    positive = np.array([True, True, False, True])
    trace = alternate_sides(labels, discount_of_rank(2), positive)
    np.testing.assert_array_equal(positive, [True, True, False, False])
    np.testing.assert_allclose(trace[-1], -4, rtol=1e-6)
