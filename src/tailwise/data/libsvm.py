"""The libsvm (svmlight) format with several labels a row: ``l1,l2 index:value …``.

The format does not say whether labels and features count from 0 or from 1. Files that tailwise writes do, in a comment
on the first line, which other readers of the format skip. Of other files it is asked for: labels are never guessed at.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.data import rows
from tailwise.data.files import LineBlock, shown
from tailwise.data.mapped import write_rows
from tailwise.errors import DataFormatError, InvalidInput, argument
from tailwise.validation import check_choice, check_number

MARK = b"# tailwise libsvm"
_HEADER = re.compile(MARK + rb": (\d{1,10}) rows, (\d{1,10}) features from ([01]), (\d{1,10}) labels from ([01])\s*")
_EXAMPLE = "# tailwise libsvm: 100 rows, 5000 features from 1, 40 labels from 0"


class _Header(NamedTuple):
    """What the first line tells."""

    n_rows: int
    n_features: int
    feature_base: int
    n_labels: int
    label_base: int


class _Part(NamedTuple):
    """A file as found: indices as they stand in it."""

    path: Path
    header: _Header | None
    matrices: dict[str, Any]  # by "feature" and "label"

    def told(self, field: str) -> int | None:
        """What the header says, if there is one."""
        return None if self.header is None else getattr(self.header, field)


def read_libsvm(
    path: str | Path,
    *,
    label_base: int | None = None,
    feature_base: int | None = None,
    n_features: int | None = None,
    n_labels: int | None = None,
    duplicates: str = "refuse",
    n_jobs: int | None = None,
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Read X (rows, features) float32 and Y (rows, labels), float32 ones, as canonical CSR; gz and xz too.

    A ``#`` starts a comment; lines without anything else are no rows. In a file that tailwise wrote each line is a
    row. To read a training and a test file, whose numbers must mean the same, use :func:`read_libsvm_files`.

    Parameters
    ----------
    path : str or Path
        The file; its name may end in .gz or .xz.
    label_base : {0, 1}, optional
        The number of the first label. By default what the file's header says, or 0 where a label 0 occurs; a file that
        does not tell is refused.
    feature_base : {0, 1}, optional
        The number of the first feature. By default what the header says, or 0 where an index 0 occurs; otherwise 1,
        the format's custom, with a warning.
    n_features, n_labels : int, optional
        The widths of X and Y; by default what the header says or the largest index needs. A larger index is refused.
    duplicates : {"refuse", "merge"}
        As in :func:`read_xmc`.
    n_jobs : int or None
        Threads that parse; None is every core.
    """
    return read_libsvm_files(
        [path],
        label_base=label_base,
        feature_base=feature_base,
        n_features=n_features,
        n_labels=n_labels,
        duplicates=duplicates,
        n_jobs=n_jobs,
    )[0]


def read_libsvm_files(
    paths: Sequence[str | Path],
    *,
    label_base: int | None = None,
    feature_base: int | None = None,
    n_features: int | None = None,
    n_labels: int | None = None,
    duplicates: str = "refuse",
    n_jobs: int | None = None,
) -> list[tuple[sparse.csr_array, sparse.csr_array]]:
    """Read several files as one data set: the widths of X and Y, and where counting starts, are the same for all.

    Parameters are those of :func:`read_libsvm`; what one file tells holds for the others.
    """
    check_choice("label_base", label_base, (0, 1, None))
    check_choice("feature_base", feature_base, (0, 1, None))
    parts = [_read_part(Path(path), duplicates, n_jobs) for path in paths]
    Y = _align(parts, "label", label_base, n_labels)
    X = _align(parts, "feature", feature_base, n_features)
    return list(zip(X, Y, strict=True))


def convert_libsvm(
    path: str | Path,
    target: str | Path,
    *,
    label_base: int | None = None,
    feature_base: int | None = None,
    duplicates: str = "refuse",
    n_jobs: int | None = None,
) -> bool:
    """Write the rows of a file as mapped arrays to the folder ``target``; memory is that of some blocks of text.

    Returns False, and writes nothing, where neither the file's header nor an argument tells where numbers start.
    """
    path = Path(path)
    line, rest = rows.first_line(path)
    header = _read_header(path, line) if line.startswith(MARK) else None
    if header is not None:
        bases = (header.feature_base, header.label_base)
        widths: tuple[int | None, int | None] = (header.n_features, header.n_labels)
        limits = rows.Limits(header.n_features + bases[0], header.n_labels + bases[1])
        blocks = rest
    elif feature_base is not None and label_base is not None:
        bases, widths, limits = (feature_base, label_base), (None, None), rows.Limits(comments=True)
        blocks = chain([LineBlock(np.frombuffer(line + b"\n", np.uint8), 1)], rest)
    else:
        return False
    found = rows.parse_parts(path, blocks, limits, duplicates=duplicates, n_jobs=n_jobs)
    parts = found if header is None else rows.exact_parts(path, found, header.n_rows)
    shifted = (tuple(_counted_from(path, one, base) for one, base in zip(part, bases, strict=True)) for part in parts)
    write_rows(target, shifted, n_features=widths[0], n_labels=widths[1])  # type: ignore[arg-type]
    return True


def _counted_from(path: Path, rows_from: sparse.csr_array, base: int) -> sparse.csr_array:
    """Rows whose numbers start at ``base``, counted from 0."""
    if base and (rows_from.indices < base).any():
        raise DataFormatError(path, None, "the number 0", f"numbers that start at {base}, as the file or you said")
    width = max(1, rows_from.shape[1] - base)
    shape = (rows_from.shape[0], width)
    return sparse.csr_array((rows_from.data, rows_from.indices - base, rows_from.indptr), shape=shape)


def write_libsvm(path: str | Path, X: object, Y: object, *, feature_base: int = 1, header: bool = True) -> None:
    """Write X and Y as libsvm: features from 1 (the format's custom) or 0, labels as their column numbers, from 0.

    The first line is a comment that tells so, and lets :func:`read_libsvm` give back the same matrices. Readers
    that know no comments need ``header=False``; such a file does not tell where its numbers start.
    """
    check_choice("feature_base", feature_base, (0, 1))
    features, labels = rows.check_pair(X, Y)
    (n_rows, n_features), n_labels = features.shape, labels.shape[1]
    line = f": {n_rows} rows, {n_features} features from {feature_base}, {n_labels} labels from 0\n"
    rows.write(path, features, labels, MARK + line.encode() if header else b"", base=feature_base)


def _read_part(path: Path, duplicates: str, n_jobs: int | None) -> _Part:
    line, rest = rows.first_line(path)
    header = _read_header(path, line) if line.startswith(MARK) else None
    if header is None:
        first = np.frombuffer(line + b"\n", np.uint8)
        blocks = chain([LineBlock(first, 1)], rest)
        X, Y = rows.parse(path, blocks, rows.Limits(comments=True), duplicates=duplicates, n_jobs=n_jobs)
        if X.shape[0] == 0:
            raise DataFormatError(path, None, "no row", "lines of the form: l1,l2 index:value index:value")
    else:
        # The kernel counts from 0: in a file that counts from 1 the last index is the width.
        limits = rows.Limits(header.n_features + header.feature_base, header.n_labels + header.label_base)
        found = rows.parse(path, rest, limits, duplicates=duplicates, n_jobs=n_jobs)
        X, Y = rows.exact_rows(path, *found, header.n_rows)
    return _Part(path, header, {"feature": X, "label": Y})


def _read_header(path: Path, line: bytes) -> _Header:
    match = _HEADER.fullmatch(line)
    header = None if match is None else _Header(*map(int, match.groups()))
    if header is None or not header.n_features or not header.n_labels or max(header) >= rows.LARGEST_INDEX:
        raise DataFormatError(path, 1, shown(line), f"a header such as {_EXAMPLE!r}, or none")
    rows.check_width(path, 1, header.n_features, "feature")
    rows.check_width(path, 1, header.n_labels, "label")
    return header


def _align(parts: list[_Part], word: str, base: int | None, width: int | None) -> list[sparse.csr_array]:
    """The matrices of all files with columns that count from 0 and the same width."""
    told_base = _agreed(parts, f"{word}_base")
    if base is None:
        base = _find_base(parts, word) if told_base is None else told_base
    elif told_base is not None and told_base != base:
        told_by = next(part.path for part in parts if part.header is not None)
        raise DataFormatError(
            told_by, 1, f"{word}s from {told_base}", f"{word}s from {base}, as {argument(f'{word}_base', base)} says"
        )
    told_width = _agreed(parts, f"n_{word}s")
    needed = told_width or 1
    for part in parts:
        matrix = part.matrices[word]
        if base and matrix.nnz and matrix.indices.min() == 0:
            row = int(np.searchsorted(matrix.indptr, int(np.argmin(matrix.indices)), side="right"))
            expected = f"{word}s that count from 1 (is it {argument(f'{word}_base', 0)}?)"
            line = None if part.header is None else row + 1
            raise DataFormatError(part.path, line, f"{word} 0 in row {row:,}", expected)
        found = int(matrix.indices.max(initial=-1)) + 1 - base
        if told_width is not None and found > told_width:
            raise DataFormatError(part.path, None, f"{found:,} {word}s", f"{told_width:,}, as the other file says")
        needed = max(needed, found)
    if width is not None:
        check_number(f"n_{word}s", width, integer=True, low=1)
        if needed > width:
            raise InvalidInput(f"n_{word}s={width:,}, but {parts[0].path} needs {needed:,}; raise it or leave it out")
        needed = width
    return [_shifted(part.matrices[word], base, needed) for part in parts]


def _agreed(parts: list[_Part], field: str) -> int | None:
    """What the headers say, which must be the same in all of them; None where there is none."""
    told = [(part.path, value) for part in parts if (value := part.told(field)) is not None]
    for path, value in told:
        if value != told[0][1]:
            what = field.replace("_", " ")
            raise DataFormatError(path, 1, f"{what} {value:,}", f"{what} {told[0][1]:,}, as in {told[0][0]}")
    return told[0][1] if told else None


def _find_base(parts: list[_Part], word: str) -> int:
    smallest = min((int(part.matrices[word].indices.min()) for part in parts if part.matrices[word].nnz), default=0)
    if smallest == 0:
        return 0
    path = parts[0].path
    if word == "label":
        found = f"labels from {smallest:,}, and nothing that tells whether they count from 0 or from 1"
        ways = f"{argument('label_base', 0)} or {argument('label_base', 1)}, or a first line {_EXAMPLE!r}"
        raise DataFormatError(path, None, found, ways)
    warnings.warn(
        f"{path}: features are taken to count from 1, the format's custom; pass "
        f"{argument('feature_base', 1)} or {argument('feature_base', 0)} to settle it",
        stacklevel=5,
    )
    return 1


def _shifted(matrix: Any, base: int, width: int) -> sparse.csr_array:
    indices = matrix.indices - np.asarray(base, matrix.indices.dtype)
    shifted = sparse.csr_array((matrix.data, indices, matrix.indptr), shape=(matrix.shape[0], width))
    shifted.has_canonical_format = True
    return shifted
