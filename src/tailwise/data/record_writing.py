"""Writing texts with labels as JSON Lines, CSV, TSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from tailwise.atomic import writing
from tailwise.data.annif import as_annif_line
from tailwise.data.files import shown
from tailwise.data.label_cells import SEPARATOR, find_separator, split_labels
from tailwise.errors import InvalidInput, argument, import_extra
from tailwise.validation import check_choice

WRITTEN_FORMATS = ("jsonl", "csv", "tsv", "parquet", "annif")
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what makes a spreadsheet compute a cell


def write_records(
    path: str | Path,
    format: str,
    texts: Sequence[str],
    labels: Sequence[Sequence[str]],
    *,
    label_separator: str = SEPARATOR,
    spreadsheet_safe: bool = False,
) -> None:
    """Write texts and labels, columns "text" and "labels", in one of ``WRITTEN_FORMATS``; atomic, packed by suffix.

    What :func:`read_records` could not give back is refused. ``spreadsheet_safe`` puts an apostrophe before cells of
    CSV and TSV that a spreadsheet would run as a formula (``= + - @``); it stays when they are read.
    """
    check_choice("format", format, WRITTEN_FORMATS)
    if len(texts) != len(labels):
        raise InvalidInput(f"labels has {len(labels):,} rows but texts has {len(texts):,}")
    if not len(texts):
        raise InvalidInput(f"texts is empty; {path} needs at least one row")
    if spreadsheet_safe and format not in ("csv", "tsv"):
        raise InvalidInput(f"{argument('spreadsheet_safe', True)} is for csv and tsv, not for {format}; leave it out")
    for number, (text, row) in enumerate(zip(texts, labels, strict=True), start=1):
        _check_record(path, number, text, row)
        if format == "annif" and any(len(label.split()) != 1 or set(label) & set("<>") for label in row):
            raise InvalidInput(f"{path}, row {number:,}: the labels {list(row)!r} are no URIs, as Annif's lines need")
    with writing(path) as file:
        if format == "parquet":
            pa, parquet = (
                import_extra(module, "parquet", "writing Parquet") for module in ("pyarrow", "pyarrow.parquet")
            )
            columns = {"text": pa.array(texts, pa.string()), "labels": pa.array(labels, pa.list_(pa.string()))}
            parquet.write_table(pa.table(columns), file)
        elif format == "annif":
            file.writelines(as_annif_line(text, row).encode() + b"\n" for text, row in zip(texts, labels, strict=True))
        elif format == "jsonl":
            for text, row in zip(texts, labels, strict=True):
                file.write(json.dumps({"text": text, "labels": list(row)}, ensure_ascii=False).encode() + b"\n")
        else:
            cells = _cells(path, texts, labels, label_separator)
            write_delimited(file, chain([("text", "labels")], cells), _DELIMITERS[format], spreadsheet_safe)


def write_rows(
    path: str | Path,
    format: str,
    rows: Sequence[dict[str, Any]],
    *,
    delimiter: str | None = None,
    quoting: str | None = None,
) -> None:
    """Write rows with all their columns, as they were read, as text of a format; atomic, packed by suffix."""
    check_choice("format", format, ("jsonl", "csv", "tsv", "annif"))
    with writing(path) as file:
        if format == "jsonl":
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        elif format == "annif":
            file.writelines("\t".join(row.values()).encode() + b"\n" for row in rows)
        else:
            cells = chain([tuple(rows[0])], (tuple(row.values()) for row in rows))
            write_delimited(file, cells, delimiter or _DELIMITERS[format], quoting=quoting)


def _check_record(path: str | Path, number: int, text: str, row: Sequence[str]) -> None:
    for value in (text, *row):
        try:
            value.encode()
        except (AttributeError, UnicodeEncodeError) as error:
            raise InvalidInput(
                f"{path}, row {number:,}: {shown(repr(value))} is no text that UTF-8 can hold; pass str without lone "
                "surrogates"
            ) from error
    if "" in row or len(set(row)) < len(row):
        raise InvalidInput(f"{path}, row {number:,}: the labels {list(row)!r} must be non-empty and differ")


def _cells(
    path: str | Path, texts: Sequence[str], labels: Sequence[Sequence[str]], separator: str
) -> Iterator[tuple[str, str]]:
    joined = [separator.join(row) for row in labels]
    # Who reads the file need not say ";", so that has to be what its cells look like.
    found = find_separator(joined) if separator == SEPARATOR else separator
    for number, (text, row, cell) in enumerate(zip(texts, labels, joined, strict=True), start=1):
        if not separator or split_labels(cell, separator) != list(row) or _read_otherwise(cell, found, row):
            raise InvalidInput(
                f"{path}, row {number:,}: the labels {list(row)!r} cannot be told apart between separators "
                f"{separator!r}; choose another label_separator, or write jsonl or parquet"
            )
        yield text, cell


def _read_otherwise(cell: str, separator: str, row: Sequence[str]) -> bool:
    try:
        return split_labels(cell, separator) != list(row)
    except ValueError:
        return True


def write_delimited(
    file: Any,
    rows: Iterable[Sequence[str]],
    delimiter: str,
    spreadsheet_safe: bool = False,
    quoting: str | None = None,
) -> None:
    """Write rows of cells to a binary ``file``, in UTF-8; ``spreadsheet_safe`` as in :func:`write_records`."""
    out = io.TextIOWrapper(file, encoding="utf-8", newline="")
    usual: Any = (csv.QUOTE_NONE, csv.QUOTE_NONE) if quoting == "none" else (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
    plain, quoted = (
        csv.writer(
            out, delimiter=delimiter, lineterminator="\n", quoting=how, quotechar=None if quoting == "none" else '"'
        )
        for how in usual
    )
    for row in rows:
        cells = [f"'{cell}" if spreadsheet_safe and cell.startswith(_FORMULA) else cell for cell in row]
        # Python before 3.13 leaves a lone carriage return unquoted, which readers take for the end of the row.
        (quoted if any("\r" in cell for cell in cells) else plain).writerow(cells)
    out.flush()
    out.detach()
