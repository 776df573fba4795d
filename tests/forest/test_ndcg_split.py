import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import forest as naive
from scipy import sparse

from tailwise.forest.growth import ideal_scale
from tailwise.kernels.forest.ndcg_split import NodeLabels, alternate_sides, discount_of_rank


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), weighted=st.booleans())
def test_equals_the_twin_and_the_loss_never_rises(seed, weighted):
    rng = np.random.default_rng(seed)
    n, n_labels = rng.integers(1, 40), rng.integers(1, 30)
    Y = rng.random((n, n_labels)) < rng.uniform(0.02, 0.5)
    worth = rng.uniform(1, 20, n_labels).astype(np.float32) if weighted else np.ones(n_labels, np.float32)
    gains = (Y * ideal_scale(Y.sum(axis=1))[:, None]).astype(np.float32) * worth
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
