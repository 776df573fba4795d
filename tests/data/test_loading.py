"""load_dataset by path, and writing back: every format, pairs and single files, folders and their names."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import tailwise
from tailwise.data import (
    Dataset,
    TextDataset,
    convert,
    detect_format,
    is_cached,
    load_dataset,
    read_names,
    write_dataset,
    write_libsvm,
    write_xmc,
)
from tailwise.errors import DataFormatError, InvalidInput

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def _rows(rng, n_rows):
    X = sparse.random_array((n_rows, 8), density=0.4, rng=rng, format="csr", dtype=np.float32)
    Y = sparse.csr_array(sparse.random_array((n_rows, 4), density=0.5, rng=rng, format="csr") > 0).astype(np.float32)
    return X, Y


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    names = {"label_names": ["law", "sea", "air", "trade, free"], "feature_names": [f"w{i}" for i in range(8)]}
    return Dataset(*_rows(rng, 10), *_rows(rng, 5), **names)


@pytest.fixture
def texts():
    Y = np.array([[1, 0, 1], [0, 1, 0]])
    ids = ["a", "b", "c"]
    return TextDataset(
        ["law of the sea", "air"], Y, ["sea", "law"], Y[::-1], label_names=["Law", "Air", "Sea"], label_ids=ids
    )


def _same_matrices(a, b):
    return all(
        (getattr(a, part).toarray() == getattr(b, part).toarray()).all()
        for part in ("X_train", "Y_train", "X_test", "Y_test")
    )


@pytest.mark.parametrize("format", ["xmc", "libsvm"])
@pytest.mark.parametrize("compression", ["", ".gz", ".xz"])
def test_rows_round_trip_through_a_folder(tmp_path, data, format, compression):
    files = write_dataset(data, tmp_path / "toy", format, compression=compression)
    assert len(files) == 4 and all(file.exists() for file in files)
    found = load_dataset(tmp_path / "toy", unit_rows=False)
    assert _same_matrices(found, data)
    assert found.label_names == data.label_names and found.feature_names == data.feature_names
    assert found.name == "toy" and found.source == str(tmp_path / "toy")


def test_rows_have_unit_length_unless_told_otherwise(tmp_path, data):
    write_dataset(data, tmp_path / "toy")
    for X in (load_dataset(tmp_path / "toy").X_train, load_dataset(tmp_path / "toy").X_test):
        lengths = np.sqrt((X.toarray() ** 2).sum(axis=1))
        assert np.allclose(lengths[lengths > 0], 1, atol=1e-6)


def test_a_single_file_and_a_pair(tmp_path, data):
    write_xmc(tmp_path / "one.txt", data.X_train, data.Y_train)
    write_xmc(tmp_path / "two.txt", data.X_test, data.Y_test)
    single = load_dataset(str(tmp_path / "one.txt"), unit_rows=False)
    assert not single.has_test and single.X_test is None and single.n_test == 0 and single.name == "one"
    assert _same_matrices(load_dataset(tmp_path / "one.txt", test=tmp_path / "two.txt", unit_rows=False), data)
    write_xmc(tmp_path / "three.txt", data.X_test, sparse.hstack([data.Y_test, data.Y_test]))
    with pytest.raises(DataFormatError, match=r"three.txt, line 1: found 8 labels; expected 4 labels, as in .*one.txt"):
        load_dataset(tmp_path / "one.txt", test=tmp_path / "three.txt")


def test_split_form_in_a_folder(tmp_path, data):
    both = sparse.vstack([data.X_train, data.X_test]), sparse.vstack([data.Y_train, data.Y_test])
    write_xmc(tmp_path / "Toy_data.txt", *both)
    (tmp_path / "toy_trSplit.txt").write_text("".join(f"{i + 1} {15 - i}\n" for i in range(10)))
    (tmp_path / "toy_tstSplit.txt").write_text("".join(f"{i + 11} {5 - i}\n" for i in range(5)))
    assert _same_matrices(load_dataset(tmp_path, unit_rows=False), data)
    assert (
        load_dataset(tmp_path, split_column=1, unit_rows=False).X_train.toarray()[0] == data.X_test.toarray()[-1]
    ).all()


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "parquet"])
def test_texts_round_trip_through_a_folder(tmp_path, texts, format):
    write_dataset(texts, tmp_path / "toy", format)
    found = load_dataset(tmp_path / "toy")
    assert isinstance(found, TextDataset)
    assert found.texts_train == texts.texts_train and found.texts_test == texts.texts_test
    assert (found.Y_train.toarray() == texts.Y_train.toarray()).all()
    assert found.label_ids == ["a", "b", "c"] and found.label_names == ["Law", "Air", "Sea"]
    assert found.labels_of("test") == [["Air"], ["Law", "Sea"]]


def test_texts_become_rows(texts):
    rows = texts.vectorize(tailwise.TextFeatures(min_df=1))
    assert rows.feature_names == ["air", "law", "of", "sea", "the"]
    assert rows.X_train.shape == (2, 5) and rows.X_test.toarray()[0].tolist() == [0, 0, 0, 1, 0]
    assert rows.label_names == texts.label_names and rows.text_features.vocabulary_ == rows.feature_names
    again = texts.vectorize(rows.text_features)
    assert (again.X_train.toarray() == rows.X_train.toarray()).all()


def test_label_names_in_every_form(tmp_path, texts):
    write_dataset(texts, tmp_path / "toy", "jsonl")
    (tmp_path / "toy" / "label_names.json").unlink()
    path = tmp_path / "toy"
    assert load_dataset(path).label_names == ["a", "b", "c"]
    assert load_dataset(path, label_names={"b": "Air"}).label_names == ["a", "Air", "c"]
    assert load_dataset(path, label_names=["x", "y", "z"]).label_names == ["x", "y", "z"]
    with pytest.raises(InvalidInput, match="label_names has 2 entries but the files have 3 labels"):
        load_dataset(path, label_names=["x", "y"])
    (tmp_path / "names.txt").write_text("x\ny\nz\n")
    assert load_dataset(path, label_names=tmp_path / "names.txt").label_names == ["x", "y", "z"]
    (tmp_path / "names.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(DataFormatError, match="JSON"):
        read_names(tmp_path / "names.json")


def test_raw_texts_of_the_repository(tmp_path):
    records = [{"uid": "u", "title": "Sea", "content": "of law", "target_ind": [10, 2], "target_rel": [1.0, 1.0]}]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    names = "".join(json.dumps({"uid": str(i), "title": f"name {i}"}) + "\n" for i in range(11))
    for name, text in (("trn.json.gz", lines), ("tst.json.gz", lines), ("lbl.json.gz", names)):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    found = load_dataset(tmp_path)
    assert found.texts_test == ["Sea\nof law"] and found.label_ids == ["2", "10"]
    assert found.label_names == ["name 2", "name 10"]


def test_wrong_numbers_of_names_are_refused(tmp_path, data):
    write_dataset(data, tmp_path / "toy")
    (tmp_path / "toy" / "label_names.json").write_text('["only one"]')
    with pytest.raises(DataFormatError, match=r"label_names.json: found 1 names; expected 4, one for each label"):
        load_dataset(tmp_path / "toy")


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.txt", b"2 3 4\n0 1:1\n1 1:1\n", "xmc"),
        ("a.txt", b"0,1 1:1\n", "libsvm"),
        ("a.txt", b" 1:1 2:-3\n", "libsvm"),
        ("a.json", b'{"text": "a", "labels": []}\n', "jsonl"),
        ("a.svm", b"", "libsvm"),
        ("a.ndjson", b"", "jsonl"),
        ("a.csv.gz", b"", "csv"),
        ("a", b"PAR1....", "parquet"),
    ],
)
def test_formats_are_detected(tmp_path, name, content, format):
    (tmp_path / name).write_bytes(content)
    assert detect_format(tmp_path / name) == format


def test_refusals(tmp_path, data, texts):
    (tmp_path / "odd.txt").write_text("nothing known\n")
    with pytest.raises(DataFormatError, match=r"line 1: found 'nothing known'; .*format='csv': one of xmc, libsvm"):
        load_dataset(tmp_path / "odd.txt")
    with pytest.raises(InvalidInput, match="no data set is called 'eurlex'; known names: eurlex-4k"):
        load_dataset("eurlex")
    with pytest.raises(InvalidInput, match=r"absent.txt does not exist"):
        load_dataset(tmp_path / "absent.txt")
    with pytest.raises(InvalidInput, match="format='xml' is not one of"):
        load_dataset(tmp_path / "odd.txt", format="xml")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="has no training file"):
        load_dataset(tmp_path / "empty")
    for name in ("a-train.txt", "b-train.txt"):
        (tmp_path / "empty" / name).write_text("1 1 1\n0 0:1\n")
    with pytest.raises(InvalidInput, match=r"several training files \(a-train.txt, b-train.txt\)"):
        load_dataset(tmp_path / "empty")
    with pytest.raises(InvalidInput, match="format='csv' cannot hold rows of features"):
        write_dataset(data, tmp_path / "x", "csv")
    with pytest.raises(InvalidInput, match=r"vectorize\(\) them first"):
        write_dataset(texts, tmp_path / "x", "xmc")
    with pytest.raises(InvalidInput, match=r"label_names='labels.xml', the Mulan file"):
        (tmp_path / "a.arff").write_text("@data\n")
        load_dataset(tmp_path / "a.arff")


def test_convert(tmp_path, data, texts):
    write_xmc(tmp_path / "a.txt", data.X_train, data.Y_train)
    assert convert(tmp_path / "a.txt", tmp_path / "a.svm.gz") == [tmp_path / "a.svm.gz"]
    convert(tmp_path / "a.svm.gz", tmp_path / "b.txt")
    assert (tmp_path / "b.txt").read_text() == (tmp_path / "a.txt").read_text()
    write_dataset(texts, tmp_path / "texts", "jsonl")
    convert(tmp_path / "texts", tmp_path / "texts-csv", "csv")
    assert load_dataset(tmp_path / "texts-csv").texts_test == texts.texts_test
    write_libsvm(tmp_path / "c.svm", data.X_train, data.Y_train)
    with pytest.raises(InvalidInput, match="cannot hold rows of features; write xmc"):
        convert(tmp_path / "c.svm", tmp_path / "c.csv")


def test_datasets_check_what_they_hold(data):
    with pytest.raises(InvalidInput, match="Y has 5 rows but X has 10"):
        Dataset(data.X_train, data.Y_test)
    with pytest.raises(InvalidInput, match="pass both or neither"):
        Dataset(data.X_train, data.Y_train, data.X_test)
    with pytest.raises(InvalidInput, match="label_names has 1 entries but there are 4 labels"):
        Dataset(data.X_train, data.Y_train, label_names=["one"])
    with pytest.raises(InvalidInput, match="feature_names has 1 entries but there are 8 features"):
        Dataset(data.X_train, data.Y_train, feature_names=["one"])


def test_validation_split_and_summary(data, texts):
    split = data.validation_split(0.3, random_state=1)
    assert (split.n_train, split.n_test) == (7, 3)
    rows = {tuple(row) for row in data.X_train.toarray()}
    assert {tuple(row) for X in (split.X_train, split.X_test) for row in X.toarray()} == rows
    assert (split.X_train.toarray() == data.validation_split(0.3, random_state=1).X_train.toarray()).all()
    assert data.summary()["labels"] == 4 and "8 features" in repr(data)
    assert texts.validation_split(0.5).n_test == 1 and "2 + 2 texts" in repr(texts)
    assert texts.summary()["characters a training text"] == 8.5
    with pytest.raises(InvalidInput, match=r"fraction=1.5"):
        data.validation_split(1.5)


@pytest.mark.skipif(
    not is_cached("eurlex-4k"), reason="EURLex-4K has not been fetched; tailwise datasets fetch eurlex-4k"
)
def test_eurlex():
    found = load_dataset("eurlex-4k")
    assert found.X_train.shape == (15539, 5000) and found.Y_test.shape == (3809, 3993)
    assert found.X_train.nnz == 3_684_773 and found.Y_train.nnz == 82_530
    assert (np.diff(found.Y_train.indptr) == 0).sum() == 28


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data folder is absent")
def test_mulan_data_sets():
    found = load_dataset(
        SHARED / "bibtex-train.arff.xz", test=SHARED / "bibtex-test.arff.xz", label_names=SHARED / "bibtex.xml.xz"
    )
    assert found.X_train.shape == (4880, 1836) and found.Y_test.shape == (2515, 159)
    assert found.label_names[0] == "TAG_2005" and found.Y_train.nnz == 11616
    single = load_dataset(SHARED / "bibtex-test.arff.xz")
    assert (single.Y_train.toarray() == found.Y_test.toarray()).all()
