"""Opening data files as they are (plain, gz, xz), and writing new ones whole or not at all."""

from __future__ import annotations

import gzip
import lzma
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from tailwise.errors import DataFormatError, InvalidInput

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
_SHOWN = 40


def plain_suffix(path: str | Path) -> str:
    """The suffix that tells the format, without a compression suffix: ``.txt`` for ``train.txt.xz``.

    >>> plain_suffix("train.txt.xz")
    '.txt'
    """
    path = Path(path)
    return (path.with_suffix("") if path.suffix.lower() in _OPENERS else path).suffix.lower()


def plain_name(path: str | Path) -> str:
    """The file's name without its format and compression suffixes: ``train`` for ``train.txt.xz``.

    >>> plain_name("train.txt.xz")
    'train'
    """
    path = Path(path)
    return (path.with_suffix("") if path.suffix.lower() in _OPENERS else path).stem


def check_file(path: str | Path) -> Path:
    """``path`` as a Path to an existing file."""
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InvalidInput(f"{path} {what}; pass the path of a data file")
    return path


def read_buffer(path: str | Path) -> np.ndarray:
    """The bytes of a file as a read-only uint8 array: mapped into memory, or unpacked from gz or xz."""
    path = check_file(path)
    if path.suffix.lower() in _OPENERS:
        return np.frombuffer(read_bytes(path), np.uint8)
    if path.stat().st_size == 0:
        return np.empty(0, np.uint8)
    return np.memmap(path, np.uint8, mode="r").view(np.ndarray)


def read_bytes(path: str | Path, size: int = -1) -> bytes:
    """The bytes of a file, or its first ``size`` bytes, unpacked if it ends in .gz or .xz."""
    path = check_file(path)
    try:
        with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            return file.read(size)
    except _DAMAGED as error:
        raise DataFormatError(path, None, f"damaged compression ({error})", "a whole gz or xz file") from error


def read_text(path: str | Path) -> str:
    """The file as text: UTF-8, with or without a byte-order mark."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = repr(data[error.start : error.start + 4])
        raise DataFormatError(path, line, f"the bytes {found}", "text in UTF-8; convert the file to UTF-8") from error


@contextmanager
def writing(path: str | Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under ``path`` only when it is whole; packed if ``path`` ends in .gz or .xz."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    os.close(handle)
    scratch = Path(name)
    try:
        if path.suffix.lower() == ".gz":
            # A fixed time stamp and no file name: the same data give the same bytes.
            with scratch.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                yield packed  # type: ignore[misc]
        else:
            with _OPENERS.get(path.suffix.lower(), open)(scratch, "wb") as file:
                yield file
        scratch.chmod(0o644)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def line_number(buffer: np.ndarray, position: int) -> int:
    """The line, counted from 1, that holds the byte at ``position``."""
    return int(np.count_nonzero(buffer[:position] == ord("\n"))) + 1


def shown(found: bytes | str) -> str:
    """A piece of a file as an error message quotes it: escaped, and cut when it is long."""
    text = found.decode("utf-8", "backslashreplace") if isinstance(found, bytes) else found
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
