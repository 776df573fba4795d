"""The max-margin solver: kernels, dense twins and what to draw for them."""

import numpy as np
from hypothesis import strategies as st
from naive import linear as naive
from naive.sparse import dense
from naive.twins import Twin
from scipy import sparse
from strategies import generators, rows_and_labels

from tailwise.kernels.solvers import max_margin
from tailwise.kernels.solvers.max_margin import Active, Tables
from tailwise.kernels.sparse.csr import csr_parts


@st.composite
def states(draw, n_features=(1, 6)):
    """X, Y and dual variables that may be: equal sums on a row's labels and on others, at most C."""
    X, Y = draw(rows_and_labels((1, 8), n_features, (1, 6), signed=True))
    X, Y = sparse.csr_array(X), sparse.csr_array(Y)
    rng, C = draw(generators()), draw(st.sampled_from([0.5, 2.0]))
    indptr, labels, alpha = [0], [], []
    for i in range(X.shape[0]):
        own = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
        others = rng.permutation(np.setdiff1d(np.arange(Y.shape[1]), own))[: draw(st.integers(0, 3))]
        total = C * rng.random() * (own.size > 0 and others.size > 0 and draw(st.booleans()))
        for part in (own, others):
            labels += part.tolist()
            shares = rng.random(part.size) * (rng.random(part.size) < 0.7)
            if part.size and not shares.any():
                shares[0] = 1
            alpha += (total * shares / (shares.sum() or 1)).tolist()
        indptr.append(len(labels))
    active = Active(np.array(indptr), np.array(labels, np.int32), np.array(alpha, np.float32), np.diff(Y.indptr))
    return X, Y, Active(active.indptr, active.labels, active.alpha, active.n_own.astype(np.int64)), C, rng


def by_label(active, n_labels):
    order = np.argsort(active.labels, kind="stable")
    owners = np.concatenate([[0], np.cumsum(np.bincount(active.labels, minlength=n_labels))])
    rows = np.repeat(np.arange(active.n_own.size), np.diff(active.indptr))[order]
    place = np.arange(active.labels.size) - np.repeat(active.indptr[:-1], np.diff(active.indptr))
    sign = np.where(place < np.repeat(active.n_own, np.diff(active.indptr)), 1, -1).astype(np.float32)
    return owners, rows, (sign * active.alpha)[order]


def tables_of(X, owners, rows, filled=None):
    sizes = np.zeros(owners.size - 1, np.int64)
    max_margin.count_features(csr_parts(X), owners, rows, (0, sizes.size), X.shape[1], sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    tables = Tables(starts, np.full(starts[-1], -1, np.int32), np.zeros(starts[-1], np.float32))
    if filled is not None:
        max_margin.fill_tables(csr_parts(X), owners, rows, filled, (0, sizes.size), tables)
    return tables


def v_of(tables, n_features):
    v = np.zeros((n_features, tables.starts.size - 1))
    for label, (start, stop) in enumerate(zip(tables.starts[:-1], tables.starts[1:], strict=True)):
        used = np.flatnonzero(tables.features[start:stop] >= 0) + start
        v[tables.features[used], label] += tables.values[used]
    return v


@st.composite
def countings(draw):
    X, Y, active, _, _ = draw(states((1, 40)))
    owners, rows, _ = by_label(active, Y.shape[1])
    return csr_parts(X), owners, rows, (0, Y.shape[1]), X.shape[1], np.full(Y.shape[1], 7)


def count_features(X, owners, rows, block, n_features, sizes):
    for label in range(*block):
        own = rows[owners[label] : owners[label + 1]]
        count = np.unique([f for i in own for f in X.indices[X.indptr[i] : X.indptr[i + 1]]]).size
        enough = min(2 * count, n_features)
        sizes[label] = 1 << (enough - 1).bit_length() if count else 0


@st.composite
def fillings(draw):
    X, Y, active, _, _ = draw(states((1, 40)))
    owners, rows, signed = by_label(active, Y.shape[1])
    return csr_parts(X), owners, rows, signed, (0, Y.shape[1]), tables_of(X, owners, rows)


def v_by_definition(X, owners, rows, signed, block, tables):
    n_features = int(X.indices.max(initial=0)) + 1
    X = dense(X, n_features)
    v = np.zeros((n_features, owners.size - 1))
    for label in range(*block):
        own = slice(owners[label], owners[label + 1])
        v[:, label] = signed[own] @ X[rows[own]]
    return v


@st.composite
def projections(draw):
    values = st.lists(st.floats(-3, 3, width=32), max_size=5)
    u, t = (np.array(draw(values), np.float64) for _ in range(2))
    return u, u.size, t, t.size, draw(st.sampled_from([0.25, 1.0, 4.0]))


@st.composite
def descents(draw):
    X, Y, active, C, rng = draw(states((1, 40)))
    tables = tables_of(X, *by_label(active, Y.shape[1])[:2], by_label(active, Y.shape[1])[2])
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(np.float32)
    C = C * rng.uniform(1, 2, X.shape[0])
    return csr_parts(X), squares, rng.permutation(X.shape[0]), active, tables, C, draw(st.sampled_from([0.0, 0.1]))


def descend(X, squares, order, active, tables, C, l1):
    """Dense, in float64; (largest change, alpha, v)."""
    n_features = int(X.indices.max(initial=0)) + 1
    dense_X, v, alpha = dense(X, n_features).astype(np.float64), v_of(tables, n_features), active.alpha.astype(float)
    largest = 0.0
    for i in order:
        mine = np.arange(active.indptr[i], active.indptr[i + 1])
        own, other = mine[: active.n_own[i]], mine[active.n_own[i] :]
        if not squares[i] or not own.size or not other.size:
            continue
        scores = dense_X[i] @ naive.soft(v[:, active.labels[mine]], l1)
        u = alpha[own] + (1 - scores[: own.size]) / squares[i]
        t = alpha[other] + scores[own.size :] / squares[i]
        naive.project(u, u.size, t, t.size, C[i])
        change = np.concatenate([u, t]) - alpha[mine]
        largest = max(largest, np.abs(change).max())
        alpha[mine] += change
        v[:, active.labels[mine]] += dense_X[i][:, None] * np.where(np.arange(mine.size) < own.size, change, -change)
    return largest, alpha, v


@st.composite
def searches(draw):
    X, Y, _, _, rng = draw(states())
    W = rng.integers(-3, 4, (X.shape[1], Y.shape[1])) / 4 * (rng.random((X.shape[1], Y.shape[1])) < 0.6)
    allowed = np.where(np.asarray(Y.sum(axis=0)).ravel() > 0, 0, -np.inf).astype(np.float32)
    first = draw(st.integers(0, X.shape[0]))
    found = np.full((X.shape[0], draw(st.integers(1, 4))), 7, np.int32)
    block = first, draw(st.integers(first, X.shape[0]))
    W = csr_parts(sparse.csr_array(W.astype(np.float32)))
    return csr_parts(X), csr_parts(Y), W, allowed, block, found, np.full(X.shape[0], 7, np.float32)


def search_violators(X, Y, W, allowed, block, labels, losses):
    n_labels = allowed.size
    scores = dense(X, W.indptr.size - 1) @ dense(W, n_labels) + allowed
    for i in range(*block):
        own = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
        labels[i], losses[i] = -1, 0
        if not own.size:
            continue
        least = scores[i][own].min()
        favourite = (i * 0x9E3779B1) % n_labels
        others = [l for l in range(n_labels) if l not in own and scores[i][l] > least - 1]
        others.sort(key=lambda l: (-scores[i][l], (l - favourite) % n_labels))
        labels[i, : len(others)] = others[: labels.shape[1]]
        losses[i] = max(0, 1 + scores[i][others[0]] - least) if others else 0


@st.composite
def renewals(draw):
    _, Y, active, _, rng = draw(states())
    width = draw(st.integers(1, 3))
    found = np.full((Y.shape[0], width), -1, np.int32)
    for i in range(Y.shape[0]):
        others = np.setdiff1d(np.arange(Y.shape[1]), Y.indices[Y.indptr[i] : Y.indptr[i + 1]])[:width]
        found[i, : others.size] = rng.permutation(others)
    return active, found


def renew_active(active, found):
    indptr, labels, alpha = [0], [], []
    for i, new in enumerate(found):
        mine = range(active.indptr[i], active.indptr[i + 1])
        kept = {active.labels[a]: active.alpha[a] for n, a in enumerate(mine) if n < active.n_own[i] or active.alpha[a]}
        kept |= {label: 0 for label in new if label >= 0 and label not in kept}
        labels += kept.keys()
        alpha += kept.values()
        indptr.append(len(labels))
    return np.array(indptr), np.array(labels, np.int32), np.array(alpha, np.float32)


TWINS = {
    max_margin.count_features: Twin(count_features, countings(), writes=(5,)),
    max_margin.fill_tables: Twin(
        v_by_definition,
        fillings(),
        writes=(5,),
        seen=lambda result, X, *rest: v_of(rest[-1], int(X.indices.max(initial=0)) + 1),
        rtol=1e-4,
        atol=1e-5,
    ),
    max_margin.project: Twin(naive.project, projections(), writes=(0, 2), rtol=1e-4, atol=1e-5, examples=60),
    max_margin.descend: Twin(
        descend,
        descents(),
        writes=(3, 4),
        seen=lambda largest, X, squares, order, active, tables, *rest: (
            largest,
            active.alpha,
            v_of(tables, int(X.indices.max(initial=0)) + 1),
        ),
        rtol=2e-3,
        atol=2e-3,
    ),
    max_margin.search_violators: Twin(search_violators, searches(), writes=(5, 6), rtol=1e-5, atol=1e-5, examples=40),
    max_margin.renew_active: Twin(renew_active, renewals()),
}
