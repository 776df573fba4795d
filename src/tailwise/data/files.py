"""Opening data files as they are: plain, gz or xz."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tailwise.errors import DataFormatError, InvalidInput, argument

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_CHUNK = 1 << 23
_MAX_BYTES = 2_000_000_000
_SHOWN = 40

LIMIT_SETTING = "TAILWISE_MAX_BYTES"
"""The environment variable that raises :func:`max_bytes`."""


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


def max_bytes() -> int:
    """How much memory a small file may claim: ``TAILWISE_MAX_BYTES``, by default 2,000,000,000.

    It bounds what a compressed file may unpack to, and what as many labels or features as a file names would need.
    """
    setting = os.environ.get(LIMIT_SETTING, "")
    if not setting:
        return _MAX_BYTES
    if not (setting.isascii() and setting.isdecimal() and len(setting) < 19 and int(setting)):
        raise InvalidInput(f"{LIMIT_SETTING}={setting!r} must be a number of bytes, such as {_MAX_BYTES}")
    return int(setting)


def too_large(path: str | Path, line: int | None, found: str) -> DataFormatError:
    """The refusal of a file that claims more memory than :func:`max_bytes`."""
    expected = f"at most {max_bytes():,} bytes; if the file is right, set {LIMIT_SETTING} to more"
    return DataFormatError(path, line, found, expected)


def chunks(path: str | Path, size: int) -> Iterator[bytes]:
    """The bytes of a file, ``size`` at a time, unpacked if it ends in .gz or .xz.

    Files are read, never mapped: a mapped file that another process cuts short ends this one.
    """
    path = check_file(path)
    packed = path.suffix.lower() in _OPENERS
    room = max_bytes()
    try:
        with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            while piece := file.read(size):
                room -= len(piece)
                if packed and room < 0:
                    raise too_large(path, None, "more bytes than that when unpacked")
                yield piece
    except _DAMAGED as error:
        raise DataFormatError(path, None, f"damaged compression ({error})", "a whole gz or xz file") from error


class LineBlock(NamedTuple):
    """Whole lines of a file."""

    data: np.ndarray  # uint8; the last byte is a newline
    line: int  # the number of the first line, counted from 1

    def line_at(self, position: int) -> int:
        """The line, counted from 1 in the file, that holds the byte at ``position``."""
        return self.line + int(np.count_nonzero(self.data[:position] == ord("\n")))


def line_blocks(path: str | Path, size: int) -> Iterator[LineBlock]:
    """The lines of a file in blocks of about ``size`` bytes, without a byte-order mark; the last gets its newline."""
    line = 1
    held: list[bytes] = []
    for piece in chain(chunks(path, size), [b""]):
        cut = piece.rfind(b"\n") + 1
        if piece and not cut:
            held.append(piece)
            continue
        block = b"".join([*held, piece[:cut]])
        held = [piece[cut:]]
        if line == 1:
            block = block.removeprefix(_BYTE_ORDER_MARK)
        if block:
            block += b"" if block.endswith(b"\n") else b"\n"
            yield LineBlock(np.frombuffer(block, np.uint8), line)
            line += block.count(b"\n")


def read_bytes(path: str | Path, size: int = -1) -> bytes:
    """The bytes of a file, or its first ``size`` bytes, unpacked if it ends in .gz or .xz."""
    return b"".join(chunks(path, _CHUNK)) if size < 0 else next(chunks(path, size), b"")


def read_text(path: str | Path, encoding: str | None = None) -> str:
    """The file as text, without a byte-order mark: UTF-8, or UTF-16 where such a mark says so, unless told."""
    data = read_bytes(path)
    if encoding is None and (others := _wide(data)):
        raise _misread(path, 1, "NUL bytes, as UTF-16 has them", *others)
    codec = encoding or ("utf-16" if data.startswith(_UTF_16) else "utf-8")
    try:
        return data.decode(codec).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"bytes that are not {codec.upper()} ({data[error.start : error.start + 4]!r})"
        others = ("utf-8",) if encoding else ("cp1252", "latin-1")
        raise _misread(path, line, found, *others) from error
    except (LookupError, ValueError) as error:
        known = "utf-8, utf-16, latin-1 or cp1252"
        raise InvalidInput(f"{argument('encoding', encoding)} is not known; pass one such as {known}") from error


def _misread(path: str | Path, line: int, found: str, *others: str) -> DataFormatError:
    named = " or ".join(argument("encoding", name) for name in others)
    return DataFormatError(path, line, found, f"text in UTF-8, or its encoding named, such as {named}")


def _wide(data: bytes) -> tuple[str, ...]:
    """The UTF-16 that a text of Latin letters begins in, where it does not say so by a mark."""
    zeros = [place for place in range(min(len(data), 8)) if not data[place]]
    return ("utf-16-be",) if zeros == [0, 2, 4, 6] else ("utf-16-le",) if zeros == [1, 3, 5, 7] else ()


def split_lines(text: str) -> list[str]:
    """The lines of a text file, which end in ``\\n`` or ``\\r\\n`` and in nothing else.

    >>> split_lines("a\\u2028b\\r\\nc\\n")
    ['a\\u2028b', 'c']
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]


def parse_json(text: str) -> Any:
    """``text`` as JSON; a ValueError also where it is nested too deeply, or escapes half a character."""
    try:
        value = json.loads(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except UnicodeEncodeError as error:
        raise ValueError("a lone surrogate, which is no character") from error
    return value


def shown(found: bytes | str) -> str:
    """A piece of a file as an error message quotes it: escaped, and cut when it is long."""
    text = found.decode("utf-8", "backslashreplace") if isinstance(found, bytes) else found
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
