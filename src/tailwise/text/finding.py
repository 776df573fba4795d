"""Texts as numbers of words with their stems, and the names found among them: a block of texts at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tailwise.data.texts import in_fields
from tailwise.kernels.text import names as kernels
from tailwise.parallel import map_blocks
from tailwise.text.cutting import Folding, blocks_of, into_words
from tailwise.text.places import origins
from tailwise.text.stemming import LINKS, base_language, stem

_CUT = into_words(1, (), Folding(), shortest=1)
_KNOWN_FROM = 3
"""Training texts with a stem, from which on it may be a part of compounds."""


class Words(NamedTuple):
    """Segments as numbers of distinct words."""

    words: np.ndarray  # (n,) int32
    indptr: np.ndarray  # (segments + 1,) int64
    spelled: list[str]


class Tables(NamedTuple):
    """What names are looked up in."""

    keys: np.ndarray  # uint64: the hashes of runs, open addressing
    values: np.ndarray  # int32: the name of each, or -1
    known: np.ndarray  # uint64: stems that may be parts of compounds, open addressing
    names: kernels.Names


def cut_segments(texts: Sequence[str], fields: list[str]) -> list[str]:
    """The fields of each text, one after the other."""
    if len(fields) == 1:
        return list(texts)
    return [text for row in zip(*in_fields(texts, fields).values(), strict=True) for text in row]


def cut_words(segments: list[str]) -> Words:
    """The words of segments, in lower case, of one letter or more."""
    joined, terms = _CUT(segments)
    _, first, words = np.unique(terms.hashes, return_index=True, return_inverse=True)
    spans = zip(terms.first[first].tolist(), terms.length[first].tolist(), strict=True)
    return Words(words.astype(np.int32), terms.indptr, _CUT.spell([joined[at : at + length] for at, length in spans]))


def stem_hashes(words: list[str], language: str) -> np.ndarray:
    """The hash of the stem of each word: (n_words,) uint64."""
    hashes = np.empty(len(words), np.uint64)
    kernels.hash_each(*spell_stems(words, language), hashes)
    return hashes


def spell_stems(words: list[str], language: str) -> tuple[np.ndarray, np.ndarray]:
    """The stems of words as code points of all, and where each begins."""
    stems = [stem(word, language) for word in words]
    starts = np.cumsum([0, *map(len, stems)], dtype=np.int64)
    return np.frombuffer("".join(stems).encode("utf-32-le", "surrogatepass"), np.uint32), starts


def salt_of(place: int) -> np.uint64:
    """What keeps the stems of one language apart from equal ones of another."""
    return np.uint64((place * 0x9E3779B97F4A7C15) % 2**64)


def count_stems(texts: Sequence[str], languages: list[str], n_jobs: int | None) -> tuple[dict[int, int], np.ndarray]:
    """In how many texts each stem comes, by its salted hash, and the stems that come in a few texts, unsalted."""

    def count(block: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        cut = cut_words(block)
        text = np.repeat(np.arange(len(block)), np.diff(cut.indptr))
        pairs = []
        for language in languages:
            hashes = stem_hashes(cut.spelled, language)
            distinct, number = np.unique(hashes, return_inverse=True)
            once = np.unique(text * distinct.size + number[cut.words]) % max(1, distinct.size)
            pairs.append((distinct, np.bincount(once, minlength=distinct.size)))
        return pairs

    blocks = blocks_of(texts)
    parts = map_blocks(count, blocks, n_jobs=n_jobs, description="Learning stems" if len(blocks) > 4 else "")
    having: dict[int, int] = {}
    known: list[np.ndarray] = [np.empty(0, np.uint64)]
    for place, language in enumerate(languages):
        every = np.concatenate([pairs[place][0] for pairs in parts])
        distinct, number = np.unique(every, return_inverse=True)
        counts = np.bincount(number, np.concatenate([pairs[place][1] for pairs in parts]), distinct.size)
        having |= zip((distinct ^ salt_of(place)).tolist(), counts.astype(int).tolist(), strict=True)
        if base_language(language) in LINKS:
            known.append(distinct[counts >= _KNOWN_FROM])
    return having, np.unique(np.concatenate(known))


def split_compounds(words: list[str], languages: list[str], tables: Tables) -> kernels.Parts:
    """The names that are parts of each word, in any of the languages that have compounds."""
    found = [
        _split(words, language, salt_of(place), tables)
        for place, language in enumerate(languages)
        if base_language(language) in LINKS
    ]
    if len(found) == 1:
        return found[0]
    counts = sum((np.diff(part.indptr) for part in found), np.zeros(len(words), np.int64))
    owner = np.concatenate(
        [np.empty(0, np.int64), *(np.repeat(np.arange(len(words)), np.diff(p.indptr)) for p in found)]
    )
    order = np.argsort(owner, kind="stable")
    names = np.concatenate([np.empty(0, np.int32), *(part.names for part in found)])[order]
    place = np.concatenate([np.empty(0, np.int8), *(part.place for part in found)])[order]
    return kernels.Parts(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), names, place)


def find_names(
    cut: Words, stems: np.ndarray, longest: int, tables: Tables, parts: kernels.Parts
) -> tuple[kernels.Finds, np.ndarray]:
    """The names in each segment, and where the finds of each begin; ``stems`` (languages, distinct words) uint64."""
    salted = stems ^ np.array([salt_of(place) for place in range(len(stems))], np.uint64)[:, None]
    indptr = np.empty(cut.indptr.size, np.int64)
    room = cut.words.size
    while True:
        out = kernels.Finds(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int8))
        n = kernels.find_names(cut.words, cut.indptr, salted, longest, tables.keys, tables.values, parts, out, indptr)
        if n <= room:
            return kernels.Finds(out.name[:n], out.at[:n], out.place[:n]), indptr
        room = n


def locate_names(
    text: str, languages: list[str], longest: int, compounds: bool, tables: Tables
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Every name in a text by its number, with its first character and the one past its last."""
    _, terms = _CUT([text])
    cut = cut_words([text])
    stems = np.stack([stem_hashes(cut.spelled, language) for language in languages])
    finds, _ = find_names(
        cut, stems, longest, tables, split_compounds(cut.spelled, languages if compounds else [], tables)
    )
    origin = origins(text, _CUT.folding)
    for name, at, place in zip(finds.name.tolist(), finds.at.tolist(), finds.place.tolist(), strict=True):
        n_words = 1 if place in (kernels.HEAD, kernels.MODIFIER) else int(tables.names.facts[name, 0])
        last = at + n_words - 1
        # The text begins at the second character of what was cut.
        first_character = int(terms.first[at]) - 1
        last_character = int(terms.first[last] + terms.length[last]) - 2
        yield name, (int(origin[first_character]), int(origin[last_character]) + 1)


def _split(words: list[str], language: str, salt: np.uint64, tables: Tables) -> kernels.Parts:
    codes, starts = spell_stems(words, language)
    known = LINKS[base_language(language)]
    links = np.zeros((len(known), max(map(len, known))), np.uint32)
    for row, link in enumerate(known):
        links[row, : len(link)] = [ord(letter) for letter in link]
    indptr = np.empty(len(words) + 1, np.int64)
    room = len(words)
    while True:
        out = kernels.Parts(indptr, np.empty(room, np.int32), np.empty(room, np.int8))
        n = kernels.split_words(codes, starts, links, tables.known, tables.keys, tables.values, salt, out, indptr)
        if n <= room:
            return kernels.Parts(indptr, out.names[:n], out.place[:n])
        room = n
