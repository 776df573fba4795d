"""Where in a text its terms stand: characters of the text as it was given, whatever folding made of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from tailwise.data.texts import ONLY_FIELD, Texts, in_fields
from tailwise.text.cutting import Cut, Folding

_GAP = re.compile(r"\W")

Place = tuple[int, int]
"""The first character and the one past the last."""


def field_places(text: Sequence[str], names: list[str]) -> dict[str, tuple[str, int]]:
    """The one text of each field, and the character of ``text[0]`` at which it begins; without names all is one.

    >>> field_places(["Law\\nof the sea"], ["title", "abstract"])
    {'title': ('Law', 0), 'abstract': ('of the sea', 4)}
    """
    if not names:
        return {ONLY_FIELD: (text[0], 0)}
    found = in_fields(text, names)
    known = isinstance(text, Texts) and bool(set(text.fields) & set(names))
    # As the fields stand in the joined text: in their own order, empty ones left out, a line break between.
    order = list(text.fields) if known and isinstance(text, Texts) else names
    starts, at = {}, 0
    for name in order:
        piece = text.fields[name][0] if known and isinstance(text, Texts) else found[name][0]
        starts[name] = at
        at += len(piece) + 1 if piece else 0
    return {name: (found[name][0], starts.get(name, 0)) for name in names}


def find_terms(text: str, start: int, cut: Cut, wanted: dict[int, int]) -> Iterator[tuple[int, Place]]:
    """Every place of the terms of ``wanted`` hashes, with what they stand for; the text begins at ``start``."""
    _, terms = cut([text])
    origin = origins(text, cut.folding)
    hits = np.flatnonzero(np.isin(terms.hashes, np.fromiter(wanted, np.uint64, len(wanted))))
    for hit in hits.tolist():
        # The text begins at the second character of what was cut. A piece may begin or end with the gap between words,
        # which may lie before the first character or behind the last.
        first, length = int(terms.first[hit]) - 1, int(terms.length[hit])
        last = min(first + length - 1, origin.size - 1)
        low, high = int(origin[max(first, 0)]), int(origin[last]) + 1
        low += bool(_GAP.match(text[low]))
        high -= bool(_GAP.match(text[high - 1]))
        yield wanted[int(terms.hashes[hit])], (start + low, start + high)


def origins(text: str, folding: Folding) -> np.ndarray:
    """For each character of the folded text the one of ``text`` that it came from: ``İ`` becomes two, ``é`` may too.

    >>> origins("aİb", Folding()).tolist()
    [0, 1, 1, 2]
    """
    if len(folding(text)) == len(text):
        return np.arange(len(text))
    return np.repeat(np.arange(len(text)), [len(folding(character)) for character in text])
