"""What the kernels trust of trees that come from a file: every index within range, every path with an end."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailwise.kernels.trees.layout import BITMAP, PADDING, Chunks
from tailwise.persistence.checks import (
    check_exact,
    check_finite,
    check_indices,
    check_kind,
    check_monotone,
    check_offsets,
    check_parts,
    check_range,
    check_that,
)
from tailwise.trees.structure import MAX_CHILDREN

_MOST_BITS = 32
_MOST_BYTES = 2**32 - 1


def check_chunks(chunks: Any, n_features: int, n_labels: int) -> None:
    """Refuse chunks that no training on so many features and labels could have left.

    Reads every array but the weights once; beside them it takes a byte for each entry of the longest and some 8 for
    each edge and word.
    """
    chunks = check_kind("chunks_", chunks, Chunks)
    n_nodes = check_exact("bits", chunks.bits, np.uint8, (None,)).size
    _check_tree(chunks, n_nodes, n_labels)
    n_places = _check_index(chunks, n_nodes, n_features)
    _check_weights(chunks, n_nodes, n_places)


def _check_tree(chunks: Chunks, n_nodes: int, n_labels: int) -> None:
    """Roots, edges and targets: below each root a tree, whose labels come at most once for each root."""
    roots = check_indices("roots", check_exact("roots", chunks.roots, np.int32, (None,)), n_nodes)
    check_that(roots.size and roots[0] == 0, "roots does not begin with node 0")
    check_monotone("roots", roots, strict=True)
    target = check_exact("target", chunks.target, np.int32, (None,))
    n_edges = _check_first("first_edge", chunks.first_edge, n_nodes, target.size, np.int32)
    check_that(n_edges.max() <= MAX_CHILDREN, f"a node has {n_edges.max():,} edges")
    check_range("target", target, -n_labels, n_nodes - 1)
    inner = target >= 0
    node = np.repeat(np.arange(n_nodes, dtype=np.int32), n_edges)[inner]
    check_that((target[inner] > node).all(), "target leads back up the tree")
    parents = np.bincount(target[inner], minlength=n_nodes)
    check_that(parents.max() <= 1 and not parents[roots].any(), "target leads to a node twice, or to a root")
    names = np.bincount(~target[~inner], minlength=1)
    check_that(names.max() <= roots.size, f"target has label {names.argmax()} {names.max():,} times")
    for name, part in (("bias", chunks.bias), ("scale", chunks.scale)):
        check_finite(name, check_exact(name, part, np.float32, target.shape))


def _check_index(chunks: Chunks, n_nodes: int, n_features: int) -> np.ndarray:
    """From a feature to its place, by bitmap or by buckets; returns the number of places of each node."""
    bitmap = chunks.bits == BITMAP
    check_range("bits", chunks.bits[~bitmap], 0, _MOST_BITS)
    words = check_exact("words", chunks.words, np.uint64, (None,))
    ranks = check_exact("ranks", chunks.ranks, np.uint32, words.shape)
    width = (n_features + 63) // 64
    n_words = _check_first("first_word", chunks.first_word, n_nodes, words.size)
    check_that((n_words == np.where(bitmap, width, 0)).all(), f"first_word: a bitmap has other than {width:,} words")
    by_node = words.reshape(-1, width)
    beyond = by_node[:, -1] >> np.uint64(n_features % 64) if n_features % 64 else np.zeros(1)
    check_that(not np.any(beyond), f"words has a bit for a feature beyond {n_features:,}")
    set_bits = np.cumsum(np.bitwise_count(by_node), axis=1, dtype=np.uint32)
    before = ranks.reshape(-1, width)
    right = not before[:, 0].any() and np.array_equal(before[:, 1:], set_bits[:, :-1])
    check_that(right, "ranks does not count the bits of words")

    features = check_exact("features", chunks.features, np.int32, (None,))
    check_indices("features", features, n_features)
    n_places = _check_first("first_feature", chunks.first_feature, n_nodes, features.size)
    check_that(not n_places[bitmap].any(), "first_feature: a node with a bitmap lists features too")
    directory = check_exact("directory", chunks.directory, np.uint32, (None,))
    n_buckets = _check_first("first_bucket", chunks.first_bucket, n_nodes, directory.size)
    expected = np.where(bitmap, 0, np.left_shift(np.int64(1), np.where(bitmap, 0, chunks.bits).astype(np.int64)) + 1)
    check_that((n_buckets == expected).all(), "first_bucket: a node has other than 2^bits + 1 buckets")
    check_parts("directory", directory, chunks.first_bucket, n_places)
    n_places[bitmap] = set_bits[:, -1]
    return n_places


def _check_weights(chunks: Chunks, n_nodes: int, n_places: np.ndarray) -> None:
    """Where the weights of each place are. What they are need not be known: any byte is a weight, or a child's number
    for which a search has room.
    """
    runs = check_exact("runs", chunks.runs, np.uint32, (None,))
    weights = check_exact("weights", chunks.weights, np.int8, (None,))
    n_runs = _check_first("first_run", chunks.first_run, n_nodes, runs.size)
    n_weights = _check_first("first_weight", chunks.first_weight, n_nodes, weights.size)
    all_full = n_runs == 0
    check_that(
        (all_full | (n_runs == n_places + 1)).all(), "first_run: a node has neither no run nor one for each place"
    )
    ends = n_weights - np.where(n_places > 0, PADDING, 0)
    check_that((ends >= 0).all() and (ends <= _MOST_BYTES).all(), "first_weight: a node has too few weights, or 4 GB")
    n_edges = np.diff(chunks.first_edge).astype(np.int64)
    right = ends[all_full] == (n_places * n_edges)[all_full]
    check_that(right.all(), "first_weight: a node has other than one weight for each place and child")
    check_parts("runs", runs, chunks.first_run, ends)


def _check_first(name: str, first: Any, n_nodes: int, total: int, dtype: Any = np.int64) -> np.ndarray:
    """Where each node's part begins; returns how many entries each has."""
    first = check_exact(name, first, dtype, (n_nodes + 1,))
    return np.diff(check_offsets(name, first, n_nodes, total)).astype(np.int64)
