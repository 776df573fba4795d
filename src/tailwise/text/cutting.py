"""Texts cut into terms, which are words, runs of words or pieces of words, known by 64-bit hashes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tailwise.kernels.text import terms as kernels

CHARACTERS_A_BLOCK = 2_000_000


class Folding(NamedTuple):
    """What does not matter in a text."""

    lowercase: bool = True
    strip_accents: bool = False

    def __call__(self, text: str) -> str:
        """The text without it."""
        text = text.lower() if self.lowercase else text
        if not self.strip_accents:
            return text
        from sklearn.feature_extraction.text import strip_accents_unicode

        return strip_accents_unicode(text)


class Cut(NamedTuple):
    """How a text is cut into terms: by a kernel with its arguments, after folding."""

    kernel: Any
    arguments: tuple[Any, ...]
    room: Callable[[int, int], int]
    """How many terms so many characters of so many texts have at most."""
    folding: Folding
    spell: Callable[[str], str]
    """The name of a term, from the piece of text that it spans."""

    def __call__(self, block: Sequence[str]) -> tuple[str, kernels.Terms]:
        """The terms of each text of a block, and the folded texts joined, in which they have their places."""
        folded = [self.folding(text) for text in block]
        # A newline around each text: no word touches that of another text, and every word has neighbours.
        starts = np.cumsum([1, *(len(text) + 1 for text in folded)], dtype=np.int64)
        joined = "\n" + "\n".join(folded) + "\n"
        codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
        room = self.room(codes.size, len(folded))
        out = kernels.Terms(
            np.empty(room, np.uint64),
            np.empty(room, np.int64),
            np.empty(room, np.int32),
            np.empty(starts.size, np.int64),
        )
        size = self.kernel(codes, starts, _word_characters(), *self.arguments, out)
        return joined, kernels.Terms(out.hashes[:size], out.first[:size], out.length[:size], out.indptr)


def into_words(longest_run: int, stop_words: Sequence[str], folding: Folding, *, shortest: int = 2) -> Cut:
    """Runs of 1…``longest_run`` words of at least ``shortest`` characters, of which ``stop_words`` are none."""
    keys = np.zeros(table_size(len(stop_words)), np.uint64)
    if stop_words:
        alone = into_words(1, (), folding)
        kernels.build_table(alone(stop_words)[1].hashes, keys, np.empty(keys.size, np.int32))
    stop = {folding(word) for word in stop_words}

    def spell(piece: str) -> str:
        return piece if longest_run == 1 else " ".join(w for w in re.findall(r"\w\w+", piece) if w not in stop)

    def room(size: int, texts: int) -> int:
        return longest_run * (size // (shortest + 1) + texts)

    return Cut(kernels.hash_words, (shortest, longest_run, keys), room, folding, spell)


def into_pieces(shortest: int, longest: int, folding: Folding) -> Cut:
    """Pieces of words, with a space before and after each word."""
    each = 2 * (longest - shortest + 1)
    return Cut(
        kernels.hash_pieces,
        (shortest, longest),
        lambda size, texts: each * (size + texts),
        folding,
        lambda piece: re.sub(r"\W", " ", piece),
    )


def blocks_of(texts: Iterable[str], *, whole: int = 1) -> list[list[str]]:
    """The texts in blocks of a few megabytes, each a multiple of ``whole`` texts; at least one block."""
    blocks: list[list[str]] = [[]]
    size = 0
    for place, text in enumerate(texts):
        if size > CHARACTERS_A_BLOCK and place % whole == 0:
            blocks.append([])
            size = 0
        blocks[-1].append(text)
        size += len(text)
    return blocks


@lru_cache(maxsize=1)
def _word_characters() -> np.ndarray:
    """For each code point whether it belongs to words, as ``\\w`` of Python's re has it."""
    every = np.arange(0x110000, dtype=np.uint32).tobytes().decode("utf-32-le", "surrogatepass")
    table = np.zeros(len(every), np.bool_)
    for run in re.finditer(r"\w+", every):
        table[run.start() : run.end()] = True
    return table


def table_size(entries: int) -> int:
    """Room for so many entries in an open-addressing table: a power of two, less than half of it used."""
    return 1 << max(4, int(2 * entries + 1).bit_length())
