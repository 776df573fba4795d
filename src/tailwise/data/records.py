"""Texts with labels in JSON Lines, CSV, TSV and Parquet.

A JSON line is ``{"text": "…", "labels": ["a", "b"]}``. In CSV and TSV the first line names the columns, and a row's
labels stand in one column, separated by ``;``. In Parquet the labels are a list or such a string.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tailwise.data.files import check_file, max_bytes, parse_json, read_bytes, read_text, shown, too_large
from tailwise.errors import DataFormatError, InvalidInput, import_extra
from tailwise.validation import check_choice

TEXT_FORMATS = ("jsonl", "csv", "tsv", "parquet")
SEPARATOR = ";"
_PARQUET_ROWS = 256
_BYTES_A_ROW = 64  # of the objects that hold a row, however short
_TEXT_COLUMNS = (
    ("text",),
    ("title", "abstract"),
    ("title", "description"),
    ("title", "content"),
    ("title",),
    ("abstract",),
)
_LABEL_COLUMNS = ("labels", "label", "subjects", "tags", "target_ind")


class Records(NamedTuple):
    """The rows of a text file; ``labels`` is None where they were not asked for."""

    texts: list[str]
    labels: list[list[str]] | None


class _Columns(NamedTuple):
    """Which columns are read, and how."""

    text: tuple[str, ...]
    label: str | None
    separator: str
    duplicates: str


def read_records(
    path: str | Path,
    format: str,
    *,
    text_columns: Sequence[str] | str | None = None,
    label_column: str | None = None,
    label_separator: str | None = None,
    with_labels: bool = True,
    duplicates: str = "refuse",
) -> Records:
    """Read texts, and unless ``with_labels`` is False their labels, from a file in one of ``TEXT_FORMATS``.

    Parameters
    ----------
    path : str or Path
        The file; except Parquet its name may end in .gz or .xz.
    format : {"jsonl", "csv", "tsv", "parquet"}
        What it is written in.
    text_columns : str or list of str, optional
        Columns whose texts are joined, a line each. By default "text", or "title" with "abstract", "description" or
        "content". A missing value (null) is an empty text; a missing column is refused.
    label_column : str, optional
        The column of the labels; by default "labels", "label", "subjects", "tags" or "target_ind".
    label_separator : str, optional
        What separates labels inside a string; by default ";".
    with_labels : bool
        False reads texts alone, from files that may have no labels.
    duplicates : {"refuse", "merge"}
        What to do with a label that comes twice in a row: refuse the file, or count it once.
    """
    check_choice("format", format, TEXT_FORMATS)
    check_choice("duplicates", duplicates, ("refuse", "merge"))
    if label_separator == "":
        raise InvalidInput("label_separator='' separates nothing; pass a character such as ';'")
    path = check_file(path)

    def choose(line: int, names: Sequence[str]) -> _Columns:
        text = _choose_text(path, line, names, text_columns)
        label = _choose_label(path, line, names, label_column) if with_labels else None
        return _Columns(text, label, label_separator or SEPARATOR, duplicates)

    rows: dict[str, Callable[[Path], Iterator[tuple[int, dict[str, Any]]]]] = {
        "jsonl": _json_rows,
        "csv": partial(_delimited_rows, delimiter=","),
        "tsv": partial(_delimited_rows, delimiter="\t"),
        "parquet": partial(_parquet_rows, choose=choose),
    }
    texts: list[str] = []
    labels: list[list[str]] = []
    columns: _Columns | None = None
    for line, row in rows[format](path):
        if columns is None:
            columns = choose(line, list(row))
        texts.append(_text_of(path, line, row, columns.text))
        if columns.label is not None:
            labels.append(_labels_of(path, line, row, columns.label, columns))
    if columns is None:
        raise DataFormatError(path, None, "no row", "at least one row of text")
    return Records(texts, labels if with_labels else None)


def read_texts(path: str | Path, format: str, *, text_columns: Sequence[str] | str | None = None) -> list[str]:
    """The texts of a file in one of ``TEXT_FORMATS``, whether or not it has labels: what a model predicts for."""
    return read_records(path, format, text_columns=text_columns, with_labels=False).texts


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    data = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    lines = data.split(b"\n")
    if lines and not lines[-1].strip():
        lines.pop()
    for number, line in enumerate(lines, start=1):
        try:
            row = parse_json(line.decode())
        except UnicodeDecodeError as error:
            raise DataFormatError(path, number, f"bytes that are not UTF-8 ({error.reason})", "UTF-8") from error
        except ValueError as error:
            raise DataFormatError(path, number, shown(line), f"a JSON object ({error})") from error
        if not isinstance(row, dict):
            raise DataFormatError(path, number, shown(line), 'a JSON object such as {"text": "…", "labels": ["…"]}')
        yield number, row


def _delimited_rows(path: Path, delimiter: str) -> Iterator[tuple[int, dict[str, Any]]]:
    previous_limit = csv.field_size_limit(2**31 - 1)
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True)
    try:
        names = next(reader, None)
        if not names:
            raise DataFormatError(path, 1, "an empty file or line", "the names of the columns")
        if len(set(names)) < len(names):
            raise DataFormatError(path, 1, shown(delimiter.join(names)), "column names that differ")
        line = reader.line_num + 1
        for row in reader:
            if len(row) != len(names):
                found = f"{len(row)} columns" if row else "an empty line"
                raise DataFormatError(path, line, found, f"{len(names)} columns, as the first line names")
            yield line, dict(zip(names, row, strict=True))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataFormatError(path, reader.line_num, str(error), "quotes that open and close a whole field") from error
    finally:
        csv.field_size_limit(previous_limit)


def _parquet_rows(path: Path, choose: Callable[[int, Sequence[str]], _Columns]) -> Iterator[tuple[int, dict[str, Any]]]:
    pa, parquet = (import_extra(module, "parquet", "reading Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if len(set(names)) < len(names):
                raise DataFormatError(path, None, f"the columns {_listed(names)}", "column names that differ")
            chosen = choose(1, names)
            wanted = {*chosen.text, *([chosen.label] if chosen.label else [])}
            number, room = 0, max_bytes()
            if _claimed_bytes(file.metadata, wanted) > room:
                raise too_large(path, None, "more bytes than that when unpacked")
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS, columns=sorted(wanted)):
                # What is packed by repetition shows its size only now.
                room -= batch.nbytes + _BYTES_A_ROW * batch.num_rows
                if room < 0:
                    raise too_large(path, number + 1, "more bytes than that when unpacked")
                for row in _parquet_batch(path, number, batch):
                    number += 1
                    yield number, row
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        why = " ".join(str(error).split())
        raise DataFormatError(path, None, f"damaged or foreign data ({why})", "a Parquet file") from error


def _claimed_bytes(metadata: Any, columns: set[str]) -> int:
    """The unpacked bytes of some columns, as the file itself says."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(j) for group in groups for j in range(group.num_columns)]
    return sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.split(".")[0] in columns)


def _parquet_batch(path: Path, before: int, batch: Any) -> list[dict[str, Any]]:
    try:
        return batch.to_pylist()
    except (ValueError, ArithmeticError):
        for row in range(batch.num_rows):
            try:
                batch.slice(row, 1).to_pylist()
            except (ValueError, ArithmeticError) as error:
                raise DataFormatError(path, before + row + 1, shown(str(error)), "text in UTF-8") from error
        raise


def _choose_text(path: Path, line: int, names: Sequence[str], asked: Sequence[str] | str | None) -> tuple[str, ...]:
    if asked is not None:
        chosen = (asked,) if isinstance(asked, str) else tuple(asked)
        if not chosen:
            raise InvalidInput("text_columns is empty; name at least one column")
        for column in chosen:
            _check_column(path, line, names, "text", column)
        return chosen
    for columns in _TEXT_COLUMNS:
        if all(column in names for column in columns):
            return columns
    expected = "a column 'text', or name them: text_columns=[…]"
    raise DataFormatError(path, line, f"the columns {_listed(names)}", expected)


def _choose_label(path: Path, line: int, names: Sequence[str], asked: str | None) -> str:
    if asked is not None:
        _check_column(path, line, names, "label", asked)
        return asked
    for column in _LABEL_COLUMNS:
        if column in names:
            return column
    expected = "a column 'labels', or name it: label_column='…'"
    raise DataFormatError(path, line, f"the columns {_listed(names)}", expected)


def split_labels(cell: str, separator: str) -> list[str]:
    """The labels of a cell of CSV or TSV."""
    return [piece.strip() for piece in cell.split(separator)] if cell.strip() else []


def _check_column(path: Path, line: int, names: Iterable[str], kind: str, column: str) -> None:
    if column not in names:
        raise DataFormatError(path, line, f"the columns {_listed(names)}", f"the {kind} column {column!r}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name if name.isprintable() else shown(name) for name in names)


def _text_of(path: Path, line: int, row: dict[str, Any], columns: tuple[str, ...]) -> str:
    pieces = []
    for column in columns:
        _check_column(path, line, row, "text", column)
        value = row[column]
        if value is not None and not isinstance(value, str):
            raise DataFormatError(path, line, shown(repr(value)), f"a text in the column {column!r}")
        if value:
            pieces.append(value)
    return "\n".join(pieces)


def _labels_of(path: Path, line: int, row: dict[str, Any], label_column: str, columns: _Columns) -> list[str]:
    _check_column(path, line, row, "label", label_column)
    value = row[label_column]
    if value is None:
        return []
    if isinstance(value, str):
        value = split_labels(value, columns.separator)
    if not isinstance(value, list):
        raise DataFormatError(path, line, shown(repr(value)), f"a list of labels in the column {label_column!r}")
    labels = []
    for label in value:
        if isinstance(label, bool) or not isinstance(label, str | int) or label == "":
            raise DataFormatError(path, line, shown(repr(label)), "a label that is a non-empty text or an integer")
        labels.append(str(label))
    if len(set(labels)) < len(labels):
        if columns.duplicates == "refuse":
            twice = next(label for place, label in enumerate(labels) if label in labels[:place])
            found = f"the label {shown(twice)} twice"
            raise DataFormatError(path, line, found, "each label once a row, or duplicates='merge'")
        labels = list(dict.fromkeys(labels))
    return labels
