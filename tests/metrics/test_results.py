import io
import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from scipy import sparse

from tailwise.base import TopK
from tailwise.display import Table
from tailwise.errors import InvalidInput, NotFitted
from tailwise.metrics import Evaluator, compare, evaluate, label_slices, label_table, metric_names, parse_metric
from tailwise.propensity import JainPropensity

Y = sparse.csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 1]], np.float32))
LABELS = np.array([[0, 2], [3, 1], [1, 0]])


def test_printing():
    result = evaluate(Y, LABELS, ["p@1", "p@2", "p@2:tail", "hamming"], label_counts=[100, 50, 3, 1])
    text = str(result)
    assert text.startswith("3 rows, 4 labels\nmetric")
    assert "hamming: wrong labels a row, smaller is better" in text and "95% interval: bootstrap" in text
    assert "tail" in text.splitlines()[1]
    assert '<td class="text">p@1</td>' in result._repr_html_()
    assert repr(result).startswith("Evaluation(p@1=66.67 [")
    json.dumps(result.to_dict())
    shown = io.StringIO()
    Console(width=120, file=shown).print(result)
    assert "66.67 [" in shown.getvalue()


def test_printing_a_comparison():
    comparison = compare(Y, {"one": LABELS, "two": LABELS[:, ::-1], "three": LABELS}, ["p@1", "coverage@2"])
    text = str(comparison)
    assert "two − one" in text and "three against one: no clear difference on p@1, coverage@2" in text
    assert set(comparison.to_dict()["differences"]) == {"two", "three"}
    json.dumps(comparison.to_dict())
    assert "p@1" in comparison._repr_html_() and "three against one" in repr(comparison)


def test_default_metrics():
    wide = np.array([[0, 1, 2, 3, -1]] * 3)
    assert list(evaluate(Y, wide)) == ["p@1", "p@3", "p@5", "coverage@5"]
    with_propensity = evaluate(Y, wide, propensity=JainPropensity().fit(Y))
    assert list(with_propensity) == ["p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5", "coverage@5"]


def test_a_fitted_propensity_brings_the_label_counts():
    fitted = JainPropensity().fit(Y)
    assert evaluate(Y, LABELS, ["recall@2:tail"], fitted)["recall@2:tail"].value == pytest.approx(100 * 5 / 6)


def test_every_name_parses():
    for name in metric_names():
        request = parse_metric(name.replace("@k", "@7") + ":torso")
        assert request.slice == "torso" and request.scored == (name.startswith("ps"))


def test_slices():
    counts = [0, 1, 19, 20, 99, 100, 5000]
    members = {name: mask.nonzero()[0].tolist() for name, mask in label_slices(counts).items()}
    assert members == {"head": [5, 6], "torso": [3, 4], "tail": [0, 1, 2]}
    thirds = label_slices(np.r_[0, np.arange(1, 101)], "quantiles")
    assert [int(mask.sum()) for mask in thirds.values()] == [34, 33, 34]
    assert label_slices(counts, (1, 20))["tail"].tolist() == [True] + [False] * 6
    sizes = sum(mask.astype(int) for mask in label_slices(counts, "quantiles").values())
    np.testing.assert_array_equal(sizes, 1)


def test_labels_without_training_rows_are_a_slice_of_their_own():
    counts = [3, 0, 0, 200]
    true = sparse.csr_array(np.array([[1, 1, 0, 0], [0, 1, 1, 0]]))
    ranked = np.array([[1, 0], [0, 3]])
    found = evaluate(true, ranked, ["recall@2:unseen", "recall@2:tail"], label_counts=counts)
    assert found["recall@2:unseen"].value == pytest.approx(100 / 3)
    with pytest.raises(InvalidInput, match="one of head, torso, tail, unseen, all"):
        evaluate(true, ranked, ["recall@2:rare"], label_counts=counts)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_deciles_split_the_labels_seen_in_training_evenly_by_frequency(counts):
    counts = np.array(counts)
    masks = label_slices(counts, "deciles")
    assert list(masks) == [f"decile{d}" for d in range(1, 11)]
    assert (sum(mask.astype(int) for mask in masks.values()) == (counts > 0)).all()
    sizes = [int(mask.sum()) for mask in masks.values()]
    assert max(sizes) - min(sizes) <= 1
    held = [counts[mask] for mask in masks.values() if mask.any()]
    assert all(a.min() >= b.max() for a, b in pairwise(held))


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("p", r"metric 'p' needs the number of labels to look at, such as 'p@5'"),
        ("p@0", "looks at no label"),
        ("precison@5", "is not known; the metrics are p@k, psp@k"),
        ("macrop@5", "did you mean 'macro_p'"),
        ("pscoverage@5", "is not known"),
        ("p@five", "does not have the form name@k"),
        (5, "metric 5 does not have the form"),
        ("psp@1", "propensity=None, but psp@1 need it; pass one fitted on the training labels"),
        ("p@1:tail", "slices need label_counts"),
        ("p@3", r"topk has 2 labels a row but the metrics look at 3; predict more: model.predict_topk\(X, k=3\)"),
    ],
)
def test_bad_metrics(metric, message):
    with pytest.raises(InvalidInput, match=message):
        evaluate(Y, LABELS, [metric])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topk": LABELS[:2]}, "topk has 2 rows but Y_true has 3"),
        ({"topk": LABELS + 2}, "topk has labels from 2 to 5, but Y_true has 4 columns"),
        ({"topk": LABELS - 2}, "labels from -2"),
        ({"topk": LABELS.astype(float)}, "dtype float64; pass model.predict_topk"),
        ({"topk": np.array([[0, 1], [2, 2], [0, 1]])}, r"names a label twice in row 1: \[2, 2\]"),
        ({"confidence": 1.5}, r"confidence=1.5 is outside"),
        ({"interval": "normal"}, "interval='normal' is not one of"),
        ({"n_bootstrap": 0}, "n_bootstrap=0"),
        ({"metrics": []}, "metrics is empty"),
        ({"relevant_counts": [1, 1, 1]}, "relevant_counts of row 0 is 1, but the row has 2 observed labels"),
        ({"relevant_counts": [1, 1]}, "relevant_counts has shape"),
        (
            {"metrics": "p@1:tial", "label_counts": [1, 2, 3, 4]},
            "slice 'tial' is not one of head, torso",
        ),
        ({"metrics": "p@1:tail", "label_counts": [1, 2]}, "have 2 entries but Y_true has 4 columns"),
        ({"metrics": "p@1:tail", "label_counts": [1] * 4, "slices": "thirds"}, "slices='thirds'; pass 'counts'"),
        ({"metrics": "p@1:x", "slices": {"x": [1, 0, 0, 0]}}, "pass one bool a label"),
        ({"metrics": "psp@1", "propensity": np.ones(3)}, "propensity has 3 entries but Y has 4 columns"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        evaluate(**{"Y_true": Y, "topk": LABELS, "metrics": "p@1", **arguments})


def test_more_errors():
    with pytest.raises(NotFitted, match="fit it on the training labels"):
        evaluate(Y, LABELS, "psp@1", JainPropensity())
    with pytest.raises(InvalidInput, match="no rows to evaluate"):
        Evaluator("p@1").result()
    with pytest.raises(InvalidInput, match="no rows to evaluate"):
        evaluate(Y[:0], LABELS[:0], "p@1")
    with pytest.raises(InvalidInput, match=r"metric 'p@2' was not evaluated; there are p@1"):
        evaluate(Y, LABELS, "p@1")["p@2"]
    with pytest.raises(InvalidInput, match="at least two names"):
        compare(Y, {"a": LABELS})
    with pytest.raises(InvalidInput, match="baseline='c' is not one of 'a', 'b'"):
        compare(Y, {"a": LABELS, "b": LABELS}, "p@1", baseline="c")
    with pytest.raises(InvalidInput, match="4 labels were expected"):
        Evaluator("p@1").update(Y, LABELS).update(Y[:, :3], LABELS)
    with pytest.raises(InvalidInput, match="column 'x' is not one of"):
        label_table(Y, LABELS, k=2)["x"]
    with pytest.raises(InvalidInput, match="label_names has 1 entries"):
        label_table(Y, LABELS, k=2, label_names=["a"])


def test_topk_with_fewer_labels_than_k():
    padded = TopK(np.array([[0], [1], [2]], np.int32), np.ones((3, 1), np.float32)).padded(5)
    assert evaluate(Y, padded, "p@5")["p@5"].value == pytest.approx(100 * 2 / 15)


def test_tables_in_notebooks_show_what_turns_the_writing_direction():
    shown = Table("\u202etitle", ["a\u2066", "b"], [["<x>\u202e", "two\nlines"]], ["note\u200f"]).html()
    assert all(spelled in shown for spelled in ("\\u202etitle", "a\\u2066", "&lt;x&gt;\\u202e", "note\\u200f"))
    assert "two\nlines" in shown and not set("\u200f\u202e\u2066") & set(shown)


def test_a_binary_matrix_has_no_ranking_to_evaluate():
    predicted = sparse.csr_array(np.array([[1, 1, 0, 0], [0, 1, 0, 0], [1, 0, 1, 1]], np.float32))
    with pytest.raises(InvalidInput, match=r"entries are all 1.*predict_topk\(X, k\).*decision_function"):
        evaluate(Y, predicted, "p@2")
    one_a_row = sparse.csr_array(np.eye(4, dtype=np.float32)[:3])
    assert evaluate(Y, one_a_row, "p@1", confidence=None)["p@1"].value == pytest.approx(200 / 3)


def test_results_as_frames_and_plots():
    pandas = pytest.importorskip("pandas")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    result = evaluate(Y, LABELS, ["p@1", "p@2:tail"], label_counts=[100, 50, 3, 1])
    frame = result.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["metric"].tolist() == ["p@1", "p@2"] and frame["slice"].tolist() == ["all", "tail"]
    assert frame["value"][0] == result["p@1"].value and frame["low"][0] == result["p@1"].low
    assert [tick.get_text() for tick in result.plot().get_yticklabels()] == ["p@1", "p@2:tail"]
    comparison = compare(Y, {"one": LABELS, "two": LABELS[:, ::-1]}, ["p@1", "p@2"])
    frame = comparison.to_frame().set_index(["model", "metric"])
    assert frame.loc[("two", "p@1"), "difference"] == comparison.difference("two", "one", "p@1").value
    assert frame.loc[("one", "p@1"), "verdict"] == "baseline"
    assert comparison.plot().get_xlabel() == "points above one"
    table = label_table(Y, LABELS, k=1)
    assert table.to_frame()["true"].tolist() == table["true"].tolist()
    assert repr(table).startswith("LabelTable(4 labels; label, true") and "<table" in table._repr_html_()


def test_a_missing_pandas_names_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"Evaluation.to_frame needs pandas; .*tailwise\[report\]"):
        evaluate(Y, LABELS, "p@1").to_frame()


def test_predictions_print_as_tables():
    top = TopK(np.array([[2, -1]] * 12, np.int32), np.array([[0.5, -np.inf]] * 12, np.float32))
    assert "2 (0.5)" in str(top) and str(top).endswith("… and 2 more rows")
    assert "<table" in top._repr_html_()
