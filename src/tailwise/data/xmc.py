"""The Extreme Classification Repository's text format: ``N D L``, then a line ``l1,l2 f:v f:v`` for each row.

Labels and features count from 0. A row without labels starts with a space. Small data sets come in the split form:
one file with all rows, and two files of row numbers, counted from 1, with a column for each split.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from tailwise.data import rows
from tailwise.data.files import read_bytes, shown
from tailwise.data.mapped import write_rows
from tailwise.errors import DataFormatError, argument
from tailwise.validation import check_number

_HEADER = "the header 'rows features labels', three integers"
_LONGEST_NUMBER = 100  # Python refuses to convert integers of thousands of digits


def read_xmc(
    path: str | Path, *, duplicates: str = "refuse", n_jobs: int | None = None
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Read X (rows, features) float32 and Y (rows, labels), float32 ones, as canonical CSR; gz and xz too.

    Every malformed line is refused with a :class:`~tailwise.errors.DataFormatError` that names file and line.
    About 200 MB/s a core; memory is that of X and Y and some blocks of text.

    Parameters
    ----------
    path : str or Path
        The file; its name may end in .gz or .xz.
    duplicates : {"refuse", "merge"}
        What to do with an index that comes twice in a row: refuse the file, or add the values of the feature and
        count the label once.
    n_jobs : int or None
        Threads that parse; None is every core.
    """
    path = Path(path)
    header, blocks = rows.first_line(path)
    n_rows, n_features, n_labels = _read_header(path, header)
    limits = rows.Limits(n_features, n_labels)
    found = rows.parse(path, blocks, limits, duplicates=duplicates, n_jobs=n_jobs)
    return rows.exact_rows(path, *found, n_rows)


def convert_xmc(path: str | Path, target: str | Path, *, duplicates: str = "refuse", n_jobs: int | None = None) -> None:
    """Write the rows of a file as mapped arrays to the folder ``target``; memory is that of some blocks of text."""
    path = Path(path)
    header, blocks = rows.first_line(path)
    n_rows, n_features, n_labels = _read_header(path, header)
    limits = rows.Limits(n_features, n_labels)
    parts = rows.parse_parts(path, blocks, limits, duplicates=duplicates, n_jobs=n_jobs)
    write_rows(target, rows.exact_parts(path, parts, n_rows), n_features=n_features, n_labels=n_labels)


def write_xmc(path: str | Path, X: object, Y: object) -> None:
    """Write X and Y in the repository's format, packed if ``path`` ends in .gz or .xz; reading gives the same bits."""
    features, labels = rows.check_pair(X, Y)
    header = f"{features.shape[0]} {features.shape[1]} {labels.shape[1]}\n".encode()
    rows.write(path, features, labels, header, base=0)


def read_split(path: str | Path, n_rows: int, *, column: int = 0) -> np.ndarray:
    """Row numbers, counted from 0, of one column of a split file (which counts from 1)."""
    path = Path(path)
    check_number("column", column, integer=True, low=0)
    chosen, width = [], None
    for number, line in enumerate(read_bytes(path).splitlines(), start=1):
        fields = line.split()
        width = len(fields) if width is None else width
        if len(fields) != width or not fields:
            raise DataFormatError(path, number, f"{len(fields)} columns", f"{width or 1} columns, as on the first line")
        if column >= width:
            raise DataFormatError(path, number, f"{width} columns", f"more than column={column} (counted from 0)")
        field = fields[column]
        if not field.isdigit() or len(field) > _LONGEST_NUMBER or not 1 <= int(field) <= n_rows:
            raise DataFormatError(path, number, shown(field), f"a row number from 1 to {n_rows:,}")
        chosen.append(int(field) - 1)
    result = np.array(chosen, np.int64)
    counts = np.bincount(result, minlength=n_rows)
    if (counts > 1).any():
        row = int(np.flatnonzero(counts > 1)[0])
        line_of = int(np.flatnonzero(result == row)[1]) + 1
        raise DataFormatError(path, line_of, f"row {row + 1} twice", "each row once a column")
    return result


def read_xmc_split(
    path: str | Path,
    train_split: str | Path,
    test_split: str | Path,
    *,
    column: int = 0,
    duplicates: str = "refuse",
    n_jobs: int | None = None,
) -> tuple[sparse.csr_array, sparse.csr_array, sparse.csr_array, sparse.csr_array]:
    """Read the split form: (X_train, Y_train, X_test, Y_test) of one ``column`` of the two split files."""
    X, Y = read_xmc(path, duplicates=duplicates, n_jobs=n_jobs)
    train, test = (read_split(split, X.shape[0], column=column) for split in (train_split, test_split))
    shared = np.intersect1d(train, test)
    if shared.size:
        line = int(np.flatnonzero(test == shared[0])[0]) + 1
        found = f"row {shared[0] + 1}, which is a training row too ({shared.size:,} such rows)"
        raise DataFormatError(test_split, line, found, f"rows that are not in {Path(train_split).name}")
    return X[train], Y[train], X[test], Y[test]


def _read_header(path: Path, line: bytes) -> tuple[int, int, int]:
    counts = rows.header_counts(line, 3)
    if counts is None:
        other = f"{_HEADER} (for a file without a header use {argument('format', 'libsvm')})"
        raise DataFormatError(path, 1, shown(line.strip()) if line else "an empty file or line", other)
    n_rows, n_features, n_labels = counts
    if n_features == 0 or n_labels == 0:
        raise DataFormatError(path, 1, shown(line.strip()), f"at least one feature and one label in {_HEADER}")
    rows.check_width(path, 1, n_features, "feature")
    rows.check_width(path, 1, n_labels, "label")
    return n_rows, n_features, n_labels
