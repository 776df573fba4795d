"""Sparse rows, random numbers, growing arrays: kernels, twins and what to draw for them."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from naive import sparse as naive
from naive.twins import Twin
from scipy import sparse
from strategies import generators, sparse_rows

from tailwise.kernels import random
from tailwise.kernels.arrays import ask_for_pages, grown, read_around
from tailwise.kernels.sparse import bytes as byte_weights
from tailwise.kernels.sparse import centroids, columns, csr, parts, rows, scoring, sorting, sums, topk

COARSE = [-np.inf, -1.0, -0.0, 0.0, 0.5, 0.5, 2.0]
words = st.integers(0, 2**64 - 1).map(np.uint64)


def exact(matrix):
    """The matrix with values that are multiples of 1/8, so that sums have no rounding and ties are ties."""
    data = np.sign(matrix.data) * np.maximum(np.rint(np.abs(matrix.data) * 8), 1) / 8
    return csr.csr_parts(matrix, data)


def exact_rows(n_rows=(1, 8), n_columns=(1, 9), **kinds):
    return sparse_rows(n_rows, n_columns, **kinds).map(lambda matrix: (exact(matrix), matrix.shape[1]))


def empty_topk(n, k):
    return np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32)


@st.composite
def blocks(draw, n):
    first = draw(st.integers(0, n))
    return first, draw(st.integers(first, n))


@st.composite
def growing(draw):
    array = np.arange(draw(st.integers(0, 9)), dtype=draw(st.sampled_from([np.int32, np.float32])))
    return array, draw(st.integers(0, array.size)), draw(st.integers(0, 30))


@st.composite
def compressed_rows(draw):
    """Rows as they should be, with at most one number changed, and their width."""
    dtype = draw(st.sampled_from([np.int32, np.int64]))
    matrix = draw(sparse_rows((1, 5), (1, 6)))
    parts = [matrix.indptr.astype(dtype), matrix.indices.astype(dtype)]
    changed = draw(st.sampled_from(parts))
    if changed.size and draw(st.booleans()):
        changed[draw(st.integers(0, changed.size - 1))] = draw(st.integers(-2, 9))
    return *parts, matrix.shape[1]


@st.composite
def old_and_new(draw):
    """Weights by feature before and after: more features or as many, columns that stay, and others that are new."""
    old, new = draw(sparse_rows((1, 6), (1, 9))), draw(sparse_rows((6, 8), (9, 9)))
    stays = draw(generators()).random(old.shape[1]) < 0.5
    moved = new.toarray()
    moved[:, : stays.size][:, stays] = 0
    return csr.csr_parts(old), csr.csr_parts(sparse.csr_array(moved)), stays


@st.composite
def candidates(draw, *, ascending):
    """A row of the best so far, and one candidate more."""
    scores = np.array(draw(st.lists(st.sampled_from([*COARSE, np.nan]), min_size=1, max_size=7)), np.float32)
    order = list(range(scores.size)) if ascending else draw(st.permutations(range(scores.size)))
    labels, best = (part[0] for part in empty_topk(1, draw(st.integers(1, 4))))
    for label in order[:-1]:
        naive.push(labels, best, label, scores[label])
    return labels, best, order[-1], scores[order[-1]]


@st.composite
def dense_blocks(draw):
    n, before, width, k = (draw(st.integers(1, 4)) for _ in range(4))
    scores = draw(st.lists(st.sampled_from(COARSE), min_size=n * (before + width), max_size=n * (before + width)))
    scores = np.array(scores, np.float32).reshape(n, -1)
    labels, best = naive.topk(scores[:, :before], k)
    return np.ascontiguousarray(scores[:, before:]), before, labels, best


@st.composite
def scored_rows(draw):
    X, _ = draw(exact_rows(signed=True))
    order = np.concatenate([draw(st.permutations(range(a, b))) for a, b in pairwise(X.indptr)])
    order = order.astype(int)
    data = X.data[order]
    if data.size and draw(st.booleans()):
        data[draw(st.integers(0, data.size - 1))] = -np.inf
    return csr.Csr(X.indptr, X.indices[order], data), *empty_topk(X.indptr.size - 1, draw(st.integers(1, 4)))


@st.composite
def linear_models(draw):
    n_features = draw(st.integers(1, 6))
    X, _ = draw(exact_rows(n_columns=n_features, signed=True))
    W = draw(sparse_rows(n_features, (1, 9), signed=True))
    W.data = exact(W).data
    bias = np.array([draw(st.sampled_from([-np.inf, -1.0, 0.0, 0.0])) for _ in range(W.shape[1])], np.float32)
    n = X.indptr.size - 1
    return X, draw(blocks(n)), csr.csr_views(W), bias, *empty_topk(n, draw(st.integers(1, 4)))


def met_weights():
    return linear_models().map(lambda model: (model[0], model[2], model[3].size))


@st.composite
def weights_to_lay(draw):
    _, _, W, bias, *_ = draw(linear_models())
    places = np.full(bias.size, -1, np.int32)
    chosen = draw(st.permutations(range(bias.size)))[: draw(st.integers(0, bias.size))]
    places[chosen] = draw(st.permutations(range(40)))[: len(chosen)]
    return W, places, np.zeros((2, (W.indptr.size - 1) * 32), np.float32)


@st.composite
def labels_side_by_side(draw):
    """Rows, weights of 32 or 64 labels of any numbers, some of them none, and what was found before."""
    X, n_features = draw(exact_rows(signed=True))
    rng, n_groups, n = draw(generators()), draw(st.integers(1, 2)), X.indptr.size - 1
    weights = (rng.integers(-8, 9, (n_groups, n_features * 32)) / 8).astype(np.float32)
    own = (10 + rng.permutation(32 * n_groups)).astype(np.int32)
    bias = rng.choice([-np.inf, 0.0, 1.0], own.size).astype(np.float32)
    labels, scores = empty_topk(n, draw(st.integers(1, 4)))
    labels[:, 0], scores[:, 0] = draw(st.sampled_from([3, 90])), 1.0
    return X, draw(blocks(n)), weights, own, bias, labels, scores


@st.composite
def weights_to_pack(draw):
    """Weights by feature, some features dense; scales are powers of two, so that no quotient is rounded."""
    W = draw(sparse_rows((1, 6), (1, 9), signed=True))
    W.sort_indices()
    n_features, n_labels = W.shape
    many = np.array([draw(st.booleans()) for _ in range(n_features)])
    places = np.where(many, np.cumsum(many) - 1, -1).astype(np.int32)
    scale = np.array([draw(st.sampled_from([0.25, 0.5, 2.0])) for _ in range(n_labels)], np.float32)
    return exact(W), scale, places, np.zeros((int(many.sum()), n_labels), np.int8)


@st.composite
def models_of_bytes(draw):
    W, scale, places, dense = draw(weights_to_pack())
    packed = byte_weights.ByteWeights(scale, places, dense, *naive.pack_bytes(W, scale, places, dense))
    X, _ = draw(exact_rows(n_columns=places.size, signed=True))
    bias = np.array([draw(st.sampled_from([-np.inf, -1.0, 0.0])) for _ in range(scale.size)], np.float32)
    n = X.indptr.size - 1
    return X, draw(blocks(n)), packed, bias, *empty_topk(n, draw(st.integers(1, 4)))


@st.composite
def stored_values(draw):
    X = draw(sparse_rows(signed=True))
    return X.indptr, X.data * np.float32(draw(st.sampled_from([0.0, 1e-20, 1.0, 1e15])))


@st.composite
def grouped_rows(draw):
    X, n_features = draw(exact_rows(signed=True))
    n = X.indptr.size - 1
    members = draw(st.lists(st.lists(st.integers(0, n - 1), max_size=5), min_size=1, max_size=5))
    indptr = np.cumsum([0, *map(len, members)])
    indices = np.array([row for group in members for row in group], np.int32)
    groups = csr.csr_parts(csr.Csr(indptr, indices, np.ones(indices.size)))
    return groups, draw(blocks(len(members))), X, n_features, draw(st.sampled_from([1, 2, 4, 100]))


@st.composite
def rows_of_groups(draw):
    X, n_features = draw(exact_rows(signed=True))
    n_groups = draw(st.integers(1, 4))
    of_row = st.lists(st.integers(0, n_groups - 1), unique=True)
    carried = [sorted(draw(of_row)) for _ in range(X.indptr.size - 1)]
    indices = np.array([group for own in carried for group in own], np.int32)
    groups = csr.csr_parts(csr.Csr(np.cumsum([0, *map(len, carried)]), indices, np.ones(indices.size)))
    return groups, n_groups, X, n_features, draw(st.sampled_from([1, 2, 4, 100]))


@st.composite
def weights_by_label(draw):
    W, n_features = draw(exact_rows((0, 8)))
    labels = draw(st.permutations(range(W.indptr.size - 1)))
    return W.indptr[:-1], np.array(labels, np.int32), W.indices, W.data, n_features


def read_by_feature(indptr, starts, labels, keys, values, n_features):
    return [sorted(zip(keys[a:b], values[a:b], strict=True)) for a, b in pairwise(indptr)]


def order_by_keys(values, indices):
    keys = [sorting.descending_key(value, index) for value, index in zip(values, indices, strict=True)]
    return sorted(range(len(keys)), key=keys.__getitem__)


@st.composite
def values_with_indices(draw):
    values = draw(st.lists(st.sampled_from([*COARSE, np.inf]) | st.floats(-9, 9, width=32), min_size=1, max_size=9))
    indices = st.integers(0, 2**31 - 1)
    indices = draw(st.lists(indices, min_size=len(values), max_size=len(values), unique=True))
    return np.array(values, np.float32), np.array(indices, np.int64)


@st.composite
def keys_to_sort(draw):
    """Long enough for the partition, in the orders that quicksort fears too."""
    n = draw(st.sampled_from([0, 1, 5, 16, 17, 60, 300]))
    rng = draw(generators())
    keys = rng.integers(-(2**62), 2**62, n) if draw(st.booleans()) else rng.integers(0, 3, n)
    keys = draw(st.sampled_from([lambda k: k, np.sort, lambda k: np.sort(k)[::-1].copy(), np.zeros_like]))(keys)
    return keys, draw(st.integers(0, n))


@st.composite
def centroid_sets(draw, n_features):
    """Centroids of unseen labels, of empty rows, of one entry and of more than are read at a time."""
    V = draw(sparse_rows((1, 4), n_features, signed=True))
    order = np.lexsort((-np.abs(V.data), np.repeat(np.arange(V.shape[0]), np.diff(V.indptr))))
    vectors = csr.csr_parts(csr.Csr(V.indptr, V.indices[order], V.data[order]))
    lengths = np.linalg.norm(V.toarray().astype(np.float64), axis=1)
    unseen = np.array(draw(st.lists(st.booleans(), min_size=V.shape[0], max_size=V.shape[0])))
    gamma = draw(st.sampled_from([0.5, 30.0]))
    return centroids.Centroids(*vectors, lengths, np.where(unseen, np.inf, lengths**2), gamma)


@st.composite
def rows_and_centroids(draw):
    n_features = draw(st.sampled_from([1, 5, 150]))
    X = csr.csr_parts(draw(sparse_rows((1, 4), n_features, signed=True)))
    of = draw(centroid_sets(n_features))
    n, k = X.indptr.size - 1, draw(st.integers(1, 3))
    labels = draw(st.lists(st.integers(-1, of.offsets.size - 1), min_size=n * k, max_size=n * k))
    labels = np.array(labels, np.int32).reshape(n, k)
    return X, draw(blocks(n)), of, n_features, labels, np.full((n, k), 7, np.float32)


@st.composite
def row_and_centroid(draw):
    X, _, of, n_features, _, _ = draw(rows_and_centroids())
    x = naive.dense(X, n_features)[0]
    square = float((x.astype(np.float64) ** 2).sum())
    label = draw(st.integers(0, of.offsets.size - 1))
    distance = naive.distance_to(of, label, x.astype(np.float64), square)
    bars = [np.inf] if not np.isfinite(distance) else [np.inf, distance - 0.5, distance + 0.5]
    return of, label, x, square, draw(st.sampled_from(bars))


@st.composite
def one_row(draw):
    X, n_features = draw(exact_rows(1))
    return X.indices, X.data, np.zeros(n_features, np.float32)


@st.composite
def copied_parts(draw):
    """Parts of an array, any of them more than once, and room for them without overlap."""
    array = np.arange(draw(st.integers(0, 9)), dtype=draw(st.sampled_from([np.uint16, np.int32])))
    chosen = draw(st.lists(blocks(array.size), max_size=6))
    begin, end = np.array(chosen, np.int64).reshape(-1, 2).T.copy()
    into = np.full(9 * 6, 7, array.dtype)
    return array, begin, end - begin, into, np.array(draw(st.permutations(range(6)))[: begin.size], np.int64) * 9


def copy_parts(array, begin, count, into, place):
    for first, n, to in zip(begin, count, place, strict=True):
        into[to : to + n] = array[first : first + n]


TWINS = {
    parts.copy_parts: Twin(copy_parts, copied_parts(), writes=(3,)),
    ask_for_pages: Twin(
        lambda array, start, stop: None,
        st.tuples(st.integers(0, 9000), st.integers(0, 9000)).map(lambda ends: (np.zeros(9000, np.float32), *ends)),
    ),
    read_around: Twin(
        lambda array, usual: None,
        st.tuples(st.integers(0, 9000), st.booleans()).map(lambda drawn: (np.zeros(drawn[0], np.int32), drawn[1])),
    ),
    grown: Twin(
        lambda array, used, size: (array[:used], array.size if size <= array.size else max(size, 2 * array.size)),
        growing(),
        writes=(0,),
        seen=lambda result, array, used, size: (result[:used], result.size),
    ),
    random.mix_bits: Twin(naive.mix_bits, st.tuples(words)),
    random.random_bits: Twin(naive.random_bits, st.tuples(words.map(lambda w: np.array([w]))), writes=(0,)),
    random.shuffle_state: Twin(lambda seed: 2 * seed + 88172645463325252, st.tuples(st.integers(0, 2**31))),
    random.shuffle: Twin(
        naive.shuffle,
        st.integers(0, 30).flatmap(
            lambda n: st.tuples(st.just(np.arange(n)), st.integers(0, n), st.integers(1, 2**64 - 1).map(np.uint64))
        ),
        writes=(0,),
    ),
    rows.row_order: Twin(naive.row_order, compressed_rows(), examples=200),
    rows.unit_values: Twin(
        naive.unit_values, stored_values().map(lambda of: (*of, np.full(of[1].size, 7, np.float32))), (2,), rtol=1e-6
    ),
    topk.push: Twin(naive.push, candidates(ascending=True), writes=(0, 1), examples=60),
    topk.push_any_order: Twin(naive.push, candidates(ascending=False), writes=(0, 1), examples=60),
    topk.topk_dense: Twin(naive.topk_dense, dense_blocks(), writes=(2, 3)),
    topk.topk_csr: Twin(naive.topk_csr, scored_rows(), writes=(1, 2)),
    scoring.predict_sparse_linear: Twin(naive.predict_sparse_linear, linear_models(), writes=(4, 5), examples=40),
    scoring.count_touches: Twin(naive.count_touches, met_weights()),
    scoring.put_weights_side_by_side: Twin(naive.put_weights_side_by_side, weights_to_lay(), writes=(2,)),
    scoring.predict_side_by_side: Twin(naive.predict_side_by_side, labels_side_by_side(), writes=(5, 6)),
    byte_weights.pack_bytes: Twin(naive.pack_bytes, weights_to_pack(), writes=(3,)),
    byte_weights.furthest_label: Twin(
        naive.furthest_label, models_of_bytes().map(lambda model: (model[2].indptr, model[2].gaps))
    ),
    byte_weights.predict_by_bytes: Twin(naive.predict_by_bytes, models_of_bytes(), writes=(4, 5), examples=40),
    sums.sum_groups: Twin(naive.sum_groups, grouped_rows(), rtol=1e-6, examples=60),
    sums.sum_groups_in_a_pass: Twin(naive.sum_groups_in_a_pass, rows_of_groups(), rtol=1e-6, examples=60),
    columns.to_columns: Twin(naive.to_columns, exact_rows()),
    columns.turn_by_feature: Twin(
        naive.weights_by_feature, weights_by_label(), writes=(2, 3), seen=read_by_feature, examples=40
    ),
    columns.copy_by_feature: Twin(
        lambda starts, stops, *rest: naive.weights_by_feature(starts, *rest),
        weights_by_label().map(lambda w: (w[0], np.append(w[0][1:], w[2].size), *w[1:])),
        seen=lambda result, *rest: [
            sorted(zip(result[1][a:b], result[2][a:b], strict=True)) for a, b in pairwise(result[0])
        ],
        examples=40,
    ),
    columns.merge_columns: Twin(
        naive.merge_columns,
        old_and_new(),
        seen=lambda result, *rest: [
            list(zip(result[1][a:b], result[2][a:b], strict=True)) for a, b in pairwise(result[0])
        ],
    ),
    sorting.descending_key: Twin(naive.order_descending, values_with_indices(), call=order_by_keys),
    sorting.index_of: Twin(
        lambda value, index: index,
        st.tuples(st.sampled_from(COARSE), st.integers(0, 2**31 - 1)),
        call=lambda value, index: sorting.index_of(sorting.descending_key(np.float32(value), index)),
    ),
    sorting.sort_keys: Twin(naive.sort_keys, keys_to_sort(), writes=(0,), examples=40),
    centroids.log_q: Twin(
        naive.log_q, st.tuples(st.sampled_from([0.5, 30.0]), st.floats(-1e-9, 60) | st.just(np.inf)), rtol=1e-12
    ),
    centroids.distance_of_log_q: Twin(
        naive.distance_of_log_q,
        st.tuples(st.sampled_from([0.5, 30.0]), st.sampled_from([-np.inf, 0.0]) | st.floats(-90, -1e-3)),
        rtol=1e-9,
        atol=1e-9,
    ),
    centroids.least_distance: Twin(
        lambda of, label, x, square, worst: naive.least_distance(of, label, square),
        row_and_centroid(),
        call=lambda of, label, x, square, worst: centroids.least_distance(of, label, square),
        rtol=1e-12,
    ),
    centroids.distance_to: Twin(
        lambda of, label, x, square, worst: (lambda d: d if d <= worst else np.inf)(
            naive.distance_to(of, label, x.astype(np.float64), square)
        ),
        row_and_centroid(),
        # Past ``worst`` it may say so or not.
        seen=lambda found, of, label, x, square, worst: found if found <= worst else np.inf,
        rtol=1e-4,
        atol=1e-4,
        examples=60,
    ),
    centroids.spread_row: Twin(naive.spread_row, one_row(), writes=(2,), rtol=1e-12),
    centroids.clear_row: Twin(
        naive.clear_row,
        one_row().map(lambda row: (row[0], naive.dense(csr.Csr(np.array([0, row[0].size]), *row[:2]), row[2].size)[0])),
        writes=(1,),
    ),
    centroids.score_by_centroids: Twin(
        naive.score_by_centroids, rows_and_centroids(), writes=(5,), rtol=1e-4, atol=2e-3, examples=40
    ),
}
