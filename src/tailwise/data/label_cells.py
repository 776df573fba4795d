"""Labels inside one cell: what separates them, lists that a program wrote as text, and tidying.

The separator is the one with which a dictionary of the labels and the cells written by it are shortest: the true one
makes labels recur, any other makes nearly each cell a label of its own.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from math import log2
from typing import Any

from tailwise.data.files import parse_json

SEPARATOR = ";"
_SEPARATORS = (SEPARATOR, "|", "\t", "\n", ", ", ",")
_CELLS_LOOKED_AT = 20_000
_LONGEST_LIST = 100_000  # characters; what is longer is not handed to Python's parser
_CHANGING_PLACES = 0.1
_CLEARLY = 0.9
_STRINGS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
LISTS = "written lists"


def find_separator(cells: Sequence[str]) -> str:
    """What separates the labels of ``cells``: one of a few characters, or ``LISTS`` where each cell is a list.

    >>> find_separator(["sea|law", "law|tax", "sea", "tax|sea"])
    '|'
    >>> find_separator(["['sea', 'law']", "[]"])
    'written lists'
    """
    filled = [cell for cell in cells[:: 1 + len(cells) // _CELLS_LOOKED_AT] if cell.strip()]
    if filled and all(_is_list(cell) for cell in filled):
        return LISTS
    used = [separator for separator in _SEPARATORS[1:] if any(separator in cell for cell in filled)]
    costs = {separator: _cost(filled, separator) for separator in used}
    best = min(used, key=costs.__getitem__, default=SEPARATOR)
    return best if used and costs[best] < _CLEARLY * _cost(filled, SEPARATOR) else SEPARATOR


def split_labels(cell: str, separator: str) -> list[str]:
    """The pieces of a cell; a piece is empty between two separators and behind a trailing one.

    >>> split_labels("sea; law;", ";")
    ['sea', 'law', '']
    """
    if not cell.strip():
        return []
    return read_list(cell) if separator == LISTS else [piece.strip() for piece in cell.split(separator)]


def shown_separator(cells: Sequence[str], separator: str) -> str:
    """The separator with the space that follows it throughout."""
    with_space = separator + " "
    used = sum(cell.count(separator) for cell in cells)
    always = used and used == sum(cell.count(with_space) for cell in cells)
    return with_space if always and separator != LISTS and not separator.endswith(" ") else separator


def read_list(cell: str) -> list[Any]:
    """A list as JSON or Python write it; a ValueError where it is none.

    >>> read_list("['sea', \\"law\\"]")
    ['sea', 'law']
    """
    if len(cell) > _LONGEST_LIST:
        raise ValueError(f"a list of more than {_LONGEST_LIST:,} characters")
    try:
        value = parse_json(cell)
    except ValueError:
        value = _literal(cell)
    if not isinstance(value, list):
        raise ValueError("no list")
    return value


def _literal(cell: str) -> Any:
    # Python joins strings that stand side by side, as in the "['a' 'b']" of a printed array: those are no list.
    if re.search("\0\\s*\0", _STRINGS.sub("\0", cell)):
        raise ValueError("strings without commas between them")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes such as \d, which are text here
            return ast.literal_eval(cell.strip())
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError("no list") from error


def _is_list(cell: str) -> bool:
    if not re.fullmatch(r"\s*\[.*\]\s*", cell, re.DOTALL):
        return False
    try:
        return all(isinstance(label, str | int) and not isinstance(label, bool) for label in read_list(cell))
    except ValueError:
        return False


def _cost(cells: Sequence[str], separator: str) -> float:
    """The bytes of a dictionary of the labels, and of the cells as numbers of its entries."""
    rows = [[piece for piece in split_labels(cell, separator) if piece] for cell in cells]
    uses = Counter(label for row in rows for label in row)
    if separator != SEPARATOR and not _change_places(rows):
        return float("inf")
    return sum(len(label) + 1 for label in uses) + uses.total() * log2(max(len(uses), 1)) / 8


def _change_places(rows: Sequence[Sequence[str]]) -> bool:
    """Whether labels that come later in one row come first in another, as "John" of "Smith, John" does not."""
    first = {row[0] for row in rows if row}
    later = [label for row in rows for label in row[1:]]
    return sum(label in first for label in later) >= _CHANGING_PLACES * len(later)


def tidied(labels: Sequence[Any]) -> list[Any]:
    """The labels without empty ones, each once, in their order."""
    return [label for label in dict.fromkeys(labels) if label != ""]
