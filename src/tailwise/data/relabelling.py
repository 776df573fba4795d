"""A file of texts written again with other labels in some rows, and with all its columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tailwise.atomic import writing
from tailwise.data.annif import SUBJECT_URIS, clean_uri, label_of
from tailwise.data.files import plain_suffix
from tailwise.data.label_cells import LISTS, SEPARATOR, split_labels
from tailwise.data.locate import detect_format
from tailwise.data.record_writing import write_rows
from tailwise.data.records import find_column
from tailwise.data.tables import TEXT_FORMATS, Layout, table_rows
from tailwise.errors import InvalidInput, import_extra

_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}
_DELIMITED = ("csv", "tsv")
_UNTOLD = Layout()


class Edit(NamedTuple):
    """What becomes of a row's labels: ids that come, and ids that go."""

    added: list[str]
    removed: list[str]


def keeps_columns(source: str | Path, target: str | Path, format: str | None = None) -> bool:
    """Whether :func:`write_relabelled` can write ``source`` as ``target`` is named: a file of texts, as JSON Lines, in
    its own format, or from one of CSV, TSV and Excel to CSV or TSV.

    >>> keeps_columns("nowhere", "other.jsonl")
    False
    """
    if not Path(source).is_file():
        return False
    kind = format or detect_format(source)
    wanted = _target_kind(kind, target)
    tables = (*_DELIMITED, "xlsx")
    return kind in TEXT_FORMATS and (wanted in ("jsonl", kind) or (kind in tables and wanted in _DELIMITED))


def write_relabelled(
    source: str | Path,
    target: str | Path,
    edits: Mapping[int, Edit],
    facts: Mapping[str, Any],
    *,
    names: Mapping[str, str] | None = None,
    format: str | None = None,
    layout: Layout = _UNTOLD,
    vocabulary: Any = None,
) -> Path:
    """Write the rows of ``source`` to ``target`` with all their columns; rows of ``edits`` get other labels.

    Parameters
    ----------
    source, target : str or Path
        Files for which :func:`keeps_columns`.
    edits : mapping of row numbers to Edit
        Rows count from 0.
    facts : mapping
        What reading the file found out: ``TextDataset.reading``.
    names : mapping of ids to names, optional
        What added labels are called, for Annif's ``subjects``, which have a name beside the URI.
    format, layout, vocabulary
        How ``source`` is read.
    """
    source, target = Path(source), Path(target)
    kind = format or detect_format(source)
    if target.exists() and target.samefile(source):
        raise InvalidInput(f"{target} is the file that is read; write to another one")
    found: dict[str, Any] = {}
    rows = [row for _, row in table_rows(source, kind, layout, found, with_labels=True)]
    column = find_column(source, 1, list(rows[0]), str(facts["label column"]))
    assert column is not None, "the label column was read before"
    subjects = any(isinstance(item, dict) for row in rows if isinstance(row[column], list) for item in row[column])
    separator = facts.get("label separator", SEPARATOR)
    cells = _Cells(source, column, separator, subjects, names or {}, vocabulary)
    for number, edit in edits.items():
        rows[number][column] = cells.edited(number, rows[number][column], edit)
    wanted = _target_kind(kind, target)
    if wanted == "parquet":
        _write_parquet(source, target, column, [row[column] for row in rows])
    else:
        same = kind == wanted
        quoting = (layout.quoting or found.get("quoting")) if same else None
        write_rows(target, wanted, rows, delimiter=found.get("delimiter") if same else None, quoting=quoting)
    return target


def _target_kind(kind: str, target: str | Path) -> str:
    by_suffix = _SUFFIXES.get(plain_suffix(target), "")
    return "annif" if kind == "annif" and by_suffix in ("", "tsv") else by_suffix


class _Cells(NamedTuple):
    """How the labels of a row stand in their column."""

    path: Path
    column: str
    separator: str
    subjects: bool
    """Whether labels are objects with a URI and a name, as Annif writes them."""
    names: Mapping[str, str]
    vocabulary: Any

    def edited(self, number: int, value: Any, edit: Edit) -> Any:
        """The cell of row ``number`` with what comes and without what goes; what stays keeps its place."""
        if isinstance(value, str):
            return self._edited_text(number, value, edit)
        items = value or []
        if self.subjects:
            kept = [item for item in items if label_of(self.path, number, item, self.vocabulary) not in edit.removed]
            return kept + [{"uri": label, "label": self.names.get(label, label)} for label in edit.added]
        kept = [item for item in items if str(item) not in edit.removed]
        numbers = bool(items) and all(isinstance(item, int) for item in items)
        return kept + [int(label) if numbers and label.isdecimal() else label for label in edit.added]

    def _edited_text(self, number: int, value: str, edit: Edit) -> str:
        if self.column == SUBJECT_URIS and self.separator in (SEPARATOR, " "):
            kept = [uri for uri in value.split() if clean_uri(uri) not in edit.removed]
            return " ".join([*kept, *(f"<{label}>" if "<" in value else label for label in edit.added)])
        between = self.separator
        pieces = split_labels(value, between if between == LISTS else between.strip(" ") or between)
        labels = [piece for piece in pieces if str(piece) not in edit.removed and piece != ""] + edit.added
        if between == LISTS:
            return json.dumps(labels, ensure_ascii=False)
        joined = between.join(labels)
        if split_labels(joined, between.strip(" ") or between) != labels:
            raise InvalidInput(
                f"{self.path}, row {number + 1:,}: the labels {labels!r} cannot be told apart between {between!r}; "
                "write .jsonl from data with labels as lists"
            )
        return joined


def _write_parquet(source: Path, target: Path, column: str, cells: list[Any]) -> None:
    pa, parquet = (import_extra(module, "parquet", "writing Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    table = parquet.read_table(source)
    place = table.schema.get_field_index(column)
    changed = table.set_column(place, table.schema.field(place), pa.array(cells, table.schema.field(place).type))
    with writing(target) as file:
        parquet.write_table(changed, file)
