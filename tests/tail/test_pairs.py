import numpy as np
import pytest

from tailwise.tail.pairs import Pairs, PairSample


def draw(seed, n=3000):
    rng = np.random.default_rng(seed)
    features = rng.random((n, 2), np.float32)
    easy = rng.random(n) < 0.8
    return Pairs(features, ~easy & (rng.random(n) < 0.5), rng.random(n)), easy


def add(sample, pairs, easy, size):
    for first in range(0, easy.size, size):
        block = slice(first, first + size)
        sample.add(Pairs(*(part[block] for part in pairs)), easy[block])
    return sample


@pytest.mark.parametrize("n_pairs", [1, 1000, 10**9])
def test_a_sample_taken_block_by_block_is_that_of_all_pairs_at_once(n_pairs):
    pairs, easy = draw(0)
    at_once, streamed = (add(PairSample(n_pairs, 5), pairs, easy, size).taken() for size in (easy.size, 70))
    for one, other in zip(at_once, streamed, strict=True):
        np.testing.assert_array_equal(one, other)
    assert at_once.hits.sum() == pairs.hits.sum(), "what is right is always taken"
    assert np.sum(at_once.weights) == pytest.approx(np.sum(pairs.weights), rel=0.15), "and the rest stands for all"


def test_there_is_never_much_more_in_memory_than_is_taken():
    pairs, easy = draw(1)
    sample = PairSample(800, 0)
    for first in range(0, easy.size, 100):
        add(sample, Pairs(*(part[first : first + 100] for part in pairs)), easy[first : first + 100], 100)
        assert sum(draws.size for draws, _ in sample._blocks) < 900
    assert sample.taken().hits.size == pytest.approx(800, abs=60)
