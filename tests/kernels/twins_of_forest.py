"""Trees over rows: kernels, twins and what to draw for them."""

import numpy as np
from hypothesis import strategies as st
from naive import forest as naive
from naive.sparse import dense
from naive.twins import Twin
from scipy import sparse
from strategies import generators, label_rows, rows_and_labels, sparse_rows

from tailwise.forest.growth import columns_with_ones, ideal_scale
from tailwise.forest.layout import lay_out
from tailwise.kernels.arrays import frozen
from tailwise.kernels.forest import boosting, grow, ndcg_split, predict
from tailwise.kernels.sparse.centroids import Centroids
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.tail.boosting import BoostedTrees

shapes = st.recursive(st.none(), lambda side: st.tuples(side, side), max_leaves=6)


def number_nodes(shape, nodes):
    """``nodes`` gets the two children of each node of a nested pair, -1 and -1 at a leaf; returns the number."""
    number = len(nodes)
    nodes.append((-1, -1))
    if shape is not None:
        nodes[number] = tuple(number_nodes(side, nodes) for side in shape)
    return number


@st.composite
def boosted(draw):
    """Trees of any shape, thresholds that rows meet exactly, values that are missing."""
    children, roots = [], []
    for shape in draw(st.lists(shapes, max_size=3)):
        nodes = []
        number_nodes(shape, nodes)
        roots.append(len(children))
        children += [tuple(child + roots[-1] if child >= 0 else -1 for child in pair) for pair in nodes]
    n, rng = len(children), draw(generators())
    left, right = np.array(children, np.int32).reshape(n, 2).T.copy()
    features = rng.choice([0.0, 1.0, 2.0, np.nan], size=(draw(st.integers(1, 6)), 3)).astype(np.float32)
    trees = BoostedTrees(
        0.5,
        np.array(roots, np.int32),
        rng.integers(3, size=n).astype(np.int32),
        rng.integers(3, size=n).astype(np.float64),
        left,
        right,
        rng.integers(2, size=n).astype(np.uint8),
        rng.integers(-8, 8, size=n) / 8,
    )
    first = draw(st.integers(0, len(features)))
    return trees, features, (first, draw(st.integers(first, len(features)))), np.full(len(features), 0.25)


@st.composite
def split_nodes(draw):
    Y = draw(label_rows((1, 20), (1, 8)))
    worth = np.array(draw(st.lists(st.sampled_from([1.0, 1.0, 4.5]), min_size=Y.shape[1], max_size=Y.shape[1])))
    truth = csr_parts(Y)
    scale = ideal_scale(np.diff(truth.indptr))
    gains = (np.repeat(scale, np.diff(truth.indptr)) * worth[truth.indices]).astype(np.float32)
    labels = ndcg_split.NodeLabels(truth.indptr, truth.indices, gains, Y.shape[1])
    start = np.array(draw(st.lists(st.booleans(), min_size=Y.shape[0], max_size=Y.shape[0])))
    return labels, ndcg_split.discount_of_rank(Y.shape[1]), start


def alternate_sides(labels, discounts, positive):
    positive[:], losses = naive.alternate_sides(dense(Csr(*labels[:3]), labels.n_labels), positive)
    return losses


@st.composite
def trees(draw, n_features, n_labels):
    """A tree whose separators and shares are multiples of 1/8, so that sums have no rounding."""
    nodes = []
    number_nodes(draw(shapes), nodes)
    children, n = np.array(nodes, np.int32), len(nodes)
    leaf = children[:, 0] < 0
    rng = draw(generators())

    def some(here, width, low):
        values = np.where(rng.random((n, width)) < 0.6, rng.integers(low, 8, (n, width)), 0) * here[:, None] / 8
        return csr_parts(sparse.csr_array(values))

    weights, shares = some(~leaf, n_features, -8), some(leaf, n_labels, 1)
    bias = (rng.integers(-8, 8, n) / 8 * ~leaf).astype(np.float32)
    return grow.Tree(children.ravel(), rng.integers(1, 9, n).astype(np.int32), bias, *weights, *shares)


@st.composite
def forests(draw):
    n_features, n_labels = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    grown = draw(st.lists(trees(n_features, n_labels), min_size=1, max_size=3))
    X = draw(sparse_rows((1, 5), n_features, signed=True))
    rows = csr_parts(X, np.rint(X.data * 8) / 8)
    return rows, frozen(lay_out(grown, draw(generators()).random(n_features))), (n_features, n_labels)


@st.composite
def leaf_searches(draw):
    rows, forest, shape = draw(forests())
    return rows, forest, shape[0], np.full((rows.indptr.size - 1, forest.n_trees), 7, np.int32)


@st.composite
def predictions(draw):
    rows, forest, shape = draw(forests())
    n, k = rows.indptr.size - 1, draw(st.integers(1, 4))
    first = draw(st.integers(0, n))
    block = first, draw(st.integers(first, n))
    return rows, block, forest, shape, np.full((n, k), 7, np.int32), np.full((n, k), 7, np.float32)


@st.composite
def rerankings(draw):
    rows, block, forest, shape, labels, scores = draw(predictions())
    V = draw(sparse_rows(shape[1], shape[0], signed=True))
    label = np.repeat(np.arange(shape[1]), np.diff(V.indptr))
    order = np.lexsort((-np.abs(V.data), label))
    vectors = csr_parts(Csr(V.indptr, V.indices[order], V.data[order]))
    lengths = np.linalg.norm(V.toarray().astype(np.float64), axis=1)
    centroids = Centroids(*vectors, lengths, lengths**2, draw(st.sampled_from([0.5, 5.0])))
    tail_data = rows.data * np.float32(draw(st.sampled_from([1.0, 0.25])))
    return rows, tail_data, block, forest, centroids, draw(st.sampled_from([0.0, 0.5, 1.0])), shape, labels, scores


def best_reranked(rows, tail_data, block, forest, centroids, alpha, shape, labels, scores):
    """The best scores, and that each label named has its own."""
    every = naive.reranked_scores(rows, tail_data, forest, centroids, alpha, shape)
    best = np.full(scores.shape, 7.0)
    for i in range(*block):
        best[i] = np.append(np.sort(every[i])[::-1], np.full(labels.shape[1], -np.inf))[: labels.shape[1]]
    return best, best


def read_reranked(result, rows, tail_data, block, forest, centroids, alpha, shape, labels, scores):
    every = naive.reranked_scores(rows, tail_data, forest, centroids, alpha, shape)
    named = np.full(scores.shape, 7.0)
    for i in range(*block):
        named[i] = np.where(labels[i] >= 0, every[i][labels[i]], -np.inf)
        assert len(set(labels[i][labels[i] >= 0])) == (labels[i] >= 0).sum()
    return scores, named


@st.composite
def growths(draw):
    X, Y = draw(rows_and_labels((1, 14), (1, 5), (1, 5)))
    columns = columns_with_ones(sparse.csc_array(X))
    truth = csr_parts(Y)
    worth = np.array(draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=Y.shape[1], max_size=Y.shape[1])), np.float32)
    weight = np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=Y.shape[0], max_size=Y.shape[0])))
    weight = weight.astype(np.float32)
    labels = grow.RowLabels(*truth[:2], worth, ideal_scale(np.diff(truth.indptr)), weight)
    settings = grow.GrowSettings(draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 20])), 2.0, 0.1, 10)
    features = np.arange(X.shape[1] + 1, dtype=np.int32)
    row_sizes = np.diff(csr_parts(X).indptr) + 1
    return columns, features, row_sizes, labels, settings, np.uint64(draw(st.integers(0, 2**63)))


TWINS = {
    boosting.sum_trees: Twin(naive.sum_trees, boosted(), writes=(3,)),
    ndcg_split.discount_of_rank: Twin(
        lambda n: np.array([1 / np.log(1 + rank) for rank in range(1, n + 1)]),
        st.tuples(st.integers(0, 30)),
        rtol=1e-6,
    ),
    ndcg_split.alternate_sides: Twin(alternate_sides, split_nodes(), writes=(2,), rtol=1e-6, examples=60),
    predict.find_leaves: Twin(naive.find_leaves, leaf_searches(), writes=(3,), examples=40),
    predict.predict_forest: Twin(naive.predict_forest, predictions(), writes=(4, 5), rtol=1e-6, examples=40),
    predict.predict_reranked: Twin(
        best_reranked, rerankings(), writes=(7, 8), seen=read_reranked, rtol=1e-3, atol=1e-3, examples=60
    ),
    # What it is given must be writable, and stays as it was.
    grow.grow_tree: Twin(naive.grow_tree, growths(), writes=(0, 1), rtol=1e-6, examples=40),
}
