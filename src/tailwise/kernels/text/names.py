"""Names found in texts: runs of stems that are names, parts of compounds that are, and what is known of each find.

A name is known by the hash of its run of stems, made as ``terms.hash_words`` makes those of runs of words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty
from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.sorting import index_of, sort_keys
from tailwise.kernels.text.terms import _SPACE, _finish, _mix, _slot

WHOLE, NESTED, HEAD, MODIFIER = 0, 1, 2, 3
"""How a name stands in a text: on its own, within a longer name, at the end or at the beginning of a compound."""

WORDS, CHARACTERS, RARITY, COUNT, ALONE, IN_FIRST, HEADS, MODIFIERS, FIRST, LAST = range(10)
AMBIGUITY, KIND, QUALIFIED, LENGTH, NEAR = range(10, 15)
N_FACTS = 15
_SHORTEST_PART = 3


class Parts(NamedTuple):
    """The names that are parts of each distinct word: those of word w at ``indptr[w]:indptr[w + 1]``."""

    indptr: np.ndarray  # (words + 1,) int64
    names: np.ndarray  # int32
    place: np.ndarray  # int8: HEAD or MODIFIER


class Finds(NamedTuple):
    """Room for finds, in the order of the segments; kernels fill it from the front."""

    name: np.ndarray  # int32
    at: np.ndarray  # int32: the number of the word, counted from the beginning of the segment
    place: np.ndarray  # int8: WHOLE, NESTED, HEAD or MODIFIER


class Names(NamedTuple):
    """Names, the labels that have each, and the labels near each label."""

    indptr: np.ndarray  # (names + 1,) int64
    labels: np.ndarray  # int32
    kind: np.ndarray  # float32: 1 for a preferred name, 2 for a synonym, 3 for a hidden name
    qualified: np.ndarray  # float32: 1 where the label's own name has a qualifier that was left out, else 0
    facts: np.ndarray  # (names, 3) float32: words, characters, rarity
    near_indptr: np.ndarray  # (labels + 1,) int64
    near: np.ndarray  # int32


@njit(nogil=True, cache=True, boundscheck=False)
def _joined(state, stem):
    """The hash of a run with one more stem."""
    return _finish(_mix(_mix(_SPACE, state), stem))


@njit(nogil=True, cache=True, boundscheck=False)
def _hash_of(codes, start, end):
    """As hash_words hashes one word."""
    state = np.uint64(0)
    for i in range(start, end):
        state = _mix(state, np.uint64(codes[i]))
    return _finish(state)


@njit(nogil=True, cache=True, boundscheck=False)
def hash_each(codes, starts, out):
    """The hash of each word ``codes[starts[i]:starts[i + 1]]`` (uint32); ``out`` (uint64) is written."""
    for word in range(starts.size - 1):
        out[word] = _hash_of(codes, starts[word], starts[word + 1])


@njit(nogil=True, cache=True, boundscheck=False)
def hash_runs(stems, indptr, out):
    """For each stem the hash of the run from the beginning of its row to itself; ``out`` is written.

    ``stems`` (uint64) are hashes, row i of them at ``indptr[i]:indptr[i + 1]``.
    """
    for row in range(indptr.size - 1):
        state = np.uint64(0)
        for i in range(indptr[row], indptr[row + 1]):
            state = stems[i] if i == indptr[row] else _joined(state, stems[i])
            out[i] = state


@njit(nogil=True, cache=True, boundscheck=False)
def find_names(words, segments, stems, longest, keys, values, parts, out, indptr):
    """Every name in every segment, the longer before the shorter at each word; returns how many there are.

    ``words`` (int32) are numbers of distinct words, segment i of them at ``segments[i]:segments[i + 1]``; ``stems``
    (languages, distinct words) uint64. The table ``keys``, ``values`` leads from the hash of a run to its name, or to
    -1 where the run only begins names. A name is NESTED where a longer one covers it. ``out`` and ``indptr``
    (segments + 1,) int64 are written; what ``out`` has no room for is counted only.
    """
    n = 0
    room = out.name.size
    begun = empty(longest, np.int32)
    indptr[0] = 0
    for segment in range(segments.size - 1):
        start, end = segments[segment], segments[segment + 1]
        for language in range(stems.shape[0]):
            reach = start
            for i in range(start, end):
                state = np.uint64(0)
                depth = 0
                for j in range(i, min(end, i + longest)):
                    stem = stems[language, np.uint64(words[j])]
                    state = stem if j == i else _joined(state, stem)
                    slot = _slot(keys, state)
                    if keys[slot] == 0:
                        break
                    begun[depth] = values[slot]
                    depth += 1
                for d in range(depth - 1, -1, -1):
                    if begun[d] < 0:
                        continue
                    if n < room:
                        out.name[n] = begun[d]
                        out.at[n] = i - start
                        out.place[n] = NESTED if i + d + 1 <= reach else WHOLE
                    n += 1
                    reach = max(reach, i + d + 1)
        for i in range(start, end):
            word = words[i]
            for p in range(parts.indptr[word], parts.indptr[word + 1]):
                if n < room:
                    out.name[n] = parts.names[p]
                    out.at[n] = i - start
                    out.place[n] = parts.place[p]
                n += 1
        indptr[segment + 1] = n
    return n


@njit(nogil=True, cache=True, boundscheck=False)
def describe_finds(finds, finds_indptr, segments, n_fields, names, seen, labels, facts, indptr):
    """What is known of each label found in each text, text by text with ascending labels; returns how many there are.

    A text is ``n_fields`` segments, of which the first counts as its title. ``labels`` (int32) and ``facts``
    (float32, N_FACTS columns) have room for a pair of every find and label of its name; they and ``indptr``
    (texts + 1,) int64 are written. ``seen`` (labels,) int32 holds -1 before and after.
    """
    n = 0
    indptr[0] = 0
    for text in range(indptr.size - 1):
        begin = n
        text_start = segments[text * n_fields]
        length = max(1, segments[(text + 1) * n_fields] - text_start)
        for field in range(n_fields):
            segment = text * n_fields + field
            for o in range(finds_indptr[segment], finds_indptr[segment + 1]):
                name, place = finds.name[o], finds.place[o]
                at = segments[segment] - text_start + finds.at[o] + 1
                first, last = names.indptr[name], names.indptr[name + 1]
                for j in range(first, last):
                    label = names.labels[j]
                    slot = seen[label]
                    if slot < 0:
                        slot = n
                        seen[label] = n
                        labels[n] = label
                        facts[n, :] = 0
                        facts[n, FIRST] = at
                        facts[n, AMBIGUITY] = last - first
                        facts[n, KIND] = names.kind[j]
                        facts[n, QUALIFIED] = names.qualified[j]
                        facts[n, LENGTH] = length
                        n += 1
                    own = facts[slot]
                    if place == HEAD:
                        own[HEADS] += 1
                    elif place == MODIFIER:
                        own[MODIFIERS] += 1
                    else:
                        own[WORDS] = max(own[WORDS], names.facts[name, 0])
                        own[COUNT] += 1
                        if place == WHOLE:
                            own[ALONE] += 1
                        if field == 0:
                            own[IN_FIRST] += 1
                    own[CHARACTERS] = max(own[CHARACTERS], names.facts[name, 1])
                    own[RARITY] = max(own[RARITY], names.facts[name, 2])
                    own[FIRST] = min(own[FIRST], at)
                    own[LAST] = max(own[LAST], np.float32(at) / np.float32(length))
                    own[AMBIGUITY] = min(own[AMBIGUITY], last - first)
                    own[KIND] = min(own[KIND], names.kind[j])
                    own[QUALIFIED] = min(own[QUALIFIED], names.qualified[j])
        for slot in range(begin, n):
            for i in range(names.near_indptr[labels[slot]], names.near_indptr[labels[slot] + 1]):
                if seen[names.near[i]] >= 0:
                    facts[slot, NEAR] += 1
        keys = empty(n - begin, np.int64)
        for slot in range(begin, n):
            seen[labels[slot]] = -1
            keys[slot - begin] = (np.int64(labels[slot]) << np.int64(32)) | (slot - begin)
        sort_keys(keys, n - begin)
        found = facts[begin:n].copy()
        for slot in range(begin, n):
            labels[slot] = keys[slot - begin] >> np.int64(32)
            for fact in range(facts.shape[1]):
                facts[slot, fact] = found[index_of(keys[slot - begin]), fact]
        indptr[text + 1] = n
    return n


@njit(nogil=True, cache=True, boundscheck=False)
def split_words(codes, starts, links, known, keys, values, salt, out, indptr):
    """The names that are parts of compounds; returns how many there are.

    Word i is ``codes[starts[i]:starts[i + 1]]`` (uint32). It is a compound where it falls into two parts of three
    letters or more that are both known: names, by the table ``keys``, ``values`` of their salted hashes, or stems in
    the hash table ``known``. Between the parts may stand one of ``links`` (n, m) uint32, each filled up with zeros from
    the right; an empty one is wanted for parts that touch. ``out`` and ``indptr`` (words + 1,) int64 are written; what
    ``out`` has no room for is counted only.
    """
    n = 0
    room = out.names.size
    indptr[0] = 0
    for word in range(starts.size - 1):
        start, end = starts[word], starts[word + 1]
        begin = n
        for cut in range(start + _SHORTEST_PART, end - _SHORTEST_PART + 1):
            head = _hash_of(codes, cut, end)
            head_slot = _slot(keys, head ^ salt)
            head_is_name = keys[head_slot] != 0 and values[head_slot] >= 0
            if not head_is_name and known[_slot(known, head)] == 0:
                continue
            for link in range(links.shape[0]):
                size = 0
                while size < links.shape[1] and links[link, size] != 0:
                    size += 1
                if cut - size - start < _SHORTEST_PART or not _ends_with(codes, cut, links[link], size):
                    continue
                modifier = _hash_of(codes, start, cut - size)
                slot = _slot(keys, modifier ^ salt)
                is_name = keys[slot] != 0 and values[slot] >= 0
                if not is_name and known[_slot(known, modifier)] == 0:
                    continue
                if head_is_name:
                    n = _add_part(out, begin, n, room, values[head_slot], HEAD)
                if is_name:
                    n = _add_part(out, begin, n, room, values[slot], MODIFIER)
                break
        indptr[word + 1] = n
    return n


@njit(nogil=True, cache=True, boundscheck=False)
def _ends_with(codes, end, link, size):
    same = True
    for i in range(size):
        same &= codes[end - size + i] == link[i]
    return same


@njit(nogil=True, cache=True, boundscheck=False)
def _add_part(out, begin, n, room, name, place):
    """One more part of the word whose parts begin at ``begin``, unless it has that one; returns how many there are."""
    for i in range(begin, min(n, room)):
        if out.names[i] == name and out.place[i] == place:
            return n
    if n < room:
        out.names[n] = name
        out.place[n] = place
    return n + 1
