"""What the command reads and prints where files leave room for a mistake."""

import json

import pytest

import tailwise
from tailwise.data import read_records

BAD_ID = "a\nb\x1b[2J\u202e\x9b"
SPELLED = r"a\nb\x1b[2J\u202e\x9b"


@pytest.fixture
def model(run, tmp_path):
    """A model whose label steers a terminal."""
    records = [{"text": f"fish sea {i}", "labels": [BAD_ID]} for i in range(4)]
    records += [{"text": f"tax duty {i}", "labels": ["tax"]} for i in range(4)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert run("train", tmp_path / "a.jsonl", "-o", tmp_path / "m", "-m", "centroid").code == 0
    return tmp_path / "m"


def test_control_characters_of_labels_are_spelled_out(run, model, tmp_path):
    for arguments in (
        ("predict", model, tmp_path / "a.jsonl", "-k", 1),
        ("suggest", model, "fish of the sea"),
        ("labels", model),
    ):
        result = run(*arguments)
        assert result.code == 0, result.err
        assert SPELLED in result.out and BAD_ID not in result.out
        assert not set("\x1b\u202e\x9b") & set(result.out)
    assert len(run("predict", model, tmp_path / "a.jsonl", "-k", 1).out.splitlines()) == 8
    assert run("suggest", model, "fish of the sea", "-k", 1, "--json").json[0]["id"] == BAD_ID


def test_control_characters_of_names_do_not_reach_the_terminal_in_errors(run, tmp_path):
    result = run("info", tmp_path / "\x1b[2J.jsonl")
    assert result.code != 0 and "\x1b" not in result.err and r"\x1b[2J.jsonl" in result.err


def test_where_libsvm_counts_from_is_asked_for(run, tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("".join(f"{i % 2 + 1} {i % 2 + 1}:1 3:1\n" for i in range(8)))
    result = run("train", path, "-o", tmp_path / "m", "-m", "centroid")
    assert result.code != 0 and "--label-base" in result.err and not (tmp_path / "m").exists()
    asked = ("--label-base", 1, "--feature-base", 1)
    assert run("train", path, "-o", tmp_path / "m", "-m", "centroid", *asked).code == 0
    assert tailwise.load(tmp_path / "m").model_.n_labels_ == 2
    judged = run("evaluate", tmp_path / "m", path, *asked, "--json")
    assert judged.code == 0, judged.err
    assert run("predict", tmp_path / "m", path, "--feature-base", 1, "-k", 1).out.startswith("0 ")


def test_convert_for_spreadsheets(run, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "=cmd()", "labels": ["x"]}))
    assert run("convert", tmp_path / "a.jsonl", tmp_path / "a.csv", "--spreadsheet-safe").code == 0
    assert read_records(tmp_path / "a.csv", "csv").texts == ["'=cmd()"]
