"""Terms learnt from texts and weighed: what :class:`~tailwise.TextFeatures` is made of.

A text is one string or several, its fields. Terms are known by 64-bit hashes; their spelling is looked up once, when
they are learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.text import terms as kernels
from tailwise.kernels.text.weighing import weigh_rows
from tailwise.parallel import map_blocks
from tailwise.rows import smooth_idf
from tailwise.text.cutting import Cut, blocks_of, table_size

Fields = Sequence[Sequence[str]]
"""The texts of each field."""
_MANY_BLOCKS = 4
_TIMES_A_TERM = 16


class Limits(NamedTuple):
    """Which terms are kept: in how many texts they must and may come, and how many at most, the most frequent."""

    min_df: int | float
    max_df: int | float
    max_features: int | None


class Numbered(NamedTuple):
    """The terms of a block of texts by numbers of its own."""

    which: np.ndarray  # (terms of all texts,) int32
    indptr: np.ndarray  # (fields of texts + 1,) int64
    columns: np.ndarray  # (numbers,) int32: the column of each, -1 for none


class Learnt(NamedTuple):
    """Terms in the order of their columns, and the texts that they were learnt from."""

    terms: list[str]
    hashes: np.ndarray  # (n_terms,) uint64
    idf: np.ndarray  # (n_terms,) float32
    blocks: list[Numbered]


class _Counted(NamedTuple):
    """A block of texts with the distinct terms of it."""

    joined: str
    which: np.ndarray
    indptr: np.ndarray
    hashes: np.ndarray
    first: np.ndarray
    length: np.ndarray
    counts: np.ndarray
    texts: np.ndarray


def learn_terms(fields: Fields, cut: Cut, limits: Limits, n_jobs: int | None) -> Learnt:
    """The terms of texts within ``limits``, sorted by name, with their idf."""

    def count_block(block: list[str]) -> _Counted:
        joined, terms = cut(block)
        which, facts = _number(terms.hashes, terms.indptr, len(fields))
        first = facts[:, 0]
        spans = terms.hashes[first], terms.first[first], terms.length[first]
        return _Counted(joined, which, terms.indptr, *spans, facts[:, 1], facts[:, 2])

    parts = _by_block(count_block, _blocks(fields), "Learning terms", n_jobs)
    every = np.concatenate([part.hashes for part in parts])
    number, facts = _number(every, np.array([0, every.size]), 1)
    place = facts[:, 0]
    counts, having = (
        np.bincount(number, np.concatenate(each), place.size).astype(np.int64)
        for each in ([part.counts for part in parts], [part.texts for part in parts])
    )
    n_texts = len(fields[0])
    low, high = (limit * n_texts if isinstance(limit, float) else limit for limit in (limits.min_df, limits.max_df))
    kept = np.flatnonzero((having >= low) & (having <= high))
    names = _spelled(parts, place[kept], cut)
    order = sorted(range(len(names)), key=names.__getitem__)
    if limits.max_features is not None and len(order) > limits.max_features:
        order = sorted(order, key=lambda i: -counts[kept[i]])[: limits.max_features]
        order.sort(key=names.__getitem__)
    chosen = kept[order]
    column = np.full(place.size, -1, np.int32)
    column[chosen] = np.arange(chosen.size)
    own = np.split(column[number], np.cumsum([part.hashes.size for part in parts])[:-1])
    blocks = [Numbered(part.which, part.indptr, columns) for part, columns in zip(parts, own, strict=True)]
    idf = smooth_idf(having[chosen], n_texts)
    return Learnt([names[i] for i in order], every[place[chosen]], idf, blocks)


def _number(hashes: np.ndarray, indptr: np.ndarray, a_text: int) -> tuple[np.ndarray, np.ndarray]:
    """The number of each term among the distinct ones, and the facts about these; see ``kernels.number_terms``."""
    which = np.empty(hashes.size, np.int32)
    # A table that stays in the caches, as long as terms come again and again.
    entries, n = hashes.size // _TIMES_A_TERM, -1
    while n < 0:
        keys = np.zeros(table_size(entries), np.uint64)
        facts = np.empty((keys.size // 2, 4), np.int64)
        n = kernels.number_terms(hashes, indptr, a_text, keys, np.empty(keys.size, np.int32), which, facts)
        entries = _TIMES_A_TERM * entries + 1
    return which, facts[:n].copy()


def _spelled(parts: list[_Counted], places: np.ndarray, cut: Cut) -> list[str]:
    """The names of terms, given by their places among the distinct terms of all blocks."""
    sizes = np.cumsum([0, *(part.hashes.size for part in parts)])
    block = np.searchsorted(sizes, places, side="right") - 1
    first, length = (
        np.concatenate(each)[places] for each in ([part.first for part in parts], [part.length for part in parts])
    )
    texts = [part.joined for part in parts]
    spans = zip(block.tolist(), first.tolist(), (first + length).tolist(), strict=True)
    return cut.spell([texts[part][start:stop] for part, start, stop in spans])


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


class Weighing(NamedTuple):
    """What fields and frequent terms weigh in a row."""

    shares: Sequence[float]
    """of the fields"""
    sublinear: bool

    def weigh(self, fields: Fields, cut: Cut, known: KnownTerms, n_jobs: int | None) -> sparse.csr_array:
        """TF-IDF rows of unit length, (n_texts, n_terms) float32, for the terms that are ``known``."""

        def weigh_block(block: list[str]) -> sparse.csr_array:
            terms = cut(block)[1]
            columns = np.empty(terms.hashes.size, np.int32)
            kernels.look_up(terms.hashes, known.keys, known.places, columns)
            return self._rows(columns, terms.indptr, known.idf)

        return _below(_by_block(weigh_block, _blocks(fields), "Weighing terms", n_jobs))

    def weigh_learnt(self, learnt: Learnt, n_jobs: int | None) -> sparse.csr_array:
        """The rows of the texts that terms were learnt from, without cutting them again."""

        def weigh_block(block: Numbered) -> sparse.csr_array:
            return self._rows(block.columns[block.which], block.indptr, learnt.idf)

        return _below(_by_block(weigh_block, learnt.blocks, "Weighing terms", n_jobs))

    def _rows(self, columns: np.ndarray, places: np.ndarray, idf: np.ndarray) -> sparse.csr_array:
        most = int(np.diff(places).max(initial=0))
        frequency = np.arange(most + 1, dtype=np.float32)
        if self.sublinear:
            frequency[1:] = 1.0 + np.log(frequency[1:])
        n_rows = (places.size - 1) // len(self.shares)
        indptr = np.empty(n_rows + 1, np.int64)
        indices, data = np.empty(columns.size, np.int32), np.empty(columns.size, np.float32)
        scratch = np.zeros(idf.size, np.int32), np.zeros(idf.size, np.float32)
        shares = np.array(self.shares if len(self.shares) > 1 else [1.0], np.float32)
        size = weigh_rows(columns, places, shares, frequency, idf, *scratch, indptr, indices, data)
        own = (data[:size].copy(), indices[:size].copy(), indptr.astype(np.int32))
        return sparse.csr_array(own, shape=(n_rows, idf.size))


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


def _blocks(fields: Fields) -> list[list[str]]:
    """Blocks of texts, the fields of each in a row."""
    pieces = fields[0] if len(fields) == 1 else chain.from_iterable(zip(*fields, strict=True))
    return blocks_of(pieces, whole=len(fields))


def _below(parts: list[sparse.csr_array]) -> sparse.csr_array:
    return sparse.csr_array(sparse.vstack(parts, format="csr")) if len(parts) > 1 else parts[0]


def _by_block(function: Callable[[Any], Any], blocks: Sequence[Any], doing: str, n_jobs: int | None) -> Any:
    return map_blocks(function, blocks, n_jobs=n_jobs, description=doing if len(blocks) > _MANY_BLOCKS else "")
