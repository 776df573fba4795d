"""Blocks of solved labels become one matrix by feature, whatever their order."""

import tracemalloc
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, generators, sparse_rows

from tailwise.kernels.solvers.problems import Weights
from tailwise.linear import weight_store
from tailwise.linear.weight_store import WeightStore


@pytest.mark.parametrize("small", [0, 2**24])
@examples(25)
@given(W=sparse_rows((1, 12), (1, 15), signed=True), rng=generators(), seen=st.floats(0, 1), block=st.integers(1, 7))
def test_any_order_of_blocks_gives_the_matrix(small, W, rng, seen, block):
    with patch.object(weight_store, "_SMALL", small):
        check_any_order(W, rng, seen, block)


def check_any_order(W, rng, seen, block):
    W = W.toarray()
    n_features, n_labels = W.shape
    bias = rng.normal(size=n_labels).astype(np.float32)
    order = rng.permutation(n_labels)[: round(seen * n_labels)]
    unseen = np.setdiff1d(np.arange(n_labels), order)
    W[:, unseen], bias[unseen] = 0, -np.inf
    store = WeightStore(n_features, n_labels)
    for first in range(0, order.size, block):
        labels = order[first : first + block]
        at, features = np.nonzero(W[:, labels].T)
        indptr = np.searchsorted(at, np.arange(labels.size + 1))
        store.add(labels, Weights(indptr, features.astype(np.int32), W[features, labels[at]], bias[labels]))
    weights, found = store.finish()
    np.testing.assert_array_equal(weights.toarray(), W)
    np.testing.assert_array_equal(found, bias)
    assert weights.has_canonical_format and weights.indices.dtype == np.int32 and weights.data.dtype == np.float32


def test_memory_is_that_of_a_large_model(monkeypatch):
    monkeypatch.setattr(weight_store, "_SMALL", 1000)
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
