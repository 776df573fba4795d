"""Reading what other programs predicted: the format is told by the content, every malformed line by its number.

* ``label score`` pairs between tabs, a line a row: omikuji, and ``tailwise predict``.
* ``label:score`` pairs between spaces: napkinXC, and with a header ``rows labels`` the repository's programs.
* JSON Lines: those of ``tailwise predict``, of PECOS's text2text, and plain ``{"labels": […], "scores": […]}``.
* CSV and TSV with the columns row, id and score, as ``tailwise predict`` writes them.
* Annif: ``<uri>⇥label⇥score`` lines, a document a file (``annif index`` on a folder) or under a line
  ``Suggestions for …`` (``annif suggest``); JSON and JSON Lines with ``results`` (``annif index`` on a file, and
  the service).
* ``.npz``: a sparse matrix of scores as PECOS and scipy save it; ``label_ids`` beside it name its columns.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tailwise.base import TopK
from tailwise.data.files import check_file, parse_json, read_bytes, read_text, shown, split_lines
from tailwise.data.pairs import read_npz
from tailwise.errors import DataFormatError
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.sparse.topk import topk_csr

_ZIP = b"PK\x03\x04"
_JSON = '{"labels": ["a", "b"], "scores": [0.9, 0.1]}'
_TABLE = ("row", "id", "score")
_LONGEST_NUMBER = 19
_ANNIF = ".annif"
_ANNIF_HEAD = "Suggestions for "
_RESULTS = "results"

Ranked = list[tuple[str, float]]


class Predictions(NamedTuple):
    """The best labels of each row; ``topk.labels`` are places in ``label_ids``."""

    label_ids: list[str]
    topk: TopK


def read_predictions(path: str | Path, n_rows: int, k: int, *, names: Sequence[str] | None = None) -> Predictions:
    """The first ``k`` labels of each of ``n_rows`` rows; programs that name no labels mean columns, from 0.

    ``path`` is a file, or a folder of ``.annif`` files, of which each row has the one that ``names`` calls it by; by
    default they are in the order of their names.

    Labels are ranked by score, the higher the better, and where scores are equal as they stand in the file: programs
    round scores and rank before. In ``.npz`` equal scores rank by column.
    """
    path = Path(path)
    if path.is_dir():
        found = list(_from_folder(path, names))
    elif read_bytes(check_file(path), 4) == _ZIP:
        return _from_npz(path, n_rows, k)
    else:
        found = list(_rows_of(path, split_lines(read_text(path)), n_rows))
    if len(found) != n_rows:
        raise DataFormatError(path, None, f"{len(found):,} rows", f"{n_rows:,}, one for each row of the data")
    place: dict[str, int] = {}
    labels, scores = np.full((n_rows, k), -1, np.int32), np.full((n_rows, k), -np.inf, np.float32)
    for row, (line, ranked) in enumerate(found):
        if len({label for label, _ in ranked}) < len(ranked):
            raise DataFormatError(path, line, "a label twice", "each label once a row")
        for rank, (label, score) in enumerate(sorted(ranked, key=lambda pair: -pair[1])[:k]):
            labels[row, rank] = place.setdefault(label, len(place))
            scores[row, rank] = score
    return Predictions(list(place), TopK(labels, scores))


def holds_predictions(path: Path) -> bool:
    """Whether these are predictions: a file, or a folder that has what ``annif index`` wrote."""
    return path.is_file() or (path.is_dir() and any(path.glob(f"*{_ANNIF}")))


def _from_folder(folder: Path, names: Sequence[str] | None) -> Iterator[tuple[int, Ranked]]:
    files = {file.stem: file for file in sorted(folder.glob(f"*{_ANNIF}"))}
    for row, name in enumerate(files if names is None else names, start=1):
        if name not in files:
            raise DataFormatError(folder, None, f"no {name}{_ANNIF}", f"a file *{_ANNIF} for each document")
        file = files[name]
        yield row, [pair for _, pair in _annif_pairs(file, enumerate(split_lines(read_text(file)), start=1))]


def _annif_pairs(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, tuple[str, float]]]:
    for number, line in lines:
        if line.strip():
            cells = line.split("\t")
            score = _number(cells[-1])
            if not re.fullmatch(r"<[^<>]+>", cells[0]) or len(cells) < 2 or score is None:
                raise DataFormatError(path, number, shown(line), "<uri>⇥label⇥score")
            yield number, (cells[0][1:-1], score)


def _from_annif(path: Path, lines: list[str]) -> Iterator[tuple[int, Ranked]]:
    """Documents one after the other, each under its line ``Suggestions for …``; without such a line there is one."""
    blocks: list[tuple[int, list[tuple[int, str]]]] = []
    for number, line in enumerate(lines, start=1):
        if line.startswith(_ANNIF_HEAD) or not blocks:
            blocks.append((number, []))
        if not line.startswith(_ANNIF_HEAD):
            blocks[-1][1].append((number, line))
    for number, block in blocks:
        yield number, [pair for _, pair in _annif_pairs(path, block)]


def _from_whole_json(path: Path, lines: list[str]) -> list[tuple[int, Ranked]] | None:
    """What a service answers, in one piece: ``{"results": […]}``, or a list of these; None is something else."""
    try:
        answer = parse_json("\n".join(lines))
    except ValueError:
        return None
    answers = answer if isinstance(answer, list) else [answer]
    if not answers or not all(isinstance(one, dict) and isinstance(one.get(_RESULTS), list) for one in answers):
        return None
    found = [_ranked(one[_RESULTS]) for one in answers]
    for row, ranked in enumerate(found):
        if ranked is None:
            raise DataFormatError(
                path, None, f"an answer without labels and scores, number {row + 1:,}", f"JSON such as {_JSON}"
            )
    return [(row + 1, ranked or []) for row, ranked in enumerate(found)]


def _from_npz(path: Path, n_rows: int, k: int) -> Predictions:
    matrix, ids = read_npz(path)
    if matrix.shape[0] != n_rows:
        raise DataFormatError(path, None, f"{matrix.shape[0]:,} rows", f"{n_rows:,}, one for each row of the data")
    topk = TopK(np.empty((n_rows, k), np.int32), np.empty((n_rows, k), np.float32))
    topk_csr(csr_parts(matrix), *topk)
    return Predictions(ids or [str(label) for label in range(matrix.shape[1])], topk)


def _rows_of(path: Path, lines: list[str], n_rows: int) -> Iterator[tuple[int, Ranked]]:
    """Each row's line with its labels and scores, in the file's order."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        raise DataFormatError(path, 1, "an empty file", "predictions, a line a row")
    first = filled[0].strip()
    for delimiter in (",", "\t"):
        names = first.split(delimiter)
        if set(_TABLE) <= set(names):
            return iter(_from_table(path, lines, delimiter, n_rows))
    if first[0] in "{[":
        whole = _from_whole_json(path, lines)
        return _by_line(path, lines, 1, "json") if whole is None else iter(whole)
    if first.startswith(_ANNIF_HEAD) or re.match(r"<[^<>]+>\t", first):
        return _from_annif(path, lines)
    if _as_colons(first) is not None:
        return _by_line(path, lines, 1, "colons")
    if re.fullmatch(r"\d+\s+\d+", first) and (len(filled) == 1 or _as_colons(filled[1]) is not None):
        return _by_line(path, lines[1:], 2, "colons")
    return _by_line(path, lines, 1, "tabs")


def _by_line(path: Path, lines: list[str], first: int, kind: str) -> Iterator[tuple[int, Ranked]]:
    read, expected = _KINDS[kind]
    for number, line in enumerate(lines, start=first):
        found = read(line) if line.strip() else []
        if found is None:
            raise DataFormatError(path, number, shown(line), expected)
        yield number, found


def _as_tabs(line: str) -> Ranked | None:
    return _pairs(piece.strip().rpartition(" ")[::2] for piece in line.split("\t") if piece.strip())


def _as_colons(line: str) -> Ranked | None:
    return _pairs(piece.rpartition(":")[::2] for piece in line.split())


def _pairs(found: Any) -> Ranked | None:
    ranked = []
    for label, text in found:
        score = _number(text)
        if not label.strip() or score is None:
            return None
        ranked.append((label.strip(), score))
    return ranked


def _number(value: Any) -> float | None:
    try:
        score = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(score) else score


def _from_json(line: str) -> Ranked | None:
    try:
        entries = _entries(parse_json(line))
    except ValueError:
        return None
    return _ranked(entries)


def _ranked(entries: Any) -> Ranked | None:
    if not isinstance(entries, list):
        return None
    ranked = []
    for place, entry in enumerate(entries):
        label, score = _entry(entry, place)
        number = _number(score)
        if isinstance(label, bool) or not isinstance(label, str | int) or number is None:
            return None
        ranked.append((str(label), number))
    return ranked


def _entries(value: Any) -> Any:
    """The list of a row's labels, wherever it stands."""
    if not isinstance(value, dict):
        return value
    labels, scores = value.get("labels", value.get("data", value.get(_RESULTS))), value.get("scores")
    if isinstance(labels, dict):
        return list(labels.items())
    if isinstance(labels, list) and isinstance(scores, list):
        return list(zip(labels, scores, strict=True))
    return labels


def _entry(entry: Any, place: int) -> tuple[Any, Any]:
    if isinstance(entry, dict):
        return entry.get("id", entry.get("uri", entry.get("label"))), entry.get("score")
    if isinstance(entry, list | tuple):
        return (entry[0], entry[1]) if len(entry) == 2 else (None, None)
    return entry, -place  # labels alone are ranked as they stand


def _from_table(path: Path, lines: list[str], delimiter: str, n_rows: int) -> list[tuple[int, Ranked]]:
    reader = csv.DictReader(io.StringIO("\n".join(lines)), delimiter=delimiter, strict=True)
    found: list[tuple[int, Ranked]] = [(1, []) for _ in range(n_rows)]
    try:
        for cells in reader:
            row, score = cells["row"] or "", _number(cells["score"])
            if not (row.isascii() and row.isdecimal() and len(row) < _LONGEST_NUMBER and int(row) < n_rows):
                raise DataFormatError(path, reader.line_num, shown(row), f"a row from 0 to {n_rows - 1:,}")
            if score is None or not cells["id"]:
                raise DataFormatError(path, reader.line_num, shown(str(cells["score"])), "a label and its score")
            found[int(row)][1].append((cells["id"], score))
            found[int(row)] = (reader.line_num, found[int(row)][1])
    except csv.Error as error:
        raise DataFormatError(path, reader.line_num, str(error), "quotes that open and close a whole field") from error
    return found


_KINDS: dict[str, tuple[Callable[[str], Ranked | None], str]] = {
    "json": (_from_json, f"JSON such as {_JSON}"),
    "colons": (_as_colons, "label:score label:score, such as 12:0.9 7:0.1"),
    "tabs": (
        _as_tabs,
        "'label score' pairs between tabs, 'label:score' between spaces, JSON Lines, CSV with the columns "
        f"{', '.join(_TABLE)}, or .npz",
    ),
}
