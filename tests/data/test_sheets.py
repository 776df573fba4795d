"""Spreadsheets as people keep them: separators, encodings, delimiters, columns and cells are read as they are meant."""

import json
import random
import sys

import pytest

from tailwise.data import load_dataset, read_records, read_texts, write_records
from tailwise.data.label_cells import find_separator, read_list
from tailwise.errors import DataFormatError, InvalidInput, MissingExtra

NAMES = ["law of the sea", "tax", "fisheries", "steel", "wine", "labour", "customs"]


def _labels(n=60):
    draw = random.Random(0)
    return [draw.sample(NAMES, draw.randint(1, 3)) for _ in range(n)]


def _put(folder, text, name):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _csv(folder, cells, name="a.csv"):
    quoted = [cell.replace('"', '""') for cell in cells]
    return _put(folder, "text,labels\n" + "".join(f't{i},"{cell}"\n' for i, cell in enumerate(quoted)), name)


@pytest.mark.parametrize("separator", ["; ", ";", "|", " | ", ", ", ",", "\t", "\n"])
def test_the_separator_is_the_one_that_makes_labels_recur(tmp_path, separator):
    labels = _labels()
    path = _csv(tmp_path, [separator.join(row) for row in labels])
    assert read_records(path, "csv").labels == labels
    found = load_dataset(path)
    assert found.n_labels == len(NAMES)
    assert found.summary()["label separator"].strip(" ") == (separator.strip(" "))
    assert read_records(path, "csv", label_separator="#").labels == [[separator.join(row)] for row in labels]


def test_commas_inside_labels_do_not_separate():
    names = ["Smith, John", "Smith, Jane", "Doe, John", "Doe, Jane", "Roe, Richard"]
    assert find_separator(names * 20) == ";"
    draw = random.Random(1)
    assert find_separator(["; ".join(draw.sample(names, draw.randint(1, 3))) for _ in range(100)]) == ";"
    assert find_separator(["Art | Music", "Sports"] * 30) == ";"
    assert find_separator([]) == find_separator(["", "a"]) == ";"


@pytest.mark.parametrize("written", [str, json.dumps])
def test_written_lists_are_read(tmp_path, written):
    labels = [*_labels(20), [], ["it's; so", 'a "quoted", one']]
    assert read_records(_csv(tmp_path, map(written, labels)), "csv").labels == labels
    assert load_dataset(tmp_path / "a.csv").summary()["label separator"] == "written lists"


@pytest.mark.parametrize(
    "cell",
    ["['a' 'b']", "[__import__('os')]", "[" * 5000 + "]" * 5000, "['" + "a" * 100_001 + "']", "{'a': 1}", "['a', ...]"],
)
def test_what_is_no_list_of_labels_is_not_evaluated(tmp_path, cell):
    with pytest.raises(ValueError, match=r"."):
        labels = read_list(cell)
        if not all(isinstance(label, str) for label in labels):
            raise ValueError("not labels")
    assert find_separator([cell]) == ";"


def test_labels_that_would_be_read_otherwise_are_not_written(tmp_path):
    with pytest.raises(InvalidInput, match="choose another label_separator"):
        write_records(tmp_path / "a.csv", "csv", ["a"], [["['x']"]])
    labels = [[", ".join(row)] for row in _labels()]
    with pytest.raises(InvalidInput, match="choose another label_separator"):
        write_records(tmp_path / "a.csv", "csv", ["a"] * len(labels), labels)
    write_records(tmp_path / "a.csv", "csv", ["a"] * len(labels), labels, label_separator="|")
    assert read_records(tmp_path / "a.csv", "csv", label_separator="|").labels == labels


def test_rows_with_a_label_of_their_own_are_counted(tmp_path):
    path = _csv(tmp_path, [f"{i} only" for i in range(30)])
    assert load_dataset(path).n_with_own_label == 30
    assert (
        load_dataset(_csv(tmp_path, ["a", "a", "b", "a;c", ""])).summary()["training rows with a label of their own"]
        == 2
    )


def test_the_test_file_is_read_as_the_training_file_was(tmp_path):
    _csv(tmp_path, [", ".join(row) for row in _labels()], "train.csv")
    _csv(tmp_path, ["tax, wine"], "test.csv")
    assert load_dataset(tmp_path).labels_of("test") == [["tax", "wine"]]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
def test_european_excel(tmp_path, encoding):
    text = 'Title;Abstract;Subjects\r\nMüll;"Zeile 1\r\nZeile 2";"a;b"\r\nÖl;"1,5; 2,5";b\r\n'
    path = _put(tmp_path, text.encode(encoding), "a.csv")
    assert read_records(path, "csv") == (["Müll\nZeile 1\r\nZeile 2", "Öl\n1,5; 2,5"], [["a", "b"], ["b"]])
    assert load_dataset(path).summary()["delimiter"] == ";"
    assert read_texts(_put(tmp_path, b"sep=|\r\ntext|x\r\na,b,c|1\r\n", "b.csv"), "csv") == ["a,b,c"]


def test_another_encoding_is_named_or_refused_with_the_fix(tmp_path):
    path = _put(tmp_path, "text,labels\nok,a\nMüll,b\n".encode("latin-1"), "a.csv")
    with pytest.raises(DataFormatError, match=r"line 3: .*encoding='cp1252' or encoding='latin-1'"):
        read_records(path, "csv")
    assert read_records(path, "csv", encoding="latin-1").texts == ["ok", "Müll"]
    with pytest.raises(InvalidInput, match="encoding='latin-99' is not known; pass one such as"):
        read_records(path, "csv", encoding="latin-99")
    marked = _put(tmp_path, "text,labels\nMüll,b\n".encode("utf-16-le"), "b.csv")
    with pytest.raises(DataFormatError, match="encoding='utf-16-le'"):
        read_records(marked, "csv")
    lines = _put(tmp_path, '{"text": "Müll", "labels": ["a"]}\n'.encode("cp1252"), "a.jsonl")
    assert load_dataset(lines, encoding="cp1252").texts_train == ["Müll"]


def test_quotes_and_delimiters(tmp_path):
    path = _put(tmp_path, 'text\tlabels\n"Hamlet" by night\ta\n5" pipe\tb\n"open\ta\n', "a.tsv")
    assert read_records(path, "tsv").texts == ['"Hamlet" by night', '5" pipe', '"open']
    assert load_dataset(path).summary()["quoting"] == "none"
    with pytest.raises(DataFormatError, match="quoting='none' to take them as text"):
        read_records(path, "tsv", quoting="minimal")
    assert read_records(_put(tmp_path, 'text\tlabels\n"a\nb"\tx\n', "b.tsv"), "tsv").texts == ["a\nb"]
    odd = _put(tmp_path, "text#labels\na,b#x\n", "c.csv")
    assert read_records(odd, "csv", delimiter="#").texts == ["a,b"]
    with pytest.raises(InvalidInput, match="delimiter='##' must be one character"):
        read_records(odd, "csv", delimiter="##")
    with pytest.raises(InvalidInput, match="quoting='all' is not one of"):
        read_records(odd, "csv", quoting="all")


def test_columns_are_found_whatever_their_case(tmp_path):
    path = _put(tmp_path, "Title, ABSTRACT,Subjects\nSea,law,a;b\n", "a.csv")
    assert read_records(path, "csv") == (["Sea\nlaw"], [["a", "b"]])
    assert read_records(path, "csv", text_columns="title", label_column="subjects").texts == ["Sea"]
    both = _put(tmp_path, "Text,TEXT,labels\na,b,x\n", "b.csv")
    assert read_records(both, "csv", text_columns="TEXT").texts == ["b"]
    with pytest.raises(DataFormatError, match="found the columns Text, TEXT; expected one column 'text'"):
        read_records(both, "csv")


def test_cells_are_tidied_and_counted(tmp_path):
    path = _csv(tmp_path, ["a;b;", "a; a;c", ";;", "b"])
    assert read_records(path, "csv").labels == [["a", "b"], ["a", "c"], [], ["b"]]
    assert load_dataset(path).summary()["label cells tidied"] == 3
    with pytest.raises(DataFormatError, match="line 3: found the label 'a' twice"):
        read_records(path, "csv", duplicates="refuse")


class TestExcel:
    def _book(self, path, *rows):
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.create_sheet("Notes").append(["not read"])
        book.save(path)
        return path

    def test_the_first_sheet_is_read(self, tmp_path):
        rows = [[], ["Title", "Year", None, "Subjects"], ["Sea", 2020, None, "a; b"], [], [7, 2021.0, "x", 3], ["Sky"]]
        path = self._book(tmp_path / "a.xlsx", *rows)
        found = load_dataset(path)
        assert found.texts_train == ["Sea", "7", "Sky"]
        assert found.labels_of("train") == [["a", "b"], ["3"], []]
        assert found.summary()["sheet"] == "Sheet"
        assert load_dataset(path, label_column="year").label_ids == ["2020", "2021"]
        (tmp_path / "a.bin").write_bytes(path.read_bytes())
        assert load_dataset(tmp_path / "a.bin").texts_train == found.texts_train

    def test_refusals(self, tmp_path, monkeypatch):
        with pytest.raises(DataFormatError, match=r"an \.xlsx workbook"):
            load_dataset(_put(tmp_path, "no zip", "b.xlsx"))
        path = self._book(tmp_path / "a.xlsx", ["text", "labels"], ["a", "x"])
        with pytest.raises(InvalidInput, match="format='xlsx' is not one of"):
            write_records(tmp_path / "c.xlsx", "xlsx", ["a"], [["x"]])
        whole = path.read_bytes()
        for cut in (40, len(whole) // 2):
            with pytest.raises(DataFormatError, match=r"an \.xlsx workbook"):
                load_dataset(_put(tmp_path, whole[:cut], "cut.xlsx"))
        monkeypatch.setenv("TAILWISE_MAX_BYTES", "1000")
        with pytest.raises(DataFormatError, match="set TAILWISE_MAX_BYTES to more"):
            load_dataset(path)
        monkeypatch.delenv("TAILWISE_MAX_BYTES")
        monkeypatch.setitem(sys.modules, "openpyxl", None)
        with pytest.raises(MissingExtra, match=r"reading .xlsx needs openpyxl; .*tailwise\[excel\]"):
            load_dataset(path)
