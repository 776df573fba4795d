"""How the command behaves: it speaks of options, asks before it replaces, and writes to every terminal."""

import io
import json
import os
import subprocess
import sys

import pytest

from tailwise.cli import ExitCode, output, suggest

TEXT = ["-t", "title,body"]


@pytest.fixture
def terminal(monkeypatch):
    """A person at the terminal, who types what is given."""

    def typing(text):
        stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
        stdin.isatty = lambda: True
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    return typing


def train(run, corpus, path, *more):
    return run("train", corpus / "train.jsonl", "-o", path, "-m", "centroid", *TEXT, *more)


def test_a_model_is_replaced_only_when_told_to(run, corpus, tmp_path):
    assert train(run, corpus, tmp_path / "m").code == 0
    before = (tmp_path / "m" / "manifest.json").read_bytes()
    again = train(run, corpus, tmp_path / "m", "--set-features", "min_df=3")
    assert again.code == ExitCode.BAD_INPUT and "replace it with --overwrite" in again.err
    assert (tmp_path / "m" / "manifest.json").read_bytes() == before
    assert train(run, corpus, tmp_path / "m", "--set-features", "min_df=3", "--overwrite").code == 0
    assert (tmp_path / "m" / "manifest.json").read_bytes() != before


@pytest.mark.parametrize(
    ("typed", "agreed"), [("y\n", True), ("YES\n", True), ("\n", False), ("no\n", False), ("", False)]
)
def test_a_person_is_asked(terminal, capsys, typed, agreed):
    terminal(typed)
    assert output.ask("m holds a model already; replace it?") == agreed
    assert capsys.readouterr().err == "m holds a model already; replace it? [y/N] "


def test_suggest_prompts_a_person_and_nobody_else(terminal, capsys, monkeypatch):
    output.set_up(False)
    terminal("cod quota")
    assert suggest.read_text(None) == "cod quota"
    assert "end it with Ctrl-D" in capsys.readouterr().err
    terminal("cod quota")
    sys.stdin.isatty = lambda: False
    suggest.read_text(None)
    assert capsys.readouterr().err == ""


def test_a_folder_that_cannot_be_written_to_is_7(run, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    result = train(run, corpus, tmp_path / "m")
    assert result.code == ExitCode.OUTPUT and "is not writable" in result.err


def test_a_model_of_numeric_rows_takes_no_text(run, tmp_path):
    (tmp_path / "rows.txt").write_text("3 2 2\n0 0:1\n1 1:1\n0 0:1\n")
    assert run("train", tmp_path / "rows.txt", "-o", tmp_path / "m", "-m", "centroid").code == 0
    for verb in (["suggest", tmp_path / "m", "text"], ["explain", tmp_path / "m", "0", "text"]):
        result = run(*verb)
        assert result.code == ExitCode.BAD_INPUT and "`tailwise predict`" in result.err


@pytest.mark.parametrize(
    ("name", "content", "more", "words"),
    [
        (
            "a.csv",
            "body,labels\na,b\n",
            [],
            "line 1: found the columns body, labels; expected a column 'text', or name them: --text-columns …",
        ),
        ("a.csv", "text,topic\na,b\n", [], "or name it: --label-column …"),
        ("a.csv", "text,labels\na,b\n", ["--format", "cvs"], "--format cvs is not one of"),
        ("a.csv", "text,labels\na,b\n", ["--label-separator", ""], "--label-separator '' separates nothing"),
        ("a.csv", "text,labels\na,b\n", ["--duplicates", "x"], "--duplicates x is not one of"),
        ("a.csv", "text,labels\na,b\n", [], "--set-features min_df=2"),
        ("a.svm", "1 1:1\n2 1:1\n", [], "--label-base 0 or --label-base 1"),
        ("a.txt", "nothing known\n", [], "--format csv"),
        ("a.arff", "@relation r\n", [], "--label-names labels.xml"),
        ("a.jsonl", json.dumps({"text": "a", "labels": ["x"] * 2}), [], "--duplicates merge"),
        ("a.jsonl", json.dumps({"text": "a", "labels": [["x" * 900]]}), [], "xxx…"),
    ],
)
def test_messages_speak_of_options_and_cut_what_is_long(run, tmp_path, name, content, more, words):
    (tmp_path / name).write_text(content)
    result = run("train", tmp_path / name, "-o", tmp_path / "m", *more)
    assert result.code == ExitCode.BAD_INPUT
    assert words in result.err
    assert "x" * 50 not in result.err and "=[" not in result.err


def test_many_columns_are_not_all_listed(run, tmp_path):
    (tmp_path / "a.csv").write_text(",".join(f"column{i}" for i in range(200)) + "\n" + "," * 199 + "\n")
    result = run("info", tmp_path / "a.csv")
    assert "column29 and 170 more" in result.err and "column30" not in result.err


def test_convert_speaks_of_its_own_options(run, tmp_path):
    (tmp_path / "a.csv").write_text("text,labels\na,b\n")
    assert "--to cvs is not one of" in run("convert", tmp_path / "a.csv", tmp_path / "b", "--to", "cvs").err


def test_flags_have_no_type_and_help_is_short_too(run, each_verb):
    help_text = run(*each_verb, "-h").out
    assert "bool" not in help_text and "--help" in help_text


def test_groups_speak_of_options_too(run, tmp_path):
    (tmp_path / "a.csv").write_text("body,labels\na,b\n")
    result = run("audit", "apply", tmp_path, tmp_path / "a.csv", "-o", tmp_path / "b.csv")
    assert result.code == ExitCode.BAD_INPUT
    assert "name them: --text-columns …" in result.err and "text_columns" not in result.err


@pytest.mark.parametrize(("encoding", "worse"), [("ascii", "-"), ("cp1252", "-"), ("utf-8", "▼")])
def test_every_terminal_takes_what_is_printed(corpus, model, run, tmp_path, encoding, worse):
    assert run("train", corpus / "train.jsonl", "-o", tmp_path / "pöp", "-m", "popularity", *TEXT).code == 0
    command = [sys.executable, "-m", "tailwise.cli", "compare", model, tmp_path / "pöp", corpus / "test.jsonl"]
    done = subprocess.run(
        [*map(str, command), *TEXT, "--metrics", "p@1"],
        env=os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
        check=True,
    )
    out = done.stdout.decode(encoding)
    assert out.splitlines()[2].endswith(f" {worse}")
    assert ("p\\xf6p" if encoding == "ascii" else "pöp") in out
    assert b"Traceback" not in done.stderr
