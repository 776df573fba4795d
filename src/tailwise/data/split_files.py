"""A data file divided into a training and a test file, its rows as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tailwise.atomic import writing
from tailwise.data.dataset import Dataset, TextDataset
from tailwise.data.files import plain_suffix, shown
from tailwise.data.loading import load_dataset
from tailwise.data.locate import detect_format
from tailwise.data.record_writing import write_rows
from tailwise.data.records import check_source, find_column
from tailwise.data.saving import SUFFIXES, write_dataset
from tailwise.data.splitting import Split, split_rows
from tailwise.data.tables import TEXT_FORMATS, Layout, listed, table_rows
from tailwise.errors import DataFormatError, InvalidInput, argument, import_extra


class SplitFiles(NamedTuple):
    """What :func:`split_file` read, which rows it put where, and the files it wrote."""

    data: Dataset | TextDataset
    split: Split
    written: list[Path]


def split_file(
    path: str | Path,
    folder: str | Path,
    *,
    test_fraction: float = 0.2,
    by_column: str | None = None,
    by_time: str | None = None,
    random_state: Any = 0,
    format: str | None = None,
    **reading: Any,
) -> SplitFiles:
    """Write the rows of a file to ``train`` and ``test`` files in ``folder``, divided as :func:`split_rows` does.

    Texts keep all their columns. The files have the format of the file, in UTF-8; Excel and folders of documents become
    JSON Lines, and ARFF the repository's format.

    Parameters
    ----------
    path, folder : str or Path
        The file to read and the folder to write to.
    test_fraction, random_state
        See :func:`split_rows`.
    by_column : str, optional
        A column whose values are never on both sides, such as the author.
    by_time : str, optional
        A column of numbers or ISO dates: the latest rows are tested on.
    format, **reading
        How the file is read: see :func:`load_dataset`.
    """
    folder = Path(folder)
    if by_column is not None and by_time is not None:
        raise InvalidInput(
            f"{argument('by_column', by_column)} and {argument('by_time', by_time)}: split by one of them"
        )
    kind = format or detect_format(path)
    path = check_source(path, kind)
    packing = path.suffix if path.suffix.lower() in (".gz", ".xz") and path.is_file() else ""
    data = load_dataset(path, format=kind, unit_rows=False, **reading)
    if kind not in TEXT_FORMATS:
        if by_column is not None or by_time is not None:
            raise InvalidInput(f"{path} has numeric rows and no column {by_column or by_time!r}; leave it out")
        split = split_rows(data.Y_train, test_fraction, random_state=random_state)
        divided = replace(
            data,
            X_train=data.X_train[split.train],
            Y_train=data.Y_train[split.train],
            X_test=data.X_train[split.test],
            Y_test=data.Y_train[split.test],
        )
        target = kind if kind in SUFFIXES else "xmc"
        _check_targets(path, [folder / f"{part}{SUFFIXES[target]}{packing}" for part in ("train", "test")])
        return SplitFiles(data, split, write_dataset(divided, folder, target, compression=packing.lower()))
    layout = Layout(*(reading.get(name) for name in Layout._fields))
    facts: dict[str, Any] = {}
    lines, rows = zip(*table_rows(path, kind, layout, facts, with_labels=True), strict=True)
    column = by_column if by_time is None else by_time
    values = None if column is None else _values(path, lines, rows, column)
    split = split_rows(
        data.Y_train,
        test_fraction,
        groups=values if by_time is None else None,
        order=_moments(path, lines, values, by_time) if by_time is not None and values is not None else None,
        random_state=random_state,
    )
    target = "jsonl" if kind in ("xlsx", "documents") else kind
    written = [folder / f"{part}{SUFFIXES[target]}{packing}" for part in ("train", "test")]
    _check_targets(path, written)
    for file, part in zip(written, split, strict=True):
        if target == "parquet":
            _write_parquet(path, file, part)
        else:
            chosen = [rows[row] for row in part.tolist()]
            quoting = layout.quoting or facts.get("quoting")
            write_rows(file, target, chosen, delimiter=facts.get("delimiter"), quoting=quoting)
    return SplitFiles(data, split, written)


def _check_targets(path: Path, targets: Sequence[Path]) -> None:
    for target in targets:
        if target.exists() and target.samefile(path):
            raise InvalidInput(f"{target} is the file that is split; choose another folder")


def _values(path: Path, lines: Sequence[int], rows: Sequence[dict[str, Any]], column: str) -> list[Any]:
    name = find_column(path, lines[0], list(rows[0]), column)
    if name is None:
        first = lines[0] if plain_suffix(path) in (".jsonl", ".ndjson") else 1
        raise DataFormatError(path, first, f"the columns {listed(list(rows[0]))}", f"the column {column!r} to split by")
    values = []
    for line, row in zip(lines, rows, strict=True):
        if name not in row:
            raise DataFormatError(path, line, f"the columns {listed(list(row))}", f"the column {column!r} to split by")
        if row[name] is None or row[name] == "":
            raise DataFormatError(path, line, f"nothing in the column {name!r}", "a value in each row to split by")
        values.append(row[name] if isinstance(row[name], int | float | datetime) else str(row[name]))
    return values


def _moments(path: Path, lines: Sequence[int], values: Sequence[Any], column: str) -> np.ndarray:
    """Numbers, or ISO dates, as numbers that grow with time."""
    moments = []
    for line, value in zip(lines, values, strict=True):
        try:
            moments.append((False, float(value)))
        except (TypeError, ValueError):
            try:
                when = value if isinstance(value, datetime) else datetime.fromisoformat(value.strip())
            except ValueError as error:
                expected = f"a number or a date such as 2024-12-31 in the column {column!r}"
                raise DataFormatError(path, line, shown(str(value)), expected) from error
            moments.append((True, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()))
        if moments[-1][0] != moments[0][0] or not np.isfinite(moments[-1][1]):
            raise DataFormatError(path, line, shown(str(value)), f"dates or numbers throughout the column {column!r}")
    return np.array([moment for _, moment in moments])


def _write_parquet(path: Path, target: Path, rows: np.ndarray) -> None:
    parquet = import_extra("pyarrow.parquet", "parquet", "splitting Parquet")
    with writing(target) as file:
        parquet.write_table(parquet.read_table(path).take(rows), file)
