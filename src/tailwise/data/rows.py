"""From bytes to sparse matrices and back: what the repository's format and libsvm's have in common."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.data.files import line_number, shown, writing
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.text import parsing
from tailwise.parallel import map_blocks, progress, row_blocks
from tailwise.validation import check_choice, check_features, check_labels

_BLOCK_BYTES = 1 << 23
_BLOCK_ROWS = 4096
LARGEST_INDEX = np.iinfo(np.int32).max


class Limits(NamedTuple):
    """What the rows of a file may hold."""

    n_features: int = LARGEST_INDEX
    n_labels: int = LARGEST_INDEX
    comments: bool = False


class RowsFound(NamedTuple):
    """The rows of a file, in the order and with the indices found; ``starts`` is where each line begins."""

    X: sparse.csr_array
    Y: sparse.csr_array
    starts: np.ndarray


def parse(
    path: Path, buffer: np.ndarray, start: int, limits: Limits, *, duplicates: str = "refuse", n_jobs: int | None = None
) -> RowsFound:
    """Every line of ``buffer[start:]`` as a row of X (float32) and Y (float32 ones), indices sorted.

    Blocks of lines are parsed on ``n_jobs`` threads. X is as wide as ``limits`` says, or as the largest index found.
    """
    check_choice("duplicates", duplicates, ("refuse", "merge"))

    def parse_block(block: tuple[int, int]) -> tuple[parsing.ParsedRows, bool] | DataFormatError:
        # An error is handed back, not raised: the first one of the file is reported, whichever thread meets it first.
        return _parse_block(path, buffer, block, limits)

    blocks = _line_blocks(buffer, start)
    description = f"Reading {path.name}" if len(blocks) > 8 else ""
    parsed = []
    for part in map_blocks(parse_block, blocks, n_jobs=n_jobs, description=description):
        if isinstance(part, DataFormatError):
            raise part
        parsed.append(part)
    parts = [part for part, _ in parsed]
    starts = np.concatenate([part.starts for part in parts]) if parts else np.empty(0, np.int64)
    X = _stack([(part.x_data, part.x_indices, part.x_indptr) for part in parts], limits.n_features)
    labels = [(np.ones(part.y_indices.size, np.float32), part.y_indices, part.y_indptr) for part in parts]
    Y = _stack(labels, limits.n_labels)
    for matrix, word in ((X, "feature"), (Y, "label")):
        if not all(ordered for _, ordered in parsed):
            _sort(path, buffer, matrix, starts, word, duplicates)
        matrix.has_canonical_format = True
    Y.data[:] = 1
    return RowsFound(X, Y, starts)


def _line_blocks(buffer: np.ndarray, start: int) -> list[tuple[int, int]]:
    blocks = []
    while start < buffer.size:
        stop = min(start + _BLOCK_BYTES, buffer.size)
        while stop < buffer.size and buffer[stop - 1] != ord("\n"):
            window = buffer[stop : stop + 65536]
            newlines = np.flatnonzero(window == ord("\n"))
            stop += int(newlines[0]) + 1 if newlines.size else window.size
        blocks.append((start, stop))
        start = stop
    return blocks


def _parse_block(
    path: Path, buffer: np.ndarray, block: tuple[int, int], limits: Limits
) -> tuple[parsing.ParsedRows, bool] | DataFormatError:
    first, last = block
    piece, offset = buffer, 0
    if buffer[last - 1] != ord("\n"):
        # Only the last line of a file can lack its newline, which the kernel relies on.
        piece, offset = np.append(buffer[first:last], np.uint8(ord("\n"))), first
        first, last = 0, piece.size
    newlines, colons, commas = parsing.count_marks(piece, first, last)
    out = parsing.ParsedRows(
        np.empty(newlines, np.int64),
        np.empty(newlines + 1, np.int64),
        np.empty(colons, np.int32),
        np.empty(colons, np.float32),
        np.empty(newlines + 1, np.int64),
        np.empty(newlines + commas, np.int32),
    )
    code, at, ordered, rows, n_x, n_y = parsing.parse_rows(piece, first, last, *limits, out)
    if code != parsing.OK:
        return _refusal(path, buffer, int(at) + offset, code, limits)
    found = parsing.ParsedRows(
        out.starts[:rows] + offset,
        out.x_indptr[: rows + 1],
        out.x_indices[:n_x],
        out.x_data[:n_x],
        out.y_indptr[: rows + 1],
        out.y_indices[:n_y],
    )
    return found, ordered


def _refusal(path: Path, buffer: np.ndarray, at: int, code: int, limits: Limits) -> DataFormatError:
    token = re.match(rb"[^ \t\r\n]*", buffer[at : at + 200].tobytes())
    found = (token.group() if token else b"") or buffer[at : at + 1].tobytes().strip(b"\n")
    label = "a label number before the features (a row without labels starts with a space)"
    index = "index:value, such as 12:0.5"
    expected = {
        parsing.BAD_LABEL: label,
        parsing.AFTER_LABEL: f"{label}, labels separated by commas",
        parsing.LABEL_RANGE: f"a label from 0 to {limits.n_labels - 1:,}",
        parsing.BAD_INDEX: index,
        parsing.NO_COLON: index,
        parsing.INDEX_RANGE: f"a feature index from 0 to {limits.n_features - 1:,}",
        parsing.BAD_VALUE: f"a number behind the colon: {index}",
        parsing.VALUE_RANGE: "a value that float32 can hold (up to 3.4e38)",
        parsing.AFTER_VALUE: f"a space behind the value: {index}",
    }[code]
    what = shown(found) if found else "the end of the line"
    return DataFormatError(path, line_number(buffer, at), what, expected)


def _stack(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], width: int) -> sparse.csr_array:
    data = np.concatenate([part[0] for part in parts]) if parts else np.empty(0, np.float32)
    indices = np.concatenate([part[1] for part in parts]) if parts else np.empty(0, np.int32)
    indptr = np.zeros(1 + sum(part[2].size - 1 for part in parts), np.int64)
    row, filled = 0, 0
    for _, _, piece in parts:
        indptr[row + 1 : row + piece.size] = piece[1:] + filled
        row, filled = row + piece.size - 1, filled + int(piece[-1])
    if filled <= LARGEST_INDEX:
        indptr = indptr.astype(np.int32)
    else:
        indices = indices.astype(np.int64)
    if width == LARGEST_INDEX:
        width = int(indices.max(initial=-1)) + 1
    return sparse.csr_array((data, indices, indptr), shape=(indptr.size - 1, width))


def _sort(
    path: Path, buffer: np.ndarray, matrix: sparse.csr_array, starts: np.ndarray, word: str, duplicates: str
) -> None:
    matrix.sort_indices()
    twice = np.flatnonzero(matrix.indices[1:] == matrix.indices[:-1]) + 1
    twice = twice[~np.isin(twice, matrix.indptr)]
    if twice.size and duplicates == "refuse":
        row = int(np.searchsorted(matrix.indptr, twice[0], side="right")) - 1
        line = line_number(buffer, int(starts[row]))
        found = f"{word} {matrix.indices[twice[0]]} twice"
        raise DataFormatError(path, line, found, f"each {word} once a row, or duplicates='merge'")
    if twice.size:
        matrix.has_canonical_format = False
        matrix.sum_duplicates()


def check_pair(X: object, Y: object) -> tuple[sparse.csr_array, sparse.csr_array]:
    """X and Y as canonical CSR of the same rows, ready to be written."""
    features = check_features(X, allow_no_rows=True)
    return features, check_labels(Y, n_rows=features.shape[0])


def write(path: str | Path, X: sparse.csr_array, Y: sparse.csr_array, header: bytes, base: int) -> None:
    """Write ``header`` and each row as text, ``base`` added to the feature indices; atomic."""
    if X.shape[1] + base > LARGEST_INDEX:
        raise InvalidInput(f"X has {X.shape[1]:,} features; a file holds at most {LARGEST_INDEX - base:,}")
    blocks = row_blocks(X.shape[0], _BLOCK_ROWS)
    features, labels = csr_parts(X), csr_parts(Y)
    with writing(path) as file, progress(f"Writing {Path(path).name}", len(blocks)) as advance:
        file.write(header)
        for first, last in blocks:
            room = 32 * int(X.indptr[last] - X.indptr[first]) + 12 * int(Y.indptr[last] - Y.indptr[first])
            buffer = np.empty(room + 2 * (last - first), np.uint8)
            size = parsing.format_rows(first, last, base, features, labels, buffer)
            file.write(buffer[:size].data)
            advance()
