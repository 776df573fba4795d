"""Blocks of solved labels become one matrix by feature, whatever their order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailwise.kernels.solvers.problems import Weights
from tailwise.linear.weight_store import WeightStore


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), density=st.sampled_from([0.0, 0.1, 0.6, 1.0]), labels_a_block=st.integers(1, 7))
def test_any_order_of_blocks_gives_the_matrix(seed, density, labels_a_block):
    rng = np.random.default_rng(seed)
    n_features, n_labels = rng.integers(1, 12), rng.integers(1, 15)
    W = np.where(rng.random((n_features, n_labels)) < density, rng.normal(size=(n_features, n_labels)), 0)
    W, bias = W.astype(np.float32), rng.normal(size=n_labels).astype(np.float32)
    order = rng.permutation(n_labels)[: rng.integers(0, n_labels + 1)]
    unseen = np.setdiff1d(np.arange(n_labels), order)
    W[:, unseen], bias[unseen] = 0, -np.inf
    store = WeightStore(n_features, n_labels)
    for first in range(0, order.size, labels_a_block):
        labels = order[first : first + labels_a_block]
        at, features = np.nonzero(W[:, labels].T)
        indptr = np.searchsorted(at, np.arange(labels.size + 1))
        store.add(labels, Weights(indptr, features.astype(np.int32), W[features, labels[at]], bias[labels]))
    weights, found = store.finish()
    np.testing.assert_array_equal(weights.toarray(), W)
    np.testing.assert_array_equal(found, bias)
    assert weights.has_canonical_format and weights.indices.dtype == np.int32 and weights.data.dtype == np.float32


def test_memory_is_that_of_the_model():
    tracemalloc = pytest.importorskip("tracemalloc")
    rng = np.random.default_rng(0)
    store = WeightStore(1000, 640)
    tracemalloc.start()
    for first in range(0, 640, 64):
        features = np.sort(rng.permuted(np.tile(np.arange(1000, dtype=np.int32), (64, 1)), axis=1)[:, :500], axis=1)
        values = rng.normal(size=features.size).astype(np.float32)
        store.add(
            np.arange(first, first + 64),
            Weights(np.arange(65) * 500, features.ravel(), values, np.zeros(64, np.float32)),
        )
    tracemalloc.reset_peak()
    weights, _ = store.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * (weights.data.nbytes + weights.indices.nbytes)
