"""Metrics and networks: kernels, twins and what to draw for them."""

import numpy as np
from hypothesis import strategies as st
from naive import embedding as naive_embedding
from naive import metrics as naive_metrics
from naive import sparse as naive_sparse
from naive import tail as naive_tail
from naive.twins import Twin
from scipy import sparse
from strategies import generators, label_rows, rows_and_labels, sparse_rows

from tailwise.kernels import metrics
from tailwise.kernels.networks import embedding, linear_block, ranknet, warp
from tailwise.kernels.sparse.csr import csr_parts


@st.composite
def predictions(draw):
    """Labels that may come twice in a row, and -1, which may."""
    Y = draw(label_rows())
    n, k = Y.shape[0], draw(st.integers(1, 5))
    labels = draw(st.lists(st.integers(-1, Y.shape[1] - 1), min_size=n * k, max_size=n * k))
    return csr_parts(Y), np.array(labels, np.int32).reshape(n, k), np.zeros((n, k), np.bool_)


@st.composite
def gains(draw, shape):
    Y = draw(label_rows())
    values = draw(st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.5]), min_size=Y.shape[1], max_size=Y.shape[1]))
    return csr_parts(Y), np.array(values), np.full(shape(Y.shape[0], draw(st.integers(1, 4))), 7.0)


@st.composite
def resampled(draw):
    """Rows that start and end within groups of eight and within the blocks of 512 that are weighted at a time."""
    n, width, n_replicates = (
        draw(st.sampled_from([0, 1, 7, 9, 30, 521])),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 10)),
    )
    rng = draw(generators())
    seed = np.uint64(draw(st.integers(0, 2**64 - 1)))
    weights = np.repeat(np.arange(6.0), [93, 98, 43, 17, 4, 1])
    first = draw(st.integers(0, 20)), draw(st.integers(0, 300))
    return rng.normal(size=(n, width)), first[0], seed, weights, rng.normal(size=(n_replicates, width)), first[1]


def normal(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


@st.composite
def encodings(draw):
    X = draw(sparse_rows(signed=True))
    rng, width = draw(generators()), draw(st.integers(1, 20))
    first = draw(st.integers(0, X.shape[0]))
    block = first, draw(st.integers(first, X.shape[0]))
    out = np.full((block[1] - block[0], width), 7, np.float32)
    return csr_parts(X), block, normal(rng, X.shape[1], width), normal(rng, width), out


def encode_rows(X, block, table, bias, out):
    out[:] = (naive_sparse.dense(X, len(table)) @ table + bias)[slice(*block)]


@st.composite
def layers_of_inputs(draw):
    inputs = draw(sparse_rows(signed=True)).toarray()
    rng, width = draw(generators()), draw(st.integers(1, 9))
    out = np.full((len(inputs), width), 7, np.float32)
    return inputs, normal(rng, inputs.shape[1], width), normal(rng, width), out


def dense_layer(inputs, weights, bias, out):
    out[:] = inputs @ weights + bias


def unit_length(rows):
    norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    rows /= np.where(norms > 0, norms, 1)


@st.composite
def vector_candidates(draw):
    n, k, width, n_vectors = (draw(st.integers(1, 6)) for _ in range(4))
    rng = draw(generators())
    candidates = draw(st.lists(st.integers(-1, n_vectors - 1), min_size=n * k, max_size=n * k))
    candidates = np.array(candidates, np.int32).reshape(n, k)
    return normal(rng, n, width), normal(rng, n_vectors, width), candidates, np.zeros((n, k), np.float32)


@st.composite
def reranked_rows(draw, n_labels=9):
    """Candidates (absent ones last, in some rows all), scores, layers."""
    n, k = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    rng = draw(generators())
    labels = np.stack([rng.permutation(n_labels)[:k] for _ in range(n)]).astype(np.int32)
    for row in labels:
        row[draw(st.integers(0, k)) :] = -1
    n_layers, width = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    shapes = (n_layers, n_labels, width), (n_layers, n_labels, width), (n_layers, width)
    layers = ranknet.Layers(*(normal(rng, *shape) for shape in shapes))
    return labels, rng.random((n, k)).astype(np.float32), layers


@st.composite
def reranked_blocks(draw):
    labels, scores, layers = draw(reranked_rows())
    first = draw(st.integers(0, len(labels)))
    return labels, scores, (first, draw(st.integers(first, len(labels)))), layers, np.full_like(scores, 7)


@st.composite
def lossy_rows(draw):
    n = draw(st.integers(1, 9))
    rng = draw(generators())
    relevant = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    sampled = np.flatnonzero(~relevant)[: draw(st.integers(0, n))]
    counts = np.array(draw(st.lists(st.sampled_from([1.0, 1.0, 3.0, 50.0]), min_size=9, max_size=9)))
    final = np.array(draw(st.lists(st.sampled_from([0.0, 0.25, 0.25, 1.0]), min_size=9, max_size=9)), np.float32)
    options = ranknet.TrainingOptions(0.1, draw(st.sampled_from([0.125, 0.5])), 2.0, 20, draw(st.booleans()))
    slope = np.full(9, 7, np.float32)
    return rng.permutation(9).astype(np.int32), final, np.resize(relevant, 9), n, counts, sampled, options, slope


@st.composite
def epochs(draw):
    labels, scores, layers = draw(reranked_rows())
    rng = draw(generators())
    counts = rng.integers(1, 50, 9).astype(np.float64)
    order = np.array(draw(st.lists(st.integers(0, len(labels) - 1), max_size=6)), np.int64)
    memories = ranknet.Layers(*(np.full(part.shape, 0.1, np.float32) for part in layers))
    options = ranknet.TrainingOptions(0.01, 0.3, 2.0, draw(st.sampled_from([1, 2, 20])), draw(st.booleans()))
    candidates = ranknet.TrainingCandidates(
        labels, scores, rng.random(labels.shape) < 0.5, rng.uniform(0.1, 3, labels.shape[0]).astype(np.float32)
    )
    return candidates, counts, order, np.array([rng.integers(2**63)], np.uint64), layers, memories, options


@st.composite
def linear_epochs(draw):
    Y = draw(label_rows())
    rng, (n, n_labels) = draw(generators()), Y.shape
    scores = rng.random(Y.shape) * (rng.random(Y.shape) < 0.5)
    counts = np.maximum(Y.toarray().sum(axis=0), rng.integers(0, 2, n_labels)).astype(np.float64)
    order = np.array(draw(st.lists(st.integers(0, n - 1), max_size=6)), np.int64)
    options = ranknet.TrainingOptions(0.01, 0.3, 2.0, draw(st.sampled_from([1, 3, 40])), draw(st.booleans()))
    weight, state = rng.uniform(0.1, 3, n).astype(np.float32), np.array([rng.integers(2**63)], np.uint64)
    parts = csr_parts(sparse.csr_array(scores.astype(np.float32))), csr_parts(Y)
    W, memory = normal(rng, n_labels, n_labels), np.full((n_labels, n_labels), 0.1, np.float32)
    return *parts, counts, weight, order, state, W, memory, options


@st.composite
def warp_passes(draw):
    X, Y = draw(rows_and_labels((1, 8), (1, 6), (1, 6), signed=True))
    rng, dim = draw(generators()), draw(st.integers(1, 5))
    vectors = warp.Vectors(
        normal(rng, X.shape[1], dim),
        normal(rng, Y.shape[1], dim),
        rng.random(X.shape[1]).astype(np.float32) + 1,
        rng.random(Y.shape[1]).astype(np.float32) + 1,
    )
    rank_weights = np.cumsum(np.append(0, 1 / np.arange(1, Y.shape[1]))).astype(np.float32)
    options = warp.WarpOptions(0.1, draw(st.sampled_from([0.8, 5.0])), draw(st.sampled_from([1, 4])))
    state = np.array([rng.integers(2**63)], np.uint64)
    weights, order = rng.uniform(0.2, 3, X.shape[0]).astype(np.float32), rng.permutation(X.shape[0])
    return csr_parts(X), csr_parts(Y), weights, order, state, rank_weights, vectors, options


TWINS = {
    warp.train_warp: Twin(naive_embedding.train_warp, warp_passes(), writes=(4, 6), rtol=1e-3, atol=1e-3),
    metrics.mark_hits: Twin(naive_metrics.mark_hits, predictions(), writes=(2,), examples=40),
    metrics.sum_values: Twin(naive_metrics.sum_values, gains(lambda n, k: n), writes=(2,)),
    metrics.best_values: Twin(naive_metrics.best_values, gains(lambda n, k: (n, k)), writes=(2,)),
    metrics.add_resampled: Twin(naive_metrics.add_resampled, resampled(), writes=(4,), rtol=1e-9, atol=1e-9),
    embedding.encode_rows: Twin(encode_rows, encodings(), writes=(4,), rtol=1e-4, atol=1e-5),
    embedding.dense_layer: Twin(dense_layer, layers_of_inputs(), writes=(3,), rtol=1e-4, atol=1e-5),
    embedding.unit_length: Twin(
        unit_length, sparse_rows(signed=True).map(lambda X: (X.toarray(),)), writes=(0,), rtol=1e-5
    ),
    embedding.score_candidates: Twin(
        naive_embedding.score_candidates, vector_candidates(), writes=(3,), rtol=1e-4, atol=1e-5
    ),
    ranknet.apply_blocks: Twin(naive_tail.apply_blocks, reranked_blocks(), writes=(4,), rtol=1e-3, atol=1e-3),
    ranknet.pair_loss: Twin(naive_tail.pair_loss, lossy_rows(), writes=(7,), rtol=1e-5, atol=1e-6, examples=60),
    linear_block.train_linear_epoch: Twin(
        naive_tail.train_linear_epoch, linear_epochs(), writes=(5, 6, 7), rtol=2e-3, atol=2e-3
    ),
    ranknet.train_epoch: Twin(naive_tail.train_epoch, epochs(), writes=(3, 4, 5), rtol=2e-3, atol=2e-3),
}
