"""Questions and answers as CSV, so that a spreadsheet is enough."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from tailwise.atomic import writing
from tailwise.audit.answers import VERDICTS
from tailwise.audit.store import Audit
from tailwise.data.record_writing import write_delimited
from tailwise.errors import DataFormatError, InvalidInput

COLUMNS = ("question", "record", "text", "label_id", "label", "verdict", "reviewer")
SHEET_LEASE_SECONDS = 30 * 86400.0
"""For how long a sheet's questions are kept for its reviewer: 30 days."""
_SHORT = {"y": "yes", "n": "no", "?": "unsure", "1": "yes", "0": "no", "u": "unsure"}


class Imported(NamedTuple):
    """What :func:`import_sheet` did: new answers, answers that replaced another, those that were there, empty cells."""

    added: int
    changed: int
    known: int
    empty: int


def export_sheet(audit: Audit, path: str | Path, reviewer: str, n_questions: int | None = None) -> int:
    """Write the next ``n_questions`` (None: all that are left) for ``reviewer`` to a CSV file; returns how many.

    They are kept for that reviewer for :data:`SHEET_LEASE_SECONDS`, those of an earlier sheet without an answer come
    again. Cells that a spreadsheet would compute get an apostrophe.
    """
    handed = audit.hand_out(reviewer, n_questions, SHEET_LEASE_SECONDS)
    if not handed:
        raise InvalidInput(f"no question is left for {reviewer!r}")
    lines = [[str(q.id), str(q.record), q.text, q.label_id, q.label, "", reviewer] for q in handed]
    write_sheet(path, COLUMNS, lines)
    return len(handed)


def write_sheet(path: str | Path, columns: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    """Write a CSV file that a spreadsheet opens and does not compute; atomic, in UTF-8."""
    with writing(path) as file:
        cells = ([str(cell) for cell in line] for line in lines)
        write_delimited(file, chain([list(columns)], cells), ",", spreadsheet_safe=True)


def import_sheet(audit: Audit, path: str | Path, reviewer: str | None = None) -> Imported:
    """Add the answers of a CSV file with the columns question, verdict and reviewer; all of them or none.

    ``reviewer`` stands for rows without one. A verdict is yes, no or unsure (also y, n, ?), in any case; empty cells
    are left for later. Who has answered a question already and answers otherwise now has the first answer retracted.
    """
    given = _read(Path(path), reviewer)
    standing = {(one.question, one.reviewer): one for one in audit.standing()}
    n_questions = audit.progress()["questions"]
    added: dict[str, list[tuple[int, str]]] = {}
    replaced: list[int] = []
    known = empty = 0
    for line, number, verdict, name in given:
        if not 0 <= number < n_questions:
            raise DataFormatError(path, line, f"the question {number}", f"one of 0 to {n_questions - 1}")
        if not verdict:
            empty += 1
            continue
        before = standing.get((number, name))
        if before is not None and before.verdict == verdict:
            known += 1
            continue
        if before is not None:
            replaced.append(before.id)
        added.setdefault(name, []).append((number, verdict))
    audit.exchange(replaced, added)
    return Imported(sum(map(len, added.values())) - len(replaced), len(replaced), known, empty)


def _read(path: Path, reviewer: str | None) -> list[tuple[int, int, str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            rows = list(csv.DictReader(file, delimiter=";" if first.count(";") > first.count(",") else ","))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataFormatError(path, None, f"no CSV in UTF-8 ({error})", "the file that `audit export` wrote") from error
    found, seen = [], set()
    for line, row in enumerate(rows, start=2):
        cells: dict[str, Any] = {str(k).strip().lower(): v for k, v in row.items()}
        if "question" not in cells or "verdict" not in cells:
            raise DataFormatError(
                path, 1, f"the columns {', '.join(map(str, row))}", "the columns question and verdict"
            )
        verdict = (cells["verdict"] or "").strip().lower()
        verdict = _SHORT.get(verdict, verdict)
        if verdict and verdict not in VERDICTS:
            raise DataFormatError(path, line, f"the verdict {verdict!r}", "yes, no, unsure or nothing")
        try:
            number = int(cells["question"])
        except (TypeError, ValueError) as error:
            raise DataFormatError(path, line, f"the question {cells['question']!r}", "its number") from error
        name = (cells.get("reviewer") or "").strip() or reviewer or ""
        if verdict and not name:
            raise DataFormatError(path, line, "no reviewer", "a name in the column reviewer, or --reviewer NAME")
        if verdict and (number, name) in seen:
            raise DataFormatError(path, line, f"question {number} twice by {name!r}", "each question once a reviewer")
        seen.add((number, name))
        found.append((line, number, verdict, name))
    if not found:
        raise DataFormatError(path, None, "no rows", "the file that `audit export` wrote, with verdicts")
    return found
