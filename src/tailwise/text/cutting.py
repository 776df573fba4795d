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

    @property
    def by_letter(self) -> bool:
        """Whether kernels do it while they read, letter by letter, but for texts that :meth:`ahead` folds."""
        return self.lowercase and not self.strip_accents

    def ahead(self, texts: Sequence[str]) -> list[str]:
        """What kernels are given of texts: these as they are where they can fold them."""
        if not self.by_letter:
            return [self(text) for text in texts]
        # One of these becomes two letters, and one another at the end of a word.
        return [text if text.isascii() or not ("İ" in text or "Σ" in text) else self(text) for text in texts]

    def afterwards(self, pieces: list[str]) -> list[str]:
        """Pieces of what :meth:`ahead` gave as they are in the folded texts."""
        return [piece.lower() for piece in pieces] if self.by_letter else pieces


class Cut(NamedTuple):
    """How a text is cut into terms: by a kernel with its arguments, after folding."""

    kernel: Any
    arguments: tuple[Any, ...]
    room: Callable[[int, int], int]
    """How many terms so many characters of so many texts have at most."""
    folding: Folding
    spell: Callable[[list[str]], list[str]]
    """The names of terms, from the pieces of text that they span."""

    def __call__(self, block: Sequence[str]) -> tuple[str, kernels.Terms]:
        """The terms of each text of a block, and the texts joined, in which they have their places, to be spelled."""
        texts = self.folding.ahead(block)
        # A newline around each text: no word touches that of another text, and every word has neighbours.
        starts = np.cumsum([1, *map(len, texts)], dtype=np.int64)
        starts += np.arange(starts.size)
        joined = "\n".join(["", *texts, ""])
        codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
        room = self.room(codes.size, len(texts))
        out = _room(room, len(texts))
        size = self.kernel(codes, starts, _letters(self.folding.by_letter), *self.arguments, out)
        return joined, kernels.Terms(out.hashes[:size], out.first[:size], out.length[:size], out.indptr)


def into_words(longest_run: int, stop_words: Sequence[str], folding: Folding, *, shortest: int = 2) -> Cut:
    """Runs of 1…``longest_run`` words of at least ``shortest`` characters, of which ``stop_words`` are none."""
    keys = np.zeros(table_size(len(stop_words)), np.uint64)
    if stop_words:
        alone = into_words(1, (), folding)
        kernels.build_table(alone(stop_words)[1].hashes, keys, np.empty(keys.size, np.int32))
    stop = {folding(word) for word in stop_words}

    def spell(pieces: list[str]) -> list[str]:
        runs = folding.afterwards(pieces)
        if longest_run == 1:
            return runs
        return [" ".join(w for w in re.findall(r"\w\w+", run) if w not in stop) for run in runs]

    def room(size: int, texts: int) -> int:
        return longest_run * (size // (shortest + 1) + texts)

    if longest_run == 1 and not stop_words:
        return Cut(kernels.hash_words, (shortest,), room, folding, spell)
    return Cut(_hash_runs, (shortest, longest_run, keys), room, folding, spell)


def _hash_runs(
    codes: np.ndarray,
    starts: np.ndarray,
    letters: np.ndarray,
    shortest: int,
    longest_run: int,
    stop: np.ndarray,
    out: kernels.Terms,
) -> int:
    words = _room(out.hashes.size // longest_run, starts.size - 1)
    kernels.hash_words(codes, starts, letters, shortest, words)
    return int(kernels.join_words(words, longest_run, stop, out))


def _room(terms: int, texts: int) -> kernels.Terms:
    """For so many terms of so many texts."""
    return kernels.Terms(
        np.empty(terms, np.uint64), np.empty(terms, np.int64), np.empty(terms, np.int32), np.empty(texts + 1, np.int64)
    )


def into_pieces(shortest: int, longest: int, folding: Folding) -> Cut:
    """Pieces of words, with a space before and after each word."""
    each = 2 * (longest - shortest + 1)
    return Cut(
        kernels.hash_pieces,
        (shortest, longest),
        lambda size, texts: each * (size + texts),
        folding,
        lambda pieces: [re.sub(r"\W", " ", piece) for piece in folding.afterwards(pieces)],
    )


def blocks_of(texts: Iterable[str], *, whole: int = 1) -> list[list[str]]:
    """The texts in blocks of a few megabytes, each a multiple of ``whole`` texts; at least one block."""
    every = list(texts)
    ends, first = np.cumsum([0, *map(len, every)]), 0
    blocks: list[list[str]] = []
    while first < len(every) or not blocks:
        # The text that makes it enough is the block's last, with those that belong to it.
        last = int(np.searchsorted(ends, ends[first] + CHARACTERS_A_BLOCK, side="right"))
        last += -last % whole
        blocks.append(every[first:last])
        first = last
    return blocks


@lru_cache(maxsize=2)
def _letters(lower: bool) -> np.ndarray:
    """For each code point 0, or what it is in words, as ``\\w`` of Python's re has these: itself, or its lower case."""
    every = np.arange(0x110000, dtype=np.uint32).tobytes().decode("utf-32-le", "surrogatepass")
    if lower:
        every = every.replace("İ", "i").lower()
    codes = np.frombuffer(every.encode("utf-32-le", "surrogatepass"), np.uint32)
    table = np.zeros(codes.size, np.uint32)
    for run in re.finditer(r"\w+", every):
        table[run.start() : run.end()] = codes[run.start() : run.end()]
    return table


def table_size(entries: int) -> int:
    """Room for so many entries in an open-addressing table: a power of two, less than half of it used."""
    return 1 << max(4, int(2 * entries + 1).bit_length())
