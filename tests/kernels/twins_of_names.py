"""Names in texts: kernels, twins and what to draw for them."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from naive import names as naive
from naive.text import number
from naive.twins import Twin

from tailwise.kernels.text import names
from tailwise.kernels.text.terms import build_table

SALTS = np.array([0, 0x9E3779B97F4A7C15], np.uint64)
letters = st.text("aeén", max_size=9)


def flat(rows):
    return np.cumsum([0, *map(len, rows)], dtype=np.int64)


def spelled(words):
    return np.array([ord(letter) for word in words for letter in word], np.uint32), flat(words)


def hashes_of(words):
    out = np.zeros(len(words), np.uint64)
    names.hash_each(*spelled(words), out)
    return out


def table_of(hashes, values):
    """An open-addressing table from each of ``hashes`` to its value; a small one, so that some share a slot."""
    keys = np.zeros(1 << max(2, len(hashes).bit_length()), np.uint64)
    places = np.zeros(keys.size, np.int32)
    build_table(np.array(hashes, np.uint64), keys, places)
    return keys, np.array([*values, -1], np.int32)[np.where(keys != 0, places, -1)]


def hash_of(run):
    """Of a tuple of hashes of stems, as names have it."""
    out = np.zeros(len(run), np.uint64)
    names.hash_runs(np.array(run, np.uint64), np.array([0, len(run)]), out)
    return int(out[-1])


@st.composite
def words(draw):
    drawn = draw(st.lists(letters, max_size=6))
    return *spelled(drawn), np.zeros(len(drawn), np.uint64), drawn


@st.composite
def rows_of_stems(draw):
    rows = draw(st.lists(st.lists(st.sampled_from([1, 2, 77, 2**63 + 5]), max_size=4), max_size=4))
    stems = np.array([stem for row in rows for stem in row], np.uint64)
    return stems, flat(rows), np.zeros(stems.size, np.uint64), rows


def room_for_finds(n):
    return names.Finds(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int8))


@st.composite
def segments_with_names(draw):
    """Words 0…3, of which two may have one stem; names of one to three stems, some of which begin others."""
    languages = draw(st.integers(1, 2))
    stems = [draw(st.lists(st.sampled_from("abc"), min_size=4, max_size=4)) for _ in range(languages)]
    known = draw(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), min_size=1, max_size=5))
    runs = {(draw(st.integers(0, languages - 1)), *run) for run in known}
    numbers = {run: name for name, run in enumerate(sorted(runs))}
    segments = draw(st.lists(st.lists(st.integers(0, 3), max_size=7), min_size=1, max_size=4))
    part = st.tuples(st.integers(0, len(numbers) - 1), st.sampled_from([names.HEAD, names.MODIFIER]))
    parts = [draw(st.lists(part, max_size=2)) for _ in range(4)]
    longest = draw(st.integers(1, 3))

    hashed = {letter: int(value) for letter, value in zip("abc", hashes_of(list("abc")), strict=True)}
    salted = lambda language, letter: hashed[letter] ^ int(SALTS[language])  # noqa: E731
    begun = {run[:size] for run in numbers for size in range(2, len(run) + 1)}
    table = table_of(
        [hash_of([salted(run[0], letter) for letter in run[1:]]) for run in sorted(begun)],
        [numbers.get(run, -1) for run in sorted(begun)],
    )
    return (
        np.array([word for segment in segments for word in segment], np.int32),
        flat(segments),
        np.array([[salted(n, letter) for letter in own] for n, own in enumerate(stems)], np.uint64),
        longest,
        *table,
        names.Parts(
            flat(parts),
            np.array([name for own in parts for name, _ in own], np.int32),
            np.array([place for own in parts for _, place in own], np.int8),
        ),
        room_for_finds(draw(st.sampled_from([0, 3, 200]))),
        np.zeros(len(segments) + 1, np.int64),
        (segments, stems, numbers, longest, parts),
    )


def plain_find_names(*arguments):
    out, (segments, stems, numbers, longest, parts) = arguments[7], arguments[9]
    found = naive.find_names(segments, stems, numbers, longest, parts)
    every = [find for own in found for find in own]
    return len(every), every[: out.name.size], flat(found).tolist()


def read_finds(n, *arguments):
    out, indptr = arguments[7], arguments[8]
    kept = min(n, out.name.size)
    finds = zip(*(part[:kept].tolist() for part in out), strict=True)
    return n, list(finds), indptr.tolist()


@st.composite
def finds_of_texts(draw):
    n_fields, n_names, n_labels = draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    label = st.integers(0, n_labels - 1)
    having = [
        [(one, draw(st.integers(1, 3)), draw(st.integers(0, 1))) for one in draw(st.lists(label, unique=True))]
        for _ in range(n_names)
    ]
    near = [draw(st.lists(label, unique=True)) for _ in range(n_labels)]
    number = st.floats(0, 9, width=32)
    facts = np.array([[draw(number) for _ in range(3)] for _ in range(n_names)], np.float32)

    def field():
        size = draw(st.integers(0, 5))
        find = st.tuples(st.integers(0, n_names - 1), st.integers(0, max(0, size - 1)), st.integers(0, 3))
        return size, draw(st.lists(find, max_size=5 if size else 0))

    texts = [[field() for _ in range(n_fields)] for _ in range(draw(st.integers(1, 3)))]
    own = [finds for fields in texts for _, finds in fields]
    every = [find for finds in own for find in finds]
    columns = zip(*every, strict=True) if every else ((), (), ())
    dtypes = (np.int32, np.int32, np.int8)
    finds = names.Finds(*(np.array(column, dtype) for column, dtype in zip(columns, dtypes, strict=True)))
    sizes = [size for fields in texts for size, _ in fields]
    room = sum(len(having[name]) for name, _, _ in every)
    known = names.Names(
        flat(having),
        np.array([one for own in having for one, _, _ in own], np.int32),
        np.array([kind for own in having for _, kind, _ in own], np.float32),
        np.array([qualified for own in having for _, _, qualified in own], np.float32),
        facts,
        flat(near),
        np.array([other for own in near for other in own], np.int32),
    )
    return (
        finds,
        flat(own),
        np.cumsum([0, *sizes], dtype=np.int64),
        n_fields,
        known,
        np.full(n_labels, -1, np.int32),
        np.zeros(room, np.int32),
        np.zeros((room, names.N_FACTS), np.float32),
        np.zeros(len(texts) + 1, np.int64),
        (texts, having, near, facts),
    )


def read_described(n, *arguments):
    seen, labels, facts, indptr = arguments[5:9]
    assert indptr[-1] == n and (seen == -1).all()
    return [list(zip(labels[a:b].tolist(), facts[a:b], strict=True)) for a, b in pairwise(indptr)]


@st.composite
def compounds(draw):
    """Words put together of parts that are known, names, or neither, with letters between them."""
    pieces = draw(st.lists(st.text("aen", min_size=2, max_size=4), min_size=1, max_size=4, unique=True))
    kinds = {piece: draw(st.sampled_from(["name", "known", "both", "begins a name", "neither"])) for piece in pieces}
    links = draw(st.permutations(["", "n", "en"]).map(lambda every: every[: draw(st.integers(1, 3))]))
    piece = st.sampled_from(pieces)
    word = st.tuples(piece, st.sampled_from(["", "n", "en", "e"]), piece).map("".join) | letters
    drawn = draw(st.lists(word, max_size=4))
    salt = SALTS[draw(st.integers(0, 1))]
    called = [piece for piece, kind in kinds.items() if kind in ("name", "both")]
    known = [piece for piece, kind in kinds.items() if kind in ("known", "both")]
    begun = [piece for piece, kind in kinds.items() if kind == "begins a name"]
    table = table_of((hashes_of([*called, *begun]) ^ salt).tolist(), [*range(len(called)), *(-1 for _ in begun)])
    padded = np.zeros((len(links), 2), np.uint32)
    for row, link in enumerate(links):
        padded[row, : len(link)] = [ord(letter) for letter in link]
    size = draw(st.sampled_from([0, 1, 90]))
    out = names.Parts(np.zeros(0, np.int64), np.zeros(size, np.int32), np.zeros(size, np.int8))
    indptr = np.zeros(len(drawn) + 1, np.int64)
    known_table = table_of(hashes_of(known).tolist(), range(len(known)))[0]
    known_names = {piece: name for name, piece in enumerate(called)}
    return *spelled(drawn), padded, known_table, *table, salt, out, indptr, (drawn, links, set(known), known_names)


def plain_split_words(*arguments):
    words, links, known, numbers = arguments[9]
    parts = [naive.split_word(word, links, known, numbers) for word in words]
    every = [part for own in parts for part in own]
    room = arguments[7].names.size
    return every if len(every) <= room else [], flat(parts).tolist() if len(every) <= room else []


def read_parts(n, *arguments):
    """Where room is short, parts that come twice are counted twice: the count is then an upper bound."""
    out, indptr = arguments[7], arguments[8]
    enough = len(plain_split_words(*arguments[:7], room_for_parts(999), *arguments[8:])[0])
    assert n >= enough and (n == enough or n > out.names.size)
    if enough > out.names.size or n > out.names.size:
        return [], []
    return list(zip(out.names[:n].tolist(), out.place[:n].tolist(), strict=True)), indptr.tolist()


def room_for_parts(size):
    return names.Parts(np.zeros(0, np.int64), np.zeros(size, np.int32), np.zeros(size, np.int8))


TWINS = {
    names.hash_each: Twin(
        lambda codes, starts, out, words: number(words),
        words(),
        writes=(2,),
        call=lambda *arguments: names.hash_each(*arguments[:3]),
        seen=lambda result, codes, starts, out, words: number(out.tolist()),
    ),
    names.hash_runs: Twin(
        lambda stems, indptr, out, rows: number(naive.runs_from_the_beginning(rows)),
        rows_of_stems(),
        writes=(2,),
        call=lambda *arguments: names.hash_runs(*arguments[:3]),
        seen=lambda result, stems, indptr, out, rows: number(out.tolist()),
    ),
    names.find_names: Twin(
        plain_find_names,
        segments_with_names(),
        writes=(7, 8),
        call=lambda *arguments: names.find_names(*arguments[:9]),
        seen=read_finds,
        examples=80,
    ),
    names.describe_finds: Twin(
        lambda *arguments: naive.describe_finds(*arguments[9]),
        finds_of_texts(),
        writes=(5, 6, 7, 8),
        call=lambda *arguments: names.describe_finds(*arguments[:9]),
        seen=read_described,
        examples=80,
    ),
    names.split_words: Twin(
        plain_split_words,
        compounds(),
        writes=(7, 8),
        call=lambda *arguments: names.split_words(*arguments[:9]),
        seen=read_parts,
        examples=80,
    ),
}
