"""Cutting texts into terms (words, runs of words, pieces of words) and counting them, each term known by a hash.

Terms are 64-bit hashes of their characters, mixed so that a million distinct terms collide with a chance of 3e-8.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import part
from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.sorting import sort_keys

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SPACE = np.uint64(32)


class Terms(NamedTuple):
    """Room for the terms of a block of texts, in order of appearance; kernels fill it from the front."""

    hashes: np.ndarray  # (terms,) uint64, never 0
    first: np.ndarray  # (terms,) int64: where a term begins in the block
    length: np.ndarray  # (terms,) int32: how many characters it spans there
    indptr: np.ndarray  # (texts + 1,) int64


@njit(nogil=True, cache=True, boundscheck=False)
def _mix(state, value):
    state = (state ^ value) * _MULTIPLIER
    return state ^ (state >> np.uint64(29))


@njit(nogil=True, cache=True, boundscheck=False)
def _finish(state):
    state = _mix(state, np.uint64(0xD6E8FEB86659FD93))
    return state if state != 0 else np.uint64(1)


@njit(nogil=True, cache=True, boundscheck=False)
def _slot(keys, key):
    """Where ``key`` is in the open-addressing table ``keys`` (its size a power of two), or the empty slot for it."""
    mask = np.uint64(keys.size - 1)
    at = (key >> np.uint64(7)) & mask
    while keys[at] != 0 and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@njit(nogil=True, cache=True, boundscheck=False)
def hash_words(codes, starts, is_word, shortest, longest_run, stop, out):
    """Runs of 1…``longest_run`` words of each text; words are ``shortest`` or more characters of ``is_word``.

    ``codes`` (uint32) are the code points of all texts, text i at ``starts[i]:starts[i + 1]``; words in the hash table
    ``stop`` (see :func:`build_table`) do not count. ``out`` needs room for
    ``longest_run * (codes.size // (shortest + 1) + texts)`` terms and is written; the rest may be read-only. Returns
    the number of terms.
    """
    n = 0
    recent, begins = np.empty(longest_run, np.uint64), np.empty(longest_run, np.int64)
    out.indptr[0] = 0
    for text in range(starts.size - 1):
        at, end = np.uint64(starts[text]), np.uint64(starts[text + 1])
        words = 0
        while at < end:
            if not is_word[codes[at]]:
                at += np.uint64(1)
                continue
            begin = at
            state = np.uint64(0)
            while at < end and is_word[codes[at]]:
                state = _mix(state, np.uint64(codes[at]))
                at += np.uint64(1)
            if at - begin < shortest:
                continue
            state = _finish(state)
            if stop[_slot(stop, state)] != 0:
                continue
            recent[words % longest_run] = state
            begins[words % longest_run] = begin
            words += 1
            for run in range(1, min(longest_run, words) + 1):
                combined = recent[(words - run) % longest_run]
                for later in range(words - run + 1, words):
                    # Mixed once more by itself: without it "a b" and "b a" would be one.
                    combined = _finish(_mix(_mix(_SPACE, combined), recent[later % longest_run]))
                out.hashes[n] = combined
                out.first[n] = begins[(words - run) % longest_run]
                out.length[n] = at - np.uint64(begins[(words - run) % longest_run])
                n += 1
        out.indptr[text + 1] = n
    return n


@njit(nogil=True, cache=True, boundscheck=False)
def hash_pieces(codes, starts, is_word, shortest, longest, out):
    """Pieces of ``shortest``…``longest`` characters of each word with a space around it: scikit-learn's ``char_wb``.

    Words are runs of characters for which ``is_word`` holds. The characters around a word, which must exist in
    ``codes``, count as spaces. ``out`` needs room for ``(longest - shortest + 1) * 2 * (codes.size + texts)`` terms and
    is written; the rest may be read-only. Returns the number of terms.
    """
    n = 0
    out.indptr[0] = 0
    for text in range(starts.size - 1):
        at, end = starts[text], starts[text + 1]
        while at < end:
            if not is_word[codes[np.uint64(at)]]:
                at += 1
                continue
            begin = at
            while at < end and is_word[codes[np.uint64(at)]]:
                at += 1
            padded = at - begin + 2
            for size in range(shortest, longest + 1):
                span = min(size, padded)
                for offset in range(padded - span + 1):
                    state = np.uint64(0)
                    for place in range(begin - 1 + offset, begin - 1 + offset + span):
                        inside = begin <= place < at
                        state = _mix(state, np.uint64(codes[np.uint64(place)]) if inside else _SPACE)
                    out.hashes[n] = _finish(state)
                    out.first[n] = begin - 1 + offset
                    out.length[n] = span
                    n += 1
                if size >= padded:
                    break
        out.indptr[text + 1] = n
    return n


@njit(nogil=True, cache=True, boundscheck=False)
def count_distinct(terms, keys, facts):
    """Distinct terms of a block, with how often and in how many texts each comes; returns whether there was room.

    ``keys`` (uint64 zeros, a power of two in size) becomes a hash table, of which at most half is used; ``facts``
    (int64, keys.size × 4) gets, by slot: the first place among the terms, the count, the texts, the last text seen.
    """
    left = keys.size // 2
    for text in range(terms.indptr.size - 1):
        for i in range(terms.indptr[text], terms.indptr[text + 1]):
            at = _slot(keys, terms.hashes[i])
            if keys[at] == 0:
                if left == 0:
                    return False
                left -= 1
                keys[at] = terms.hashes[i]
                facts[at, 0] = i
                facts[at, 1] = 0
                facts[at, 2] = 0
                facts[at, 3] = -1
            facts[at, 1] += 1
            if facts[at, 3] != text:
                facts[at, 2] += 1
                facts[at, 3] = text
    return True


@njit(nogil=True, cache=True, boundscheck=False)
def build_table(hashes, keys, values):
    """An open-addressing table from each hash to its place: ``keys`` (uint64) and ``values`` (int32), both written.

    ``keys`` starts as zeros, its size a power of two and larger than the number of ``hashes``; of equal hashes the
    last place counts.
    """
    for i in range(hashes.size):
        at = _slot(keys, hashes[i])
        keys[at] = hashes[i]
        values[at] = i


@njit(nogil=True, cache=True, boundscheck=False)
def count_known(terms, keys, values, n_features, indptr, indices, counts):
    """Count the terms that are in the table, text by text, as CSR rows with sorted indices; returns the entries.

    ``indices`` (int32) and ``counts`` (float32) have room for all terms; ``indptr`` is (texts + 1,) int64. The three
    are written; the table of :func:`build_table`, whose values are below ``n_features``, and the terms are read.
    """
    seen = np.zeros(n_features, np.int32)
    n = 0
    indptr[0] = 0
    for text in range(terms.indptr.size - 1):
        start = n
        for i in range(terms.indptr[text], terms.indptr[text + 1]):
            at = _slot(keys, terms.hashes[i])
            if keys[at] != 0:
                feature = values[at]
                if seen[feature] == 0:
                    indices[n] = feature
                    n += 1
                seen[feature] += 1
        sort_keys(part(indices, start, n), n - start)
        for j in range(start, n):
            counts[j] = seen[indices[j]]
            seen[indices[j]] = 0
        indptr[text + 1] = n
    return n
