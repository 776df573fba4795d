"""Groups of labels that a user names in a file."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from tailwise.errors import DataFormatError, InvalidInput


def read_groups(path: str | Path, label_ids: list[str]) -> dict[str, np.ndarray]:
    """Groups from a CSV file with the columns label (an id) and group: name → (n_labels,) bool.

    A label may be in several groups, or in none; ids that the audit does not have are refused.
    """
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"groups={str(path)!r} is no file; pass deciles, quantiles, or a .csv of label and group")
    place = {label: column for column, label in enumerate(label_ids)}
    found: dict[str, np.ndarray] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            if "label" not in row or "group" not in row:
                raise DataFormatError(path, 1, f"the columns {', '.join(map(str, row))}", "the columns label and group")
            if row["label"] not in place:
                raise DataFormatError(path, line, f"the label {row['label']!r}", "an id of a label of the audit")
            found.setdefault(str(row["group"]), np.zeros(len(label_ids), bool))[place[row["label"]]] = True
    if not found:
        raise DataFormatError(path, None, "no rows", "the columns label and group")
    return found
