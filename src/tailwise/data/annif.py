"""Annif's corpora: lines ``text⇥uri uri …``, and folders of documents with their labels in files beside them.

Its CSV (``text,subject_uris``) and JSON Lines (``text``, ``subjects``) are tables like any other: see
:mod:`tailwise.data.records`. A label is a URI, or a text that a vocabulary knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from tailwise.data.files import parse_json, read_bytes, read_text, shown, split_lines
from tailwise.errors import DataFormatError

SUBJECT_URIS = "subject_uris"
_FIELDS = {"document_id", "text", "metadata", "subjects"}
_URI = re.compile(r"<[^<>\s]+>|[A-Za-z][A-Za-z0-9+.\-]*:[^<>\s]+")
_LOOKED_AT = 1 << 16
_SUBJECT = '{"uri": "…"} or {"label": "…"}'

Row = dict[str, Any]


class KnowsLabels(Protocol):
    """What names labels and finds them by name: a :class:`~tailwise.Vocabulary`."""

    ids: list[str]

    def preferred_names(self, language: str | None = None) -> list[str]:
        """What the labels are called, in the order of ``ids``."""

    def find(self, name: str, language: str | None = None) -> str | None:
        """The id of the label with this name, or None."""


def clean_uri(uri: str) -> str:
    """A URI without the angle brackets that may be around it.

    >>> clean_uri("<http://example.org/1>")
    'http://example.org/1'
    """
    return uri[1:-1] if uri.startswith("<") and uri.endswith(">") else uri


def is_annif(path: Path) -> bool:
    """Whether the first line of a file that has labels has URIs for them: a header would name columns."""
    head = read_bytes(path, _LOOKED_AT).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    for line in head.split("\n"):
        _, tab, uris = line.partition("\t")
        if not tab:
            return False
        if uris.strip():
            return all(_URI.fullmatch(uri) for uri in uris.split())
    return False


def annif_lines(path: Path, text: str, with_labels: bool) -> Iterator[tuple[int, Row]]:
    """Each line's text and URIs; a line without a tab is a text without labels, where those are not needed."""
    for number, line in enumerate(split_lines(text), start=1):
        words, tab, uris = line.partition("\t")
        if not tab and with_labels:
            raise DataFormatError(path, number, shown(line), "text⇥uri uri …, with a tab before the labels")
        yield number, {"text": words, SUBJECT_URIS: uris}


def as_annif_line(text: str, labels: Any) -> str:
    """A line of the corpus; what would end it, or its text, becomes a space.

    >>> as_annif_line("deep\\nsea", ["u:1", "u:2"])
    'deep sea\\t<u:1> <u:2>'
    """
    return re.sub(r"[\t\r\n]+", " ", text) + "\t" + " ".join(f"<{label}>" for label in labels)


def holds_documents(folder: Path) -> bool:
    """Whether a folder has a document a file: texts with labels beside them, JSON documents, or texts of no format."""
    files = {file.name for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")}
    texts = sorted(name for name in files if name.endswith(".txt"))
    if any({f"{name[:-4]}.tsv", f"{name[:-4]}.key"} & files for name in texts):
        return True
    documents = sorted(name for name in files if name.endswith(".json"))
    if any(_is_document(folder / name) for name in documents[:2]):
        return True
    # Texts alone can be predicted for: none of them is a table, and nothing else is there.
    return bool(texts) and len(texts) == len(files) and not any(_is_table(folder / name) for name in texts[:20])


def _is_document(path: Path) -> bool:
    try:
        found = parse_json(read_text(path))
    except ValueError:
        return False
    return isinstance(found, dict) and set(found) <= _FIELDS and bool({"text", "metadata"} & set(found))


def _is_table(path: Path) -> bool:
    head = read_bytes(path, 4096)
    first = head.partition(b"\n")[0]
    return bool(
        re.fullmatch(rb"\s*\d+\s+\d+(\s+\d+)?\s*", first)
        or re.match(rb"\s*(\d+(,\d+)*)?\s*\d+:[-+.\d]", first)
        or first.lstrip().startswith(b"{")
        or re.search(r"(^|[^a-z])(train|trn|test|tst|dev|valid|names?)([^a-z]|$)", path.stem.lower())
    )


def document_rows(folder: Path, encoding: str | None, with_labels: bool) -> Iterator[tuple[int, Row]]:
    """The documents of a folder in the order of their names, ``*.txt`` before ``*.json``.

    The labels of ``x.txt`` are in ``x.tsv``, else in ``x.key``: a line each, the URI in angle brackets, or the label's
    text. A document without such a file has none to learn from or to be judged by, and is left out where labels are
    needed, as Annif does it.
    """
    number = 0
    for path in [*sorted(folder.glob("*.txt")), *sorted(folder.glob("*.json"))]:
        row: Row = {"document_id": path.stem, "text": ""}
        if path.suffix == ".json":
            row |= _read_document(path, encoding)
        else:
            row["text"] = read_text(path, encoding)
            keys = next((file for file in (path.with_suffix(".tsv"), path.with_suffix(".key")) if file.is_file()), None)
            if keys is not None:
                row["subjects"] = _read_keys(keys, encoding)
        if with_labels and "subjects" not in row:
            continue
        number += 1
        yield number, row


def _read_document(path: Path, encoding: str | None) -> Row:
    try:
        found = parse_json(read_text(path, encoding))
    except DataFormatError:
        raise
    except ValueError as error:
        raise DataFormatError(path, getattr(error, "lineno", None), str(error), "a JSON document") from error
    if not isinstance(found, dict) or not {"text", "metadata"} & set(found) or not set(found) <= _FIELDS:
        what = f"the fields {', '.join(found)}" if isinstance(found, dict) else "no object"
        raise DataFormatError(path, None, what, f"a document with the fields {', '.join(sorted(_FIELDS))}")
    if not isinstance(found.get("text", ""), str):
        raise DataFormatError(path, None, shown(repr(found["text"])), "a text")
    for subject in found.get("subjects", []) if isinstance(found.get("subjects", []), list) else [None]:
        if named(subject) is None:
            raise DataFormatError(path, None, shown(repr(subject)), f"labels such as {_SUBJECT}")
    return found


def _read_keys(path: Path, encoding: str | None) -> list[dict[str, str]]:
    found = []
    for line in split_lines(read_text(path, encoding)):
        cells = [cell.strip() for cell in line.split("\t") if cell.strip()]
        if cells and _URI.fullmatch(cells[0]) and cells[0].startswith("<"):
            found.append({"uri": clean_uri(cells[0])})
        elif cells:
            found.append({"label": cells[0]})
    return found


def with_text(row: Row) -> Row:
    """The row; a document of Annif that has metadata alone has an empty text.

    >>> with_text({"metadata": {"title": "Sea"}, "subjects": []})["text"]
    ''
    """
    return {"text": "", **row} if "metadata" in row and "text" not in row and set(row) <= _FIELDS else row


def named(subject: Any) -> tuple[str, str] | None:
    """``("uri" or "label", text)`` of a subject as JSON has it; None is no subject."""
    for key in ("uri", "label"):
        if isinstance(subject, dict) and isinstance(subject.get(key), str) and subject[key].strip():
            return key, subject[key].strip()
    return None


def label_of(path: Path, line: int, subject: dict[str, Any], vocabulary: KnowsLabels | None) -> str | None:
    """The id of a subject: its URI, or what the vocabulary finds by its text; None is unknown to the vocabulary.

    Without a vocabulary a label is its text.
    """
    found = named(subject)
    if found is None:
        raise DataFormatError(path, line, shown(repr(subject)), f"a label such as {_SUBJECT}")
    key, text = found
    if key == "uri":
        return clean_uri(text)
    return text if vocabulary is None else vocabulary.find(text)
