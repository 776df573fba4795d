"""Trees over labels: kernels, twins and what to draw for them."""

import numpy as np
from hypothesis import strategies as st
from naive import trees as naive
from naive.sparse import dense
from naive.twins import Twin
from numba import njit
from scipy import sparse
from strategies import generators, sparse_rows

from tailwise.kernels import arrays, bits
from tailwise.kernels.solvers.problems import LOGISTIC, SQUARED_HINGE, Weights, pack_rows
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.kernels.trees import beam, chunks, clustering, halving, layout, merging, nodes, repacking, unpacking
from tailwise.kernels.trees.clustering import Centroids
from tree_strategies import forests, gathered, solved_children


@njit
def count_bits(word):
    return bits.count_bits(word)


@njit
def prefetch(array, place):
    arrays.prefetch(array, place)


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


@st.composite
def changed_node(draw):
    """A packed node, narrow or wide, of which some children have gone, some have other weights and some are new."""
    solved, scratch = draw(st.one_of(solved_children(), solved_children((254, 260))))
    chunk = chunks.pack_chunk(solved, scratch)
    n_old, n_features = chunk.scale.size, scratch.shape[1]
    stays = draw(generators()).random(n_old) < draw(st.sampled_from([0.0, 0.5, 0.97, 1.0]))
    other = csr_parts(draw(sparse_rows((0, 5), n_features, signed=True)))
    n_other = other.indptr.size - 1
    places = np.array(draw(st.permutations(range(int(stays.sum()) + n_other))), np.int64)
    number = np.full(n_old, -1, np.int64)
    number[stays] = places[n_other:]
    changed = Weights(*other, arrays.read_only(np.zeros(n_other, np.float32)))
    return arrays.frozen(chunk), number, changed, places[:n_other], scratch


def read_children(result, scale, features, runs, weights, children):
    indptr, found, values = result
    assert values.all(), "what is not there is not told"
    return dense(Csr(indptr, found, values), int(features.max(initial=0)) + 1)


def nodes_of(chunk, n):
    """Chunks of ``n`` nodes that are all the same."""
    sizes = {"edge": chunk.scale, "word": chunk.words, "bucket": chunk.directory, "feature": chunk.features}
    sizes |= {"run": chunk.runs, "weight": chunk.weights}
    starts = {f"first_{name}": np.arange(n + 1) * array.size for name, array in sizes.items()}
    starts["first_edge"] = starts["first_edge"].astype(np.int32)
    tiled = {name: np.tile(getattr(chunk, name), n) for name in chunk._fields if name != "bits"}
    edges = np.zeros(n * chunk.scale.size, np.int32)
    return arrays.frozen(
        layout.Chunks(
            roots=np.zeros(1, np.int32),
            target=edges,
            bias=edges.astype(np.float32),
            bits=np.full(n, chunk.bits, np.uint8),
            **starts,
            **tiled,
        )
    )


@st.composite
def packed_edges(draw):
    """Nodes, of which some have their edges asked for, in any order, and new edges between them."""
    solved, scratch = draw(st.one_of(solved_children(), solved_children((257, 260))))
    packed = nodes_of(chunks.pack_chunk(solved, scratch), 3)
    n = packed.bias.size // 3
    own = [-1, *draw(st.permutations(range(n)))[: draw(st.integers(0, n))], -1, *range(2 * n, 3 * n), -1]
    return packed, arrays.read_only(np.array(own, np.int64))


def read_edges(result, packed, edges):
    return dense(Csr(*result), naive.most_features(packed))


@st.composite
def changed_nodes(draw):
    """A node that changes, one that does not and the first again, for as many features as before or more."""
    chunk, number, changed, children, scratch = draw(changed_node())
    n, n_other, stays = number.size, children.size, np.arange(number.size)
    first_number, first_solved = np.array([0, n, 2 * n, 3 * n]), np.array([0, n_other, n_other, 2 * n_other])
    indptr = np.append(changed.indptr, changed.indptr[-1] + changed.indptr[1:])
    twice = Weights(indptr, *(np.tile(own, 2) for own in changed[1:4]))
    wide = np.zeros((2, scratch.shape[1] + draw(st.sampled_from([0, 100]))), np.int64)
    numbers = np.concatenate([number, stays, number])
    rest = (first_number, numbers, first_solved, arrays.frozen(twice), np.tile(children, 2))
    return nodes_of(chunk, 2), np.array([0, 1, 0]), *rest, wide


def read_nodes(result, *arguments):
    starts, bits, scale, words, ranks, directory, features, runs, weights = result
    scratch = arguments[-1]
    assert not scratch.any()
    found = []
    for node in range(bits.size):
        edge, word, bucket, feature, run, weight = (slice(*own[node : node + 2]) for own in starts)
        lists = words[word], ranks[word], directory[bucket], features[feature], runs[run], weights[weight]
        found.append(naive.unpack_chunk(layout.Chunk(scale[edge], bits[node], *lists), scratch.shape[1]))
    return np.concatenate(found)


@st.composite
def chosen_rows(draw):
    """Some rows of X, any order and any number of times, and room for them."""
    n_features = draw(st.integers(1, 9))
    X = csr_parts(draw(sparse_rows((1, 9), n_features, signed=True)))
    rows = np.array(draw(st.lists(st.integers(0, X.indptr.size - 2), max_size=9)), np.int32)
    indptr = np.append(0, np.cumsum(np.diff(X.indptr)[rows]))
    room = np.zeros(indptr[-1], np.int32), np.zeros(indptr[-1], np.float32), np.zeros(rows.size, np.float32)
    return X, rows, np.full(n_features, -1, np.int32), indptr, *room, np.zeros(n_features + 1, np.int32)


def read_rows(n_local, X, rows, local, indptr, indices, data, squares, features):
    assert (local == -1).all() and np.unique(features[:n_local]).size == n_local
    return dense(Csr(indptr, features[indices], data), local.size), squares


@st.composite
def searches(draw):
    n_features = draw(st.sampled_from([2, 9, 70]))
    found, n_labels = draw(forests(n_features))
    X = draw(sparse_rows((1, 5), n_features, signed=True))
    loss, path_weight = draw(st.sampled_from([SQUARED_HINGE, LOGISTIC])), draw(st.sampled_from([0.3, 1.0]))
    beams = np.array(draw(st.sampled_from([[1], [2], [50], [3, 1]])))
    search = beam.Search(loss, arrays.read_only(beams), path_weight)
    first = draw(st.integers(0, X.shape[0]))
    block = first, draw(st.integers(first, X.shape[0]))
    n, k = X.shape[0], draw(st.integers(0, 6))
    labels, scores = np.full((n, k), 7, np.int32), np.full((n, k), 7, np.float32)
    return found, search, csr_parts(X), n_features, block, labels, scores, n_labels


def search_and_merge(found, search, X, n_features, block, labels, scores, n_labels):
    """Nodes and where each row's begin, where no labels are asked for; else these are written."""
    visiting = labels.shape[1] == 0
    result = beam.search_trees(found, search, X, n_features, block, visiting)
    if not visiting:
        merging.merge_trees(*result, found.roots.size, block, labels, scores)
    return (result[0], result[2]) if visiting else (np.empty(0, np.int32), np.empty(0, np.int32))


def expected_scores(found, search, X, n_features, block, labels, scores, n_labels):
    """The best scores of the block's rows, whether each label has the score that it is given, and the nodes visited."""
    name = {SQUARED_HINGE: "squared_hinge", LOGISTIC: "logistic"}[search.loss]
    best, visits = np.full(scores.shape, 7.0), []
    for i in range(*block):
        x = dense(X, n_features)[i].astype(np.float64)
        every = np.sort(naive.search(found, x, search.beams, name, n_labels, search.path_weight))[::-1]
        best[i] = np.append(every, np.full(labels.shape[1], -np.inf))[: labels.shape[1]]
        if labels.shape[1] == 0:
            edges = naive.probability(naive.unpack(found, n_features) @ x + found.bias, name)
            visits += [
                (i, node) for root in found.roots for _, node in naive.walk(found, edges, search.beams, int(root))
            ]
    return best, True, sorted(visits)


def read_scores(result, found, search, X, n_features, block, labels, scores, n_labels):
    name = {SQUARED_HINGE: "squared_hinge", LOGISTIC: "logistic"}[search.loss]
    own = True
    for i in range(*block):
        x = dense(X, n_features)[i].astype(np.float64)
        every = naive.search(found, x, search.beams, name, n_labels, search.path_weight)
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
def halved(draw):
    """Rows of which some are empty and some alike, some of them in any order, and two to start from."""
    n_features, rng = draw(st.integers(1, 9)), draw(generators())
    X = rng.normal(size=(12, n_features)) * (rng.random((12, n_features)) < 0.6)
    X[rng.random(12) < 0.2] = X[0]
    X /= np.maximum(1e-9, np.linalg.norm(X, axis=1, keepdims=True))
    rows = rng.permutation(12)[: draw(st.integers(2, 12))].astype(np.int32)
    starts = rng.choice(rows.size, 2, replace=False)
    return csr_parts(sparse.csr_array(X)), rows, n_features, starts, draw(st.integers(1, 9)), 1e-4


def read_node(node, X, below, span, edges, visitors, scratch):
    """Dense rows, what stands beside them, and the carriers of each edge; features in the order of X."""
    assert not scratch.came.any() and (scratch.local == -1).all()
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


TWINS = {
    arrays.prefetch: Twin(
        lambda array, place: None,
        st.tuples(st.integers(0, 9).map(lambda n: np.ones(n, np.int16)), st.integers(0, 2**40).map(np.uint64)),
        call=prefetch,
    ),
    arrays.prefetch_row: Twin(
        lambda indices, data, start, stop: None,
        st.tuples(st.integers(0, 200), st.integers(0, 200), st.integers(0, 200)).map(
            lambda sizes: (np.ones(sizes[0], np.int32), np.ones(sizes[0], np.float32), sizes[1], sum(sizes[1:]))
        ),
    ),
    bits.count_bits: Twin(
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
    repacking.repack_chunk: Twin(
        naive.repack_chunk,
        changed_node(),
        writes=(4,),
        seen=lambda chunk, *arguments: read_chunk(chunk, arguments[2], arguments[4]),
        rtol=1e-6,
    ),
    repacking.repack_nodes: Twin(naive.repack_nodes, changed_nodes(), writes=(7,), seen=read_nodes, rtol=1e-6),
    unpacking.unpack_edges: Twin(naive.unpack_edges, packed_edges(), seen=read_edges, rtol=1e-6),
    unpacking.unpack_chunk: Twin(naive.unpack_children, packed_children(), seen=read_children, rtol=1e-6),
    nodes.gather_node: Twin(naive.gather_node, gathered(), writes=(5,), seen=read_node, rtol=1e-5, atol=1e-6),
    nodes.copy_rows: Twin(naive.copy_rows, chosen_rows(), writes=(2, 4, 5, 6, 7), seen=read_rows, rtol=1e-6),
    beam.search_trees: Twin(
        expected_scores,
        searches(),
        writes=(5, 6),
        call=search_and_merge,
        seen=read_scores,
        atol=1e-4,
    ),
    halving.halve_rows: Twin(naive.halve_rows, halved()),
    clustering.unit_centroids: Twin(naive.unit_centroids, clusters(), seen=read_centroids, rtol=1e-4, atol=1e-5),
    clustering.assign_nearest: Twin(naive.assign_nearest, crowded(), writes=(4,), examples=60),
}
