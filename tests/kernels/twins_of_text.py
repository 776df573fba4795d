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
from tailwise.kernels.text import parsing, terms, weighing

WORDS = np.zeros(256, np.uint32)
WORDS[[ord(letter) for letter in "abcé"]] = [ord(letter) for letter in "abcé"]
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
    assert terms.hash_words(codes, starts, WORDS, 1, out) == 1
    return out.hashes[0]


@st.composite
def texts_of_words(draw):
    parts, stop = draw(texts), draw(st.sets(st.sampled_from(["ab", "ca", "aé"]), max_size=2))
    shortest, longest = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    codes, starts = joined(parts)
    stops = table_of([hash_of(word) for word in sorted(stop)])[0]
    words = room(codes.size // (shortest + 1) + len(parts), len(parts))
    out = room(longest * words.hashes.size, len(parts))
    return codes, starts, WORDS, shortest, words, longest, stops, out, parts, stop


def runs_of_words(codes, starts, letters, shortest, words, longest, stop, out, *drawn):
    terms.hash_words(codes, starts, letters, shortest, words)
    return terms.join_words(words, longest, stop, out)


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


HASHES = st.sampled_from([1, 2, 2**7, 2**13, 2**63 + 5])
"""Some that fall into one slot of a table."""


@st.composite
def numbered(draw):
    """Terms of pieces of texts, some of none, with repeats, and a table that may be too small."""
    a_text = draw(st.integers(1, 2))
    rows = draw(st.lists(st.lists(HASHES, max_size=6), min_size=1, max_size=4)) * a_text
    hashes, size = np.array([value for row in rows for value in row], np.uint64), draw(st.sampled_from([4, 8, 32]))
    table = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    room = np.zeros(hashes.size, np.int32), np.zeros((size // 2, 4), np.int64)
    return hashes, np.cumsum([0, *map(len, rows)]), a_text, *table, *room


def read_facts(n, hashes, indptr, a_text, keys, numbers, which, facts):
    return n >= 0 and (which.tolist(), [tuple(fact) for fact in facts[:n, :3].tolist()])


@st.composite
def tables(draw):
    known = draw(st.lists(st.sampled_from([1, 2, 2**13, 2**63 + 5, 77]), unique=True, max_size=5))
    return np.array(known, np.uint64), np.zeros(16, np.uint64), np.zeros(16, np.int32)


@st.composite
def looked_up(draw):
    hashes, (known, keys, values) = np.array(draw(st.lists(HASHES, max_size=6)), np.uint64), draw(tables())
    terms.build_table(known, keys, values)
    return hashes, keys, values, np.zeros(hashes.size, np.int32)


@st.composite
def weighed(draw):
    """Columns of the fields of texts, some unknown, with what columns and fields weigh."""
    fields = draw(st.integers(1, 3))
    rows = [draw(st.lists(st.integers(-1, 5), max_size=7)) for _ in range(fields * draw(st.integers(0, 3)))]
    stride = draw(st.sampled_from([1, 20, 3000]))
    columns = np.array([column * stride if column > 0 else column for row in rows for column in row], np.int32)
    shares = np.array(
        [draw(st.sampled_from([0.5, 1.0, 2.0])) if fields > 1 else 1.0 for _ in range(fields)], np.float32
    )
    idf = np.array(draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=6, max_size=6)), np.float32).repeat(stride)
    outputs = (
        np.zeros(idf.size, np.int32),
        np.zeros(idf.size, np.float32),
        np.zeros(len(rows) // fields + 1, np.int64),
        np.zeros(columns.size, np.int32),
        np.zeros(columns.size, np.float32),
    )
    return columns, np.cumsum([0, *map(len, rows)]), shares, np.sqrt(np.arange(8, dtype=np.float32)), idf, *outputs


def read_rows(n, columns, places, shares, frequency, idf, seen, sums, indptr, indices, data):
    assert not seen.any() and not sums.any()
    assert n == indptr[-1]
    rows = [indices[a:b] for a, b in pairwise(indptr)]
    assert all((np.diff(row) > 0).all() for row in rows)
    return sparse.csr_array((data[:n], indices[:n], indptr), shape=(indptr.size - 1, idf.size)).toarray()


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
        lambda codes, starts, letters, shortest, words, longest, stop, out, parts, stops: spelled(
            lambda text: naive.word_runs(text, letters, shortest, 1, ()), parts
        ),
        texts_of_words(),
        writes=(4,),
        call=lambda *arguments: terms.hash_words(*arguments[:5]),
        seen=lambda n, *arguments: read_terms(n, arguments[4]),
        examples=60,
    ),
    terms.join_words: Twin(
        lambda codes, starts, letters, shortest, words, longest, stop, out, parts, stops: spelled(
            lambda text: naive.word_runs(text, letters, shortest, longest, stops), parts
        ),
        texts_of_words(),
        writes=(4, 7),
        call=runs_of_words,
        seen=lambda n, *arguments: read_terms(n, arguments[7]),
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
    terms.number_terms: Twin(
        lambda hashes, indptr, a_text, keys, *rest: (
            len(set(hashes)) <= keys.size // 2 and naive.number_terms(hashes, indptr, a_text)
        ),
        numbered(),
        writes=(3, 4, 5, 6),
        seen=read_facts,
    ),
    terms.build_table: Twin(
        lambda hashes, keys, values: {int(key): place for place, key in enumerate(hashes)},
        tables(),
        writes=(1, 2),
        seen=lambda result, hashes, keys, values: {int(keys[at]): int(values[at]) for at in np.flatnonzero(keys)},
    ),
    terms.look_up: Twin(
        lambda hashes, keys, values, found: [
            {int(keys[at]): int(values[at]) for at in np.flatnonzero(keys)}.get(int(key), -1) for key in hashes
        ],
        looked_up(),
        writes=(3,),
        seen=lambda result, *arguments: arguments[3].tolist(),
    ),
    weighing.weigh_rows: Twin(
        lambda columns, places, shares, frequency, idf, *rest: naive.weigh_rows(
            columns, places, shares, frequency, idf
        ),
        weighed(),
        writes=(5, 6, 7, 8, 9),
        seen=read_rows,
        atol=1e-6,
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
