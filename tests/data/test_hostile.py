"""Files that nobody means well with: each is refused, with file and line, in bounded time and memory."""

import lzma
import os
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tailwise.data import (
    load_dataset,
    read_arff,
    read_libsvm,
    read_mulan_labels,
    read_names,
    read_records,
    read_split,
    read_texts,
    read_xmc,
    write_records,
)
from tailwise.data.files import line_blocks, max_bytes
from tailwise.errors import DataFormatError, InvalidInput


def _put(folder, text, name):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _parquet(folder, **columns):
    path = folder / "a.parquet"
    parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": ' + "[" * 1100 + "]" * 1100 + "}", "line 2: .*nested too deeply"),
        ('{"text": ' + '{"a":' * 100_000 + "1" + "}" * 100_001, "line 2: .*nested too deeply"),
        ('{"text": "a", "labels": [' + "9" * 5000 + "]}", "line 2: .*JSON object"),
        ('{"text": "\\ud800", "labels": []}', "line 2: .*a lone surrogate"),
        ('{"text": "a", "labels": ["\\udfff"]}', "line 2: .*a lone surrogate"),
        ('{"text": "a", "labels": []}'.encode("utf-16-le"), "line 2: found "),
    ],
)
def test_json_lines(tmp_path, line, problem):
    good = b'{"text": "a", "labels": ["x"]}\n'
    line = line if isinstance(line, bytes) else line.encode()
    with pytest.raises(DataFormatError, match=problem):
        read_records(_put(tmp_path, good + line + b"\n" + good, "a.jsonl"), "jsonl")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 1100, "nested too deeply"),
        ("[" + "9" * 5000 + "]", "JSON: a list"),
        ('["\\ud800"]', "a lone surrogate"),
        ('{"title": "a"}\n{"title": 1}\n', "line 2: found"),
        ('{"title": "a"}\n{"name": "b"}\n', "line 2: found"),
        ('{"title": "a"}\n[1]\n', "line 2: found"),
        ('{"title": ' + '"title"' * 20_000 + "\n", "JSON: a list"),
        ("3", "JSON: a list"),
    ],
)
def test_names(tmp_path, text, problem):
    with pytest.raises(DataFormatError, match=problem):
        read_names(_put(tmp_path, text, "label_names.json"))


def test_numbers_of_thousands_of_digits(tmp_path):
    digits = "1" * 5000
    with pytest.raises(DataFormatError, match=r"line 1: .*a row number from 1 to 3"):
        read_split(_put(tmp_path, digits, "split.txt"), 3)
    with pytest.raises(DataFormatError, match=r"line 1: .*the header"):
        read_xmc(_put(tmp_path, f"{digits} 1 1\n", "a.txt"))
    with pytest.raises(DataFormatError, match=r"line 3: .*an attribute from 0 to 0"):
        read_arff(_put(tmp_path, f"@attribute a {{0,1}}\n@data\n{{{digits} 1}}\n", "a.arff"), ["a"])
    records = "".join(f'{{"text": "a", "labels": ["{label}"]}}\n' for label in (digits, "2", "02"))
    assert load_dataset(_put(tmp_path, records, "a.jsonl")).label_ids == ["02", "2", digits]


@pytest.mark.parametrize(
    ("xml", "problem"),
    [
        (b'<?xml version="1.0" encoding="klingon"?><labels/>', "broken xml"),
        (b'<?xml version="1.0" encoding="big5"?><labels/>', "broken xml"),
        (b'<?xml version="1.0"?>\n<labels><label name="\xff"/></labels>', "line 2: found broken xml"),
        ('<?xml version="1.0" encoding="utf-16"?>\n<!DOCTYPE a><labels/>'.encode("utf-16"), "line 2: .*document type"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><labels><label name="&b;"/></labels>', "line 1: .*document type"),
        (b'<labels>\n<label name="a"/>\n<label name="a"/></labels>', "line 3: found the label 'a' twice"),
        (b"<labels>\n<label/></labels>", "line 2: found a <label> without a name"),
    ],
)
def test_mulan_xml(tmp_path, xml, problem):
    with pytest.raises(DataFormatError, match=problem):
        read_mulan_labels(_put(tmp_path, xml, "a.xml"))


def test_mulan_xml_in_utf_16_and_deep(tmp_path):
    xml = '<?xml version="1.0" encoding="utf-16"?><labels><label name="é"/></labels>'
    assert read_mulan_labels(_put(tmp_path, xml.encode("utf-16"), "a.xml")) == ["é"]
    depth = 50_000
    xml = "".join(f'<label name="{i}">' for i in range(depth)) + "</label>" * depth
    assert len(read_mulan_labels(_put(tmp_path, xml, "a.xml"))) == depth


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "line",
    [
        "@attribute " + "a" * 60_000 + " b c",
        "@attribute a" + " " * 60_000 + "b c",
        "@attribute 'a" + "\\'" * 30_000,
        "@attribute a {" + "b " * 30_000 + "}",
        "@attribute a {" + "'b'," * 20_000 + "'c}",
        "@attribute a " + "{" * 60_000,
    ],
)
def test_arff_takes_linear_time(tmp_path, line):
    with pytest.raises(DataFormatError, match="line 1: "):
        read_arff(_put(tmp_path, f"{line}\n@data\n", "a.arff"), ["a"])


class TestParquet:
    def test_columns_that_nobody_asked_for_are_not_read(self, tmp_path):
        path = _parquet(tmp_path, image=["PIXELS" * 1000], text=["a"], labels=[["x"]])
        data = bytearray(path.read_bytes())
        at = data.index(b"PIXELS")
        data[4:at] = bytes(at - 4)  # the header of its page
        path.write_bytes(data)
        with pytest.raises((pa.ArrowException, OSError)):
            parquet.read_table(path)
        assert read_records(path, "parquet") == (["a"], [["x"]])
        assert read_texts(path, "parquet") == ["a"]

    def test_bytes_that_are_not_utf8(self, tmp_path):
        bad = pa.Array.from_buffers(
            pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 3], np.int32).tobytes()), pa.py_buffer(b"a\xff\xfe")]
        )
        with pytest.raises(DataFormatError, match=r"a.parquet, line 2: .*text in UTF-8"):
            read_records(_parquet(tmp_path, text=bad, labels=[["x"], []]), "parquet")

    def test_bombs(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TAILWISE_MAX_BYTES", "1000000")
        path = _parquet(tmp_path, text=["a" * 10_000] * 1000, labels=[["x"]] * 1000)
        assert path.stat().st_size < 10_000
        with pytest.raises(DataFormatError, match=r"line \d+: found more bytes .*set TAILWISE_MAX_BYTES to more"):
            read_records(path, "parquet")
        path = _parquet(tmp_path, text=[None] * 100_000, labels=[["x"]] * 100_000)
        with pytest.raises(DataFormatError, match="set TAILWISE_MAX_BYTES to more"):
            read_records(path, "parquet")
        path = _parquet(tmp_path, text=[chr(97 + i % 26) * 20_000 + str(i) for i in range(60)], labels=[["x"]] * 60)
        with pytest.raises(DataFormatError, match=r"a.parquet: found more bytes .*set TAILWISE_MAX_BYTES to more"):
            read_records(path, "parquet")
        monkeypatch.setenv("TAILWISE_MAX_BYTES", "100000000")
        assert len(read_records(path, "parquet").texts) == 60

    def test_columns(self, tmp_path):
        path = _parquet(tmp_path, text=["a"], labels=[["x"]])
        with pytest.raises(DataFormatError, match="found the columns text, labels; expected the text column 'body'"):
            read_records(path, "parquet", text_columns="body")
        with pytest.raises(DataFormatError, match="expected the label column 'tags'"):
            read_records(path, "parquet", label_column="tags")
        parquet.write_table(pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]), path)
        with pytest.raises(DataFormatError, match="column names that differ"):
            read_records(path, "parquet")


@pytest.mark.parametrize("reader", [read_xmc, read_libsvm, read_names, lambda path: read_records(path, "csv")])
def test_a_compressed_file_may_not_grow_without_bound(tmp_path, monkeypatch, reader):
    megabyte = lzma.compress(b"1 1 1\n" + b"0 0:1\n" * 170_000)
    path = _put(tmp_path, megabyte * 4000, "a.txt.xz")  # 4 GB
    monkeypatch.setenv("TAILWISE_MAX_BYTES", "1_0")
    with pytest.raises(InvalidInput, match="TAILWISE_MAX_BYTES='1_0' must be a number of bytes"):
        reader(path)
    monkeypatch.setenv("TAILWISE_MAX_BYTES", "30000000")
    tracemalloc.start()
    with pytest.raises(DataFormatError, match=r"a.txt.xz.*at most 30,000,000 bytes; .*set TAILWISE_MAX_BYTES to more"):
        reader(path)
    assert tracemalloc.get_traced_memory()[1] < 400_000_000
    tracemalloc.stop()


def test_the_default_limit():
    assert "TAILWISE_MAX_BYTES" not in os.environ and max_bytes() == 2_000_000_000


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (read_xmc, "1 1 2147483647\n0 0:1\n"),
        (read_xmc, "1 2147483647 1\n0 0:1\n"),
        (read_libsvm, "2147483646 0:1\n"),
        (read_libsvm, "0 2147483646:1\n"),
        (read_libsvm, "# tailwise libsvm: 1 rows, 1 features from 0, 2147483646 labels from 0\n0 0:1\n"),
    ],
)
def test_a_small_file_may_not_claim_two_billion_columns(tmp_path, monkeypatch, reader, text):
    path = _put(tmp_path, text, "a.txt")
    with pytest.raises(DataFormatError, match=r"line 1: .*set TAILWISE_MAX_BYTES to more"):
        reader(path)
    monkeypatch.setenv("TAILWISE_MAX_BYTES", str(2**35))
    X, Y = reader(path, **({} if reader is read_xmc else {"label_base": 0, "feature_base": 0}))
    assert max(X.shape[1], Y.shape[1]) >= 2147483646


def test_a_file_that_shrinks_while_it_is_read(tmp_path):
    path = _put(tmp_path, "9 1 1\n" + "0 0:1\n" * 100_000, "a.txt")
    blocks = line_blocks(path, 1000)
    next(blocks)
    os.truncate(path, 0)
    assert sum(block.data.size for block in blocks) < 1 << 20


def test_spreadsheets_do_not_run_cells_that_were_made_safe(tmp_path):
    texts, labels = ["=1+1", "+a", "-b", "@c", "plain", "a=b"], [["=x"], [], ["y"], [], [], []]
    write_records(tmp_path / "a.csv", "csv", texts, labels, spreadsheet_safe=True)
    found = read_records(tmp_path / "a.csv", "csv")
    assert found.texts == ["'=1+1", "'+a", "'-b", "'@c", "plain", "a=b"] and found.labels[0] == ["'=x"]
    write_records(tmp_path / "a.csv", "csv", texts, labels)
    assert read_records(tmp_path / "a.csv", "csv").texts == texts
    with pytest.raises(InvalidInput, match="spreadsheet_safe=True is for csv and tsv"):
        write_records(tmp_path / "a.jsonl", "jsonl", texts, labels, spreadsheet_safe=True)


@pytest.mark.timeout(60)
def test_a_sheet_whose_next_row_is_far_away(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"
    book = openpyxl.Workbook()
    for row in (["text", "labels"], ["sea", "a"], ["law", "b"]):
        book.active.append(row)
    book.save(path)
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert b'<row r="3"' in parts[sheet]
    parts[sheet] = parts[sheet].replace(b'<row r="3"', b'<row r="99999999999"')
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    with pytest.raises(DataFormatError, match="line 1,048,577: found a row beyond the end of a sheet"):
        read_records(path, "xlsx")
