"""Texts cut into terms, which there are learnt, each weighed: what :class:`~tailwise.TextFeatures` is made of.

Terms are known by 64-bit hashes; their spelling is looked up once, when they are learnt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.text import terms as kernels
from tailwise.parallel import map_blocks
from tailwise.rows import smooth_idf, unit_rows

CHARACTERS_A_BLOCK = 2_000_000
_MANY_BLOCKS = 4
_TIMES_A_TERM = 16


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


class Learnt(NamedTuple):
    """Terms in the order of their columns."""

    terms: list[str]
    hashes: np.ndarray  # (n_terms,) uint64
    idf: np.ndarray  # (n_terms,) float32


class Limits(NamedTuple):
    """Which terms are kept: in how many texts they must and may come, and how many at most, the most frequent."""

    min_df: int | float
    max_df: int | float
    max_features: int | None


def learn_terms(texts: Sequence[str], cut: Cut, limits: Limits, n_jobs: int | None) -> Learnt:
    """The terms of ``texts`` within ``limits``, sorted by name, with their idf."""

    def count_block(block: list[str]) -> tuple[str, kernels.Terms, np.ndarray, np.ndarray]:
        joined, terms = cut(block)
        # A table that stays in the caches, as long as terms come again and again.
        entries, counted = terms.hashes.size // _TIMES_A_TERM, False
        while not counted:
            keys = np.zeros(table_size(entries), np.uint64)
            facts = np.empty((keys.size, 4), np.int64)
            counted = kernels.count_distinct(terms, keys, facts)
            entries = _TIMES_A_TERM * entries + 1
        used = np.flatnonzero(keys)
        first = facts[used, 0]
        spans = kernels.Terms(terms.hashes[first], terms.first[first], terms.length[first], terms.indptr)
        return joined, spans, facts[used, 1], facts[used, 2]

    parts = _by_block(count_block, blocks_of(texts), "Learning terms", n_jobs)
    every = np.concatenate([spans.hashes for _, spans, _, _ in parts])
    hashes, where, group = np.unique(every, return_index=True, return_inverse=True)
    counts, having = (
        np.bincount(group, np.concatenate([part[i] for part in parts]), hashes.size).astype(np.int64) for i in (2, 3)
    )
    n_texts = len(texts)
    low, high = (limit * n_texts if isinstance(limit, float) else limit for limit in (limits.min_df, limits.max_df))
    kept = np.flatnonzero((having >= low) & (having <= high))
    names = _spelled(parts, where[kept], cut)
    order = sorted(range(len(names)), key=names.__getitem__)
    if limits.max_features is not None and len(order) > limits.max_features:
        order = sorted(order, key=lambda i: -counts[kept[i]])[: limits.max_features]
        order.sort(key=names.__getitem__)
    chosen = kept[order]
    return Learnt([names[i] for i in order], hashes[chosen], smooth_idf(having[chosen], n_texts))


def _spelled(parts: list[Any], places: np.ndarray, cut: Cut) -> list[str]:
    """The names of terms, given by their places among the distinct terms of all blocks."""
    sizes = np.cumsum([0, *(spans.hashes.size for _, spans, _, _ in parts)])
    block = np.searchsorted(sizes, places, side="right") - 1
    first, length = (np.concatenate([spans[at] for _, spans, _, _ in parts])[places] for at in (1, 2))
    texts = [joined for joined, _, _, _ in parts]
    spans = zip(block.tolist(), first.tolist(), (first + length).tolist(), strict=True)
    return [cut.spell(texts[part][start:stop]) for part, start, stop in spans]


class KnownTerms(NamedTuple):
    """Terms that were learnt, found by their hashes: a table to look them up in and what each weighs.

    24 to 48 bytes a term. Building it takes 5 ns a term, far longer than looking up the words of one text: keep it.
    """

    keys: np.ndarray
    places: np.ndarray
    idf: np.ndarray

    @classmethod
    def of(cls, hashes: np.ndarray, idf: np.ndarray) -> KnownTerms:
        """Of the terms of these ``hashes`` (n_terms,) uint64, in the order of their columns."""
        keys = np.zeros(table_size(hashes.size), np.uint64)
        places = np.empty(keys.size, np.int32)
        kernels.build_table(hashes, keys, places)
        return cls(keys, places, idf)


def weigh_terms(
    texts: Sequence[str], cut: Cut, known: KnownTerms, *, sublinear: bool, n_jobs: int | None
) -> sparse.csr_array:
    """TF-IDF rows of unit length, (n_texts, n_terms) float32, for the terms that are ``known``."""
    keys, values, idf = known

    def count_block(block: list[str]) -> sparse.csr_array:
        _, terms = cut(block)
        indptr = np.empty(len(block) + 1, np.int64)
        indices, counts = np.empty(terms.hashes.size, np.int32), np.empty(terms.hashes.size, np.float32)
        size = kernels.count_known(terms, keys, values, idf.size, indptr, indices, counts)
        weights = 1.0 + np.log(counts[:size]) if sublinear else counts[:size]
        data = (weights * idf[indices[:size]]).astype(np.float32)
        rows = sparse.csr_array((data, indices[:size], indptr.astype(np.int32)), shape=(len(block), idf.size))
        return unit_rows(rows)

    parts = _by_block(count_block, blocks_of(texts), "Weighing terms", n_jobs)
    return sparse.csr_array(sparse.vstack(parts, format="csr")) if len(parts) > 1 else parts[0]


def terms_in_order(texts: Sequence[str], cut: Cut, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The known terms of each text in their order, as numbers; text i has those at ``indptr[i]:indptr[i + 1]``."""
    order = np.argsort(hashes)
    numbers: list[np.ndarray] = []
    counts: list[np.ndarray] = []
    for block in blocks_of(texts):
        terms = cut(block)[1]
        place = np.minimum(np.searchsorted(hashes, terms.hashes, sorter=order), hashes.size - 1)
        known = hashes[order[place]] == terms.hashes
        numbers.append(order[place][known])
        counts.append(np.diff(np.append(0, np.cumsum(known))[terms.indptr]))
    return np.concatenate(numbers), np.append(0, np.cumsum(np.concatenate(counts)))


def blocks_of(texts: Sequence[str], *, whole: int = 1) -> list[list[str]]:
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


def _by_block(function: Callable[[list[str]], Any], blocks: list[list[str]], doing: str, n_jobs: int | None) -> Any:
    return map_blocks(function, blocks, n_jobs=n_jobs, description=doing if len(blocks) > _MANY_BLOCKS else "")


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
