"""Every metric equals its plain twin on random sparse input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.metrics import label_counts, label_metric, row_metric
from scipy import sparse
from strategies import examples, generators, label_rows

from tailwise.base import TopK
from tailwise.metrics import METRICS, Evaluator, evaluate, label_table
from tailwise.metrics.definitions import LabelMetric

N_LABELS, K = 12, 4
COUNTS = np.array([500, 120, 100, 99, 40, 20, 19, 5, 3, 1, 0, 2])
SLICES = {"head": {0, 1, 2}, "torso": {3, 4, 5}, "tail": {6, 7, 8, 9, 10, 11}, "all": set(range(N_LABELS))}
ROW_METRICS = [name for name, metric in METRICS.items() if not isinstance(metric, LabelMetric)]
LABEL_METRICS = [name for name, metric in METRICS.items() if isinstance(metric, LabelMetric)]


@st.composite
def worlds(draw):
    Y = draw(label_rows((1, 12), N_LABELS, untidy=True))
    named = draw(st.lists(st.integers(0, K), min_size=Y.shape[0], max_size=Y.shape[0]))
    rng = draw(generators())
    labels = np.argsort(rng.random(Y.shape), axis=1)[:, :K].astype(np.int32)
    labels[np.arange(K) >= np.array(named)[:, None]] = -1
    return Y, labels, rng.uniform(0.05, 1, N_LABELS), rng


def as_lists(Y, labels):
    truth = [row.nonzero()[0].tolist() for row in Y.toarray()]
    return truth, [[int(l) for l in row if l >= 0] for row in labels]


@examples(25)
@given(worlds(), st.booleans())
def test_row_metrics(world, normalize):
    Y, labels, p, rng = world
    truth, predicted = as_lists(Y, labels)
    relevant = [len(t) + int(extra) for t, extra in zip(truth, rng.integers(0, 3, len(truth)), strict=True)]
    expected = {}
    for name in ROW_METRICS:
        for k in (1, 3, K):
            for slice_name, members in [(None, None), *SLICES.items()]:
                suffix = f"@{k}" + (f":{slice_name}" if slice_name else "")
                expected[name + suffix] = row_metric(name, truth, predicted, k, slice_=members)
                if METRICS[name].can_be_scored:
                    expected["ps" + name + suffix] = row_metric(
                        name, truth, predicted, k, p=p, slice_=members, relevant=relevant, normalize=normalize
                    )
    result = evaluate(
        Y, labels, list(expected), p, COUNTS, confidence=None, normalize=normalize, relevant_counts=relevant
    )
    for name, value in expected.items():
        assert result[name].value == pytest.approx(value, nan_ok=True, abs=1e-9), name


@examples(25)
@given(worlds())
def test_label_metrics(world):
    Y, labels, _, _ = world
    truth, predicted = as_lists(Y, labels)
    expected = {
        f"{name}@{k}" + (f":{slice_name}" if slice_name else ""): label_metric(
            name, truth, predicted, k, N_LABELS, members
        )
        for name in LABEL_METRICS
        for k in (1, K)
        for slice_name, members in [(None, None), *SLICES.items()]
    }
    result = evaluate(Y, labels, list(expected), label_counts=COUNTS, confidence=None)
    for name, value in expected.items():
        assert result[name].value == pytest.approx(value, nan_ok=True, abs=1e-9), name


@examples(10)
@given(worlds())
def test_label_table(world):
    Y, labels, p, _ = world
    counts = np.array(label_counts(*as_lists(Y, labels), 3, N_LABELS))
    table = label_table(Y, labels, k=3, propensity=p, label_counts=COUNTS, label_names=[f"l{i}" for i in range(12)])
    for column, name in enumerate(("correct", "predicted", "true")):
        np.testing.assert_array_equal(table[name], counts[:, column])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(table["ps_precision"], 100 * counts[:, 0] / counts[:, 1] / p)
        np.testing.assert_allclose(table["f1"], 200 * counts[:, 0] / (counts[:, 1] + counts[:, 2]))
    assert len(table) == len(table.to_dict()["name"]) == 12
    assert (np.diff(table.sort("true")["true"]) <= 0).all()
    assert "… and" not in str(table) and "precision" in str(table)


def test_forms_of_input_give_the_same():
    rng = np.random.default_rng(3)
    Y = sparse.csr_array((rng.random((40, 9)) < 0.3).astype(np.float32))
    scores = rng.permutation(np.linspace(0.1, 1, 40 * 9)).reshape(40, 9).astype(np.float32)
    labels = np.argsort(-scores, axis=1)[:, :5].astype(np.int32)
    topk = TopK(labels, np.take_along_axis(scores, labels, axis=1))
    wide = sparse.csr_array(Y)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    frozen = sparse.csr_array(Y)
    for part in (frozen.indptr, frozen.indices, frozen.data, labels):
        part.flags.writeable = False
    names = ["p@3", "psndcg@5", "recall@5", "coverage@5", "macro_p@5"]
    p = rng.uniform(0.2, 1, 9)
    expected = evaluate(Y, topk, names, p).to_dict()
    for truth, predictions in [
        (Y.toarray(), labels),
        (wide, topk),
        (frozen, labels.astype(np.int64)),
        (sparse.csr_matrix(Y), sparse.csr_matrix(scores)),
        (Y.tocoo(), sparse.csr_array(scores)),
    ]:
        assert evaluate(truth, predictions, names, p).to_dict() == expected


def test_batches_give_the_same_bits_as_one():
    rng = np.random.default_rng(5)
    Y = sparse.csr_array((rng.random((3000, 30)) < 0.2).astype(np.float32))
    labels = np.argsort(rng.random((3000, 30)), axis=1)[:, :5]
    p = rng.uniform(0.1, 1, 30)
    names = ["p@1", "psp@5", "ndcg@5:all", "hamming", "coverage@5", "macro_f1@3", "mrr"]
    whole = evaluate(Y, labels, names, p, n_jobs=1)
    batched = Evaluator(names, propensity=p, n_jobs=2)
    for start, stop in [(0, 1), (1, 8), (8, 700), (700, 701), (701, 3000)]:
        batched.update(Y[start:stop], labels[start:stop])
    assert batched.result().to_dict() == whole.to_dict()
