import numpy as np
import pytest
from scipy import sparse

from tailwise.errors import InvalidInput
from tailwise.metrics import METRICS, compare, evaluate
from tailwise.metrics.definitions import LabelMetric
from tailwise.metrics.intervals import WEIGHT_OF_BYTE, Bootstrap, hoeffding
from tailwise.metrics.labelwise import LabelCounter
from tailwise.metrics.rows import Batch


def pool(seed=0, n=20_000, n_labels=60):
    """Many rows to draw samples from: long-tailed truth, predictions right about half the time."""
    rng = np.random.default_rng(seed)
    chance = 0.5 / np.arange(1, n_labels + 1) ** 0.8
    Y = rng.random((n, n_labels)) < chance
    scores = Y + rng.normal(0, 0.6, Y.shape) + chance
    return sparse.csr_array(Y.astype(np.float32)), np.argsort(-scores, axis=1)[:, :5].astype(np.int32), 0.1 + chance


def test_weights_are_like_poisson():
    assert WEIGHT_OF_BYTE.shape == (256,)
    assert WEIGHT_OF_BYTE.mean() == WEIGHT_OF_BYTE.var() == 1
    assert ((WEIGHT_OF_BYTE - 1) ** 3).mean() == pytest.approx(1, abs=0.01)


def test_bootstrap_sums_have_the_moments_of_the_bootstrap():
    columns = np.random.default_rng(0).normal(2, 1, (1500, 3))
    bootstrap = Bootstrap(4000, 3, seed=11)
    bootstrap.add(columns)
    np.testing.assert_allclose(bootstrap.sums.mean(axis=0), columns.sum(axis=0), rtol=0.005)
    np.testing.assert_allclose(np.cov(bootstrap.sums.T), columns.T @ columns, rtol=0.1)
    weights = Bootstrap(300, 400, seed=3)
    weights.add(np.eye(400))
    correlation = np.corrcoef(weights.sums.T) - np.eye(400)
    assert abs(correlation).max() < 6 / np.sqrt(300)
    assert abs(np.corrcoef(weights.sums) - np.eye(300)).max() < 6 / np.sqrt(400)


def test_bootstrap_does_not_depend_on_batches_or_threads():
    columns = np.random.default_rng(0).random((1300, 4))
    whole, split = Bootstrap(300, 4, seed=5, n_jobs=1), Bootstrap(300, 4, seed=5, n_jobs=3)
    whole.add(columns)
    for start, stop in [(0, 3), (3, 517), (517, 518), (518, 1300)]:
        split.add(columns[start:stop])
    np.testing.assert_array_equal(whole.sums, split.sums)
    other = Bootstrap(300, 4, seed=6)
    other.add(columns)
    assert (other.sums != whole.sums).any()


@pytest.mark.parametrize("interval", ["bootstrap", "hoeffding"])
def test_intervals_hold_the_population_value(interval):
    Y, labels, p = pool()
    names = ["p@1", "psp@5", "ndcg@3", "psndcg@5", "recall@5", "f1@5"]
    if interval == "bootstrap":
        names += ["recall@5:all", "psrecall@5:all", "pshamming"]
    truth = evaluate(Y, labels, names, p, confidence=None)
    rng = np.random.default_rng(1)
    inside = dict.fromkeys(names, 0)
    repeats = 120
    for _ in range(repeats):
        rows = rng.integers(0, Y.shape[0], 300)
        result = evaluate(Y[rows], labels[rows], names, p, interval=interval, n_bootstrap=400, n_jobs=1)
        for name in names:
            inside[name] += result[name].low <= truth[name].value <= result[name].high
    # 95 % of 120 is 114; fewer than 104 has a probability below 1e-4.
    assert min(inside.values()) >= 104, inside


@pytest.mark.parametrize("name", ["coverage@3", "predicted@1", "macro_p@3", "macro_recall@3", "macro_f1@3"])
def test_jackknife_is_leaving_out_each_row(name):
    Y, labels, _ = (part[:40] for part in pool(3))
    metric, k = METRICS[name.partition("@")[0]], int(name[-1])
    assert isinstance(metric, LabelMetric)
    counter = LabelCounter(Y.shape[1], k, keep_pairs=True)
    for start, stop in [(0, 25), (25, 40)]:
        counter.add(Batch(Y[start:stop], labels[start:stop], None, k))
    mask = np.arange(Y.shape[1]) > 1
    for inside in (None, mask):
        slices = {"some": mask}
        text = name if inside is None else f"{name}:some"
        expected = [
            evaluate(Y[rows], labels[rows], text, slices=slices, confidence=None)[text].value
            for rows in (np.delete(np.arange(40), i) for i in range(40))
        ]
        np.testing.assert_allclose(100 * counter.leave_one_out(metric, inside), expected)


def test_jackknife_intervals_of_label_metrics_are_not_too_narrow():
    """The target is the mean over samples of that size, since the number of distinct labels grows with the rows."""
    Y, labels, _ = pool(4)
    rng = np.random.default_rng(2)
    names = ["coverage@5", "predicted@5", "macro_p@5"]
    results = []
    for _ in range(120):
        rows = rng.integers(0, Y.shape[0], 200)
        results.append(evaluate(Y[rows], labels[rows], names))
    for name in names:
        target = np.mean([result[name].value for result in results])
        assert sum(result[name].low <= target <= result[name].high for result in results) >= 104, name
        assert results[0][name].method == "jackknife"


def test_hoeffding_formula():
    reach = np.sqrt(np.log(2 / 0.05) / (2 * 500))
    assert hoeffding(0.3, 1.0, (4.0, 0.0), 500, 0.95) == pytest.approx((0.3 - 4 * reach, 0.3 + 4 * reach))
    half = np.sqrt(np.log(2 / 0.025) / (2 * 500))
    low, high = hoeffding(0.9, 2.0, (1.0, 2.0), 500, 0.95)
    assert (low, high) == pytest.approx(((0.9 - half) / (2 + 2 * half), (0.9 + half) / (2 - 2 * half)))
    assert hoeffding(0.01, 0.1, (1.0, 5.0), 10, 0.95) == (-np.inf, np.inf)


def test_hoeffding_width_of_plain_and_scored_metrics():
    Y, labels, p = (part[:900] if part.ndim == 2 else part for part in pool(5))
    result = evaluate(Y, labels, ["p@1", "psp@1", "pshamming"], p, interval="hoeffding", normalize=False)
    reach = np.sqrt(np.log(2 / 0.05) / 1800)
    assert result["p@1"].high - result["p@1"].value == pytest.approx(100 * reach)
    assert result["psp@1"].high - result["psp@1"].value == pytest.approx(100 * reach / p.min())
    assert result["pshamming"].high - result["pshamming"].value == pytest.approx(reach * (1 / p).sum())
    for name in ("coverage@5", "recall@5:all"):
        with pytest.raises(InvalidInput, match=f"has no bound for {name}"):
            evaluate(Y, labels, name, p, interval="hoeffding")


def test_paired_differences_are_sharper_than_intervals():
    Y, labels, p = (part[:600] if part.ndim == 2 else part for part in pool(6))
    rng = np.random.default_rng(0)
    worse = labels.copy()
    spoilt = rng.random(600) < 0.06
    worse[spoilt] = worse[spoilt][:, ::-1]
    names = ["p@1", "psp@1", "coverage@1", "hamming@1"]
    result = compare(Y, {"a": worse, "b": labels}, names, p)
    difference = result.difference("b", "a", "p@1")
    assert result["a"]["p@1"].high > result["b"]["p@1"].low, "the intervals overlap"
    assert difference.verdict == "better", "the paired difference tells them apart"
    assert difference.value == pytest.approx(result["b"]["p@1"].value - result["a"]["p@1"].value)
    assert result.difference("a", "b", "hamming@1").verdict == "worse"
    assert result.difference("a", "a", "coverage@1").verdict == "unclear"
    wide = compare(Y, {"a": worse, "b": labels}, ["p@1"], interval="hoeffding").difference("b", "a", "p@1")
    assert wide.low < difference.low < difference.high < wide.high


def test_false_verdicts_are_rare():
    Y, labels, p = pool(7)
    rng = np.random.default_rng(3)
    other = np.argsort(-(Y.toarray() + rng.normal(0, 0.6, Y.shape) + (p - 0.1)), axis=1)[:, :5]
    names = ["p@1", "psp@5"]
    clear = dict.fromkeys(names, 0)
    for _ in range(120):
        rows = rng.integers(0, Y.shape[0], 250)
        swap = rng.random(250) < 0.5
        a = np.where(swap[:, None], labels[rows], other[rows])
        b = np.where(swap[:, None], other[rows], labels[rows])
        result = compare(Y[rows], {"a": a, "b": b}, names, p, n_bootstrap=300, n_jobs=1)
        for name in names:
            clear[name] += result.difference("b", "a", name).verdict != "unclear"
    assert max(clear.values()) <= 16, clear


def test_results_repeat_and_follow_the_seed():
    Y, labels, p = (part[:200] if part.ndim == 2 else part for part in pool(8))
    first, again = (evaluate(Y, labels, ["psp@5"], p) for _ in range(2))
    assert first.to_dict() == again.to_dict()
    assert evaluate(Y, labels, ["psp@5"], p, random_state=1).to_dict() != first.to_dict()
    narrow = evaluate(Y, labels, ["psp@5"], p, confidence=0.5)["psp@5"]
    assert first["psp@5"].low < narrow.low < narrow.high < first["psp@5"].high


def test_tiny_samples_do_not_fail():
    result = evaluate([[1, 0]], np.array([[0]]), ["p@1", "coverage@1", "recall@1:all"])
    assert result["p@1"].value == result["coverage@1"].value == 100
    empty = evaluate([[0, 0]], np.array([[-1]]), ["p@1", "coverage@1", "recall@1:all", "ndcg@1", "f1@1"])
    assert empty["p@1"].value == empty["ndcg@1"].value == empty["f1@1"].value == 0
    assert np.isnan(empty["coverage@1"].value) and np.isnan(empty["recall@1:all"].high)
