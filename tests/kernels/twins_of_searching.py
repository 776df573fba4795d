"""Searching trees over labels: kernels, twins and what to draw for them."""

import numpy as np
from hypothesis import strategies as st
from naive import trees as naive
from naive.twins import Twin
from numba import njit
from strategies import generators, sparse_rows

from tailwise.kernels import arrays
from tailwise.kernels.solvers.problems import LOGISTIC, SQUARED_HINGE
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.trees import chunks, finding, merging, scoring
from tailwise.kernels.trees.layout import NARROW, PADDING
from tree_strategies import forests, solved_children

NAMES = {SQUARED_HINGE: "squared_hinge", LOGISTIC: "logistic"}
ROOM = PADDING + NARROW


@njit
def part(array, start, stop):
    return arrays.part(array, start, stop)


@st.composite
def packed_nodes(draw):
    """``(arrays of a chunk, children, features)``, of few children or of so many that an entry has three bytes."""
    solved, scratch = draw(st.one_of(solved_children(), solved_children(n_children=(257, 260))))
    scale, *rest = chunks.pack_chunk(solved, scratch)
    return rest, scale.size, scratch.shape[1]


@st.composite
def rows_at_nodes(draw):
    node, n_children, n_features = draw(packed_nodes())
    indices = draw(sparse_rows(1, n_features)).indices.astype(np.int32)
    return *node, n_children, indices, np.zeros(indices.size, np.uint64), np.zeros(indices.size, np.uint64)


def read_found(counts, *arguments):
    def pairs(found, n):
        return [(int(pair) & 0xFFFFFFFF, int(pair) >> 32) for pair in found[:n]]

    return pairs(arguments[10], counts[0]), pairs(arguments[9], counts[1])


@st.composite
def tables(draw):
    entries = draw(st.lists(st.sampled_from([0, 1, 9, 2**31 + 1, 2**31 + 40]), min_size=1, max_size=9))
    indices = draw(sparse_rows(1, len(entries))).indices.astype(np.int32)
    return np.array(entries, np.uint32), indices, *(np.zeros(indices.size, np.uint64) for _ in range(2))


def look_up(table, x_indices, full, few):
    entries = [(int(table[feature]), j) for j, feature in enumerate(x_indices)]
    return (
        [(entry - 1, j) for entry, j in entries if 0 < entry < 2**31],
        [(entry - 2**31 - 1, j) for entry, j in entries if entry > 2**31],
    )


def read_looked_up(counts, table, x_indices, full, few):
    return read_found(counts, *[None] * 9, few, full)


@st.composite
def nodes_to_spread(draw):
    (_, words, _, _, features, runs, weights), n_children, n_features = draw(packed_nodes())
    n_places = features.size + sum(int(word).bit_count() for word in words)
    room = np.zeros(n_places, np.int32), np.zeros(n_features, np.uint32), np.full(n_places * n_children, 7, np.int8)
    return words, features, runs, weights, n_children, *room


def read_spread(result, words, features, runs, weights, n_children, listed, table, tile):
    found = np.zeros((n_children, table.size))
    for feature, entry in enumerate(table.tolist()):
        begin, source = (entry - 2**31 - 1, tile) if entry > 2**31 else (entry - 1, weights)
        if entry:
            found[:, feature] = source[begin : begin + n_children]
    assert sorted(listed.tolist()) == np.flatnonzero(table).tolist()
    return found


@st.composite
def rows_to_score(draw):
    """Rows that have come to a node; with room for a tile, so that many of them are looked up in a table."""
    n_features = draw(st.sampled_from([2, 9, 70]))
    found, _ = draw(forests(n_features))
    X = csr_parts(draw(sparse_rows((1, 9), n_features, signed=True)))
    node = draw(st.integers(0, found.bits.size - 1))
    rows = np.array(draw(st.lists(st.integers(0, X.indptr.size - 2), unique=True)), np.int64)
    n_children = int(found.first_edge[node + 1] - found.first_edge[node])
    room = [np.zeros(n_features, np.uint64) for _ in range(2)]
    tile = np.zeros(draw(st.sampled_from([0, scoring.LARGEST_TILE + ROOM])), np.int8)
    scratch = *room, np.zeros(ROOM, np.float32), np.zeros(n_features, np.uint32), tile, np.zeros(n_features, np.int32)
    below = np.full(rows.size * n_children, 7, np.float32)
    loss = draw(st.sampled_from([SQUARED_HINGE, LOGISTIC]))
    return found, loss, X, node, rows, np.arange(rows.size) * n_children, below, *scratch


def expected_logs(found, loss, X, node, rows, offsets, below, *scratch):
    naive.score_node(found, NAMES[loss], X, node, rows, offsets, below, *scratch)
    return below


def read_logs(result, *arguments):
    assert not arguments[10].any()
    return arguments[6]


@st.composite
def findings(draw):
    """What two trees found for some rows: of each level labels that no other level of the tree has."""
    rng, n_trees, n_labels = draw(generators()), draw(st.integers(1, 3)), draw(st.integers(1, 12))
    n_levels = draw(st.lists(st.integers(1, 3), min_size=n_trees, max_size=n_trees))
    n_rows = draw(st.integers(0, 3))
    found, begin = [], []
    for levels in n_levels:
        home = rng.integers(0, levels, n_labels)
        for level in range(levels):
            for _ in range(n_rows):
                begin.append(len(found))
                found += np.flatnonzero((home == level) & (rng.random(n_labels) < 0.6)).tolist()
            begin.append(len(found))
    logs = -rng.exponential(2, len(found)).astype(np.float32)
    k, first = draw(st.integers(1, 6)), draw(st.integers(0, 2))
    labels, scores = np.full((first + n_rows, k), 7, np.int32), np.full((first + n_rows, k), 7, np.float32)
    block = first, first + n_rows
    return np.array(found, np.int32), logs, np.array(begin, np.int32), n_levels[0], n_trees, block, labels, scores


def merged(found, logs, begin, n_first, n_trees, block, labels, scores):
    n_rows, k = block[1] - block[0], labels.shape[1]
    for row in range(n_rows):
        means = naive.mean_probabilities(found, logs, begin, row, n_rows, n_trees, 20)
        best = np.argsort(-means, kind="stable")[:k]
        scores[block[0] + row] = means[best]
        labels[block[0] + row] = np.where(means[best] > -np.inf, best, -1)


TWINS = {
    arrays.part: Twin(
        lambda array, start, stop: array[start:stop],
        st.tuples(st.just(np.arange(9.0)), st.integers(0, 4), st.integers(4, 9)),
        call=part,
    ),
    finding.find_in_node: Twin(naive.find_in_node, rows_at_nodes(), writes=(9, 10), seen=read_found),
    finding.find_in_table: Twin(look_up, tables(), writes=(2, 3), seen=read_looked_up),
    finding.spread_node: Twin(naive.spread_node, nodes_to_spread(), writes=(5, 6, 7), seen=read_spread),
    finding.child_of: Twin(
        naive.child_of,
        st.tuples(
            st.just(np.array([3, -1, 2, 5], np.int8)),
            st.integers(0, 1).map(np.uint64),
            st.sampled_from([1, NARROW, NARROW + 1, NARROW**2]),
        ),
    ),
    scoring.score_node: Twin(
        expected_logs, rows_to_score(), writes=(6, 7, 8, 9, 10, 11, 12), seen=read_logs, rtol=1e-4, atol=1e-4
    ),
    merging.merge_trees: Twin(merged, findings(), writes=(6, 7), rtol=1e-5),
}
