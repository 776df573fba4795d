"""Matrices in files of their own: X beside Y, as the repository's "LF" data sets and PECOS have them.

The repository writes ``rows columns`` and then ``index:value index:value`` for each row (``trn_X_Xf.txt`` beside
``trn_X_Y.txt``); PECOS writes scipy's ``.npz`` (``X.trn.npz`` beside ``Y.trn.npz``).
"""

from __future__ import annotations

import re
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.data import rows
from tailwise.data.files import check_file, max_bytes, plain_name, plain_suffix, shown, too_large
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.matrices import canonical_csr
from tailwise.persistence.checks import INTEGERS, array_header

_HEADER = "the header 'rows columns', two integers"
_SPLITS = {"trn": "train", "train": "train", "": "train", "tst": "test", "test": "test", "t": "test"}
_TEXT = re.compile(r"(?P<split>trn|train|tst|test)_x_(?P<what>xf|y)", re.I)
_NPZ = re.compile(r"(?P<what>x|y)\.?(?P<split>trn|train|tst|test|t|)", re.I)
_PLACES = ("indices", "indptr", "row", "col", "coords", "offsets", "shape")
"""The arrays of a saved matrix that hold integers."""
_FOREIGN = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    tokenize.TokenError,
)


class Pair(NamedTuple):
    """The files of X and of Y, which have the same rows."""

    X: Path
    Y: Path


def find_pairs(files: Iterable[Path]) -> dict[str, Pair]:
    """The pairs among ``files``, by ``"train"`` and ``"test"``; a file without its partner is none.

    >>> find_pairs([Path("tst_X_Xf.txt"), Path("tst_X_Y.txt.gz"), Path("trn_X_Y.txt")])["test"].Y.name
    'tst_X_Y.txt.gz'
    """
    found: dict[tuple[str, str], Path] = {}
    for file in files:
        text = plain_suffix(file) in (".txt", "")
        match = (_TEXT if text else _NPZ).fullmatch(plain_name(file)) if text or file.suffix.lower() == ".npz" else None
        if match is not None:
            found[_SPLITS[match["split"].lower()], match["what"][0].upper()] = file
    return {
        split: Pair(found[split, "X"], found[split, "Y"])
        for split in ("train", "test")
        if {(split, "X"), (split, "Y")} <= found.keys()
    }


def find_partner(path: Path) -> Pair | None:
    """The pair that a file is half of, with what stands beside it."""
    if not (_TEXT.fullmatch(plain_name(path)) or (path.suffix.lower() == ".npz" and _NPZ.fullmatch(path.stem))):
        return None
    return next((pair for pair in find_pairs(path.parent.iterdir()).values() if path in pair), None)


def read_pair(
    pair: Pair, *, duplicates: str = "refuse", n_jobs: int | None = None
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """X (rows, features) float32 and Y (rows, labels), float32 ones: whatever is stored in Y, and not 0, is a label."""
    X, Y = (read_matrix(path, duplicates=duplicates, n_jobs=n_jobs) for path in pair)
    if X.shape[0] != Y.shape[0]:
        raise DataFormatError(pair.Y, 1, f"{Y.shape[0]:,} rows", f"{X.shape[0]:,}, as {pair.X.name} has")
    Y.eliminate_zeros()
    Y.data[:] = 1
    return X, Y


def read_matrix(path: str | Path, *, duplicates: str = "refuse", n_jobs: int | None = None) -> sparse.csr_array:
    """A sparse matrix as canonical CSR float32, from the repository's text (gz and xz too) or scipy's ``.npz``."""
    path = check_file(path)
    if path.suffix.lower() == ".npz":
        return read_npz(path)[0]
    line, blocks = rows.first_line(path)
    counts = rows.header_counts(line, 2)
    if counts is None:
        raise DataFormatError(path, 1, shown(line.strip()) if line else "an empty file or line", _HEADER)
    n_rows, n_columns = counts
    rows.check_width(path, 1, n_columns, "column")
    # A line of this format is a row without labels of the other one.
    found = rows.parse(path, blocks, rows.Limits(n_columns, 0), duplicates=duplicates, n_jobs=n_jobs)
    return rows.exact_rows(path, *found, n_rows)[0]


def _check_places(packed: zipfile.ZipFile) -> None:
    """Refuse places that are no integers: scipy would cut 0.5 to 0."""
    for name in _PLACES:
        if f"{name}.npy" in packed.namelist():
            with packed.open(f"{name}.npy") as part:
                _, _, dtype = array_header(part)
            if dtype.kind not in INTEGERS:
                raise ValueError(f"{name} of {dtype}, not of integers")


def read_npz(path: Path) -> tuple[sparse.csr_array, list[str] | None]:
    """A sparse matrix that scipy saved, and the ``label_ids`` of its columns where they stand beside it."""
    expected = "a sparse matrix that scipy.sparse.save_npz wrote"
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(part.file_size for part in packed.infolist()) > max_bytes():
                raise too_large(path, None, "more bytes than that when unpacked")
            _check_places(packed)
        with np.load(path, allow_pickle=False) as file:
            ids = [str(label) for label in file["label_ids"].tolist()] if "label_ids" in file else None
        matrix = canonical_csr(path.name, sparse.load_npz(path), np.float32)
    except _FOREIGN as error:
        if isinstance(error, DataFormatError):
            raise
        why = str(error) if isinstance(error, InvalidInput) else " ".join(str(error).split())[:100]
        raise DataFormatError(path, None, f"damaged or foreign data ({why})", expected) from error
    rows.check_width(path, None, matrix.shape[1], "column")
    if ids is not None and len(ids) != matrix.shape[1]:
        raise DataFormatError(path, None, f"{len(ids):,} label_ids", f"{matrix.shape[1]:,}, one for each column")
    return matrix, ids
