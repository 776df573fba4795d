"""What is written is read back to the bit, in every format, or refused when it is written."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tailwise.data import (
    Dataset,
    TextDataset,
    load_dataset,
    read_libsvm,
    read_names,
    read_records,
    read_xmc,
    write_dataset,
    write_libsvm,
    write_records,
    write_xmc,
)
from tailwise.errors import InvalidInput

_FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
_EXTREME = st.sampled_from([0.0, -0.0, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38, -3.4028235e38, 0.1, 16777217, 1e22])
_NASTY = st.sampled_from(
    [
        "",
        "\n",
        "\r",
        "\r\n",
        "\0",
        "\x1b[2J",
        "\x85",
        "\u2028",
        "\u2029",
        "\ufeff",
        '"',
        "'",
        ",",
        ";",
        "\t",
        "\\",
        "=1",
        "é",
    ]
)
_TEXT = st.lists(_NASTY | st.text(st.characters(exclude_categories=("Cs",)), max_size=5), max_size=6).map("".join)
_SURROGATES = st.text(st.characters(categories=("Cs",)), min_size=1, max_size=2)


@st.composite
def _matrices(draw):
    """X and Y of any structure: no rows, empty rows, columns that never occur, stored zeros."""
    n_rows, n_features, n_labels = draw(st.integers(0, 5)), draw(st.integers(1, 9)), draw(st.integers(1, 9))
    rows = draw(
        st.lists(
            st.tuples(
                st.dictionaries(st.integers(0, n_features - 1), _FLOATS | _EXTREME),
                st.sets(st.integers(0, n_labels - 1)),
            ),
            min_size=n_rows,
            max_size=n_rows,
        )
    )
    features = [sorted(row.items()) for row, _ in rows]
    X = sparse.csr_array(
        (
            np.array([value for row in features for _, value in row], np.float32),
            np.array([index for row in features for index, _ in row], np.int32),
            np.cumsum([0, *map(len, features)]).astype(np.int32),
        ),
        shape=(n_rows, n_features),
    )
    Y = sparse.lil_array((n_rows, n_labels), dtype=np.float32)
    for row, (_, labels) in enumerate(rows):
        for label in labels:
            Y[row, label] = 1
    return X, sparse.csr_array(Y)


def _same(a, b):
    return (
        a.shape == b.shape
        and (a.indptr == b.indptr).all()
        and (a.indices == b.indices).all()
        and (a.data.view(np.int32) == b.data.view(np.int32)).all()
    )


@settings(max_examples=60, deadline=None)
@given(_matrices(), st.sampled_from([0, 1]), st.sampled_from(["", ".gz", ".xz"]))
def test_matrices(tmp_path_factory, drawn, base, packing):
    X, Y = drawn
    folder = tmp_path_factory.mktemp("rows")
    write_xmc(folder / f"a.txt{packing}", X, Y)
    write_libsvm(folder / f"a.svm{packing}", X, Y, feature_base=base)
    for X_read, Y_read in (read_xmc(folder / f"a.txt{packing}"), read_libsvm(folder / f"a.svm{packing}")):
        assert _same(X, X_read) and _same(Y, Y_read)


@settings(max_examples=20, deadline=None)
@given(_matrices(), _matrices(), st.sampled_from(["xmc", "libsvm"]), st.data())
def test_data_sets_of_rows(tmp_path_factory, train, test, format, data):
    X, Y = test
    X.resize((X.shape[0], train[0].shape[1]))
    Y.resize((Y.shape[0], train[1].shape[1]))
    names = [data.draw(st.lists(_TEXT, min_size=m.shape[1], max_size=m.shape[1])) for m in train]
    folder = tmp_path_factory.mktemp("data")
    write_dataset(Dataset(*train, X, Y, feature_names=names[0], label_names=names[1]), folder / "a", format)
    found = load_dataset(folder / "a", unit_rows=False)
    assert _same(found.X_train, train[0]) and _same(found.Y_train, train[1])
    assert _same(found.X_test, X) and _same(found.Y_test, Y)
    assert found.feature_names == names[0] and found.label_names == names[1]


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "parquet"])
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(_TEXT | _SURROGATES, st.lists(_TEXT | _SURROGATES, max_size=3)), min_size=1, max_size=4),
    st.sampled_from([";", "|", ";;", " ", "\t", "a"]),
)
def test_texts(tmp_path_factory, format, records, separator):
    texts, labels = [text for text, _ in records], [row for _, row in records]
    path = tmp_path_factory.mktemp("texts") / f"a.{format}"
    try:
        write_records(path, format, texts, labels, label_separator=separator)
    except InvalidInput as error:
        assert "a." + format + ", row " in str(error) and not path.exists()
        everything = [*texts, *(label for row in labels for label in row)]
        writable = all(not any(0xD800 <= ord(c) < 0xE000 for c in text) for text in everything)
        distinct = all(len(set(row)) == len(row) and "" not in row for row in labels)
        assert format in ("csv", "tsv") or not (writable and distinct)
    else:
        assert read_records(path, format, label_separator=separator) == (texts, labels)


@pytest.mark.parametrize(
    ("text", "labels", "problem"),
    [
        ("\ud800", ["a"], r"row 2: .*UTF-8"),
        ("a", ["\udfff"], r"row 2: .*UTF-8"),
        (None, ["a"], r"row 2: .*UTF-8"),
        ("a", [3], r"row 2: .*UTF-8"),
        ("a", [""], r"row 2: the labels \[''\] must be non-empty and differ"),
        ("a", ["b", "b"], r"row 2: the labels \['b', 'b'\] must be non-empty and differ"),
    ],
)
@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "parquet"])
def test_what_cannot_be_read_back_is_refused(tmp_path, format, text, labels, problem):
    path = tmp_path / "a.b"
    with pytest.raises(InvalidInput, match=rf"a\.b, {problem}"):
        write_records(path, format, ["a", text], [["x"], labels])
    with pytest.raises(InvalidInput, match="texts is empty"):
        write_records(path, format, [], [])
    assert not path.exists()


def test_names_that_cannot_be_written(tmp_path):
    with pytest.raises(InvalidInput, match=r"label_names.json: a name has '\\ud800'"):
        write_dataset(Dataset([[1.0]], [[1]], [[1.0]], [[1]], label_names=["\ud800"]), tmp_path / "a")


@settings(max_examples=30, deadline=None)
@given(st.lists(_TEXT.map(lambda text: text.replace("\n", "").replace("\r", "").removeprefix("\ufeff")), max_size=5))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_of_names_end_only_at_newlines(tmp_path_factory, end, names):
    path = tmp_path_factory.mktemp("names") / "label_names.txt"
    path.write_bytes("".join(name + end for name in names).encode())
    assert read_names(path) == names


def test_ids_of_the_same_number_have_one_order(tmp_path):
    """A tie in the order would leave it to the seed of Python's hashes."""
    ids = ["00", "0", "00001", "0001", "001", "01", "1", "2", "0010", "010", "10"]
    ids = sorted(ids, key=lambda label: (int(label), label))
    lines = [json.dumps({"text": "a", "labels": [label]}) for label in reversed(ids)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert load_dataset(tmp_path / "a.jsonl").label_ids == ids


def test_texts_of_a_data_set(tmp_path):
    data = TextDataset(["=a", "b"], [[1, 0], [0, 1]], label_ids=["01", "1"])
    write_dataset(data, tmp_path / "a.csv", spreadsheet_safe=True)
    found = load_dataset(tmp_path / "a.csv")
    assert found.texts_train == ["'=a", "b"] and found.label_ids == ["01", "1"]
    with pytest.raises(InvalidInput, match="spreadsheet_safe=True is for csv and tsv, not for xmc"):
        write_dataset(Dataset([[1.0]], [[1]]), tmp_path / "a.txt", spreadsheet_safe=True)
