"""Vocabularies in CSV and TSV, as Annif has them, and in JSON from id to name."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

from tailwise.data.annif import clean_uri
from tailwise.data.files import read_text, shown, split_lines
from tailwise.data.locate import read_names
from tailwise.data.tables import Layout, listed, table_rows
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.vocabulary.building import UNSAID, Builder
from tailwise.vocabulary.vocabulary import Vocabulary

_LABEL = "label_"


def read_csv(path: Path) -> Vocabulary:
    """Columns ``uri``, ``label_xx`` for each language xx, and ``notation``; others are not looked at.

    A concept without a name in any language is deprecated, as Annif has it.
    """
    builder = Builder()
    for line, row in table_rows(path, "csv", Layout(), {}):
        languages = [column for column in row if column.startswith(_LABEL)]
        if "uri" not in row or not languages:
            raise DataFormatError(path, 1, f"the columns {listed(list(row))}", "the columns uri, label_en, …, notation")
        concept = _new(builder, path, line, row["uri"])
        for column in languages:
            builder.add_name(concept, row[column], column.removeprefix(_LABEL))
        builder.add_notation(concept, row.get("notation", ""))
        if not any(row[column].strip() for column in languages):
            builder.deprecate(concept)
    return _filled(builder, path)


def read_tsv(path: Path, language: str | None) -> Vocabulary:
    """Lines ``uri⇥label[⇥notation]``, angle brackets around the URI or not; one without a label is deprecated."""
    builder = Builder()
    for line, text in enumerate(split_lines(read_text(path)), start=1):
        if not text.strip():
            continue
        uri, *rest = (cell.strip() for cell in text.split("\t"))
        if len(rest) > 2:
            raise DataFormatError(path, line, f"{len(rest) + 1} columns", "uri⇥label, or uri⇥label⇥notation")
        concept = _new(builder, path, line, uri)
        label, notation = [*rest, "", ""][:2]
        builder.add_name(concept, label, language)
        builder.add_notation(concept, notation)
        if not label:
            builder.deprecate(concept)
    return _filled(builder, path)


def read_json(path: Path, language: str | None) -> Vocabulary:
    """An object from id to name."""
    names = read_names(path)
    if not isinstance(names, dict):
        raise DataFormatError(path, None, "names without ids", 'an object {"id": "name", …}')
    if not names or "" in names:
        raise DataFormatError(path, None, "no names" if not names else "an empty id", 'an object {"id": "name", …}')
    return Vocabulary.from_names(names, language)


def _new(builder: Builder, path: Path, line: int, cell: str) -> int:
    uri = clean_uri(cell.strip())
    if not uri or uri in builder:
        found = f"{shown(uri)} a second time" if uri else "no uri"
        raise DataFormatError(path, line, found, "each concept once, with its uri in the first column")
    return builder.concept(uri)


def _filled(builder: Builder, path: Path) -> Vocabulary:
    made = builder.build()
    if not len(made):
        raise DataFormatError(path, None, "no concept", "a concept a line")
    return made


def as_csv(vocabulary: Vocabulary) -> Iterator[str]:
    """The preferred names by language, and the notation. A language that is not said is ``und``, as BCP 47 has it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    called = [language or UNSAID for language in vocabulary.languages]
    writer.writerow(["uri", *(f"{_LABEL}{language}" for language in called), "notation"])
    terms = vocabulary.terms
    names = [[""] * len(called) for _ in vocabulary.ids]
    for place, text, language, preferred in zip(
        terms.concept.tolist(), terms.text, terms.language.tolist(), terms.preferred.tolist(), strict=True
    ):
        # Without names it would not be known from a concept that is given.
        if preferred and not vocabulary.deprecated[place]:
            names[place][language] = text
    for label, row, notation in zip(vocabulary.ids, names, vocabulary.notations, strict=True):
        writer.writerow([label, *row, notation])
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def as_tsv(vocabulary: Vocabulary, language: str | None) -> Iterator[str]:
    """A line a concept, with its name in one language, by default the first."""
    names = vocabulary.preferred_names(language)
    for place, (label, name, notation) in enumerate(zip(vocabulary.ids, names, vocabulary.notations, strict=True)):
        cells = [f"<{label}>", "" if vocabulary.deprecated[place] else name, notation]
        for cell in cells:
            if re.search(r"[\t\n\r]", cell):
                raise InvalidInput(f"{shown(cell)} has a tab or a line break, which TSV cannot hold; write CSV or JSON")
        yield "\t".join(cells).rstrip("\t") + "\n"


def as_json(vocabulary: Vocabulary, language: str | None) -> Iterator[str]:
    """An object from id to name in one language."""
    names = dict(zip(vocabulary.ids, vocabulary.preferred_names(language), strict=True))
    yield json.dumps(names, ensure_ascii=False, indent=0) + "\n"
