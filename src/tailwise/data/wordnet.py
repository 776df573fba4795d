"""WordNet's nouns: words, glosses, and what stands above what. Read from the files of WordNet 3.0.

Debian's ``wordnet-base`` installs them in ``/usr/share/wordnet``.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from tailwise.data.files import read_text, shown, split_lines
from tailwise.errors import DataFormatError

FOLDER = Path("/usr/share/wordnet")
"""Where Debian installs WordNet."""

_ABOVE = ("@", "@i")
_A_POINTER = 4


class Nouns(NamedTuple):
    """Meanings of nouns, each with its words and its gloss, and the meanings right above it."""

    ids: list[str]
    words: list[list[str]]
    glosses: list[str]
    above: list[list[int]]
    """The places of the hypernyms of each noun, and of what it is an instance of."""

    def parents(self) -> np.ndarray:
        """Every (noun, hypernym) as (n, 2) places: what :func:`tailwise.propensity_from_hierarchy` takes."""
        pairs = [(noun, top) for noun, tops in enumerate(self.above) for top in tops]
        return np.array(pairs, np.int64).reshape(-1, 2)

    def ancestors(self, noun: int) -> list[int]:
        """The places of all nouns above one, the nearest first."""
        chain: list[int] = []
        frontier = self.above[noun]
        while frontier:
            chain += frontier
            frontier = [top for one in frontier for top in self.above[one]]
        return list(dict.fromkeys(chain))


def read_wordnet_nouns(folder: str | Path = FOLDER) -> Nouns:
    """The nouns of the WordNet in ``folder``, from its file ``data.noun``."""
    path = Path(folder) / "data.noun"
    ids, words, glosses, tops = [], [], [], []
    for number, line in enumerate(split_lines(read_text(path, "latin-1")), start=1):
        if line.startswith(" "):  # the licence
            continue
        facts, _, gloss = line.partition(" | ")
        fields = facts.split()
        try:
            n_words = int(fields[3], 16)
            pointers = fields[2 * n_words + 5 :]
            if len(pointers) != _A_POINTER * int(fields[2 * n_words + 4]):
                raise ValueError("another number of pointers")
        except (IndexError, ValueError) as error:
            raise DataFormatError(path, number, shown(line), "a line of WordNet's data.noun") from error
        ids.append(fields[0])
        words.append([word.replace("_", " ") for word in fields[4 : 4 + 2 * n_words : 2]])
        glosses.append(gloss.strip())
        tops.append([target for kind, target in zip(pointers[::4], pointers[1::4], strict=True) if kind in _ABOVE])
    place = {own: i for i, own in enumerate(ids)}
    missing = next((top for own in tops for top in own if top not in place), None)
    if missing is not None:
        raise DataFormatError(path, None, f"a hypernym {missing} without a line", "the whole file data.noun")
    return Nouns(ids, words, glosses, [[place[top] for top in own] for own in tops])
