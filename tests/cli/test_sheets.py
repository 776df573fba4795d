"""Spreadsheets at the command line: what was found is said, what is odd is told, and errors speak of options."""

import json

import pytest

from tailwise.cli import ExitCode

from .conftest import records

ROWS = records(60)


def write(folder, separator, name="a.csv", delimiter=","):
    lines = [delimiter.join(("Title", "Subjects"))]
    lines += [delimiter.join((f"{row['title']} {row['body']}", f'"{separator.join(row["labels"])}"')) for row in ROWS]
    (folder / name).write_text("\r\n".join(lines) + "\r\n", encoding="utf-8-sig")
    return folder / name


@pytest.mark.parametrize("separator", ["; ", ", ", "|"])
def test_what_was_found_is_said(run, tmp_path, separator):
    result = run("train", write(tmp_path, separator), "-o", tmp_path / "m", "-m", "centroid")
    assert result.code == 0, result.err
    per_row = sum(len(row["labels"]) for row in ROWS) / len(ROWS)
    assert f"4 labels, {per_row:.1f} a row, separator {separator!r}" in result.err
    assert run("info", tmp_path / "m", "--json").json["labels"] == 4


def test_rows_with_a_label_of_their_own_are_told(run, tmp_path):
    path = write(tmp_path, ";")
    result = run("info", path, "-l", "title", "-t", "subjects")
    assert "60 of 60 rows have a label that no other row has" in result.err
    assert "--label-separator or --label-column ('Title' now)" in result.err
    assert "no other row" not in run("info", path).err


def test_untidy_cells_are_told_once(run, tmp_path):
    (tmp_path / "a.csv").write_text("text,labels\na,x;x\nb,x;\n")
    result = run("info", tmp_path / "a.csv")
    assert result.code == 0 and "note: 2 cells had a label twice or a separator to spare" in result.err
    result = run("info", tmp_path / "a.csv", "--duplicates", "refuse")
    assert result.code == ExitCode.BAD_INPUT and "'x' twice" in result.err and "--duplicates merge" in result.err


def test_delimiter_encoding_and_quoting(run, tmp_path):
    path = write(tmp_path, ", ", delimiter=";")
    assert run("info", path, "--json").json["labels"] == 4
    assert run("info", path, "--json", "--delimiter", ";").json["labels"] == 4
    (tmp_path / "b.csv").write_bytes("text,labels\nMüll,a\n".encode("latin-1"))
    result = run("info", tmp_path / "b.csv")
    assert result.code == ExitCode.BAD_INPUT and "--encoding latin-1" in result.err
    assert run("info", tmp_path / "b.csv", "--encoding", "latin-1").code == 0
    (tmp_path / "c.csv").write_text('text,labels\n"Hamlet" 1,a\n')
    result = run("info", tmp_path / "c.csv")
    assert result.code == ExitCode.BAD_INPUT and "--quoting none" in result.err
    assert run("info", tmp_path / "c.csv", "--quoting", "none").code == 0
    (tmp_path / "d.tsv").write_text('text\tlabels\n"Hamlet" 1\ta\n')
    assert "--quoting none" in run("info", tmp_path / "d.tsv").err
    (tmp_path / "e.csv").write_text("text\tlabels\nMy, own\ta\tb\n".replace("\ta\tb", '\t"a\tb"'))
    found = run("info", tmp_path / "e.csv", "--delimiter", "tab", "--label-separator", "tab", "--json")
    assert found.json["labels"] == 2


def test_errors_speak_of_options(run, tmp_path):
    (tmp_path / "a.csv").write_text("body,topics\na,x\n")
    assert "--text-columns …" in run("info", tmp_path / "a.csv").err
    assert "--label-column …" in run("info", tmp_path / "a.csv", "-t", "body").err
    (tmp_path / "a.txt").write_text("what is this\n")
    assert "--format csv" in run("info", tmp_path / "a.txt").err
    assert "--delimiter '##' must be one character" in run("info", tmp_path / "a.csv", "--delimiter", "##").err
    assert "--encoding latin-99 is not known" in run("info", tmp_path / "a.csv", "--encoding", "latin-99").err


class TestStandardInput:
    JSONL = "".join(json.dumps(row) + "\n" for row in ROWS)
    TEXT = ("-t", "title,body")

    def test_every_verb_reads_it(self, run, tmp_path):
        result = run("train", "-", "-o", tmp_path / "m", "-m", "centroid", *self.TEXT, stdin=self.JSONL)
        assert result.code == 0, result.err
        assert len(run("predict", tmp_path / "m", "-", *self.TEXT, stdin=self.JSONL).out.splitlines()) == 60
        judged = run("evaluate", tmp_path / "m", "-", *self.TEXT, "--json", stdin=self.JSONL).json
        assert judged["rows"] == 60 and judged["data"] == "standard input"
        assert run("info", "-", *self.TEXT, "--json", stdin=self.JSONL).json["train rows"] == 60
        assert run("convert", "-", tmp_path / "b.csv", *self.TEXT, stdin=self.JSONL).code == 0
        csv = (tmp_path / "b.csv").read_bytes()
        assert run("info", "-", "--format", "csv", "--json", stdin=csv).json["labels"] == 4

    def test_errors_name_it(self, run):
        result = run("info", "-", stdin="words,numbers\na,b\n")
        assert result.code == ExitCode.BAD_INPUT and "--format csv" in result.err
        assert "error: standard input, line 1: " in result.err
        result = run("info", "-", stdin='{"text": "a", "labels": ["x"]}\n{\n')
        assert "error: standard input, line 2: " in result.err


def test_written_lists_are_called_that(run, tmp_path):
    lines = ["Title,Subjects", *(f'{row["title"]} {row["body"]},"{row["labels"]}"' for row in ROWS)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    assert "4 labels, 1.2 a row, as written lists\n" in run("info", tmp_path / "a.csv").err


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_on_standard_input_is_known_by_its_header(run, tmp_path, delimiter):
    found = run("info", "-", stdin=write(tmp_path, "|", delimiter=delimiter).read_bytes())
    assert found.code == 0, found.err
    assert "4 labels" in found.err


@pytest.mark.parametrize("name", ["out.xlsx", "out.docx", "out.json"])
def test_what_is_not_written_is_refused_before_any_work(run, corpus, model, tmp_path, name):
    result = run("predict", model, corpus / "test.jsonl", "-o", tmp_path / name, "-t", "title,body")
    assert result.code == ExitCode.BAD_INPUT and f"{name}: .{name[4:]} is not written; name one of .csv" in result.err
    assert not (tmp_path / name).exists()
