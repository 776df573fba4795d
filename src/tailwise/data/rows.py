"""From bytes to sparse matrices and back: what the repository's format and libsvm's have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.atomic import writing
from tailwise.data.files import LIMIT_SETTING, LineBlock, line_blocks, max_bytes, shown, too_large
from tailwise.errors import DataFormatError, InvalidInput, argument
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.text import parsing
from tailwise.parallel import count_jobs, map_blocks, progress, row_blocks
from tailwise.validation import check_choice, check_features, check_labels

_BLOCK_BYTES = 1 << 23
_LONGEST_COUNT = 100
_BLOCK_ROWS = 4096
_BYTES_A_COLUMN = 8  # of the smallest vector that has an entry for each label or feature
LARGEST_INDEX = np.iinfo(np.int32).max


class Limits(NamedTuple):
    """What the rows of a file may hold; None is whatever the largest index needs, within :func:`max_bytes`."""

    n_features: int | None = None
    n_labels: int | None = None
    comments: bool = False


def first_line(path: Path) -> tuple[bytes, Iterator[LineBlock]]:
    """The first line of a file, without its end, and blocks of the lines behind it."""
    blocks = line_blocks(path, _BLOCK_BYTES)
    head = next(blocks, None)
    if head is None:
        return b"", iter(())
    line = head.data[: int(np.argmax(head.data == ord("\n")))].tobytes()
    rest = head.data[len(line) + 1 :]
    return line, chain([LineBlock(rest, 2)] if rest.size else [], blocks)


def header_counts(line: bytes, n: int) -> tuple[int, ...] | None:
    """The ``n`` counts that a header holds and nothing else; None where it does not.

    >>> header_counts(b"3 5 ", 2), header_counts(b"3 5 x", 2)
    ((3, 5), None)
    """
    fields = line.split(None, n)
    if len(fields) != n or not all(field.isdigit() and len(field) <= _LONGEST_COUNT for field in fields):
        return None
    counts = tuple(map(int, fields))
    return counts if max(counts) <= LARGEST_INDEX else None


def parse(
    path: Path,
    blocks: Iterable[LineBlock],
    limits: Limits,
    *,
    duplicates: str = "refuse",
    n_jobs: int | None = None,
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Every line as a row of X (float32) and Y (float32 ones), both canonical.

    Blocks are read a few at a time and parsed on ``n_jobs`` threads: memory is that of X and Y.
    """
    parsed = list(parse_parts(path, blocks, limits, duplicates=duplicates, n_jobs=n_jobs))
    return _stack([x for x, _ in parsed], limits.n_features), _stack([y for _, y in parsed], limits.n_labels)


def parse_parts(
    path: Path,
    blocks: Iterable[LineBlock],
    limits: Limits,
    *,
    duplicates: str = "refuse",
    n_jobs: int | None = None,
) -> Iterator[tuple[sparse.csr_array, sparse.csr_array]]:
    """The rows of :func:`parse` in parts, from the top to the bottom: memory is that of a few blocks of lines."""
    check_choice("duplicates", duplicates, ("refuse", "merge"))
    n_features, n_labels = (_most_columns() if width is None else width for width in limits[:2])

    def parse_block(block: LineBlock) -> tuple[sparse.csr_array, sparse.csr_array] | DataFormatError:
        # An error is handed back, not raised: the first one of the file is reported, whichever thread meets it first.
        try:
            return _parse_block(path, block, (n_features, n_labels, limits.comments), duplicates)
        except DataFormatError as error:
            return error

    blocks = iter(blocks)
    description = f"Reading {path.name}" if path.stat().st_size > _BLOCK_BYTES else ""
    with progress(description, None) as advance:
        while group := list(islice(blocks, 4 * count_jobs(n_jobs))):
            for part in map_blocks(parse_block, group, n_jobs=n_jobs):
                if isinstance(part, DataFormatError):
                    raise part
                yield part
                advance()


def exact_rows(
    path: Path, X: sparse.csr_array, Y: sparse.csr_array, n_rows: int
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """X and Y of a file whose header announces ``n_rows`` rows, a line each; any other number is refused."""
    found = X.shape[0]
    expected = f"{n_rows:,} rows, as the header says"
    if found < n_rows:
        raise DataFormatError(path, found + 1, f"the end of the file after {found:,} rows", expected)
    if X.indptr[n_rows] < X.nnz or Y.indptr[n_rows] < Y.nnz:
        raise DataFormatError(path, n_rows + 2, "a row more", expected)
    # Blank lines at the very end carry no row beyond those that were announced.
    return (X, Y) if found == n_rows else (X[:n_rows], Y[:n_rows])


def exact_parts(
    path: Path, parts: Iterable[tuple[sparse.csr_array, sparse.csr_array]], n_rows: int
) -> Iterator[tuple[sparse.csr_array, sparse.csr_array]]:
    """:func:`exact_rows` for rows that come in parts."""
    found = 0
    for X, Y in parts:
        kept = min(X.shape[0], n_rows - found)
        yield exact_rows(path, X, Y, kept)
        found += kept
    if found < n_rows:
        nothing = sparse.csr_array((found, 1))
        exact_rows(path, nothing, nothing, n_rows)


def check_width(path: Path, line: int | None, width: int, word: str) -> int:
    """``width`` as a file announces it; refused where vectors of that length would not fit."""
    if width * _BYTES_A_COLUMN > max_bytes():
        raise too_large(path, line, f"{width:,} {word}s, which need {width * _BYTES_A_COLUMN:,} bytes and more")
    return width


def _parse_block(
    path: Path, block: LineBlock, limits: tuple[int, int, bool], duplicates: str
) -> tuple[sparse.csr_array, sparse.csr_array]:
    size = block.data.size
    newlines, colons, commas = parsing.count_marks(block.data, 0, size)
    out = parsing.ParsedRows(
        np.empty(newlines, np.int64),
        np.empty(newlines + 1, np.int64),
        np.empty(colons, np.int32),
        np.empty(colons, np.float32),
        np.empty(newlines + 1, np.int64),
        np.empty(newlines + commas, np.int32),
    )
    code, at, ordered, rows, n_x, n_y = parsing.parse_rows(block.data, 0, size, *limits, out)
    if code != parsing.OK:
        raise _refusal(path, block, int(at), code, limits)
    ones = np.ones(n_y, np.float32)
    X = sparse.csr_array((out.x_data[:n_x], out.x_indices[:n_x], out.x_indptr[: rows + 1]), shape=(rows, limits[0]))
    Y = sparse.csr_array((ones, out.y_indices[:n_y], out.y_indptr[: rows + 1]), shape=(rows, limits[1]))
    if not ordered:
        for matrix, word in ((X, "feature"), (Y, "label")):
            _sort(path, block, matrix, out.starts, word, duplicates)
        Y.data[:] = 1
    return X, Y


def _refusal(path: Path, block: LineBlock, at: int, code: int, limits: tuple[int, int, bool]) -> DataFormatError:
    token = re.match(rb"[^ \t\r\n]*", block.data[at : at + 200].tobytes())
    found = (token.group() if token else b"") or block.data[at : at + 1].tobytes().strip(b"\n")
    label = "a label number before the features (a row without labels starts with a space)"
    index = "index:value, such as 12:0.5"
    expected = {
        parsing.BAD_LABEL: label,
        parsing.AFTER_LABEL: f"{label}, labels separated by commas",
        parsing.LABEL_RANGE: f"a label from 0 to {limits[1] - 1:,}",
        parsing.BAD_INDEX: index,
        parsing.NO_COLON: index,
        parsing.INDEX_RANGE: f"a feature index from 0 to {limits[0] - 1:,}",
        parsing.BAD_VALUE: f"a number behind the colon: {index}",
        parsing.VALUE_RANGE: "a value that float32 can hold (up to 3.4e38)",
        parsing.AFTER_VALUE: f"a space behind the value: {index}",
    }[code]
    if code in (parsing.LABEL_RANGE, parsing.INDEX_RANGE) and _most_columns() in limits[:2]:
        expected += f"; if the file is right, set {LIMIT_SETTING} to more"
    what = shown(found) if found else "the end of the line"
    return DataFormatError(path, block.line_at(at), what, expected)


def _sort(
    path: Path, block: LineBlock, matrix: sparse.csr_array, starts: np.ndarray, word: str, duplicates: str
) -> None:
    matrix.has_sorted_indices = False
    matrix.sort_indices()
    twice = np.flatnonzero(matrix.indices[1:] == matrix.indices[:-1]) + 1
    twice = twice[~np.isin(twice, matrix.indptr)]
    if not twice.size:
        return
    row = int(np.searchsorted(matrix.indptr, twice[0], side="right")) - 1
    line = block.line_at(int(starts[row]))
    if duplicates == "refuse":
        found = f"{word} {matrix.indices[twice[0]]} twice"
        raise DataFormatError(path, line, found, f"each {word} once a row, or {argument('duplicates', 'merge')}")
    matrix.has_canonical_format = False
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise DataFormatError(path, line, f"a {word} whose values add up to infinity", "sums that float32 can hold")


def _most_columns() -> int:
    return min(LARGEST_INDEX, max_bytes() // _BYTES_A_COLUMN)


def _stack(parts: list[sparse.csr_array], width: int | None) -> sparse.csr_array:
    data = np.concatenate([part.data for part in parts]) if parts else np.empty(0, np.float32)
    indices = np.concatenate([part.indices for part in parts]) if parts else np.empty(0, np.int32)
    indptr = np.zeros(1 + sum(part.shape[0] for part in parts), np.int64)
    row, filled = 0, 0
    for part in parts:
        indptr[row + 1 : row + part.indptr.size] = part.indptr[1:].astype(np.int64) + filled
        row, filled = row + part.shape[0], filled + part.data.size
    kind = np.int32 if filled <= LARGEST_INDEX else np.int64
    if width is None:
        width = int(indices.max(initial=-1)) + 1
    stacked = sparse.csr_array(
        (data, indices.astype(kind, copy=False), indptr.astype(kind, copy=False)), shape=(indptr.size - 1, width)
    )
    stacked.has_canonical_format = True
    return stacked


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
