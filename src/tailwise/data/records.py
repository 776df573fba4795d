"""Texts with labels in JSON Lines, CSV, TSV, Parquet and Excel files, and in Annif's corpora.

A JSON line is ``{"text": "…", "labels": ["a", "b"]}``. In CSV, TSV and Excel the first line names the columns, and a
row's labels stand in one column. In Parquet the labels are a list or such a cell. Annif's column ``subject_uris`` has
URIs between spaces, its ``subjects`` are objects with a URI or a text that a vocabulary knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tailwise.data.annif import SUBJECT_URIS, KnowsLabels, clean_uri, label_of
from tailwise.data.files import check_file, shown
from tailwise.data.label_cells import find_separator, shown_separator, split_labels, tidied
from tailwise.data.tables import TEXT_FORMATS, Layout, listed, table_rows
from tailwise.data.texts import Texts
from tailwise.data.vectors import read_vectors
from tailwise.errors import DataFormatError, InvalidInput, argument
from tailwise.validation import check_choice

_TEXT_COLUMNS = (
    ("text",),
    ("title", "abstract"),
    ("title", "description"),
    ("title", "content"),
    ("title",),
    ("abstract",),
)
_LABEL_COLUMNS = ("labels", "label", "subjects", "tags", SUBJECT_URIS, "target_ind")
USUAL_COLUMNS = frozenset(_LABEL_COLUMNS).union(*_TEXT_COLUMNS)
"""Names by which the columns of texts and of labels are found."""


class Records(NamedTuple):
    """The rows of a text file; ``labels`` is None where they were not asked for."""

    texts: Texts
    labels: list[list[str]] | None


class Columns(NamedTuple):
    """Which columns are read, and how the labels stand in theirs; None is found out."""

    text: Sequence[str] | str | None = None
    label: str | None = None
    separator: str | None = None
    duplicates: str | None = None
    vocabulary: KnowsLabels | None = None


def read_records(
    path: str | Path,
    format: str,
    *,
    text_columns: Sequence[str] | str | None = None,
    label_column: str | None = None,
    label_separator: str | None = None,
    with_labels: bool = True,
    duplicates: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    quoting: str | None = None,
) -> Records:
    """Read texts, and unless ``with_labels`` is False their labels, from a file in one of ``TEXT_FORMATS``.

    Parameters
    ----------
    path : str or Path
        The file; except Parquet and Excel its name may end in .gz or .xz.
    format : {"jsonl", "csv", "tsv", "parquet", "xlsx", "annif", "documents"}
        What it is written in. Of a workbook the first sheet is read. "annif" are lines ``text⇥uri uri …``, "documents"
        is a folder with a file a text: see :mod:`tailwise.data.annif`.
    text_columns : str or list of str, optional
        Columns whose texts are joined, a line each, and kept as the fields of :class:`Texts`. By default "text", or
        "title" with "abstract", "description" or "content". A missing value (null) is an empty text; a missing column
        is refused. Columns are found whatever their case, the one that is spelled alike first.
    label_column : str, optional
        The column of the labels; by default "labels", "label", "subjects", "tags", "subject_uris" or
        "target_ind".
    label_separator : str, optional
        What separates labels inside a cell. By default the one of ``;``, ``|``, ``,``, tab and newline that makes
        labels recur, and cells that are all lists as JSON or Python write them are read as such.
    with_labels : bool
        False reads texts alone, from files that may have no labels.
    duplicates : {"refuse", "merge"}, optional
        What to do with a label that comes twice in a row: refuse the file, or count it once. By default it is counted
        once in a cell that somebody typed, and refused in a list that a program wrote.
    delimiter : str, optional
        What separates the columns of CSV and TSV; by default what the first line has most of, and a tab for TSV.
    encoding : str, optional
        How text is encoded, such as "latin-1"; by default UTF-8, and UTF-16 where the file begins by saying so.
    quoting : {"minimal", "none"}, optional
        Whether quotes enclose fields of CSV and TSV, or are characters like any other. By default they enclose; in TSV
        only where that can be read.
    """
    columns = Columns(text_columns, label_column, label_separator, duplicates)
    found = scan_records(path, format, columns, Layout(delimiter, encoding, quoting), with_labels=with_labels)
    return Records(found[0], found[1])


def scan_records(
    path: str | Path, format: str, columns: Columns, layout: Layout, *, with_labels: bool = True
) -> tuple[Texts, list[list[str]] | None, dict[str, Any]]:
    """The texts and labels of a file, and what was found out about it, by name."""
    check_choice("format", format, TEXT_FORMATS)
    if columns.duplicates is not None:
        check_choice("duplicates", columns.duplicates, ("refuse", "merge"))
    if columns.separator == "":
        raise InvalidInput(
            f"{argument('label_separator', '')} separates nothing; pass one, such as {argument('label_separator', ';')}"
        )
    path = check_source(path, format)

    def choose(line: int, names: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
        text = _choose_text(path, line, names, columns.text)
        return text, _choose_label(path, line, names, columns.label) if with_labels else None

    def wanted(line: int, names: Sequence[str]) -> set[str]:
        text, label = choose(line, names)
        return {*text, *([label] if label else [])}

    facts: dict[str, Any] = {}
    fields: dict[str, list[str]] = {}
    cells: list[tuple[int, Any]] = []
    text: tuple[str, ...] = ()
    label: str | None = None
    for line, row in table_rows(path, format, layout, facts, wanted, with_labels):
        if not text:
            # The names stand on the first line of a table, and on each line of JSON.
            text, label = choose(line if format == "jsonl" else 1, list(row))
            fields = {column: [] for column in text}
        for column, texts in fields.items():
            texts.append(_text_of(path, line, row, column))
        if label is not None:
            _check_column(path, line, row, "label", label)
            cells.append((line, row[label]))
    if not text:
        raise DataFormatError(path, None, "no row", "at least one row of text")
    facts["text columns"] = ", ".join(text)
    if label is None:
        return Texts(fields), None, facts
    facts["label column"] = label
    return Texts(fields), _read_labels(path, cells, label, columns, facts), facts


def read_texts(
    path: str | Path,
    format: str,
    *,
    text_columns: Sequence[str] | str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    quoting: str | None = None,
    vectors: str | Path | None = None,
) -> Texts:
    """The texts of a file in one of ``TEXT_FORMATS``, whether or not it has labels: what a model predicts for.

    ``vectors`` is an ``.npy`` file with a dense vector for each.
    """
    layout = Layout(delimiter, encoding, quoting)
    texts = scan_records(path, format, Columns(text_columns), layout, with_labels=False)[0]
    return with_vectors(texts, vectors)


def with_vectors(texts: Texts, vectors: str | Path | None) -> Texts:
    """``texts`` with the vectors of a file, where there is one."""
    return texts if vectors is None else Texts(texts.fields, read_vectors(vectors, len(texts)))


def read_column(
    path: str | Path,
    format: str,
    column: str,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    quoting: str | None = None,
) -> list[str]:
    """The cells of one column of a file in one of ``TEXT_FORMATS``, such as the ids of its rows, as text."""
    path = check_source(path, format)

    def wanted(line: int, names: Sequence[str]) -> set[str]:
        return {_named(path, line, names, "id", column)}

    cells = []
    for line, row in table_rows(path, format, Layout(delimiter, encoding, quoting), {}, wanted):
        (name,) = wanted(line if format == "jsonl" else 1, list(row))
        cells.append("" if row[name] is None else str(row[name]))
    return cells


def check_source(path: str | Path, format: str) -> Path:
    """``path`` as a Path to what ``format`` is: a file, or the folder of the documents."""
    if format != "documents":
        return check_file(path)
    if not Path(path).is_dir():
        raise InvalidInput(f"{path} is no folder; {argument('format', 'documents')} is a folder with a file a text")
    return Path(path)


def find_column(path: Path, line: int, names: Iterable[str], column: str) -> str | None:
    """The column that ``column`` names: spelled alike, or alike but for case and spaces around it; None is none."""
    if column in names:
        return column
    alike = [name for name in names if name.strip().casefold() == column.strip().casefold()]
    if len(alike) > 1:
        raise DataFormatError(
            path, line, f"the columns {listed(alike)}", f"one column {column!r}; name the one to read"
        )
    return alike[0] if alike else None


def _choose_text(path: Path, line: int, names: Sequence[str], asked: Sequence[str] | str | None) -> tuple[str, ...]:
    if asked is not None:
        chosen = (asked,) if isinstance(asked, str) else tuple(asked)
        if not chosen:
            raise InvalidInput(f"{argument('text_columns', [])} names no column; name at least one")
        found = tuple(_named(path, line, names, "text", column) for column in chosen)
        if len(set(found)) < len(found):
            raise InvalidInput(
                f"{argument('text_columns', list(chosen))} names a column twice; name each once, and give it more "
                "weight by TextFeatures(fields={'title': 2, 'abstract': 1})"
            )
        return found
    for columns in _TEXT_COLUMNS:
        usual = [find_column(path, line, names, column) for column in columns]
        if None not in usual:
            return tuple(name for name in usual if name is not None)
    expected = f"a column 'text', or name them: {argument('text_columns', ['…'])}"
    raise DataFormatError(path, line, f"the columns {listed(names)}", expected)


def _choose_label(path: Path, line: int, names: Sequence[str], asked: str | None) -> str:
    if asked is not None:
        return _named(path, line, names, "label", asked)
    for column in _LABEL_COLUMNS:
        found = find_column(path, line, names, column)
        if found is not None:
            return found
    expected = f"a column 'labels', or name it: {argument('label_column', '…')}"
    raise DataFormatError(path, line, f"the columns {listed(names)}", expected)


def _named(path: Path, line: int, names: Sequence[str], kind: str, column: str) -> str:
    found = find_column(path, line, names, column)
    _check_column(path, line, names, kind, column if found is None else found)
    return column if found is None else found


def _check_column(path: Path, line: int, names: Iterable[str], kind: str, column: str) -> None:
    if column not in names:
        raise DataFormatError(path, line, f"the columns {listed(list(names))}", f"the {kind} column {column!r}")


def _text_of(path: Path, line: int, row: dict[str, Any], column: str) -> str:
    _check_column(path, line, row, "text", column)
    value = row[column]
    if value is not None and not isinstance(value, str):
        raise DataFormatError(path, line, shown(repr(value)), f"a text in the column {column!r}")
    return value or ""


def _read_labels(
    path: Path, cells: list[tuple[int, Any]], column: str, columns: Columns, facts: dict[str, Any]
) -> list[list[str]]:
    typed = [value for _, value in cells if isinstance(value, str)]
    spaced = column == SUBJECT_URIS and columns.separator is None
    separator = columns.separator or (" " if spaced else find_separator(typed))
    if typed:
        facts["label separator"] = shown_separator(typed, separator)
    labels = []
    untidy = unknown = 0
    for line, value in cells:
        found: list[Any]
        if spaced and isinstance(value, str):
            found = [clean_uri(uri) for uri in value.split()]
        else:
            found = _pieces(path, line, value, column, separator)
        if any(isinstance(label, dict) for label in found):
            named = [label_of(path, line, label, columns.vocabulary) for label in found]
            found = [label for label in named if label is not None]
            if columns.duplicates != "refuse":
                found = list(dict.fromkeys(found))
            unknown += named.count(None)
        if isinstance(value, str):
            tidy = tidied(found)
            untidy += len(tidy) < len(found)
            found = [label for label in found if label != ""] if columns.duplicates == "refuse" else tidy
        labels.append(_checked(path, line, found, columns.duplicates or "refuse"))
    if untidy:
        facts["label cells tidied"] = untidy
    if unknown:
        facts["labels that the vocabulary does not have"] = unknown
    return labels


def _pieces(path: Path, line: int, value: Any, column: str, separator: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        try:
            return split_labels(value, separator)
        except ValueError as error:
            others = "a list such as ['a', 'b'], as the other rows have"
            raise DataFormatError(path, line, f"{shown(value)} ({error})", others) from error
    if not isinstance(value, list):
        raise DataFormatError(path, line, shown(repr(value)), f"a list of labels in the column {column!r}")
    return value


def _checked(path: Path, line: int, found: list[Any], duplicates: str) -> list[str]:
    labels = []
    for label in found:
        if isinstance(label, bool) or not isinstance(label, str | int) or label == "":
            raise DataFormatError(path, line, shown(repr(label)), "a label that is a non-empty text or an integer")
        labels.append(str(label))
    if len(set(labels)) == len(labels):
        return labels
    if duplicates == "refuse":
        twice = next(label for place, label in enumerate(labels) if label in labels[:place])
        expected = f"each label once a row, or {argument('duplicates', 'merge')}"
        raise DataFormatError(path, line, f"the label {shown(twice)} twice", expected)
    return list(dict.fromkeys(labels))
