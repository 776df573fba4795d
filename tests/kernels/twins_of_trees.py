"""Trees over labels: kernels, twins and what to draw for them."""

import numpy as np
from hypothesis import strategies as st
from naive import trees as naive
from naive.sparse import dense
from naive.twins import Twin
from numba import njit
from scipy import sparse
from strategies import generators, sparse_rows

from tailwise.kernels import arrays
from tailwise.kernels.arrays import frozen
from tailwise.kernels.solvers.problems import LOGISTIC, SQUARED_HINGE, Weights, pack_rows
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.kernels.trees import beam, chunks, clustering, nodes, unpacking
from tailwise.kernels.trees.clustering import Centroids
from tailwise.kernels.trees.nodes import Below
from tailwise.trees.packing import join_trees
from tailwise.trees.structure import tree_from_nested
from tailwise.trees.training import Planted, train_trees


@njit
def count_bits(word):
    return chunks.count_bits(word)


@njit
def prefetch(array, place):
    arrays.prefetch(array, place)


@st.composite
def solved_children(draw, n_children=(1, 9)):
    """Children without weights, with one, with all; few features or so many that they are hashed."""
    n_features = draw(st.sampled_from([1, 7, 64, 65, 3000]))
    rows = ("empty", "one", "few", "as above") if n_features == 3000 else ("empty", "one", "few", "full", "as above")
    weights = draw(sparse_rows(n_children, n_features, signed=True, rows=rows))
    if n_features == 3000 and draw(st.booleans()):
        weights = every_fortieth(weights)
    parts = csr_parts(weights)
    return Weights(*parts, np.zeros(weights.shape[0], np.float32)), np.zeros((2, n_features), np.int64)


def every_fortieth(weights):
    coo = sparse.coo_array(weights)
    keep = np.arange(coo.nnz) % 40 == 0
    entries = coo.data[keep], (coo.coords[0][keep], coo.coords[1][keep])
    return sparse.csr_array(sparse.coo_array(entries, shape=coo.shape))


def read_chunk(chunk, solved, scratch):
    assert not scratch.any()
    return naive.unpack_chunk(chunk, scratch.shape[1])


@st.composite
def packed_children(draw):
    """A packed node, narrow or wide, and some of its children in any order."""
    solved, scratch = draw(st.one_of(solved_children(), solved_children((257, 260))))
    chunk = chunks.pack_chunk(solved, scratch)
    places = {naive.place_of(chunk, feature): feature for feature in range(scratch.shape[1])}
    features = np.array([places[place] for place in range(len(places.keys() - {None}))], np.int32)
    children = draw(st.permutations(range(chunk.scale.size)))[: draw(st.integers(0, chunk.scale.size))]
    parts = (chunk.scale, features, chunk.runs, chunk.weights)
    return *(arrays.read_only(part) for part in parts), np.array(children, np.int64)


def read_children(result, scale, features, runs, weights, children):
    indptr, found, values = result
    assert values.all(), "what is not there is not told"
    return dense(Csr(indptr, found, values), int(features.max(initial=0)) + 1)


@st.composite
def gathered(draw):
    """A node of a few labels, some of its edges, and visitors, any of whom may carry a label themselves."""
    n_rows, n_features, n_labels = draw(st.integers(1, 40)), draw(st.integers(1, 9)), draw(st.integers(1, 6))
    X = csr_parts(draw(sparse_rows(n_rows, n_features, signed=True)))
    rng = draw(generators())
    carried = sparse.csr_array(rng.random((n_labels, n_rows)) < draw(st.sampled_from([0.0, 0.05, 0.6, 1.0])))
    ends = np.unique(rng.integers(0, n_labels + 1, 3))
    n_edges = ends.size - 1
    costs = 1 + rng.random((2, n_edges))
    below = Below(
        ends[:-1],
        ends[1:],
        carried.indptr.astype(np.int64),
        carried.indices.astype(np.int32),
        *costs,
        rng.random(n_rows),
    )
    edges = np.flatnonzero(rng.random(n_edges) < 0.7)
    visitors = rng.choice(n_rows, rng.integers(0, n_rows // 2 + 1), replace=False).astype(np.int32)
    span = (int(ends[0]), int(ends[-1]))
    return X, frozen(below), span, edges, visitors, nodes.scratch_for(n_rows, n_features)


def read_node(node, X, below, span, edges, visitors, scratch):
    """Dense rows, what stands beside them, and the carriers of each edge; features in the order of X."""
    assert (scratch.place == -1).all() and (scratch.local == -1).all()
    carrying, rows, labels = node
    n_features = scratch.local.size
    if carrying.size < scratch.place.size:
        indptr, indices, data, squares, features, weights = rows
        assert np.unique(features).size == features.size
        entries = dense(Csr(indptr, features[indices], data), n_features)
        rows = entries, squares, weights
    else:
        assert not any(part[1:].size for part in rows[:1]) and not any(part.size for part in rows[1:])
        rows = ()
    return carrying, *rows, *labels


nested = st.recursive(st.just(0), lambda inner: st.lists(inner, min_size=1, max_size=4), max_leaves=9)


@st.composite
def forests(draw, n_features):
    """Chunks of one or two drawn trees over the same labels, with drawn weights; biases differ, or are all equal."""
    rng, equal = draw(generators()), draw(st.booleans())
    trees = []
    for _ in range(draw(st.integers(1, 2))):
        shape = draw(nested.filter(lambda root: isinstance(root, list)))
        tree = tree_from_nested(_number(shape, iter(range(100))))

        def solve(rows, labels):
            n = labels.indptr.size - 1
            if equal:
                nothing = csr_parts(sparse.csr_array((n, n_features)))
                return Weights(*nothing, np.full(n, 0.5, np.float32))
            part = draw(sparse_rows(n, n_features, signed=True))
            return Weights(*csr_parts(part), rng.normal(size=n).astype(np.float32))

        n_labels = tree.order.size
        X = sparse.csr_array(np.ones((2, n_features), np.float32))
        Y = sparse.csr_array(np.ones((2, n_labels), np.float32))
        costs = np.ones(tree.target.size)
        trees.append([train_trees(X, Y, [Planted(tree, costs, costs)], solve, n_jobs=1)])
    n_labels = 1 + max(int(~tree.target.min()) for (tree,) in trees)
    return join_trees(trees), n_labels


def _number(shape, labels):
    return [next(labels) if item == 0 else _number(item, labels) for item in shape]


@st.composite
def searches(draw):
    n_features = draw(st.sampled_from([2, 9, 70]))
    found, n_labels = draw(forests(n_features))
    X = draw(sparse_rows((1, 5), n_features, signed=True))
    drawn = (draw(st.sampled_from(among)) for among in ([SQUARED_HINGE, LOGISTIC], [1, 2, 50], [0.3, 1.0]))
    search = beam.Search(*drawn)
    first = draw(st.integers(0, X.shape[0]))
    block = first, draw(st.integers(first, X.shape[0]))
    n, k = X.shape[0], draw(st.integers(0, 6))
    labels, scores = np.full((n, k), 7, np.int32), np.full((n, k), 7, np.float32)
    return found, search, csr_parts(X), n_features, block, labels, scores, n_labels


def expected_scores(found, search, X, n_features, block, labels, scores, n_labels):
    """The best scores of the block's rows, whether each label has the score that it is given, and the nodes visited."""
    name = {SQUARED_HINGE: "squared_hinge", LOGISTIC: "logistic"}[search.loss]
    best, visits = np.full(scores.shape, 7.0), []
    for i in range(*block):
        x = dense(X, n_features)[i].astype(np.float64)
        every = np.sort(naive.search(found, x, search.beam, name, n_labels, search.path_weight))[::-1]
        best[i] = np.append(every, np.full(labels.shape[1], -np.inf))[: labels.shape[1]]
        if labels.shape[1] == 0:
            edges = naive.probability(naive.unpack(found, n_features) @ x + found.bias, name)
            visits += [
                (i, node) for root in found.roots for _, node in naive.walk(found, edges, search.beam, int(root))
            ]
    return best, True, sorted(visits)


def read_scores(result, found, search, X, n_features, block, labels, scores, n_labels):
    name = {SQUARED_HINGE: "squared_hinge", LOGISTIC: "logistic"}[search.loss]
    own = True
    for i in range(*block):
        x = dense(X, n_features)[i].astype(np.float64)
        every = naive.search(found, x, search.beam, name, n_labels, search.path_weight)
        present = labels[i] >= 0
        own &= bool(np.allclose(every[labels[i][present]], scores[i][present], atol=1e-4))
        own &= bool((scores[i][~present] == -np.inf).all()) and len(set(labels[i][present])) == present.sum()
        # Of equal scores the lower label comes first.
        own &= all(
            a < b
            for a, b, s, t in zip(labels[i], labels[i][1:], scores[i], scores[i][1:], strict=False)
            if s == t > -np.inf
        )
    nodes, begin = result
    height = block[1] - block[0] + 1
    rows = np.repeat(np.arange(begin.size) % height, np.diff(begin, append=begin[-1:]))
    return scores, own, sorted(zip((block[0] + rows).tolist(), nodes.tolist(), strict=True))


def vectors(draw, n_features):
    matrix = draw(sparse_rows((1, 12), n_features, signed=True))
    return pack_rows(csr_parts(matrix), n_features)


@st.composite
def clusters(draw):
    n_features, n_clusters = draw(st.integers(1, 9)), draw(st.sampled_from([1, 2, 4, 30]))
    rows = vectors(draw, n_features)
    n = rows.squares.size
    assignment = draw(st.lists(st.integers(-1, n_clusters - 1), min_size=n, max_size=n))
    return rows, np.array(assignment, np.int32), n_features, n_clusters


def read_centroids(result, rows, assignment, n_features, n_clusters):
    centroids, cosine = result
    return naive.dense_centroids(centroids, n_clusters), cosine


def listed(centroids, everything):
    """Those that a feature has, or where it is among ``everything`` all."""
    shown = (centroids != 0) | everything[:, None]
    indptr = np.append(0, np.cumsum(shown.sum(axis=1)))
    return Centroids(indptr, np.nonzero(shown)[1].astype(np.int32), centroids[shown])


@st.composite
def crowded(draw):
    """Multiples of 1/8, so that products have no rounding and ties are ties."""
    n_features, n_clusters = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    rows = vectors(draw, n_features)
    everything = draw(generators()).random(n_features) < 0.5
    data = np.rint(rows.data * 8) / np.float32(8)
    rows = pack_rows(csr_parts(Csr(rows.indptr, rows.indices, data)), n_features)
    n = rows.squares.size
    size = n_features * n_clusters
    centroids = draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 0.5]), min_size=size, max_size=size))
    least = -(-n // n_clusters)
    room = draw(st.integers(least, least + 2))
    drawn = listed(np.array(centroids, np.float32).reshape(n_features, n_clusters), everything)
    return rows, drawn, n_clusters, room, np.zeros(n, np.int32)


@st.composite
def directions(draw):
    n_features = draw(st.integers(1, 9))
    rows, rng = vectors(draw, n_features), draw(generators())
    return rows, rng.normal(size=n_features).astype(np.float32), np.full(rows.squares.size, 7, np.float32)


TWINS = {
    arrays.prefetch: Twin(
        lambda array, place: None,
        st.tuples(st.integers(0, 9).map(lambda n: np.ones(n, np.int16)), st.integers(0, 2**40).map(np.uint64)),
        call=prefetch,
    ),
    chunks.count_bits: Twin(
        lambda word: int(word).bit_count(), st.tuples(st.integers(0, 2**64 - 1).map(np.uint64)), call=count_bits
    ),
    chunks.hash_feature: Twin(naive.hash_feature, st.tuples(st.integers(0, 2**31 - 1).map(np.int32))),
    chunks.pack_chunk: Twin(
        naive.rounded_weights,
        solved_children(),
        writes=(1,),
        seen=read_chunk,
        rtol=1e-6,
    ),
    unpacking.unpack_chunk: Twin(naive.unpack_children, packed_children(), seen=read_children, rtol=1e-6),
    nodes.gather_node: Twin(naive.gather_node, gathered(), writes=(5,), seen=read_node, rtol=1e-5, atol=1e-6),
    beam.search_trees: Twin(
        expected_scores,
        searches(),
        writes=(5, 6),
        call=lambda *arguments: beam.search_trees(*arguments[:7]),
        seen=read_scores,
        atol=1e-4,
    ),
    clustering.dot_rows: Twin(naive.dot_rows, directions(), writes=(2,), rtol=1e-4, atol=1e-5),
    clustering.unit_centroids: Twin(naive.unit_centroids, clusters(), seen=read_centroids, rtol=1e-4, atol=1e-5),
    clustering.assign_nearest: Twin(naive.assign_nearest, crowded(), writes=(4,), examples=60),
}
