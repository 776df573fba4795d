from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tailwise.assigning import UTILITY, Rule, expected_worth, relevance, set_sizes, worth_most
from tailwise.errors import InvalidInput
from tailwise.topk import TopK

WORTHS = {
    "f1": lambda h, k, r: 2 * h / (k + r) if k + r else 1.0,
    "f2": lambda h, k, r: 5 * h / (k + 4 * r) if k + r else 1.0,
    "jaccard": lambda h, k, r: h / (k + r - h) if k + r - h else 1.0,
    "recall": lambda h, k, r: h / r if r else 1.0,
}
descending = arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 5)), elements=st.floats(0, 1)).map(
    lambda q: -np.sort(-q, axis=1)
)


def brute_force(q, chosen, worth):
    """Over every outcome of the coins."""
    total = 0.0
    for outcome in product((0, 1), repeat=len(q)):
        outcome = np.array(outcome)
        probability = np.prod(np.where(outcome, q, 1 - q))
        total += probability * worth(outcome[list(chosen)].sum(), len(chosen), outcome.sum())
    return total


@pytest.mark.parametrize("name", ["f1", "f2", "jaccard"])
@given(q=descending)
def test_no_set_of_labels_is_expected_to_be_worth_more(name, q):
    for row, size in zip(q, set_sizes(q, name), strict=True):
        places = range(len(row))
        every = [[i for i in places if bits >> i & 1] for bits in range(2 ** len(row))]
        values = [brute_force(row, chosen, WORTHS[name]) for chosen in every]
        assert brute_force(row, range(size), WORTHS[name]) == pytest.approx(max(values), abs=1e-9)


@given(q=descending)
def test_expected_worth_is_exact(q):
    for name, worth in WORTHS.items():
        vector = np.vectorize(worth, otypes=[float])
        values = expected_worth(q, lambda h, k, r, vector=vector: vector(h, k, r))
        for row, found in zip(q, values, strict=True):
            expected = [brute_force(row, range(size), worth) for size in range(len(row) + 1)]
            np.testing.assert_allclose(found, expected, atol=1e-9, err_msg=name)


@given(q=descending, share=st.floats(0, 1))
def test_a_promise_of_precision_or_recall_is_kept(q, share):
    share = round(share, 3)
    for row, size in zip(q, set_sizes(q, f"precision>={share}"), strict=True):
        means = np.cumsum(row) / np.arange(1, len(row) + 1)
        assert size == max((k for k in range(1, len(row) + 1) if means[k - 1] >= share - 1e-9), default=0)
    for row, size in zip(q, set_sizes(q, f"recall>={share}"), strict=True):
        recalls = [brute_force(row, range(k), WORTHS["recall"]) for k in range(len(row) + 1)]
        enough = [k for k, recall in enumerate(recalls) if recall >= share - 1e-9]
        assert size in {enough[0] if enough else len(row)} or recalls[size] == pytest.approx(share, abs=1e-8)


def test_rows_in_many_blocks_are_those_of_one():
    q = -np.sort(-np.random.default_rng(0).random((700, 6)), axis=1)
    np.testing.assert_array_equal(set_sizes(q), np.concatenate([set_sizes(q[[i]]) for i in range(700)]))
    assert set_sizes(np.empty((0, 4))).shape == (0,)


@pytest.mark.parametrize("value", ["f", "f0", "precision>=1.5", "top", 3, None, "recall"])
def test_an_unknown_utility_is_refused_with_those_there_are(value):
    with pytest.raises(InvalidInput, match=r"assign=.*('precision>=0.8'|outside)"):
        UTILITY.check("assign", value)


def test_the_rule_gives_rows_as_many_labels_as_they_have():
    scores = np.array([[3.0, 1.0, -np.inf], [2.0, 0.5, 0.1]])
    right = np.ones((2, 3), bool)
    for n_true, threshold in (([1, 1], 2.0), ([2, 2], 0.5), ([9, 9], 0.1)):
        found = Rule.learn(scores, right, np.array(n_true))
        assert found.threshold == threshold or found == Rule(None, n_true[0])
    uneven = np.array([[True, True, False], [True, False, False]])
    assert Rule.learn(scores, uneven, np.array([2, 1])) == Rule(1.0, 2)
    assert Rule.learn(scores, right, np.array([0, 0])) == Rule(None, 1)
    assert Rule.learn(np.full((2, 1), -np.inf), right[:, :1], np.array([3, 3])) == Rule(None, 3)


def test_scores_that_differ_in_scale_from_row_to_row_give_the_same_number():
    scores = np.array([[9.0, 8.0, 7.0, 6.0], [0.3, 0.2, 0.1, 0.05]])
    hits = np.array([[True, True, False, False]] * 2)
    assert Rule.learn(scores, hits, np.array([2, 2])) == Rule(None, 2)
    alike = np.array([[9.0, 8.0, 7.0, 6.0], [9.5, 8.5, 7.0, 6.5]])
    assert Rule.learn(alike, hits, np.array([2, 2])) == Rule(8.0, 2)


def test_probabilities_are_trusted_unless_they_are_far_off():
    hits = np.array([[True, True, False, False], [True, False, False, False]])
    n_true = np.array([2, 1])
    honest = np.array([[0.9, 0.8, 0.1, 0.0], [0.9, 0.1, 0.1, 0.0]])
    assert Rule.learn(honest, hits, n_true, probabilities=True).expects
    assert not Rule.learn(honest, hits, n_true).expects
    flat = np.array([[0.99, 0.98, 0.97, 0.96], [0.98, 0.95, 0.95, 0.95]])
    assert Rule.learn(flat, hits, n_true, probabilities=True) == Rule(0.98, 2)


def test_sets_under_missing_labels_are_those_of_the_chances_to_be_right():
    generator = np.random.default_rng(5)
    p = generator.uniform(0.2, 1, 30)
    labels = np.array([generator.permutation(30)[:6] for _ in range(40)], np.int32)
    q = -np.sort(-generator.random((40, 6)) * 0.4, axis=1)
    labels[3, 4:], q[3, 4:] = -1, -np.inf
    found = relevance(TopK(labels, q.astype(np.float32)), p)
    for row in range(40):
        chances = {
            int(label): min(1, value / p[label]) for label, value in zip(labels[row], q[row], strict=True) if label >= 0
        }
        order = sorted(chances, key=lambda label: (-chances[label], label))
        assert found.labels[row].tolist() == order + [-1] * (6 - len(order))
        np.testing.assert_allclose(found.scores[row][: len(order)], [chances[label] for label in order], rtol=1e-6)
    sizes = (worth_most(found).labels >= 0).sum(axis=1)
    np.testing.assert_array_equal(sizes, set_sizes(np.where(found.labels >= 0, found.scores, 0)))
