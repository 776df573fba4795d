"""X and Y in files of their own: the repository's "LF" form and PECOS's matrices."""

import gzip
import zipfile

import numpy as np
import pytest
from scipy import sparse

from tailwise.data import load_dataset
from tailwise.data.pairs import read_matrix
from tailwise.errors import DataFormatError

X = {"train": "3 4\n0:1 3:2.5\n\n1:1\n", "test": "2 4\n0:1\n2:1\n"}
Y = {"train": "3 5\n4:1.0 0:1.0\n2:1\n\n", "test": "2 5\n1:1\n0:1\n"}


def as_text(folder):
    folder.mkdir()
    for split, name in (("train", "trn"), ("test", "tst")):
        (folder / f"{name}_X_Xf.txt").write_text(X[split])
        with gzip.open(folder / f"{name}_X_Y.txt.gz", "wt") as file:
            file.write(Y[split])
    (folder / "Yf.txt").write_text("a\nb\nc\nd\ne\n")
    (folder / "Xf.txt").write_text("w\nx\ny\nz\n")
    return folder


def matrices():
    x = {
        "train": sparse.csr_array([[1, 0, 0, 2.5], [0, 0, 0, 0], [0, 1, 0, 0]]),
        "test": sparse.csr_array([[1.0, 0, 0, 0], [0, 0, 1, 0]]),
    }
    y = {
        "train": sparse.csr_array([[1.0, 0, 0, 0, 1], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]]),
        "test": sparse.csr_array([[0, 1.0, 0, 0, 0], [1, 0, 0, 0, 0]]),
    }
    return x, y


def as_npz(folder, names):
    folder.mkdir()
    for matrix, kind in zip(matrices(), "XY", strict=True):
        for split in ("train", "test"):
            sparse.save_npz(folder / f"{names[split].format(kind)}.npz", sparse.csr_matrix(matrix[split]))
    return folder


@pytest.mark.parametrize("form", ["text", "X.trn", "Xt"])
def test_a_folder_of_pairs(tmp_path, form):
    names = {"X.trn": {"train": "{}.trn", "test": "{}.tst"}, "Xt": {"train": "{}", "test": "{}t"}}
    folder = as_text(tmp_path / "d") if form == "text" else as_npz(tmp_path / "d", names[form])
    data = load_dataset(folder, unit_rows=False)
    x, y = matrices()
    for found, expected in (
        (data.X_train, x["train"]),
        (data.X_test, x["test"]),
        (data.Y_train, y["train"]),
        (data.Y_test, y["test"]),
    ):
        assert (found.toarray() == expected.toarray()).all()
    assert data.Y_train.data.tolist() == [1.0, 1.0, 1.0]
    if form == "text":
        assert data.label_names == list("abcde") and data.feature_names == list("wxyz")


@pytest.mark.parametrize("name", ["tst_X_Xf.txt", "tst_X_Y.txt.gz"])
def test_one_file_finds_its_other_half(tmp_path, name):
    data = load_dataset(as_text(tmp_path / "d") / name, unit_rows=False)
    assert data.n_train == 2 and not data.has_test and data.n_labels == 5


def test_stored_zeros_of_y_are_no_labels(tmp_path):
    folder = as_text(tmp_path / "d")
    (folder / "tst_X_Xf.txt").unlink()
    (folder / "trn_X_Y.txt.gz").unlink()
    (folder / "trn_X_Y.txt").write_text("3 5\n4:0 0:3\n\n\n")
    assert load_dataset(folder).Y_train.toarray().sum() == 1


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("trn_X_Y.txt", "2 5\n\n\n", r"trn_X_Y.txt, line 1: found 2 rows; expected 3, as trn_X_Xf.txt has"),
        ("trn_X_Y.txt", "3 5 1\n", r"trn_X_Y.txt, line 1: found '3 5 1'; expected the header 'rows columns'"),
        ("trn_X_Y.txt", f"3 5{' ' * 200}x\n5:1\n\n\n", r"trn_X_Y.txt, line 1"),
        ("trn_X_Y.txt", f"3 {'5' * 30}\n5:1\n\n\n", r"trn_X_Y.txt, line 1"),
        ("trn_X_Y.txt", "3 5\n5:1\n\n\n", r"trn_X_Y.txt, line 2: .*from 0 to 4"),
        ("trn_X_Y.txt", "3 5\n1,2 3:1\n\n\n", r"trn_X_Y.txt, line 2"),
        ("trn_X_Y.txt", "3 5\n1:1\n", r"trn_X_Y.txt, line 2: found the end of the file"),
    ],
)
def test_refusals_name_file_and_line(tmp_path, file, text, message):
    folder = as_text(tmp_path / "d")
    (folder / "trn_X_Y.txt.gz").unlink()
    (folder / file).write_text(text)
    with pytest.raises(DataFormatError, match=message):
        load_dataset(folder)


def test_half_a_pair_is_refused(tmp_path):
    sparse.save_npz(tmp_path / "X.trn.npz", sparse.csr_array(np.eye(2)))
    with pytest.raises(DataFormatError, match=r"one matrix; expected X and Y side by side"):
        load_dataset(tmp_path / "X.trn.npz")
    assert read_matrix(tmp_path / "X.trn.npz").shape == (2, 2)


def test_a_damaged_matrix_is_refused_whatever_its_header_says(tmp_path):
    path = tmp_path / "X.trn.npz"
    sparse.save_npz(path, sparse.csr_array(np.eye(2)), compressed=False)
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    for damage in (b"'shape", b"(("):
        with zipfile.ZipFile(path, "w") as packed:
            for name, content in parts.items():
                packed.writestr(
                    name, content.replace(b"'shape'", damage.ljust(7)) if name == "indices.npy" else content
                )
        with pytest.raises(DataFormatError, match="damaged or foreign data"):
            read_matrix(path)


@pytest.mark.parametrize("kind", ["float32", "bool", "S1", "m8[s]"])
def test_places_that_are_no_integers_are_refused(tmp_path, kind):
    path = tmp_path / "X.trn.npz"
    parts = {"format": b"csr", "shape": [2, 2], "data": [1.0, 2.0], "indptr": [0, 1, 2]}
    np.savez(path, **parts, indices=np.array([0, 1]))
    assert read_matrix(path).indices.tolist() == [0, 1]
    np.savez(path, **parts, indices=np.array([0, 1]).astype(kind))
    with pytest.raises(DataFormatError, match=r"X\.trn\.npz: found damaged .*indices of .*, not of integers"):
        read_matrix(path)
