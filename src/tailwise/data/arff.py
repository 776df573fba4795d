"""Sparse ARFF with Mulan's xml: rows ``{index value,index value}``; labels are the attributes that the xml names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from tailwise.data.files import read_bytes, read_text, shown
from tailwise.errors import DataFormatError

_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)+)'|"((?:[^"\\]|\\.)+)"|([^\s'"{]\S*))\s*(\{.*\}|\S+)\s*$""", re.I
)
_NUMERIC = {"numeric", "real", "integer"}
_ENTRY = "entries 'index value' separated by commas inside braces"


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
    data = read_bytes(path)
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        line = data[: data.index(b"<!")].count(b"\n") + 1
        raise DataFormatError(path, line, "a document type declaration", "a Mulan xml file, which has none")
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise DataFormatError(path, error.position[0], f"broken xml ({error})", "a Mulan xml file") from error
    names = [element.get("name") for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    missing = [i for i, name in enumerate(names) if name is None]
    if not names or missing:
        found = "no <label> element" if not names else f"<label> number {missing[0] + 1} without a name"
        raise DataFormatError(path, None, found, 'elements such as <label name="TAG_law">')
    return [str(name) for name in names]


def read_arff(path: str | Path, labels: str | Path | list[str]) -> ArffData:
    """Read a sparse ARFF file whose labels are named by a Mulan xml file (or a list of names); gz and xz too.

    Nominal features {0,1} count as their numbers, other nominal features as the position of the value from 0, which
    is how sparse ARFF leaves out a first value. Memory is about that of the text, several times.
    """
    path = Path(path)
    names = labels if isinstance(labels, list) else read_mulan_labels(labels)
    lines = read_text(path).splitlines()
    attributes, first = _read_attributes(path, lines, names)
    entries: tuple[list[int], list[float], list[int]] = ([], [], [0])
    chosen: tuple[list[int], list[int]] = ([], [0])
    for number, line in enumerate(lines[first:], start=first + 1):
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if not (text.startswith("{") and text.endswith("}")):
            raise DataFormatError(path, number, shown(text), f"a sparse row: {_ENTRY}")
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
        text = line.strip()
        word = text[:10].lower()
        if word.startswith("@data"):
            lacking = [name for name in names if name not in seen]
            if lacking:
                raise DataFormatError(path, number, f"no attribute {shown(lacking[0])}", "an attribute for each label")
            return attributes, number
        if not text or text.startswith("%") or word.startswith("@relation"):
            continue
        match = _ATTRIBUTE.match(text)
        if match is None:
            raise DataFormatError(path, number, shown(text), "@attribute name {0,1}, @attribute name numeric, or @data")
        quoted, bare = match.group(1) or match.group(2), match.group(3)
        name = bare if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        if name in seen:
            raise DataFormatError(path, number, f"attribute {shown(name)} twice", "each attribute once")
        seen.add(name)
        is_label = name in label_column
        column = label_column[name] if is_label else n_features
        n_features += not is_label
        attributes.append(_Attribute(name, column, is_label, _values_of(path, number, match.group(4))))
    raise DataFormatError(path, len(lines), "the end of the file", "a line @data")


def _values_of(path: Path, number: int, kind: str) -> dict[str, float] | None:
    if kind.lower() in _NUMERIC:
        return None
    if not kind.startswith("{"):
        raise DataFormatError(path, number, f"an attribute of type {shown(kind)}", "numeric, or values such as {0,1}")
    values = [value.strip().strip("'\"") for value in kind[1:-1].split(",")]
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
    for entry in text.split(",") if text.strip() else ():
        place, *rest = entry.split(maxsplit=1) or [""]
        value = rest[0].strip().strip("'\"") if rest else ""
        if not (place.isascii() and place.isdecimal()) or not value:
            raise DataFormatError(path, number, shown(entry), _ENTRY)
        index = int(place)
        if index >= len(attributes):
            raise DataFormatError(path, number, shown(entry), f"an attribute from 0 to {len(attributes) - 1:,}")
        if index in seen:
            raise DataFormatError(path, number, f"attribute {index} twice", "each attribute once a row")
        seen.add(index)
        attribute = attributes[index]
        amount = _number_of(path, number, value, attribute)
        if attribute.is_label:
            if amount not in (0.0, 1.0):
                raise DataFormatError(path, number, shown(entry), f"0 or 1 for the label {attribute.name!r}")
            if amount:
                labels.append(attribute.column)
        elif amount:
            columns.append(attribute.column)
            values.append(amount)
    cuts.append(len(columns))
    label_cuts.append(len(labels))


def _number_of(path: Path, number: int, value: str, attribute: _Attribute) -> float:
    if attribute.values is not None:
        if value not in attribute.values:
            expected = f"one of {', '.join(list(attribute.values)[:6])} for the attribute {attribute.name!r}"
            raise DataFormatError(path, number, shown(value), expected)
        return attribute.values[value]
    try:
        amount = float(value)
    except ValueError:
        amount = float("nan")
    if not abs(amount) < 3.4e38:
        raise DataFormatError(path, number, shown(value), f"a finite number for the attribute {attribute.name!r}")
    return amount
