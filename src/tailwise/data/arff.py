"""Sparse ARFF with Mulan's xml: rows ``{index value,index value}``; labels are the attributes that the xml names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

import numpy as np
from scipy import sparse

from tailwise.data.files import read_bytes, read_text, shown, split_lines
from tailwise.errors import DataFormatError

_SPACE = " \t\r\f\v"
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# No two parts of these patterns can match the same text in two ways: they take linear time.
_NAME = re.compile(rf"""(?i:@attribute)[{_SPACE}]+({_QUOTED}|[^{_SPACE}'"{{][^{_SPACE}]*)""")
_VALUE = re.compile(rf"""[{_SPACE}]*({_QUOTED}|[^,'"{_SPACE}]+)[{_SPACE}]*""")
_ENTRY = re.compile(rf"""[{_SPACE}]*([0-9]+)[{_SPACE}]+({_QUOTED}|[^,'"{_SPACE}]+)[{_SPACE}]*""")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LARGEST = float(np.finfo(np.float32).max)
_NUMERIC = {"numeric", "real", "integer"}
_ATTRIBUTE = "@attribute name {0,1}, @attribute name numeric, or @data"
_ENTRIES = "entries 'index value' separated by commas inside braces"


class ArffData(NamedTuple):
    """What a Mulan data set holds."""

    X: sparse.csr_array
    Y: sparse.csr_array
    feature_names: list[str]
    label_names: list[str]


class _Attribute(NamedTuple):
    name: str
    column: int  # of X, or of Y where is_label
    is_label: bool
    values: dict[str, float] | None  # of a nominal attribute; None where it is numeric


def read_mulan_labels(path: str | Path) -> list[str]:
    """The label names of a Mulan xml file, in its order; nested labels (a hierarchy) follow their parents."""
    path = Path(path)
    names: dict[str, None] = {}
    parser = expat.ParserCreate(namespace_separator="}")

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition("}")[2] != "label":
            return
        name = attributes.get("name")
        if name is None or name in names:
            found = "a <label> without a name" if name is None else f"the label {shown(name)} twice"
            raise DataFormatError(path, parser.CurrentLineNumber, found, 'elements such as <label name="TAG_law">')
        names[name] = None

    def refuse(*_: object) -> None:
        # Entities could grow without bound; the parser tells them in every encoding.
        found = "a document type declaration"
        raise DataFormatError(path, parser.CurrentLineNumber, found, "a Mulan xml file, which has none")

    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(read_bytes(path), True)
    except DataFormatError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as error:
        line = getattr(error, "lineno", parser.CurrentLineNumber)
        raise DataFormatError(path, line, f"broken xml ({error})", "a Mulan xml file, best in UTF-8") from error
    if not names:
        raise DataFormatError(path, None, "no <label> element", 'elements such as <label name="TAG_law">')
    return list(names)


def read_arff(path: str | Path, labels: str | Path | list[str]) -> ArffData:
    """Read a sparse ARFF file whose labels are named by a Mulan xml file (or a list of names); gz and xz too.

    Nominal features {0,1} count as their numbers, other nominal features as the position of the value from 0, which
    is how sparse ARFF leaves out a first value. Memory is about that of the text, several times.
    """
    path = Path(path)
    names = labels if isinstance(labels, list) else read_mulan_labels(labels)
    lines = split_lines(read_text(path))
    attributes, first = _read_attributes(path, lines, names)
    entries: tuple[list[int], list[float], list[int]] = ([], [], [0])
    chosen: tuple[list[int], list[int]] = ([], [0])
    for number, line in enumerate(lines[first:], start=first + 1):
        text = line.strip(_SPACE)
        if not text or text.startswith("%"):
            continue
        if not (text.startswith("{") and text.endswith("}")):
            raise DataFormatError(path, number, shown(text), f"a sparse row: {_ENTRIES}")
        _read_row(path, number, text[1:-1], attributes, entries, chosen)
    n_features = len(attributes) - len(names)
    columns, values, cuts = entries
    X = sparse.csr_array(
        (np.array(values, np.float32), np.array(columns, np.int32), cuts), shape=(len(cuts) - 1, n_features)
    )
    label_columns, label_cuts = chosen
    ones = np.ones(len(label_columns), np.float32)
    Y = sparse.csr_array((ones, np.array(label_columns, np.int32), label_cuts), shape=(len(cuts) - 1, len(names)))
    for matrix in (X, Y):
        matrix.sort_indices()
    return ArffData(X, Y, [a.name for a in attributes if not a.is_label], list(names))


def _read_attributes(path: Path, lines: list[str], names: list[str]) -> tuple[list[_Attribute], int]:
    label_column = {name: column for column, name in enumerate(names)}
    attributes: list[_Attribute] = []
    seen: set[str] = set()
    n_features = 0
    for number, line in enumerate(lines, start=1):
        text = line.strip(_SPACE)
        word = re.split(f"[{_SPACE}]", text[:10], maxsplit=1)[0].lower()
        if word == "@data":
            lacking = [name for name in names if name not in seen]
            if lacking:
                raise DataFormatError(path, number, f"no attribute {shown(lacking[0])}", "an attribute for each label")
            return attributes, number
        if not text or text.startswith("%") or word == "@relation":
            continue
        match = _NAME.match(text)
        kind = "" if match is None else text[match.end() :].strip(_SPACE)
        if match is None or not kind:
            raise DataFormatError(path, number, shown(text), _ATTRIBUTE)
        name = _unquoted(match.group(1))
        if not name:
            raise DataFormatError(path, number, shown(text), "a name that is not empty")
        if name in seen:
            raise DataFormatError(path, number, f"attribute {shown(name)} twice", "each attribute once")
        seen.add(name)
        is_label = name in label_column
        column = label_column[name] if is_label else n_features
        n_features += not is_label
        attributes.append(_Attribute(name, column, is_label, _values_of(path, number, kind)))
    raise DataFormatError(path, len(lines), "the end of the file", "a line @data")


def _values_of(path: Path, number: int, kind: str) -> dict[str, float] | None:
    if kind.lower() in _NUMERIC:
        return None
    if not (kind.startswith("{") and kind.endswith("}")):
        raise DataFormatError(path, number, f"an attribute of type {shown(kind)}", "numeric, or values such as {0,1}")
    values = [_unquoted(match.group(1)) for match in _pieces(path, number, kind[1:-1], _VALUE, "values such as {0,1}")]
    if len(set(values)) < len(values):
        raise DataFormatError(path, number, shown(kind), "values that differ, such as {0,1}")
    if set(values) == {"0", "1"}:
        return {"0": 0.0, "1": 1.0}
    return {value: float(place) for place, value in enumerate(values)}


def _read_row(
    path: Path,
    number: int,
    text: str,
    attributes: list[_Attribute],
    entries: tuple[list[int], list[float], list[int]],
    chosen: tuple[list[int], list[int]],
) -> None:
    columns, values, cuts = entries
    labels, label_cuts = chosen
    seen = set()
    for match in _pieces(path, number, text, _ENTRY, _ENTRIES) if text.strip(_SPACE) else ():
        place, value = match.group(1).lstrip("0") or "0", match.group(2)
        index = int(place) if len(place) < 10 else len(attributes)
        if index >= len(attributes):
            expected = f"an attribute from 0 to {len(attributes) - 1:,}"
            raise DataFormatError(path, number, shown(match.group().strip(_SPACE)), expected)
        if index in seen:
            raise DataFormatError(path, number, f"attribute {index} twice", "each attribute once a row")
        seen.add(index)
        attribute = attributes[index]
        amount = _number_of(path, number, _unquoted(value), attribute)
        if attribute.is_label:
            if amount not in (0.0, 1.0):
                raise DataFormatError(path, number, shown(value), f"0 or 1 for the label {attribute.name!r}")
            if amount:
                labels.append(attribute.column)
        elif amount:
            columns.append(attribute.column)
            values.append(amount)
    cuts.append(len(columns))
    label_cuts.append(len(labels))


def _pieces(path: Path, number: int, text: str, pattern: re.Pattern[str], expected: str) -> list[re.Match[str]]:
    """What stands between commas, each a match of ``pattern``."""
    pieces, at = [], 0
    while True:
        match = pattern.match(text, at)
        if match is None or text[match.end() : match.end() + 1] not in ("", ","):
            raise DataFormatError(path, number, shown(text[at:].partition(",")[0].strip(_SPACE)), expected)
        pieces.append(match)
        if match.end() == len(text):
            return pieces
        at = match.end() + 1


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.S) if text[0] in "'\"" else text


def _number_of(path: Path, number: int, value: str, attribute: _Attribute) -> float:
    if attribute.values is not None:
        if value not in attribute.values:
            expected = (
                f"one of {', '.join(map(shown, list(attribute.values)[:6]))} for the attribute {attribute.name!r}"
            )
            raise DataFormatError(path, number, shown(value), expected)
        return attribute.values[value]
    amount = float(value) if _NUMBER.fullmatch(value) else float("nan")
    if not abs(amount) <= _LARGEST:
        raise DataFormatError(path, number, shown(value), f"a finite number for the attribute {attribute.name!r}")
    return amount
