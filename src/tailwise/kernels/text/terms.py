"""Cutting texts into terms (words, runs of words, pieces of words), each term known by a hash, and numbering them.

Terms are 64-bit hashes of their characters, mixed so that a million distinct terms collide with a chance of 3e-8.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty, prefetch
from tailwise.kernels.compilation import njit

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SPACE = np.uint64(32)
_AHEAD = 16


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


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def _slot(keys, key):
    """Where ``key`` is in the open-addressing table ``keys`` (its size a power of two), or the empty slot for it."""
    mask = np.uint64(keys.size - 1)
    at = (key >> np.uint64(7)) & mask
    while keys[at] != 0 and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@njit(nogil=True, cache=True, boundscheck=False)
def hash_words(codes, starts, letters, shortest, out):
    """The words of each text: ``shortest`` or more characters of ``letters``. Returns how many.

    ``codes`` (uint32) are the code points of all texts, text i at ``starts[i]:starts[i + 1]``, at whose end there is a
    character of no word; ``letters`` (uint32) has for each what it counts as, 0 for what is in no word. ``out`` needs
    room for ``codes.size // (shortest + 1) + texts`` terms and is written; the rest may be read-only.
    """
    n = 0
    out.indptr[0] = 0
    for text in range(starts.size - 1):
        at, end = np.uint64(starts[text]), np.uint64(starts[text + 1])
        while at < end:
            begin, state, letter = at, np.uint64(0), letters[codes[at]]
            while letter != 0:
                state = _mix(state, np.uint64(letter))
                at += np.uint64(1)
                letter = letters[codes[at]]
            size = at - begin
            at += np.uint64(1)
            if size >= np.uint64(shortest):
                out.hashes[n], out.first[n], out.length[n] = _finish(state), begin, size
                n += 1
        out.indptr[text + 1] = n
    return n


@njit(nogil=True, cache=True, boundscheck=False)
def join_words(words, longest_run, stop, out):
    """Runs of 1…``longest_run`` words of each text, of :func:`hash_words`. Returns how many.

    Words in the hash table ``stop`` (see :func:`build_table`) do not count. ``out`` needs room for ``longest_run``
    times as many terms as there are ``words`` and is written; the rest may be read-only.
    """
    n = 0
    recent, begins = empty(longest_run, np.uint64), empty(longest_run, np.int64)
    out.indptr[0] = 0
    for text in range(words.indptr.size - 1):
        known = 0
        for word in range(words.indptr[text], words.indptr[text + 1]):
            state, begin = words.hashes[word], words.first[word]
            if stop[_slot(stop, state)] != 0:
                continue
            recent[known % longest_run] = state
            begins[known % longest_run] = begin
            known += 1
            for run in range(1, min(longest_run, known) + 1):
                combined = recent[(known - run) % longest_run]
                for later in range(known - run + 1, known):
                    # Mixed once more by itself: without it "a b" and "b a" would be one.
                    combined = _finish(_mix(_mix(_SPACE, combined), recent[later % longest_run]))
                out.hashes[n] = combined
                out.first[n] = begins[(known - run) % longest_run]
                out.length[n] = begin + words.length[word] - begins[(known - run) % longest_run]
                n += 1
        out.indptr[text + 1] = n
    return n


@njit(nogil=True, cache=True, boundscheck=False)
def hash_pieces(codes, starts, letters, shortest, longest, out):
    """Pieces of ``shortest``…``longest`` characters of each word with a space around it: scikit-learn's ``char_wb``.

    Words are runs of characters that have ``letters``, as :func:`hash_words` takes them. The characters around a word,
    which must exist in ``codes``, count as spaces. ``out`` needs room for
    ``(longest - shortest + 1) * 2 * (codes.size + texts)`` terms and is written; the rest may be read-only. Returns the
    number of terms.
    """
    n = 0
    out.indptr[0] = 0
    for text in range(starts.size - 1):
        at, end = starts[text], starts[text + 1]
        while at < end:
            if not letters[codes[np.uint64(at)]]:
                at += 1
                continue
            begin = at
            while at < end and letters[codes[np.uint64(at)]]:
                at += 1
            padded = at - begin + 2
            for size in range(shortest, longest + 1):
                span = min(size, padded)
                for offset in range(padded - span + 1):
                    state = np.uint64(0)
                    for place in range(begin - 1 + offset, begin - 1 + offset + span):
                        inside = begin <= place < at
                        state = _mix(state, np.uint64(letters[codes[np.uint64(place)]]) if inside else _SPACE)
                    out.hashes[n] = _finish(state)
                    out.first[n] = begin - 1 + offset
                    out.length[n] = span
                    n += 1
                if size >= padded:
                    break
        out.indptr[text + 1] = n
    return n


@njit(nogil=True, cache=True, boundscheck=False)
def number_terms(hashes, indptr, a_text, keys, numbers, which, facts):
    """Number the distinct terms of a block in the order of their first places; how many, or -1 without room for them.

    Terms come in pieces of texts, piece i at ``indptr[i]:indptr[i + 1]``, ``a_text`` of them a text. ``keys`` (uint64
    zeros, a power of two in size) becomes a hash table, of which at most half is used, and ``numbers`` (int32) what it
    maps to. ``which`` (int32) gets the number of each term; ``facts`` (keys.size // 2 × 4, int64) by number the first
    place among the terms, the count, the texts, the last text seen. The last four are written.
    """
    n = 0
    for piece in range(indptr.size - 1):
        text = piece // a_text
        for i in range(indptr[piece], indptr[piece + 1]):
            at = _slot(keys, hashes[i])
            if keys[at] == 0:
                if n == facts.shape[0]:
                    return -1
                keys[at] = hashes[i]
                numbers[at] = n
                facts[n, 0] = i
                facts[n, 1] = 0
                facts[n, 2] = 0
                facts[n, 3] = -1
                n += 1
            number = numbers[at]
            which[i] = number
            facts[number, 1] += 1
            # No branch: which terms come again within a text cannot be guessed.
            facts[number, 2] += facts[number, 3] != text
            facts[number, 3] = text
    return n


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
def look_up(hashes, keys, values, found):
    """What the table of :func:`build_table` has for each of ``hashes``, -1 for nothing, into ``found`` (int32)."""
    mask = np.uint64(keys.size - 1)
    for i in range(hashes.size):
        if i + _AHEAD < hashes.size:
            slot = (hashes[i + _AHEAD] >> np.uint64(7)) & mask
            prefetch(keys, slot)
            prefetch(values, slot)
        at = _slot(keys, hashes[i])
        found[i] = values[at] if keys[at] != 0 else -1
