"""Texts with labels in JSON Lines, CSV, TSV and Parquet.

A JSON line is ``{"text": "…", "labels": ["a", "b"]}``. In CSV and TSV the first line names the columns, and a row's
labels stand in one column, separated by ``;``. In Parquet the labels are a list or such a string.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tailwise.data.files import check_file, read_bytes, read_text, shown, writing
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.validation import check_choice

TEXT_FORMATS = ("jsonl", "csv", "tsv", "parquet")
SEPARATOR = ";"
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
    path = check_file(path)
    rows = {"jsonl": _json_rows, "csv": _csv_rows, "tsv": _tsv_rows, "parquet": _parquet_rows}[format](path)
    texts: list[str] = []
    labels: list[list[str]] = []
    columns: _Columns | None = None
    for line, row in rows:
        if columns is None:
            text = _choose_text(path, line, row, text_columns)
            label = _choose_label(path, line, row, label_column) if with_labels else None
            columns = _Columns(text, label, SEPARATOR if label_separator is None else label_separator, duplicates)
            if not columns.separator:
                raise InvalidInput("label_separator='' separates nothing; pass a character such as ';'")
        texts.append(_text_of(path, line, row, columns.text))
        if columns.label is not None:
            labels.append(_labels_of(path, line, row, columns))
    if columns is None:
        raise DataFormatError(path, None, "no row", "at least one row of text")
    return Records(texts, labels if with_labels else None)


def read_texts(path: str | Path, format: str, *, text_columns: Sequence[str] | str | None = None) -> list[str]:
    """The texts of a file in one of ``TEXT_FORMATS``, whether or not it has labels: what a model predicts for."""
    return read_records(path, format, text_columns=text_columns, with_labels=False).texts


def write_records(
    path: str | Path,
    format: str,
    texts: Sequence[str],
    labels: Sequence[Sequence[str]],
    *,
    label_separator: str = SEPARATOR,
) -> None:
    """Write texts and labels, columns "text" and "labels", in one of ``TEXT_FORMATS``; atomic, packed by suffix."""
    check_choice("format", format, TEXT_FORMATS)
    if len(texts) != len(labels):
        raise InvalidInput(f"labels has {len(labels):,} rows but texts has {len(texts):,}")
    with writing(path) as file:
        if format == "parquet":
            import pyarrow as pa
            from pyarrow import parquet

            columns = {"text": pa.array(texts, pa.string()), "labels": pa.array(labels, pa.list_(pa.string()))}
            parquet.write_table(pa.table(columns), file)
        elif format == "jsonl":
            for text, row in zip(texts, labels, strict=True):
                file.write(json.dumps({"text": text, "labels": list(row)}, ensure_ascii=False).encode() + b"\n")
        else:
            _write_delimited(file, texts, labels, "," if format == "csv" else "\t", label_separator)


def _write_delimited(
    file: Any, texts: Sequence[str], labels: Sequence[Sequence[str]], delimiter: str, separator: str
) -> None:
    out = io.TextIOWrapper(file, encoding="utf-8", newline="")
    plain, quoting = (
        csv.writer(out, delimiter=delimiter, lineterminator="\n", quoting=quoting)
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
    )
    plain.writerow(["text", "labels"])
    for text, row in zip(texts, labels, strict=True):
        for label in row:
            if separator in label or label != label.strip() or not label:
                raise InvalidInput(
                    f"the label {label!r} cannot be told apart between separators {separator!r}; "
                    "choose another label_separator, or write jsonl or parquet"
                )
        fields = [text, separator.join(row)]
        # Python before 3.13 leaves a lone carriage return unquoted, which readers take for the end of the row.
        (quoting if any("\r" in field for field in fields) else plain).writerow(fields)
    out.flush()
    out.detach()


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    data = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    lines = data.split(b"\n")
    if lines and not lines[-1].strip():
        lines.pop()
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except UnicodeDecodeError as error:
            raise DataFormatError(path, number, f"bytes that are not UTF-8 ({error.reason})", "UTF-8") from error
        except ValueError as error:
            raise DataFormatError(path, number, shown(line), f"a JSON object ({error})") from error
        if not isinstance(row, dict):
            raise DataFormatError(path, number, shown(line), 'a JSON object such as {"text": "…", "labels": ["…"]}')
        yield number, row


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    return _delimited_rows(path, ",")


def _tsv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    return _delimited_rows(path, "\t")


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


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=8192):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (pa.ArrowException, OSError) as error:
        raise DataFormatError(path, None, f"damaged or foreign data ({error})", "a Parquet file") from error


def _choose_text(path: Path, line: int, row: dict[str, Any], asked: Sequence[str] | str | None) -> tuple[str, ...]:
    if asked is not None:
        chosen = (asked,) if isinstance(asked, str) else tuple(asked)
        if not chosen:
            raise InvalidInput("text_columns is empty; name at least one column")
        return chosen
    for columns in _TEXT_COLUMNS:
        if all(column in row for column in columns):
            return columns
    raise DataFormatError(
        path, line, f"the columns {', '.join(row)}", "a column 'text', or name them: text_columns=[…]"
    )


def _choose_label(path: Path, line: int, row: dict[str, Any], asked: str | None) -> str:
    if asked is not None:
        return asked
    for column in _LABEL_COLUMNS:
        if column in row:
            return column
    raise DataFormatError(
        path, line, f"the columns {', '.join(row)}", "a column 'labels', or name it: label_column='…'"
    )


def _text_of(path: Path, line: int, row: dict[str, Any], columns: tuple[str, ...]) -> str:
    pieces = []
    for column in columns:
        if column not in row:
            raise DataFormatError(path, line, f"the columns {', '.join(row)}", f"the text column {column!r}")
        value = row[column]
        if value is not None and not isinstance(value, str):
            raise DataFormatError(path, line, shown(repr(value)), f"a text in the column {column!r}")
        if value:
            pieces.append(value)
    return "\n".join(pieces)


def _labels_of(path: Path, line: int, row: dict[str, Any], columns: _Columns) -> list[str]:
    if columns.label not in row:
        raise DataFormatError(path, line, f"the columns {', '.join(row)}", f"the label column {columns.label!r}")
    value = row[columns.label]
    if value is None:
        return []
    if isinstance(value, str):
        value = [piece.strip() for piece in value.split(columns.separator)] if value.strip() else []
    if not isinstance(value, list):
        raise DataFormatError(path, line, shown(repr(value)), f"a list of labels in the column {columns.label!r}")
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
