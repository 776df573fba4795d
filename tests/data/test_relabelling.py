"""Files written again with other labels: every other cell as it was."""

import csv
import json

import pytest

from tailwise.data import load_dataset
from tailwise.data.relabelling import Edit, keeps_columns, write_relabelled
from tailwise.errors import InvalidInput

EDITS = {0: Edit(["tax"], ["sea"]), 2: Edit(["new one"], [])}
ROWS = [("1", "a, text", ["sea", "law"]), ("2", 'a "quoted" text', ["sea"]), ("3", "nothing\nhere", [])]
ROWS += [("4", "more", ["law", "sea", "tax"]), ("5", "of it", ["tax", "sea"]), ("6", "yes", ["law", "tax"])]
AFTER = [{"law", "tax"}, {"sea"}, {"new one"}, *(set(labels) for _, _, labels in ROWS[3:])]


def write_table(path, separator, delimiter=","):
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["id", "text", "labels", "année"])
        writer.writerows([number, text, separator.join(labels), f"19{number}"] for number, text, labels in ROWS)


def relabel(source, target, **how):
    data = load_dataset(source, **{"format": how["format"]} if "format" in how else {})
    assert keeps_columns(source, target, how.get("format"))
    write_relabelled(source, target, EDITS, data.reading, **how)
    return load_dataset(target)


def sets_of(data):
    return [set(labels) for labels in data.labels_of("train", ids=True)]


@pytest.mark.parametrize(("separator", "delimiter"), [("; ", ","), ("|", ";"), (";", "\t")])
def test_a_table_keeps_its_columns_and_its_way_of_writing(tmp_path, separator, delimiter):
    write_table(tmp_path / "a.csv", separator, delimiter)
    data = relabel(tmp_path / "a.csv", tmp_path / "b.csv")
    assert sets_of(data) == AFTER
    before, after = (list(csv.DictReader((tmp_path / f"{n}.csv").open(), delimiter=delimiter)) for n in "ab")
    for old, new in zip(before, after, strict=True):
        assert {k: v for k, v in old.items() if k != "labels"} == {k: v for k, v in new.items() if k != "labels"}
    assert after[0]["labels"] == f"law{separator}tax" and after[1] == before[1]


def test_json_lines_keep_nested_values_and_numbers(tmp_path):
    rows = [
        {"id": {"n": 1}, "text": "a", "labels": [7, 8]},
        {"text": "b", "labels": [8], "more": [None, 1.5]},
        {"text": "c", "labels": None},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    facts = load_dataset(tmp_path / "a.jsonl").reading
    write_relabelled(tmp_path / "a.jsonl", tmp_path / "b.jsonl", {0: Edit(["9"], ["7"]), 2: Edit(["8"], [])}, facts)
    found = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert found == [rows[0] | {"labels": [8, 9]}, rows[1], rows[2] | {"labels": ["8"]}]


def test_subjects_of_annif_get_a_uri_and_a_name(tmp_path):
    rows = [
        {"text": "a", "subjects": [{"uri": "u:1", "label": "sea"}, {"uri": "u:2", "label": "law"}]},
        {"text": "b", "subjects": []},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    facts = load_dataset(tmp_path / "a.jsonl").reading
    edits = {0: Edit([], ["u:1"]), 1: Edit(["u:3"], [])}
    write_relabelled(tmp_path / "a.jsonl", tmp_path / "b.jsonl", edits, facts, names={"u:3": "tax"})
    found = [json.loads(line)["subjects"] for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert found == [[{"uri": "u:2", "label": "law"}], [{"uri": "u:3", "label": "tax"}]]


def test_annifs_lines(tmp_path):
    (tmp_path / "a.tsv").write_text("deep sea\t<u:1> <u:2>\nlaw\t<u:2>\n")
    facts = load_dataset(tmp_path / "a.tsv").reading
    write_relabelled(tmp_path / "a.tsv", tmp_path / "b.tsv", {0: Edit(["u:3"], ["u:1"])}, facts)
    assert (tmp_path / "b.tsv").read_text() == "deep sea\t<u:2> <u:3>\nlaw\t<u:2>\n"


@pytest.mark.parametrize("listed", [True, False])
def test_parquet_keeps_its_types(tmp_path, listed):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    labels = [labels if listed else ";".join(labels) for _, _, labels in ROWS]
    numbers, texts = pa.array([1, 2, 3, 4, 5, 6], pa.int16()), [text for _, text, _ in ROWS]
    table = pa.table({"n": numbers, "text": texts, "labels": labels})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert sets_of(relabel(tmp_path / "a.parquet", tmp_path / "b.parquet")) == AFTER
    after = parquet.read_table(tmp_path / "b.parquet")
    assert after.schema.equals(table.schema) and after["n"].to_pylist() == [1, 2, 3, 4, 5, 6]


def test_written_lists_stay_lists(tmp_path):
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "labels"], *([text, str(labels)] for _, text, labels in ROWS)])
    assert sets_of(relabel(tmp_path / "a.csv", tmp_path / "b.jsonl")) == AFTER


def test_what_cannot_be_written_is_refused(tmp_path):
    write_table(tmp_path / "a.csv", ";")
    facts = load_dataset(tmp_path / "a.csv").reading
    with pytest.raises(InvalidInput, match=r"row 1: the labels .* cannot be told apart"):
        write_relabelled(tmp_path / "a.csv", tmp_path / "b.csv", {0: Edit(["a;b"], [])}, facts)
    assert not (tmp_path / "b.csv").exists()
    with pytest.raises(InvalidInput, match="is the file that is read"):
        write_relabelled(tmp_path / "a.csv", tmp_path / "a.csv", EDITS, facts)
    assert not keeps_columns(tmp_path / "a.csv", tmp_path / "b.parquet")
    assert not keeps_columns(tmp_path, tmp_path / "b.csv")
