"""The repository's format: equal to the plain twin, exact round trips, and every malformed line refused."""

import gzip
import lzma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import data as naive
from scipy import sparse

from tailwise.data import read_xmc, read_xmc_split, rows, write_xmc
from tailwise.errors import DataFormatError, InvalidInput

_FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
_ROWS = st.lists(
    st.tuples(st.dictionaries(st.integers(0, 6), _FLOATS, max_size=5), st.sets(st.integers(0, 4), max_size=4)),
    max_size=6,
)


def _matrices(drawn, n_features=7, n_labels=5):
    X = sparse.lil_array((len(drawn), n_features), dtype=np.float32)
    Y = sparse.lil_array((len(drawn), n_labels), dtype=np.float32)
    for row, (features, labels) in enumerate(drawn):
        for index, value in features.items():
            X[row, index] = value
        for label in labels:
            Y[row, label] = 1
    return sparse.csr_array(X), sparse.csr_array(Y)


def _same(a, b):
    return a.shape == b.shape and (a.toarray() == b.toarray()).all()


def _put(folder, text, name="rows.txt"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@settings(max_examples=25, deadline=None)
@given(_ROWS)
def test_round_trip_is_exact(tmp_path_factory, drawn):
    X, Y = _matrices(drawn)
    path = tmp_path_factory.mktemp("xmc") / "rows.txt"
    write_xmc(path, X, Y)
    X_read, Y_read = read_xmc(path)
    assert _same(X, X_read) and _same(Y, Y_read)
    twin_X, twin_Y = naive.read_rows(path.read_text().partition("\n")[2], 7, 5)
    assert (twin_X == X.toarray()).all() and (twin_Y == Y.toarray()).all()


@settings(max_examples=25, deadline=None)
@given(_ROWS, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_reads_what_others_write(tmp_path_factory, drawn, newline, with_last_newline):
    X, Y = _matrices(drawn)
    text = f"{len(drawn)} 7 5\n" + naive.write_rows(X, Y)
    text = (text if with_last_newline else text.removesuffix("\n")).replace("\n", newline)
    path = _put(tmp_path_factory.mktemp("xmc"), text)
    X_read, Y_read = read_xmc(path, n_jobs=2)
    assert _same(X, X_read) and _same(Y, Y_read)
    assert X_read.has_canonical_format and X_read.dtype == np.float32 and X_read.indices.dtype == np.int32


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.from_regex(r"[+-]?([0-9]{1,22}(\.[0-9]{0,22})?|\.[0-9]{1,22})([eE][+-]?[0-9]{1,2})?", fullmatch=True))
)
def test_numbers_are_those_of_float(tmp_path_factory, numbers):
    numbers = [number for number in numbers if abs(float(number)) < 3e38] or ["1"]
    path = _put(tmp_path_factory.mktemp("xmc"), f"{len(numbers)} 1 1\n" + "".join(f"0 0:{n}\n" for n in numbers))
    found = read_xmc(path)[0].data
    expected = np.array([float(number) for number in numbers], np.float32)
    # One float64 rounding before the float32 one: at most a neighbour, and nearly always the same.
    assert ((found == expected) | (found == np.nextafter(expected, found))).all()


@pytest.mark.parametrize("block", [1, 7, 64])
def test_blocks_do_not_change_the_result(tmp_path, monkeypatch, block):
    rng = np.random.default_rng(0)
    X = sparse.random_array((60, 30), density=0.2, rng=rng, format="csr", dtype=np.float32)
    Y = sparse.csr_array(sparse.random_array((60, 9), density=0.2, rng=rng, format="csr") > 0).astype(np.float32)
    write_xmc(tmp_path / "rows.txt", X, Y)
    text = (tmp_path / "rows.txt").read_bytes().removesuffix(b"\n")
    path = _put(tmp_path, text)
    monkeypatch.setattr(rows, "_BLOCK_BYTES", block)
    X_read, Y_read = read_xmc(path, n_jobs=2)
    assert _same(X, X_read) and _same(Y, Y_read)
    path = _put(tmp_path, text.replace(b":", b";", 300).replace(b";", b":", 290))
    first = path.read_bytes().partition(b";")[0].count(b"\n") + 1
    with pytest.raises(DataFormatError, match=rf"line {first}: found '\d+;"):
        read_xmc(path, n_jobs=2)


def test_label_less_rows_and_odd_spacing(tmp_path):
    text = "5 4 3\n 1:0.5 3:2\n2,0 \t0:1e-3\t2:-.5 \n1\n\n3:7\n\n\r\n"
    X, Y = read_xmc(_put(tmp_path, text))
    assert X.toarray().tolist() == [[0, 0.5, 0, 2], [np.float32(1e-3), 0, -0.5, 0], [0] * 4, [0] * 4, [0, 0, 0, 7]]
    assert Y.toarray().tolist() == [[0, 0, 0], [1, 0, 1], [0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_unsorted_rows_are_sorted_and_duplicates_are_refused_or_merged(tmp_path):
    X, Y = read_xmc(_put(tmp_path, "1 4 3\n2,0 3:1 1:2\n"))
    assert X.indices.tolist() == [1, 3] and Y.indices.tolist() == [0, 2]
    path = _put(tmp_path, "3 4 3\n0 1:1\n1 1:1 0:3 1:2\n2 0:1\n")
    with pytest.raises(DataFormatError, match=r"line 3: found feature 1 twice; expected each feature once a row"):
        read_xmc(path)
    assert read_xmc(path, duplicates="merge")[0].toarray()[1].tolist() == [3, 3, 0, 0]
    path = _put(tmp_path, "1 4 3\n1,1 1:1\n")
    with pytest.raises(DataFormatError, match="line 2: found label 1 twice"):
        read_xmc(path)
    assert read_xmc(path, duplicates="merge")[1].toarray().tolist() == [[0, 1, 0]]
    with pytest.raises(InvalidInput, match="duplicates='sum' is not one of"):
        read_xmc(path, duplicates="sum")


@pytest.mark.parametrize(
    ("body", "line", "found", "expected"),
    [
        ("0 1:1\nx 1:1\n", 3, "'x'", "a label number"),
        ("0 1:1\n-1 1:1\n", 3, "'-1'", "a label number"),
        ("0;1 1:1\n0 1:1\n", 2, "'0;1'", "separated by commas"),
        ("0, 1:1\n0 1:1\n", 2, "' '", "a label number"),
        ("0,1:1\n0 1:1\n", 2, "'1:1'", "separated by commas"),
        ("0 1:1\n3 1:1\n", 3, "'3'", "a label from 0 to 2"),
        ("0 1:1\n99999999999999999999 1:1\n", 3, "'99999999999999999999'", "a label from 0 to 2"),
        ("0 1:1 4:1\n0 1:1\n", 2, "'4:1'", "a feature index from 0 to 3"),
        ("0 1:1 a:1\n0 1:1\n", 2, "'a:1'", "index:value"),
        ("0 1:1 -1:1\n0 1:1\n", 2, "'-1:1'", "index:value"),
        ("0 1\n0 1:1\n", 2, "'1'", "index:value"),
        ("0 1:1 2 3:1\n0 1:1\n", 2, "'2'", "index:value"),
        ("0 1:\n0 1:1\n", 2, "'1:'", "a number behind the colon"),
        ("0 1: 2\n0 1:1\n", 2, "'1:'", "a number behind the colon"),
        ("0 1:nan\n0 1:1\n", 2, "'1:nan'", "a number behind the colon"),
        ("0 1:inf\n0 1:1\n", 2, "'1:inf'", "a number behind the colon"),
        ("0 1:1e\n0 1:1\n", 2, "'1:1e'", "a number behind the colon"),
        ("0 1:.\n0 1:1\n", 2, "'1:.'", "a number behind the colon"),
        ("0 1:1e39\n0 1:1\n", 2, "'1:1e39'", "a value that float32 can hold"),
        ("0 1:1,2:1\n0 1:1\n", 2, "'1:1,2:1'", "a space behind the value"),
        ("0 1:0x1\n0 1:1\n", 2, "'1:0x1'", "a space behind the value"),
        ("0 1:1\r2:1\n0 1:1\n", 2, r"'\r'", "index:value"),
        ("0 1:1\n0 1:1 # note\n", 3, "'#'", "index:value"),
        ("0 1:1\n", 2, "the end of the file after 1 rows", "2 rows, as the header says"),
        ("0 1:1\n0 1:1\n0 1:1\n", 4, "a row more", "2 rows, as the header says"),
        ("0 1:1\n0 1:1\n\n0 1:1\n", 4, "a row more", "2 rows, as the header says"),
    ],
)
def test_malformed_lines_are_refused(tmp_path, body, line, found, expected):
    for text in (body, body.removesuffix("\n"), body.replace("\n", "\r\n")):
        with pytest.raises(DataFormatError) as caught:
            read_xmc(_put(tmp_path, "2 4 3\n" + text))
        assert caught.value.line == line
        assert caught.value.found == found
        assert expected in caught.value.expected
        assert f"rows.txt, line {line}: found {found}; expected " in str(caught.value)


@pytest.mark.parametrize(
    "header", ["", "2 4", "2 4 3 1", "a b c", "-2 4 3", "2.0 4 3", "0 1:1", "2 0 3", "2 4 99999999999"]
)
def test_malformed_headers_are_refused(tmp_path, header):
    with pytest.raises(DataFormatError, match=r"line 1: .*the header 'rows features labels'"):
        read_xmc(_put(tmp_path, header + ("\n0 1:1\n" if header else "")))


def test_compressed_files_and_byte_order_mark(tmp_path):
    text = b"\xef\xbb\xbf1 2 2\n1 0:0.5\n"
    for name, pack in (("a.txt", bytes), ("a.txt.gz", gzip.compress), ("a.txt.xz", lzma.compress)):
        X, Y = read_xmc(_put(tmp_path, pack(text), name))
        assert X.toarray().tolist() == [[0.5, 0]] and Y.toarray().tolist() == [[0, 1]]
    for name, pack in (("a.txt.gz", gzip.compress), ("a.txt.xz", lzma.compress)):
        for damaged in (pack(text)[:-6], b"no archive"):
            with pytest.raises(DataFormatError, match="damaged compression"):
                read_xmc(_put(tmp_path, damaged, name))
    with pytest.raises(InvalidInput, match="does not exist"):
        read_xmc(tmp_path / "absent.txt")


def test_writing_is_atomic_packed_and_repeatable(tmp_path):
    X, Y = np.array([[0.5, 0], [0, 0], [1, 2]]), np.array([[0, 1], [0, 0], [1, 1]])
    write_xmc(tmp_path / "a.txt", X, Y)
    assert (tmp_path / "a.txt").read_text() == "3 2 2\n1 0:0.5\n \n0,1 0:1 1:2\n"
    for name in ("b.txt.gz", "b.txt.xz"):
        write_xmc(tmp_path / name, X, Y)
        first = (tmp_path / name).read_bytes()
        write_xmc(tmp_path / name, X, Y)
        assert (tmp_path / name).read_bytes() == first
        assert _same(read_xmc(tmp_path / name)[0], sparse.csr_array(X))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt.gz", "b.txt.xz"]
    with pytest.raises(InvalidInput, match="infinity"):
        write_xmc(tmp_path / "c.txt", np.full((3, 2), np.inf), Y)
    assert not (tmp_path / "c.txt").exists()


def test_values_are_written_shortest(tmp_path):
    values = [1, 0.1, -0.25, 1e-5, 0.001, 123456, 1e7, 3.4028235e38, 1e-45, 0.3333333433, 16777216, 1234.5, 0]
    write_xmc(tmp_path / "a.txt", sparse.csr_array(np.array([values], np.float32)), [[1]])
    written = [pair.split(":")[1] for pair in (tmp_path / "a.txt").read_text().split("\n")[1].split()[1:]]
    shortest = ["1", "0.1", "-0.25", "1e-5", "0.001", "123456", "10000000", "34028235e31", "1e-45", "0.33333334"]
    assert written[:12] == [*shortest[:6], *written[6:7], *shortest[7:], "16777216", "1234.5"]
    assert float(written[6]) == 1e7


def test_split_form(tmp_path):
    data = _put(tmp_path, "4 2 2\n0 0:1\n1 1:2\n0,1 0:3\n 1:4\n", "toy_data.txt")
    train, test = _put(tmp_path, "1 4\n3 2\n", "toy_trSplit.txt"), _put(tmp_path, "2 1\n4 3\n", "toy_tstSplit.txt")
    X_train, Y_train, X_test, _ = read_xmc_split(data, train, test)
    assert X_train.toarray().tolist() == [[1, 0], [3, 0]] and X_test.toarray().tolist() == [[0, 2], [0, 4]]
    assert Y_train.toarray().tolist() == [[1, 0], [1, 1]]
    assert read_xmc_split(data, train, test, column=1)[0].toarray().tolist() == [[0, 4], [0, 2]]
    for text, problem in [
        ("1 2\n3\n", "line 2: found 1 columns; expected 2 columns"),
        ("0 1\n", "line 1: found '0'; expected a row number from 1 to 4"),
        ("5 1\n", "line 1: found '5'; expected a row number from 1 to 4"),
        ("x 1\n", "line 1: found 'x'"),
        ("2 1\n2 3\n", "line 2: found row 2 twice"),
        ("2 1\n1 3\n", "line 2: found row 1, which is a training row too"),
    ]:
        with pytest.raises(DataFormatError, match=problem):
            read_xmc_split(data, train, _put(tmp_path, text, "bad.txt"))
    with pytest.raises(DataFormatError, match="more than column=2"):
        read_xmc_split(data, train, test, column=2)
