"""Rows that stay on disk: a folder ``x.rows`` of plain arrays, written as they come and opened as mapped memory.

``rows.json`` tells the shapes, and length and sha256 of each array. Rows have unit length, as models expect them.
Opening reads every byte once, to compare digests and to look at the indices, and keeps none of them in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.atomic import fsync_file, fsync_folder, temporary_folder
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.persistence.checks import Violation, check_csr
from tailwise.rows import unit_rows
from tailwise.validation import check_features

SUFFIX = ".rows"
_FACTS = "rows.json"
_FORMAT = {"format": "tailwise-rows", "format_version": 1}
_DTYPES: dict[str, np.dtype[Any]] = {"data": np.dtype("<f4"), "indices": np.dtype("<i4"), "indptr": np.dtype("<i8")}
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
        return {
            "shape": [self.n_rows, self.width if width is None else width],
            "sha256": {part: digest.hexdigest() for part, digest in self._digests.items()},
        }


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
    if path.exists() and not is_rows(path):
        raise InvalidInput(f"{path} exists and holds no rows; choose another name")
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
        with _moved_away(path):
            scratch.rename(path)
        fsync_folder(path.parent)


@contextmanager
def _moved_away(path: Path) -> Iterator[None]:
    """Have nothing at ``path``, where rows may have been: they are removed when the new ones are there."""
    if not path.exists():
        yield
        return
    with temporary_folder(path) as old:
        path.rename(old / "old")
        yield


def blocks_of(X: sparse.csr_array, Y: sparse.csr_array) -> Iterator[tuple[sparse.csr_array, sparse.csr_array]]:
    """X and Y in parts that :func:`write_rows` takes."""
    for first in range(0, X.shape[0], _ROWS_AT_ONCE):
        chosen = slice(first, first + _ROWS_AT_ONCE)
        yield X[chosen], Y[chosen]


def is_rows(path: Path) -> bool:
    """Whether ``path`` is a folder of rows."""
    try:
        return json.loads((path / _FACTS).read_text(encoding="utf-8")).get("format") == _FORMAT["format"]
    except (OSError, ValueError, AttributeError):
        return False


def read_rows(path: str | Path) -> tuple[sparse.csr_array, sparse.csr_array]:
    """X and Y of a folder that :func:`write_rows` wrote, mapped into memory and read-only."""
    path = Path(path)
    expected = "a folder that `tailwise convert` wrote; write it again"
    try:
        facts = json.loads((path / _FACTS).read_text(encoding="utf-8"))
        if {name: facts.get(name) for name in _FORMAT} != _FORMAT:
            raise Violation(f"format {facts.get('format')!r}, version {facts.get('format_version')!r}")
        X, Y = (_open(path, name, facts[name]) for name in ("X", "Y"))
        if X.shape[0] != Y.shape[0]:
            raise Violation(f"{X.shape[0]:,} rows of X and {Y.shape[0]:,} of Y")
        return X, Y
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Violation) as error:
        raise DataFormatError(path, None, str(error) or repr(error), expected) from error


def _open(folder: Path, name: str, facts: dict[str, Any]) -> sparse.csr_array:
    arrays = {}
    for part, dtype in _DTYPES.items():
        file = folder / f"{name}.{part}"
        size = file.stat().st_size
        if not file.is_file() or file.is_symlink() or size % dtype.itemsize:
            raise Violation(f"{file.name} is no array of {dtype}")
        arrays[part] = np.memmap(file, dtype, "r").view(np.ndarray) if size else np.empty(0, dtype)
        if _digest(arrays[part]) != facts["sha256"][part]:
            raise Violation(f"{file.name} with another sha256 than when it was written")
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
