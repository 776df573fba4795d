"""``suggest`` and ``predict`` with as many labels as a text calls for."""

import csv
import json

import pytest

from tailwise.cli import ExitCode

from .conftest import records

TEXT = ["-t", "title,body"]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in records(60)))
    return path


@pytest.fixture
def neighbours(run, data, tmp_path):
    """A model whose scores are probabilities."""
    assert run("train", data, "-o", tmp_path / "near", "-m", "nearest-rows", *TEXT).code == 0
    return tmp_path / "near"


def test_a_text_gets_as_many_labels_as_it_calls_for(run, data, neighbours, tmp_path):
    one = run("suggest", neighbours, "iron furnace coal", "--assign", "f1", "--json")
    assert [label["name"] for label in one.json] == ["steel"]
    few, many = (
        run("suggest", neighbours, "iron furnace coal grape", "--assign", rule, *more, "--json").json
        for rule, more in (("precision>=0.9", []), ("recall>=0.99", ["--missing"]))
    )
    assert len(few) < len(many)
    out = tmp_path / "sets.csv"
    assert run("predict", neighbours, data, *TEXT, "--assign", "f1", "-o", out).code == 0
    with out.open() as file:
        sizes = [int(row["rank"]) for row in csv.DictReader(file)]
    assert {1, 2} <= set(sizes) and len(sizes) < 2 * 60


def test_rules_that_exclude_each_other(run, neighbours):
    for arguments, words in (
        (("-k", 3, "--assign", "f1"), "-k 3 and --assign f1 exclude each other"),
        (("--assign", "best"), "--assign='best' is not known"),
        (("--missing",), "pass --assign too"),
    ):
        result = run("suggest", neighbours, "iron", *arguments)
        assert result.code == ExitCode.BAD_INPUT and words in result.err


def test_scores_that_are_no_probabilities(run, model):
    result = run("suggest", model, "iron", "--assign", "f1")
    assert result.code == ExitCode.BAD_INPUT and "--no-calibrate" in result.err
