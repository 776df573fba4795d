"""What a report computes, against plain twins."""

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.experiments.report import facts


def problem(seed, n=20, n_labels=12, k=6):
    rng = np.random.default_rng(seed)
    Y = sparse.csr_array((rng.random((n, n_labels)) < 0.25).astype(np.float32))
    scores = rng.random((n, n_labels)).astype(np.float32)
    labels = np.argsort(-scores, axis=1)[:, :k].astype(np.int32)
    ranked = np.take_along_axis(scores, labels, 1)
    labels[0, 3:], ranked[0, 3:] = -1, -np.inf
    counts = rng.integers(0, 30, n_labels)
    return Y, TopK(labels, ranked), counts


def test_reliability_of_true_probabilities_has_a_small_error():
    rng = np.random.default_rng(0)
    chance = rng.random((4000, 5)).astype(np.float32)
    chance[:] = -np.sort(-chance, axis=1)
    Y = sparse.csr_array((rng.random((4000, 5)) < chance).astype(np.float32))
    labels = np.tile(np.arange(5, dtype=np.int32), (4000, 1))
    assert facts.reliability(Y, TopK(labels, chance), True).error < 2
    assert facts.reliability(Y, TopK(labels, chance), False).error is None


def test_worst_labels_are_those_never_found():
    Y = sparse.csr_array(np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1]], np.float32))
    topk = TopK(np.array([[0], [0], [2]], np.int32), np.ones((3, 1), np.float32))
    worst = facts.worst_labels(Y, topk, np.array([5, 5, 5]), np.ones(3, bool))
    assert worst[0].label == 1
    assert (worst[0].found, worst[0].test_rows, worst[0].missed) == (0, 2, [1, 2])


def test_worst_labels_of_an_empty_slice():
    Y, topk, counts = problem(1)
    assert facts.worst_labels(Y, topk, counts, np.zeros(counts.size, bool)) == []


def test_norms_by_frequency_ignores_unseen_labels():
    found = facts.norms_by_frequency(np.array([9.0, 1.0, 2.0]), np.array([0, 1, 100]))
    assert found.median.tolist() == [1.0, 2.0]
    assert facts.norms_by_frequency(np.ones(2), np.zeros(2, int)).frequency.size == 0
