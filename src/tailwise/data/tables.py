"""The rows of JSON Lines, CSV, TSV, Parquet and Excel files and of Annif's corpora: a dict by column, with its line."""

from __future__ import annotations

import csv
import datetime
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tailwise.data.annif import annif_lines, document_rows, with_text
from tailwise.data.files import max_bytes, parse_json, read_text, shown, too_large
from tailwise.errors import DataFormatError, InvalidInput, argument, import_extra
from tailwise.validation import check_choice

TEXT_FORMATS = ("jsonl", "csv", "tsv", "parquet", "xlsx", "annif", "documents")
"""The formats of texts; "annif" are lines ``text⇥uri uri …``, "documents" is a folder with a file a text."""
QUOTINGS = ("minimal", "none")
_DELIMITERS = (",", ";", "\t", "|")
_PARQUET_ROWS = 256
_MOST_NAMES, _LONGEST_NAME = 30, 40
_MOST_SHEET_ROWS = 1 << 20
_BYTES_A_ROW = 64  # of the objects that hold a row, however short

Row = dict[str, Any]
Wanted = Callable[[int, Sequence[str]], set[str]]


class Layout(NamedTuple):
    """How a file is written, as far as it was said; None is found out."""

    delimiter: str | None = None
    encoding: str | None = None
    quoting: str | None = None


def table_rows(
    path: Path,
    format: str,
    layout: Layout,
    facts: dict[str, Any],
    wanted: Wanted | None = None,
    with_labels: bool = False,
) -> Iterator[tuple[int, Row]]:
    """Each row with its line; ``facts`` gets what was found out, and ``wanted`` says which columns Parquet reads.

    ``with_labels`` asks for rows that have some place for labels, where a format can be without.
    """
    check_choice("format", format, TEXT_FORMATS)
    if layout.quoting is not None:
        check_choice("quoting", layout.quoting, QUOTINGS)
    if layout.delimiter is not None and (len(layout.delimiter) != 1 or layout.delimiter in '"\r\n'):
        given = argument("delimiter", layout.delimiter)
        raise InvalidInput(f"{given} must be one character such as ',', ';' or a tab")
    if format == "parquet":
        return _parquet_rows(path, wanted)
    if format == "xlsx":
        return _sheet_rows(path, facts)
    if format == "documents":
        return document_rows(path, layout.encoding, with_labels)
    text = read_text(path, layout.encoding)
    if format == "annif":
        return annif_lines(path, text, with_labels)
    if format == "jsonl":
        return _json_rows(path, text)
    return _delimited_rows(path, text, format, layout, facts)


def listed(names: Sequence[str]) -> str:
    """Names of columns as a message shows them."""
    cut = [shown(name) if len(name) > _LONGEST_NAME or not name.isprintable() else name for name in names[:_MOST_NAMES]]
    return ", ".join(cut) + (f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else "")


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, Row]]:
    lines = text.split("\n")
    if not lines[-1].strip():
        lines.pop()
    for number, line in enumerate(lines, start=1):
        try:
            row = parse_json(line)
        except ValueError as error:
            raise DataFormatError(path, number, shown(line), f"a JSON object ({error})") from error
        if not isinstance(row, dict):
            raise DataFormatError(path, number, shown(line), 'a JSON object such as {"text": "…", "labels": ["…"]}')
        yield number, with_text(row)


def _delimited_rows(
    path: Path, text: str, format: str, layout: Layout, facts: dict[str, Any]
) -> Iterator[tuple[int, Row]]:
    said = re.match(r"sep=(.)\r?\n", text)  # Excel's own first line
    delimiter = layout.delimiter or (said and said[1]) or ("\t" if format == "tsv" else _find_delimiter(text))
    facts["delimiter"] = delimiter
    quoting = layout.quoting or "minimal"
    if format == "csv" or layout.quoting:
        return _parsed(path, text, delimiter, quoting, bool(said))
    # Most programs that write TSV have no quotes at all, and theirs are characters like any other.
    try:
        return iter(list(_parsed(path, text, delimiter, "minimal", bool(said))))
    except DataFormatError as quoted:
        try:
            rows = list(_parsed(path, text, delimiter, "none", bool(said)))
        except DataFormatError:
            raise quoted from None
        facts["quoting"] = "none"
        return iter(rows)


def _find_delimiter(text: str) -> str:
    """What the first line has most of, outside quotes; a comma where it has nothing."""
    head = re.sub(r'"[^"]*"', "", text[: text.find("\n")] if "\n" in text else text)
    return max(_DELIMITERS, key=head.count)


def _parsed(path: Path, text: str, delimiter: str, quoting: str, skip_first: bool) -> Iterator[tuple[int, Row]]:
    previous_limit = csv.field_size_limit(2**31 - 1)
    how: Any = csv.QUOTE_NONE if quoting == "none" else csv.QUOTE_MINIMAL
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=how, strict=True)
    try:
        if skip_first:
            next(reader)
        names = next(reader, None)
        if not names:
            raise DataFormatError(path, 1, "an empty file or line", "the names of the columns")
        if len(set(names)) < len(names):
            raise DataFormatError(path, 1, shown(delimiter.join(names)), "column names that differ")
        line = reader.line_num + 1
        for row in reader:
            if len(row) != len(names):
                found = f"{len(row)} columns" if row else "an empty line"
                expected = f"{len(names)} columns, as the first line names between {delimiter!r}"
                raise DataFormatError(path, line, found, expected)
            yield line, dict(zip(names, row, strict=True))
            line = reader.line_num + 1
    except csv.Error as error:
        expected = f"quotes that open and close a whole field, or {argument('quoting', 'none')} to take them as text"
        raise DataFormatError(path, reader.line_num, str(error), expected) from error
    finally:
        csv.field_size_limit(previous_limit)


def _parquet_rows(path: Path, wanted: Wanted | None) -> Iterator[tuple[int, Row]]:
    pa, parquet = (import_extra(module, "parquet", "reading Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if len(set(names)) < len(names):
                raise DataFormatError(path, None, f"the columns {listed(names)}", "column names that differ")
            columns = set(names) if wanted is None else wanted(1, names)
            number, room = 0, max_bytes()
            if _claimed_bytes(file.metadata) > room:
                raise too_large(path, None, "more bytes than that when unpacked")
            in_order = [name for name in names if name in columns]
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS, columns=in_order):
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


def _claimed_bytes(metadata: Any) -> int:
    """The unpacked bytes of all columns, as the file itself says.

    What it says of one column cannot be asked for: pyarrow ends the process where that is damaged.
    """
    return sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))


def _parquet_batch(path: Path, before: int, batch: Any) -> list[Row]:
    try:
        return batch.to_pylist()
    except (ValueError, ArithmeticError):
        for row in range(batch.num_rows):
            try:
                batch.slice(row, 1).to_pylist()
            except (ValueError, ArithmeticError) as error:
                raise DataFormatError(path, before + row + 1, shown(str(error)), "text in UTF-8") from error
        raise


def _sheet_rows(path: Path, facts: dict[str, Any]) -> Iterator[tuple[int, Row]]:
    """The first sheet of a workbook; formulas give the values that were saved with them, empty rows are skipped."""
    openpyxl = import_extra("openpyxl", "excel", "reading .xlsx")
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(part.file_size for part in packed.infolist()) > max_bytes():
                raise too_large(path, None, "more bytes than that when unpacked")
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and validations, which are not read
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            if not book.worksheets:
                raise DataFormatError(path, None, "a workbook without sheets", "a sheet with rows")
            sheet = book.worksheets[0]
            facts["sheet"] = sheet.title
            sheet.reset_dimensions()  # what the file claims may be wrong
            names: list[str] | None = None
            for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
                if number > _MOST_SHEET_ROWS:
                    # Gaps between rows are filled, however far the next one says that it is.
                    most = f"at most {_MOST_SHEET_ROWS:,} rows, as Excel has"
                    raise DataFormatError(path, number, "a row beyond the end of a sheet", most)
                cells = [_cell_text(value) for value in row]
                if not any(cells):
                    continue
                if names is None:
                    names = cells
                    named = [name for name in names if name]
                    if len(set(named)) < len(named):
                        raise DataFormatError(path, number, f"the columns {listed(named)}", "column names that differ")
                    continue
                padded = cells + [""] * (len(names) - len(cells))
                yield number, {name: cell for name, cell in zip(names, padded, strict=False) if name}
    except (zipfile.BadZipFile, OSError, KeyError, ValueError, TypeError, AttributeError, SyntaxError) as error:
        if isinstance(error, DataFormatError):
            raise
        why = " ".join(str(error).split())
        raise DataFormatError(path, None, f"damaged or foreign data ({why})", "an .xlsx workbook") from error


def _cell_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, datetime.datetime | datetime.date | datetime.time) else str(value)
