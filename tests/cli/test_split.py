"""Splitting files, and holding rows out of training, at the command line."""

import csv
import json

import pytest

from tailwise.cli import ExitCode
from tailwise.data import load_dataset, split_rows

from .conftest import records

ROWS = [row | {"author": f"a{i % 7}", "year": 2000 + i} for i, row in enumerate(records())]


def read(path):
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=";"))


@pytest.fixture
def sheet(tmp_path):
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8-sig") as file:
        out = csv.DictWriter(file, list(ROWS[0]), delimiter=";")
        out.writeheader()
        out.writerows(row | {"labels": ", ".join(row["labels"])} for row in ROWS)
    return tmp_path / "a.csv"


def test_files_have_the_format_and_all_columns(run, sheet, tmp_path):
    result = run("split", sheet, "-o", tmp_path / "parts", "-t", "title,body")
    assert result.code == 0, result.err
    assert result.out.split() == [str(tmp_path / "parts" / name) for name in ("train.csv", "test.csv")]
    assert "64 training and 16 test rows" in result.err and "separator ', '" in result.err
    parts = [read(tmp_path / "parts" / name) for name in ("train.csv", "test.csv")]
    assert sorted(int(row["year"]) for part in parts for row in part) == [row["year"] for row in ROWS]
    assert parts[0][0].keys() == ROWS[0].keys()
    found = load_dataset(tmp_path / "parts", text_columns=["title", "body"])
    assert found.n_train == 64 and found.n_test == 16 and found.n_labels == 4
    again = run("split", sheet, "-o", tmp_path / "again", "-t", "title,body", "-q")
    assert again.err == ""
    assert (tmp_path / "again" / "test.csv").read_bytes() == (tmp_path / "parts" / "test.csv").read_bytes()
    run("split", sheet, "-o", tmp_path / "other", "-t", "title,body", "--seed", 1)
    assert (tmp_path / "other" / "test.csv").read_bytes() != (tmp_path / "parts" / "test.csv").read_bytes()


def test_by_group_and_by_time(run, sheet, tmp_path):
    assert run("split", sheet, "-o", tmp_path / "g", "-t", "title", "--by-column", "Author").code == 0
    sides = [{row["author"] for row in read(tmp_path / "g" / name)} for name in ("train.csv", "test.csv")]
    assert all(sides) and not sides[0] & sides[1]
    assert run("split", sheet, "-o", tmp_path / "t", "-t", "title", "--by-time", "year", "--test", 0.1).code == 0
    assert [int(row["year"]) for row in read(tmp_path / "t" / "test.csv")] == list(range(2072, 2080))
    dated = tmp_path / "dated.jsonl"
    dated.write_text(
        "".join(json.dumps(row | {"day": f"{row['year']}-01-31", "labels": ["x"]}) + "\n" for row in reversed(ROWS))
    )
    assert run("split", dated, "-o", tmp_path / "d", "-t", "title", "--by-time", "day", "--test", 0.1).code == 0
    assert {row["year"] for row in read(tmp_path / "d" / "test.jsonl")} == set(range(2072, 2080))


def test_other_formats(run, sheet, tmp_path):
    pytest.importorskip("pyarrow")
    openpyxl = pytest.importorskip("openpyxl")
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    assert run("split", tmp_path / "a.parquet", "-o", tmp_path / "p", "-t", "title").code == 0
    assert parquet.read_table(tmp_path / "p" / "test.parquet").schema == parquet.read_schema(tmp_path / "a.parquet")
    book = openpyxl.Workbook()
    for row in [list(ROWS[0]), *([*row.values()] for row in ROWS)]:
        book.active.append([";".join(cell) if isinstance(cell, list) else cell for cell in row])
    book.save(tmp_path / "a.xlsx")
    assert run("split", tmp_path / "a.xlsx", "-o", tmp_path / "x", "-t", "title", "--by-time", "year").code == 0
    assert read(tmp_path / "x" / "test.jsonl")[-1]["year"] == "2079"
    (tmp_path / "a.svm").write_text("".join(f"{i % 2} {i % 3 + 1}:1\n" for i in range(20)))
    bases = ("--label-base", 0, "--feature-base", 1)
    assert run("split", tmp_path / "a.svm", "-o", tmp_path / "s", *bases).code == 0
    assert load_dataset(tmp_path / "s").n_test == 4
    (tmp_path / "q.tsv").write_text('text\tlabels\n"a" b\tx\n"c\tx\nd"\tx\n')
    assert run("split", tmp_path / "q.tsv", "-o", tmp_path / "q").code == 0
    lines = [line for name in ("train", "test") for line in (tmp_path / "q" / f"{name}.tsv").read_text().splitlines()]
    assert sorted(set(lines)) == ['"a" b\tx', '"c\tx', 'd"\tx', "text\tlabels"]


def test_refusals(run, sheet, tmp_path):
    def error(*arguments):
        result = run("split", sheet, "-o", tmp_path / "r", "-t", "title", *arguments)
        assert result.code == ExitCode.BAD_INPUT and not (tmp_path / "r").exists()
        return result.err

    assert "--by-column author and --by-time year: split by one" in error("--by-column", "author", "--by-time", "year")
    assert "expected the column 'when' to split by" in error("--by-time", "when")
    assert "a number or a date such as 2024-12-31" in error("--by-time", "author")
    sheet.rename(tmp_path / "train.csv")
    result = run("split", tmp_path / "train.csv", "-o", tmp_path, "-t", "title")
    assert result.code == ExitCode.BAD_INPUT and "is the file that is split" in result.err


def test_holdout_judges_on_rows_that_were_not_trained_on(run, corpus, tmp_path):
    arguments = ("train", corpus / "train.jsonl", "-m", "centroid", "-t", "title,body", "--holdout", 0.1)
    result = run(*arguments, "-o", tmp_path / "m")
    assert result.code == 0, result.err
    assert "psp@5" in result.out and result.out.endswith(f"{tmp_path / 'm'}\n")
    assert "was trained on 72 rows and judged on the 8 held out" in result.err
    facts = run(*arguments, "-o", tmp_path / "n", "--json").json
    assert facts["rows"] == 72 and facts["holdout"]["rows"] == 8
    train, test = split_rows(load_dataset(corpus / "train.jsonl", text_columns="title").Y_train, 0.1)
    held = [(corpus / "train.jsonl").read_text().splitlines()[row] for row in test]
    (tmp_path / "held.jsonl").write_text("\n".join(held))
    judged = run("evaluate", tmp_path / "n", tmp_path / "held.jsonl", "-t", "title,body", "--json").json
    assert judged["metrics"] == facts["holdout"]["metrics"]
    assert train.size == 72


def test_labels_that_are_only_held_out_are_not_in_the_model(run, tmp_path):
    rows = [{"text": f"sea {i}", "labels": ["x", f"only {i}"]} for i in range(20)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("train", tmp_path / "a.jsonl", "-o", tmp_path / "m", "-m", "centroid", "--holdout", 0.2, "--json")
    assert result.code == 0, result.err
    assert result.json["labels"] == 17 and "4 of 8 labels" in result.err
