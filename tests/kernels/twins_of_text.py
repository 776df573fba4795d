"""Texts and rows in files: kernels, twins and what to draw for them."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from naive import data as naive_data
from naive import text as naive
from naive.twins import Twin
from scipy import sparse
from strategies import label_rows, sparse_rows

from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.text import parsing, terms

WORDS = np.zeros(256, np.bool_)
WORDS[[ord(letter) for letter in "abcé"]] = True
texts = st.lists(st.text("ab cé.", max_size=14), min_size=1, max_size=4)


def room(n_terms, n_texts):
    return terms.Terms(
        np.zeros(n_terms, np.uint64),
        np.zeros(n_terms, np.int64),
        np.zeros(n_terms, np.int32),
        np.zeros(n_texts + 1, int),
    )


def joined(parts):
    """Code points with a space around every text, and where each starts; a text ends before the space."""
    whole = " " + "".join(f"{part} " for part in parts)
    starts = np.cumsum([1, *(len(part) + 1 for part in parts)])
    return np.array([ord(letter) for letter in whole], np.uint32), starts


def table_of(hashes):
    keys, values = np.zeros(64, np.uint64), np.zeros(64, np.int32)
    terms.build_table(np.asarray(hashes, np.uint64), keys, values)
    return keys, values


def hash_of(word):
    codes, starts = joined([word])
    out = room(9, 1)
    assert terms.hash_words(codes, starts, WORDS, 1, 1, np.zeros(16, np.uint64), out) == 1
    return out.hashes[0]


@st.composite
def texts_of_words(draw):
    parts, stop = draw(texts), draw(st.sets(st.sampled_from(["ab", "ca", "aé"]), max_size=2))
    shortest, longest = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    codes, starts = joined(parts)
    stops = table_of([hash_of(word) for word in sorted(stop)])[0]
    out = room(longest * (codes.size // (shortest + 1) + len(parts)), len(parts))
    return codes, starts, WORDS, shortest, longest, stops, out, parts, stop


@st.composite
def texts_of_pieces(draw):
    parts, shortest = draw(texts), draw(st.integers(1, 3))
    longest = draw(st.integers(shortest, 5))
    codes, starts = joined(parts)
    out = room((longest - shortest + 1) * 2 * (codes.size + len(parts)), len(parts))
    return codes, starts, WORDS, shortest, longest, out, parts


def spelled(cut, parts):
    """What a twin finds in all texts, as the kernel tells it: numbers of equal terms, places, lengths, indptr."""
    found, indptr, at = [], [0], 1
    for part in parts:
        found += [(term, at + first, length) for term, first, length in cut(part)]
        indptr.append(len(found))
        at += len(part) + 1
    names, first, length = zip(*found, strict=True) if found else ((), (), ())
    return naive.number(names), list(first), list(length), indptr


def read_terms(n, out):
    return naive.number(out.hashes[:n].tolist()), out.first[:n].tolist(), out.length[:n].tolist(), out.indptr.tolist()


@st.composite
def hashed(draw):
    """Terms of texts, some of none, with repeats; hashes that fall into one slot of a table too."""
    rows = draw(st.lists(st.lists(st.sampled_from([1, 2, 2**7, 2**13, 2**63 + 5]), max_size=6), min_size=1, max_size=4))
    flat = np.array([value for row in rows for value in row], np.uint64)
    zeros = np.zeros(flat.size, np.int64)
    return terms.Terms(flat, zeros, zeros.astype(np.int32), np.cumsum([0, *map(len, rows)]))


def read_facts(result, found, keys, facts):
    return result and {int(keys[at]): tuple(facts[at, :3].tolist()) for at in np.flatnonzero(keys)}


@st.composite
def tables(draw):
    known = draw(st.lists(st.sampled_from([1, 2, 2**13, 2**63 + 5, 77]), unique=True, max_size=5))
    return np.array(known, np.uint64), np.zeros(16, np.uint64), np.zeros(16, np.int32)


@st.composite
def counted(draw):
    found, (known, keys, values) = draw(hashed()), draw(tables())
    terms.build_table(known, keys, values)
    n = found.hashes.size
    outputs = np.zeros(found.indptr.size, np.int64), np.zeros(n, np.int32), np.zeros(n, np.float32)
    return found, keys, values, max(1, known.size), *outputs


def read_counts(n, found, keys, values, n_features, indptr, indices, counts):
    assert n == indptr[-1]
    pairs = list(zip(indices.tolist(), counts.tolist(), strict=True))
    return [pairs[a:b] for a, b in pairwise(indptr)]


@st.composite
def bytes_of_lines(draw):
    buffer = np.frombuffer(draw(st.binary(max_size=30) | st.text("\n:,1", max_size=30).map(str.encode)), np.uint8)
    start = draw(st.integers(0, buffer.size))
    return buffer, start, draw(st.integers(start, buffer.size))


numbers = st.sampled_from(["0", "1", "-2.5", "+3", ".5", "7.", "1e3", "2E-4", "0.1", "123456.789", "1e-30"])


@st.composite
def lines(draw):
    comments = draw(st.booleans())
    text = ""
    for _ in range(draw(st.integers(0, 5))):
        labels = draw(st.lists(st.integers(0, 8), max_size=3))
        pairs = draw(st.lists(st.tuples(st.integers(0, 9), numbers), max_size=4))
        gap = draw(st.sampled_from([" ", "  ", "\t"]))
        text += ",".join(map(str, labels)) + "".join(f"{gap}{index}:{value}" for index, value in pairs)
        text += draw(st.sampled_from(["", " # a note"])) if comments else ""
        text += draw(st.sampled_from(["\n", " \n", "\r\n"]))
    buffer = np.frombuffer(text.encode(), np.uint8)
    newlines, colons, commas = (text.count(mark) for mark in "\n:,")
    out = parsing.ParsedRows(
        np.zeros(newlines, np.int64),
        np.zeros(newlines + 1, np.int64),
        np.zeros(colons, np.int32),
        np.zeros(colons, np.float32),
        np.zeros(newlines + 1, np.int64),
        np.zeros(newlines + commas, np.int32),
    )
    return buffer, 0, buffer.size, 10, 9, comments, out


def read_parsed(result, buffer, start, stop, n_features, n_labels, comments, out):
    code, at, ordered, n_rows, n_x, n_y = result
    assert code == parsing.OK and at == buffer.size and (n_x, n_y) == (out.x_indptr[n_rows], out.y_indptr[n_rows])
    pairs = list(zip(out.x_indices.tolist(), out.x_data, strict=True))
    rows = [
        (out.y_indices[out.y_indptr[i] : out.y_indptr[i + 1]].tolist(), pairs[out.x_indptr[i] : out.x_indptr[i + 1]])
        for i in range(n_rows)
    ]
    return rows, bool(ordered)


def parse_rows(buffer, start, stop, n_features, n_labels, comments, out):
    rows = naive.parse_rows(bytes(buffer).decode(), comments)
    ascend = lambda numbers: all(a < b for a, b in pairwise(numbers))  # noqa: E731
    return rows, all(ascend(labels) and ascend([index for index, _ in pairs]) for labels, pairs in rows)


@st.composite
def written_rows(draw):
    X = draw(sparse_rows((1, 6), signed=True))
    Y = draw(label_rows(X.shape[0]))
    scale = np.float32(draw(st.sampled_from([1e-30, 0.001, 1.0, 12345.0, 1e20])))
    first = draw(st.integers(0, X.shape[0]))
    last = draw(st.integers(first, X.shape[0]))
    buffer = np.zeros(32 * X.nnz + 12 * Y.nnz + 2 * X.shape[0], np.uint8)
    return first, last, draw(st.integers(0, 1)), csr_parts(X, X.data * scale), csr_parts(Y), buffer


def format_rows(first, last, base, X, Y, buffer):
    """Values are compared as numbers: one may have two shortest spellings."""
    matrices = (sparse.csr_array((m.data, m.indices, m.indptr), shape=(m.indptr.size - 1, 50)) for m in (X, Y))
    return split(naive_data.write_rows(*(matrix[first:last] for matrix in matrices), base))


def split(text):
    return [
        [part if ":" not in part else (part.split(":")[0], np.float32(part.split(":")[1])) for part in line.split(" ")]
        for line in text.split("\n")
    ]


TWINS = {
    terms.hash_words: Twin(
        lambda codes, starts, is_word, shortest, longest, stop, out, parts, words: spelled(
            lambda text: naive.word_runs(text, is_word, shortest, longest, words), parts
        ),
        texts_of_words(),
        writes=(6,),
        call=lambda *arguments: terms.hash_words(*arguments[:7]),
        seen=lambda n, *arguments: read_terms(n, arguments[6]),
        examples=60,
    ),
    terms.hash_pieces: Twin(
        lambda codes, starts, is_word, shortest, longest, out, parts: spelled(
            lambda text: naive.word_pieces(text, is_word, shortest, longest), parts
        ),
        texts_of_pieces(),
        writes=(5,),
        call=lambda *arguments: terms.hash_pieces(*arguments[:6]),
        seen=lambda n, *arguments: read_terms(n, arguments[5]),
        examples=60,
    ),
    terms.count_distinct: Twin(
        lambda found, keys, facts: len(set(found.hashes)) <= keys.size // 2 and naive.count_distinct(found),
        st.tuples(hashed(), st.sampled_from([4, 8, 32])).map(
            lambda drawn: (drawn[0], np.zeros(drawn[1], np.uint64), np.zeros((drawn[1], 4), np.int64))
        ),
        writes=(1, 2),
        seen=read_facts,
    ),
    terms.build_table: Twin(
        lambda hashes, keys, values: {int(key): place for place, key in enumerate(hashes)},
        tables(),
        writes=(1, 2),
        seen=lambda result, hashes, keys, values: {int(keys[at]): int(values[at]) for at in np.flatnonzero(keys)},
    ),
    terms.count_known: Twin(
        lambda found, keys, values, *rest: naive.count_known(
            found, {int(keys[at]): int(values[at]) for at in np.flatnonzero(keys)}
        ),
        counted(),
        writes=(4, 5, 6),
        seen=read_counts,
        examples=40,
    ),
    parsing.count_marks: Twin(naive.count_marks, bytes_of_lines()),
    parsing.parse_rows: Twin(parse_rows, lines(), writes=(6,), seen=read_parsed, examples=80),
    parsing.format_rows: Twin(
        format_rows,
        written_rows(),
        writes=(5,),
        seen=lambda size, *arguments: split(bytes(arguments[5][:size]).decode()),
        examples=40,
    ),
}
