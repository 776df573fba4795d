"""Sparse matrices for hypothesis, drawn by what can go wrong with them rather than by a seed.

Which rows are empty, full, or repeat the one above, how frequent each label is, and how the arrays are stored are
choices of their own: a failing example shrinks to the few that matter. Only the columns that a row fills are left to
a generator, whose seed is drawn too.
"""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy import sparse

ROWS = ("empty", "one", "few", "few", "many", "full", "as above")
LABELS = ("unseen", "one row", "few", "few", "many", "every row")
VALUES = ("ones", "repeated", "spread")
_SHARES = {"few": 0.2, "many": 0.6, "full": 1.0}


def examples(count):
    """Settings of a property: ``count`` examples in the suite, twenty times as many where the draws are fresh."""
    return settings(max_examples=count if settings.default.derandomize else 20 * count)


def sizes(size):
    """A size as given: an integer, or the ends of a range to draw from."""
    return st.just(size) if isinstance(size, int) else st.integers(*size)


def generators():
    """A numpy generator; its seed is what hypothesis prints and shrinks."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def sparse_rows(draw, n_rows=(1, 12), n_columns=(1, 10), *, signed=False, rows=ROWS, untidy=False):
    """Rows of float32 as CSR; ``untidy`` also draws entries that only a check puts in order (see :func:`stored`)."""
    n, m = draw(sizes(n_rows)), draw(sizes(n_columns))
    kinds, values = draw(st.lists(st.sampled_from(rows), min_size=n, max_size=n)), draw(st.sampled_from(VALUES))
    rng = draw(generators())
    A = np.zeros((n, m), np.float32)
    for i, kind in enumerate(kinds):
        if kind == "as above":
            A[i] = A[i - 1] if i else 0
        elif kind != "empty":
            filled = 1 if kind == "one" else max(1, round(_SHARES[kind] * m))
            A[i, rng.choice(m, size=filled, replace=False)] = _draw_values(rng, values, filled, signed)
    return draw(stored(sparse.csr_array(A), untidy=untidy))


@st.composite
def label_rows(draw, n_rows=(1, 12), n_labels=(1, 8), *, labels=LABELS, untidy=False):
    """Binary labels as CSR float32; some rows may have none."""
    n, m = draw(sizes(n_rows)), draw(sizes(n_labels))
    kinds, bare = draw(st.lists(st.sampled_from(labels), min_size=m, max_size=m)), draw(st.booleans())
    rng = draw(generators())
    Y = np.zeros((n, m), np.float32)
    for l, kind in enumerate(kinds):
        if kind == "one row":
            Y[rng.integers(n), l] = 1
        elif kind != "unseen":
            Y[:, l] = rng.random(n) < _SHARES.get(kind, 1.0)
    if bare and "every row" not in kinds:
        Y[rng.integers(n, size=1 + n // 4)] = 0
    return draw(stored(sparse.csr_array(Y), untidy=untidy))


@st.composite
def rows_and_labels(draw, n_rows=(1, 12), n_features=(1, 10), n_labels=(1, 8), *, signed=False, untidy=False):
    """``X`` and ``Y`` of the same rows."""
    n = draw(sizes(n_rows))
    X = draw(sparse_rows(n, n_features, signed=signed, untidy=untidy))
    return X, draw(label_rows(n, n_labels, untidy=untidy))


@st.composite
def stored(draw, A, *, untidy=False):
    """The matrix as it may be stored: array or matrix, int32 or int64 indices, arrays that may not be written.

    ``untidy`` adds what :mod:`tailwise.validation` puts in order: rows backwards, entries in two halves, kept zeros.
    """
    if untidy:
        A = draw(st.sampled_from([lambda A: A, backwards, in_halves, with_zeros]))(A)
    kind = draw(st.sampled_from([sparse.csr_array, sparse.csr_matrix]))
    return store(A, kind, draw(st.sampled_from([np.int32, np.int64])), read_only=draw(st.booleans()))


def store(A, kind=sparse.csr_array, index=np.int64, *, read_only=True):
    """A copy of the CSR matrix of this kind and index type, which scipy itself would change back."""
    copy = kind(A.shape, dtype=A.dtype)
    copy.data, copy.indices, copy.indptr = A.data.copy(), A.indices.astype(index), A.indptr.astype(index)
    for part in (copy.data, copy.indices, copy.indptr):
        part.flags.writeable = not read_only
    return copy


def backwards(A):
    """The same matrix with the entries of each row from right to left."""
    order = np.lexsort((-A.indices, np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))))
    return sparse.csr_array((A.data[order], A.indices[order], A.indptr), shape=A.shape)


def in_halves(A):
    """The same matrix with every entry stored twice, at half its value."""
    return sparse.csr_array((np.repeat(A.data / 2, 2), np.repeat(A.indices, 2), A.indptr * 2), shape=A.shape)


def with_zeros(A):
    """The same matrix with zeros stored in the first column."""
    A, B = A.tocoo(), np.arange(A.shape[0])
    entries = np.append(A.data, np.zeros(B.size, A.dtype)), (np.append(A.row, B), np.append(A.col, B * 0))
    return sparse.csr_array(sparse.coo_array(entries, shape=A.shape))


def _draw_values(rng, values, size, signed):
    drawn = {
        "ones": lambda: np.ones(size),
        "repeated": lambda: rng.choice([0.5, 1.0, 2.0], size),
        "spread": lambda: rng.exponential(size=size) + 1e-3,
    }[values]()
    return drawn * rng.choice([-1, 1], size) if signed else drawn
