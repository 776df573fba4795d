"""Plain twins of the kernels for texts and for rows in files; terms are strings, not hashes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def words_of(text, is_word):
    """``(first, word)`` of each run of characters for which ``is_word`` holds."""
    found, begin = [], None
    for at in range(len(text) + 1):
        inside = at < len(text) and is_word[ord(text[at])]
        if inside and begin is None:
            begin = at
        elif not inside and begin is not None:
            found.append((begin, text[begin:at]))
            begin = None
    return found


def word_runs(text, is_word, shortest, longest_run, stop):
    """``(term, first, length)`` of the runs that end at each word, the shortest first; a term is a tuple of words."""
    words = [(a, w) for a, w in words_of(text, is_word) if len(w) >= shortest and w not in stop]
    terms = []
    for last, (at, word) in enumerate(words):
        for run in range(1, min(longest_run, last + 1) + 1):
            first = words[last - run + 1][0]
            terms.append((tuple(w for _, w in words[last - run + 1 : last + 1]), first, at + len(word) - first))
    return terms


def word_pieces(text, is_word, shortest, longest):
    """``(term, first, length)`` of the pieces of each word with a space on either side; a short word is one piece."""
    terms = []
    for at, word in words_of(text, is_word):
        padded = f" {word} "
        for size in range(shortest, longest + 1):
            span = min(size, len(padded))
            terms += [(padded[a : a + span], at - 1 + a, span) for a in range(len(padded) - span + 1)]
            if size >= len(padded):
                break
    return terms


def number(terms):
    """Each term by the place where it was first seen."""
    seen = {}
    return [seen.setdefault(term, len(seen)) for term in terms]


def number_terms(hashes, indptr, a_text):
    """The number of each term, and by number ``(first place, count, texts)``."""
    which = number(hashes.tolist())
    text = np.repeat(np.arange(indptr.size - 1) // a_text, np.diff(indptr)).tolist()
    facts = [
        (which.index(n), which.count(n), len({t for t, w in zip(text, which, strict=True) if w == n}))
        for n in range(len(set(which)))
    ]
    return which, facts


def weigh_rows(columns, places, shares, frequency, idf):
    """A dense row a text: the sum of its fields' rows of unit length times their shares, of unit length itself."""

    def unit(row):
        return row / (np.linalg.norm(row) or 1.0)

    fields = []
    for first, last in pairwise(places):
        counts = np.bincount(columns[first:last][columns[first:last] >= 0], minlength=idf.size)
        fields.append(unit(frequency[counts].astype(float) * idf))
    rows = np.array(fields).reshape(-1, shares.size, idf.size)
    return np.array([unit(shares @ row) for row in rows]) if len(rows) and shares.size > 1 else rows[:, 0]


def count_marks(buffer, start, stop):
    part = bytes(buffer[start:stop])
    return tuple(part.count(mark) for mark in (b"\n", b":", b","))


def parse_rows(text, comments):
    """``[(labels, [(index, value)])]`` of lines that are well formed."""
    rows = []
    for line in text.split("\n")[:-1]:
        line = line.rstrip("\r")
        bare = line.partition("#")[0] if comments else line
        tokens = bare.replace("\t", " ").split(" ")
        labels = [] if ":" in tokens[0] or not tokens[0] else [int(label) for label in tokens[0].split(",")]
        pairs = [token.split(":") for token in tokens if ":" in token]
        if comments and not labels and not pairs:
            continue
        rows.append((labels, [(int(index), np.float32(float(value))) for index, value in pairs]))
    return rows
