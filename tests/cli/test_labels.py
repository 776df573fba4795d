"""Which labels a model knows and finds: ``tailwise labels``, and what stands in a label's place."""

import csv
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from strategies import label_rows

from tailwise.metrics.confusions import confusions

TEXT = ["-t", "title,body"]


@pytest.fixture(scope="module")
def judged(tmp_path_factory, corpus):
    """Test rows on which fish is always missed, and steel found."""
    path = tmp_path_factory.mktemp("judged") / "t.jsonl"
    rows = [{"title": "iron", "body": "coal mill", "labels": ["steel", "fish"]}] * 3
    rows += [{"title": "grape", "body": "bottle", "labels": ["fish", "whale"]}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_labels_of_a_model(run, model):
    result = run("labels", model)
    assert result.code == 0, result.err
    assert result.out.splitlines()[0].split() == ["name", "id", "training", "rows", "rarity"]
    assert len(result.out.splitlines()) == 5
    known = run("labels", model, "--json").json
    assert [one["training_rows"] for one in known] == sorted((one["training_rows"] for one in known), reverse=True)
    assert [one["id"] for one in run("labels", model, "--sort", "name", "--json").json] == [
        "fish",
        "steel",
        "tax",
        "wine",
    ]
    assert [one["id"] for one in run("labels", model, "--sort", "name", "--reverse", "-n", "1", "--json").json] == [
        "wine"
    ]


def test_labels_are_filtered(run, model):
    assert [one["name"] for one in run("labels", model, "--filter", "THE FI", "--json").json] == ["The fish"]
    nothing = run("labels", model, "--filter", "whale")
    assert nothing.code == 0 and "none of the 4 labels is left" in nothing.err
    rare = {one["rarity"] for one in run("labels", model, "--rare", "--json").json}
    assert rare <= {"tail"}


def test_labels_on_data(run, model, judged):
    result = run("labels", model, judged, "-k", "1", *TEXT)
    assert result.code == 0, result.err
    best, worst = result.out.split("\n\n")
    assert best.splitlines()[0] == "found best" and best.splitlines()[2].startswith("The steel")
    assert worst.splitlines()[2].startswith("The fish")
    found = {one["id"]: one for one in run("labels", model, judged, "-k", "1", "--json", *TEXT).json}
    assert found["steel"]["recall"] == found["steel"]["precision"] == 100.0
    assert (found["fish"]["test_rows"], found["fish"]["recall"]) == (4, 0.0)
    assert found["fish"]["confused_with"] == [{"name": "The wine", "rows": 1}]
    assert found["tax"]["recall"] is None
    assert found["whale"]["training_rows"] == 0


def test_labels_as_csv(run, model, judged, tmp_path):
    assert run("labels", model, judged, "-k", "1", "-o", tmp_path / "l.csv", *TEXT).code == 0
    with (tmp_path / "l.csv").open(newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert rows["fish"]["confused_with"] == "The wine (1)"
    assert rows["tax"]["recall"] == "" and rows["steel"]["f1"] == "100"
    wrong = run("labels", model, "-o", tmp_path / "l.txt")
    assert wrong.code == 3 and "no .csv" in wrong.err


def test_a_column_that_is_not_there_is_refused(run, model, judged):
    assert "it needs DATA" in run("labels", model, "--sort", "recall").err
    wrong = run("labels", model, judged, "--sort", "weight", *TEXT)
    assert wrong.code == 3 and "--sort weight is none of name, id" in wrong.err


@given(label_rows(), label_rows())
def test_confusions_equal_counting(Y, predicted):
    n, m = min(Y.shape[0], predicted.shape[0]), min(Y.shape[1], predicted.shape[1])
    Y, wanted = (Y.toarray()[:n, :m] != 0), (predicted.toarray()[:n, :m] != 0)
    labels = np.full((n, m), -1)
    for row in range(n):
        chosen = np.flatnonzero(wanted[row])
        labels[row, : chosen.size] = chosen
    counts = [Counter() for _ in range(m)]
    for row in range(n):
        for label in np.flatnonzero(Y[row] & ~wanted[row]):
            counts[label].update(np.flatnonzero(wanted[row] & ~Y[row]).tolist())
    expected = [sorted(count.items(), key=lambda pair: (-pair[1], pair[0]))[:2] for count in counts]
    assert [[tuple(one) for one in found] for found in confusions(Y.astype(float), labels, m, most=2)] == expected
    assert [
        [tuple(one) for one in found] for found in confusions(Y.astype(float), labels, m, labels=[m - 1], most=2)
    ] == [expected[-1]]
