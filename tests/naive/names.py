"""Plain twins of the kernels that find names; stems and runs are strings and tuples, not hashes."""

from __future__ import annotations

import numpy as np

WHOLE, NESTED, HEAD, MODIFIER = range(4)
SHORTEST_PART = 3


def runs_from_the_beginning(rows):
    """For each row the tuple of all up to each of its stems."""
    return [tuple(row[: i + 1]) for row in rows for i in range(len(row))]


def find_names(segments, stems, names, longest, parts):
    """``[(name, at, place)]`` of each segment; ``names`` leads from (language, stems…) to a name."""
    found = []
    for segment in segments:
        own = []
        for language, spelled in enumerate(stems):
            spans = [
                (i, i + size, names[language, *(spelled[word] for word in segment[i : i + size])])
                for i in range(len(segment))
                for size in range(min(longest, len(segment) - i), 0, -1)
                if (language, *(spelled[word] for word in segment[i : i + size])) in names
            ]
            for first, end, name in spans:
                covered = any(a <= first and end <= b and b - a > end - first for a, b, _ in spans)
                own.append((name, first, NESTED if covered else WHOLE))
        own += [(name, at, place) for at, word in enumerate(segment) for name, place in parts[word]]
        found.append(own)
    return found


def describe_finds(texts, names, near, name_facts):
    """``[(label, 15 facts)]`` of each text.

    A text is a list of fields, a field its number of words and its finds ``(name, at, place)``; ``names`` holds the
    ``(label, kind, qualified)`` of each name, ``near`` the labels near each label.
    """
    described = []
    for fields in texts:
        n_words = max(1, sum(size for size, _ in fields))
        finds = {}
        before = 0
        for field, (size, own) in enumerate(fields):
            for name, at, place in own:
                for label, kind, qualified in names[name]:
                    find = (name, before + at + 1, place, field, kind, qualified)
                    finds.setdefault(label, []).append(find)
            before += size
        described.append([(label, _facts(finds, label, n_words, names, near, name_facts)) for label in sorted(finds)])
    return described


def _facts(finds, label, n_words, names, near, name_facts):
    own = finds[label]
    apart = [find for find in own if find[2] in (WHOLE, NESTED)]
    return np.array(
        [
            max((name_facts[find[0]][0] for find in apart), default=0),
            max(name_facts[find[0]][1] for find in own),
            max(name_facts[find[0]][2] for find in own),
            len(apart),
            sum(find[2] == WHOLE for find in own),
            sum(find[3] == 0 for find in apart),
            sum(find[2] == HEAD for find in own),
            sum(find[2] == MODIFIER for find in own),
            min(find[1] for find in own),
            max(np.float32(find[1]) / np.float32(n_words) for find in own),
            min(len(names[find[0]]) for find in own),
            min(find[4] for find in own),
            min(find[5] for find in own),
            n_words,
            sum(other in finds for other in near[label]),
        ],
        np.float32,
    )


def split_word(word, links, known, names):
    """``[(name, place)]`` of the parts of a word: it falls into two known ones, with the first fitting link between."""
    parts = []
    for cut in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1):
        head = word[cut:]
        if head not in names and head not in known:
            continue
        for link in links:
            modifier = word[: cut - len(link)]
            if len(modifier) < SHORTEST_PART or not word[:cut].endswith(link):
                continue
            if modifier not in names and modifier not in known:
                continue
            parts += [(names[head], HEAD)] if head in names else []
            parts += [(names[modifier], MODIFIER)] if modifier in names else []
            break
    return list(dict.fromkeys(parts))
