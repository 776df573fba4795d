"""Finding the files of a data set, and telling their format from name and content."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tailwise.data.annif import holds_documents, is_annif
from tailwise.data.files import (
    check_file,
    parse_json,
    plain_name,
    plain_suffix,
    read_bytes,
    read_text,
    shown,
    split_lines,
)
from tailwise.data.libsvm import MARK
from tailwise.data.mapped import SUFFIX, is_rows
from tailwise.data.pairs import find_pairs, find_partner
from tailwise.data.records import USUAL_COLUMNS
from tailwise.data.tables import TEXT_FORMATS
from tailwise.errors import DataFormatError, InvalidInput, argument

ROW_FORMATS = ("xmc", "libsvm", "arff", "rows")
FORMATS = (*ROW_FORMATS, *TEXT_FORMATS)
"""Every format that :func:`load_dataset` reads."""

_BY_SUFFIX = {
    ".arff": "arff",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    SUFFIX: "rows",
}
_BY_CONTENT = {".txt", ".xmc", ".dat", ".data", ".json", ""}
_TRAIN = {"train", "trn", "training"}
_TEST = {"test", "tst", "testing"}
_VALIDATION = {"dev", "valid", "validation", "val"}
_LABEL_NAMES = {"labelnames", "yf", "lbl"}
_FEATURE_NAMES = {"featurenames", "xf"}
_NAMES = 'a list ["name", …], an object {"id": "name", …}, or lines {"title": "name"}'


class Sources(NamedTuple):
    """The files of a data set; ``splits`` are those of the split form, where ``train`` holds all rows; ``labels``
    are the files of Y where ``train`` and ``test`` hold X alone.
    """

    train: Path
    test: Path | None = None
    label_names: Path | None = None
    feature_names: Path | None = None
    splits: tuple[Path, Path] | None = None
    labels: tuple[Path, ...] | None = None


def detect_format(path: str | Path) -> str:
    """The format of a file, one of ``FORMATS``: by its name, and for .tsv, .txt and the like by its first lines.

    A folder of texts is ``"documents"``.
    """
    if Path(path).is_dir() and is_rows(Path(path)):
        return "rows"
    if Path(path).is_dir() and holds_documents(Path(path)):
        return "documents"
    path = check_file(path)
    suffix = plain_suffix(path)
    if suffix in (".tsv", ".txt", "") and is_annif(path):
        return "annif"
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if suffix == ".npz":
        raise DataFormatError(path, None, "one matrix", "X and Y side by side, such as X.trn.npz and Y.trn.npz")
    head = read_bytes(path, 4096).removeprefix(b"\xef\xbb\xbf")
    line = head.partition(b"\n")[0]
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK\x03\x04"):
        return "xlsx"
    if head.lstrip().startswith(b"{"):
        return "jsonl"
    if re.fullmatch(rb"\s*\d+\s+\d+\s+\d+\s*", line):
        return "xmc"
    if line.startswith(MARK) or re.match(rb"(\d+(,\d+)*)?\s+\d+:[-+.\d]", line) or re.match(rb"\d+:[-+.\d]", line):
        return "libsvm"
    if table := _table_under(line):
        return table
    which = argument("format", "csv")
    expected = f"the first line of a known format; say which it is, such as {which}: one of {', '.join(FORMATS)}"
    raise DataFormatError(path, 1, shown(line) if head else "an empty file", expected)


def _table_under(header: bytes) -> str | None:
    """The format of a table whose first line names columns as they are usually called; None where it does not."""
    text = header.decode("utf-8", "replace").strip().casefold()
    for delimiter, kind in (("\t", "tsv"), (";", "csv"), (",", "csv")):
        names = {name.strip().strip('"') for name in text.split(delimiter)}
        if len(names) > 1 and names & USUAL_COLUMNS:
            return kind
    return None


def locate(path: str | Path, test: str | Path | None = None) -> Sources:
    """The files that ``path`` (a file or a folder) and ``test`` stand for."""
    path = Path(path)
    if not path.is_dir():
        train = check_file(path)
        pair = find_partner(train)
        if pair is not None and test is None:
            return Sources(pair.X, labels=(pair.Y,))
        labels = _mulan_xml(train) if plain_suffix(train) == ".arff" else None
        return Sources(train, None if test is None else check_file(test), labels)
    if is_rows(path) or holds_documents(path):
        return Sources(path, None if test is None else Path(test))
    inside = (file for file in path.iterdir() if not file.name.startswith("."))
    files = sorted(file for file in inside if file.is_file() or is_rows(file))
    found = _locate_in(path, files)
    return found if test is None else found._replace(test=check_file(test))


def _locate_in(folder: Path, files: list[Path]) -> Sources:
    xml = _only(folder, [file for file in files if plain_suffix(file) == ".xml"], "xml")
    label_names = _only(folder, [file for file in files if _squeezed(file) in _LABEL_NAMES], "label name")
    feature_names = _only(folder, [file for file in files if _squeezed(file) in _FEATURE_NAMES], "feature name")
    data = [
        file
        for file in files
        if plain_suffix(file) in _BY_SUFFIX.keys() | _BY_CONTENT and file not in (label_names, feature_names)
    ]
    pairs = find_pairs(files)
    if "train" in pairs:
        X, Y = zip(*(pairs[split] for split in ("train", "test") if split in pairs), strict=True)
        return Sources(X[0], X[1] if len(X) > 1 else None, label_names, feature_names, labels=Y)
    splits = [
        _only(folder, [file for file in data if _squeezed(file).endswith(end)], end) for end in ("trsplit", "tstsplit")
    ]
    if splits[0] and splits[1]:
        rest = [file for file in data if file not in splits]
        rows = [file for file in rest if "data" in _words(file)] or rest
        train = _required(folder, _only(folder, rows, "data"))
        return Sources(train, None, label_names, feature_names, (splits[0], splits[1]))
    train_file = _only(folder, [file for file in data if _words(file) & _TRAIN], "training")
    test_file = _only(folder, [file for file in data if _words(file) & _TEST], "test")
    if test_file is None:
        test_file = _only(folder, [file for file in data if _words(file) & _VALIDATION], "validation")
    if train_file is None and test_file is None:
        train_file = _only(folder, data, "data")
    return Sources(_required(folder, train_file), test_file, label_names or xml, feature_names)


def read_names(path: str | Path) -> list[str] | dict[str, str]:
    """Names from a file: one a line, a JSON list, a JSON object from id to name, or JSON Lines with a "title" each.

    JSON Lines are the repository's ``lbl.json``, whose ids are the line numbers from 0.
    """
    path = Path(path)
    text = read_text(path)
    if plain_suffix(path) != ".json":
        return split_lines(text)
    try:
        names = parse_json(text)
    except ValueError as error:
        if getattr(error, "msg", "") == "Extra data":
            return {str(place): _title(path, place + 1, line) for place, line in enumerate(split_lines(text.rstrip()))}
        raise DataFormatError(path, getattr(error, "lineno", None), str(error), f"JSON: {_NAMES}") from error
    values: Iterable[object] = names.values() if isinstance(names, dict) else names if isinstance(names, list) else [0]
    if not all(isinstance(value, str) for value in values):
        raise DataFormatError(path, None, shown(text[:100]), f"JSON: {_NAMES}")
    return names


def _title(path: Path, number: int, line: str) -> str:
    try:
        title = parse_json(line)["title"]
    except (ValueError, KeyError, TypeError, IndexError):
        title = None
    if not isinstance(title, str):
        raise DataFormatError(path, number, shown(line), f"JSON: {_NAMES}")
    return title


def _words(path: Path) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", plain_name(path).lower()))


def _squeezed(path: Path) -> str:
    return re.sub(r"[^a-z0-9]+", "", plain_name(path).lower())


def _only(folder: Path, files: list[Path], what: str) -> Path | None:
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise InvalidInput(
            f"{folder} has several {what} files ({names}); leave one of them there, or pass the path of a file"
        )
    return files[0] if files else None


def _required(folder: Path, file: Path | None) -> Path:
    if file is None:
        raise InvalidInput(
            f"{folder} has no training file; name it like train.txt (or .jsonl, .csv, .tsv, .parquet, .arff, .svm), "
            "or pass the path of the file itself"
        )
    return file


def _mulan_xml(path: Path) -> Path | None:
    """The xml beside an ARFF file: ``delicious.xml.xz`` for ``delicious-train.arff.xz``."""
    stem = re.sub(r"[-_.](train|test|trn|tst)\w*$", "", plain_name(path), flags=re.I)
    found = [file for file in path.parent.iterdir() if plain_suffix(file) == ".xml" and plain_name(file) == stem]
    return found[0] if found else None
