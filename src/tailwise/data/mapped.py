"""Rows that stay on disk: a folder ``x.rows`` of plain arrays, written as they come and opened as mapped memory.

``rows.json`` tells the shapes, and name and sha256 of each array's file. Rows have unit length, as models expect them.
Opening reads every byte once, to compare digests and to look at the indices, and keeps none of them in memory. As with
models, a folder that is written again holds the old rows or the new ones at every moment, whoever reads it or dies.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.atomic import fsync_file, fsync_folder, locked, temporary_folder
from tailwise.errors import DataFormatError, InvalidInput, ModelFileError, TailwiseError
from tailwise.persistence.checks import Violation, check_csr
from tailwise.persistence.manifest import open_regular
from tailwise.persistence.publishing import publish
from tailwise.rows import unit_rows
from tailwise.validation import check_features

SUFFIX = ".rows"
_FACTS = "rows.json"
_FORMAT = {"format": "tailwise-rows", "format_version": 2}
_DTYPES: dict[str, np.dtype[Any]] = {"data": np.dtype("<f4"), "indices": np.dtype("<i4"), "indptr": np.dtype("<i8")}
_OUR_FILE = re.compile(r"[XY]\.(?:data|indices|indptr)-([0-9a-f]{16})")
_TRIES = 100
_ROWS_AT_ONCE = 65_536
_DIGEST_BYTES = 1 << 24


class _Growing:
    """A matrix whose rows are written as they come."""

    def __init__(self, folder: Path, name: str, files: ExitStack) -> None:
        self.name, self.n_rows, self.n_values, self.width = name, 0, 0, 0
        self._files = {part: files.enter_context((folder / f"{name}.{part}").open("wb")) for part in _DTYPES}
        self._digests = {part: hashlib.sha256() for part in _DTYPES}
        self._put("indptr", np.zeros(1, np.int64))

    def append(self, rows: sparse.csr_array) -> None:
        self._put("data", rows.data)
        self._put("indices", rows.indices)
        self._put("indptr", rows.indptr[1:].astype(np.int64) + self.n_values)
        self.n_rows += rows.shape[0]
        self.n_values += int(rows.indptr[-1])
        self.width = max(self.width, int(rows.indices.max(initial=-1)) + 1)

    def _put(self, part: str, array: np.ndarray) -> None:
        plain = np.ascontiguousarray(array, _DTYPES[part])
        self._files[part].write(plain.data)
        self._digests[part].update(plain.data)

    def facts(self, width: int | None) -> dict[str, Any]:
        """What is told of it; its files, which must be closed, get their names."""
        files = {}
        for part, digest in self._digests.items():
            file = Path(self._files[part].name)
            named = file.with_name(f"{file.name}-{digest.hexdigest()[:16]}")
            file.rename(named)
            files[part] = {"name": named.name, "sha256": digest.hexdigest()}
        return {"shape": [self.n_rows, self.width if width is None else width], "files": files}


def write_rows(
    path: str | Path,
    parts: Iterable[tuple[sparse.csr_array, sparse.csr_array]],
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
) -> None:
    """Write X and Y, which come in ``parts`` from the top to the bottom, to the folder ``path``; memory is one part's.

    Rows of X are scaled to unit length. Widths are what the largest index needs unless they are told.

    >>> import tempfile
    >>> X, Y = sparse.csr_array([[3.0, 4.0]], dtype=np.float32), sparse.csr_array([[1.0]], dtype=np.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_rows(f"{folder}/a.rows", [(X, Y), (X, Y)])
    ...     read_rows(f"{folder}/a.rows")[0].toarray()
    array([[0.6, 0.8],
           [0.6, 0.8]], dtype=float32)
    """
    path = Path(path)
    _check_replaceable(path)
    with temporary_folder(path) as scratch:
        with ExitStack() as files:
            X, Y = (_Growing(scratch, name, files) for name in ("X", "Y"))
            for features, labels in parts:
                X.append(unit_rows(check_features(features, allow_no_rows=True)))
                Y.append(labels)
        facts = {**_FORMAT, "X": X.facts(n_features), "Y": Y.facts(n_labels)}
        (scratch / _FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")
        for file in scratch.iterdir():
            fsync_file(file)
        fsync_folder(scratch)
        with locked(path):
            _check_replaceable(path)
            listed = _files_of(_facts_at(path))
            publish(scratch, path, _files_of(facts), description=_FACTS, ours=_OUR_FILE, listed=set(listed))


def _check_replaceable(path: Path) -> None:
    if path.exists() and not is_rows(path) and not (path.is_dir() and not any(path.iterdir())):
        raise InvalidInput(f"{path} exists and holds no rows; choose another name")


def blocks_of(X: sparse.csr_array, Y: sparse.csr_array) -> Iterator[tuple[sparse.csr_array, sparse.csr_array]]:
    """X and Y in parts that :func:`write_rows` takes."""
    for first in range(0, X.shape[0], _ROWS_AT_ONCE):
        chosen = slice(first, first + _ROWS_AT_ONCE)
        yield X[chosen], Y[chosen]


def is_rows(path: Path) -> bool:
    """Whether ``path`` is a folder of rows."""
    return _facts_at(path).get("format") == _FORMAT["format"]


def read_rows(path: str | Path) -> tuple[sparse.csr_array, sparse.csr_array]:
    """X and Y of a folder that :func:`write_rows` wrote, mapped into memory and read-only."""
    path = Path(path)
    for _ in range(_TRIES):
        facts = _facts_at(path)
        try:
            return _read(path, facts)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, TailwiseError) as error:
            # While somebody writes new rows there, the files of the old ones go.
            if facts == _facts_at(path):
                expected = "a folder that `tailwise convert` wrote; write it again"
                raise DataFormatError(path, None, str(error) or repr(error), expected) from error
    raise DataFormatError(path, None, "rows that are written again all the time", "that nobody writes to the folder")


def _facts_at(path: Path) -> dict[str, Any]:
    """What the description of a folder says; nothing where there is none."""
    try:
        with open_regular(path / _FACTS) as file:
            found = json.loads(file.read().decode("utf-8"))
    except (OSError, ValueError, RecursionError, ModelFileError):
        return {}
    return found if isinstance(found, dict) else {}


def _files_of(facts: dict[str, Any]) -> dict[str, str]:
    """The files that a description lists, with their digests."""
    try:
        return {file["name"]: file["sha256"] for matrix in "XY" for file in facts[matrix]["files"].values()}
    except (KeyError, TypeError, AttributeError):
        return {}


def _read(path: Path, facts: dict[str, Any]) -> tuple[sparse.csr_array, sparse.csr_array]:
    if {name: facts.get(name) for name in _FORMAT} != _FORMAT:
        raise Violation(f"format {facts.get('format')!r}, version {facts.get('format_version')!r}")
    # All files are opened before one is looked at: from then on they may be replaced.
    arrays = {matrix: {part: _map(path, part, facts[matrix]["files"][part]) for part in _DTYPES} for matrix in "XY"}
    X, Y = (_matrix(name, arrays[name], facts[name]) for name in "XY")
    if X.shape[0] != Y.shape[0]:
        raise Violation(f"{X.shape[0]:,} rows of X and {Y.shape[0]:,} of Y")
    return X, Y


def _map(folder: Path, part: str, facts: dict[str, Any]) -> np.ndarray:
    name, dtype = facts["name"], _DTYPES[part]
    if not _OUR_FILE.fullmatch(name):
        raise Violation(f"a file called {name!r}")
    with open_regular(folder / name) as file:
        size = file.seek(0, io.SEEK_END)
        if size % dtype.itemsize:
            raise Violation(f"{name} is no array of {dtype}")
        return np.memmap(file, dtype, "r").view(np.ndarray) if size else np.empty(0, dtype)


def _matrix(name: str, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> sparse.csr_array:
    for part, array in arrays.items():
        if _digest(array) != facts["files"][part]["sha256"]:
            raise Violation(f"{facts['files'][part]['name']} with another sha256 than when it was written")
    shape = check_csr(name, arrays["data"], arrays["indices"], arrays["indptr"], facts["shape"])
    # Not through the constructor, which would copy the indices to the offsets' dtype.
    matrix = sparse.csr_array(shape, dtype=np.float32)
    matrix.data, matrix.indices, matrix.indptr = arrays["data"], arrays["indices"], arrays["indptr"]
    return matrix


def _digest(array: np.ndarray) -> str:
    digest, raw = hashlib.sha256(), array.view(np.uint8)
    for first in range(0, raw.size, _DIGEST_BYTES):
        digest.update(raw[first : first + _DIGEST_BYTES].data)
    return digest.hexdigest()
