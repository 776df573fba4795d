"""How the weights of label trees are stored: all children of a node together, feature by feature.

A node's *chunk* holds the features that any of its children uses. One look-up of a row's feature then serves all
children (PECOS calls this masked sparse chunk multiplication).

- The index leads from a feature to its *place* in the chunk, in whichever form takes less room: a bit for every feature
  of X, with the number of bits set before each word, so that a look-up counts bits and never branches; or, for nodes of
  few features, buckets of a multiplicative hash with a directory of 2^bits + 1 starts.
- The weights of a place are those of all children, one byte after the other, where at least a quarter of them is not
  zero: vector instructions add them in a fraction of the time that they would take one by one. Such a place is *full*.
  Other places have entries: a weight and the child's number.

Weights are 8-bit integers times a scale of the edge: an error of at most 1/254 of the edge's largest weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FULL_SCALE = 127
FULL_FROM = 4
"""A place is full where at least one of so many weights is not zero."""
BITMAP = 255
"""In place of ``bits``: the index is a bitmap."""
PADDING = 64
"""Bytes after the last place of a node: whole vectors of weights are read, also where a place ends within one."""
NARROW = 256
"""Children at most where an entry has two bytes: a weight, and the number of the child. Elsewhere the lower byte of the
number comes first."""


class Chunks(NamedTuple):
    """Every node of every tree of a model; :class:`tailwise.trees.structure.LabelTree` explains the shape.

    ``first_…[v] : first_…[v + 1]`` is what belongs to node v.
    """

    roots: np.ndarray
    """(n_trees,) int32"""
    first_edge: np.ndarray
    """(n_nodes + 1,) int32"""
    target: np.ndarray
    """(n_edges,) int32: a node, or ~label"""
    bias: np.ndarray
    """(n_edges,) float32"""
    scale: np.ndarray
    """(n_edges,) float32"""
    bits: np.ndarray
    """(n_nodes,) uint8"""
    first_word: np.ndarray
    """(n_nodes + 1,) int64 into ``words`` and ``ranks``"""
    words: np.ndarray
    """uint64: bit f % 64 of a bitmap node's word f // 64 tells whether feature f has a place"""
    ranks: np.ndarray
    """uint32: how many places come before each word"""
    first_bucket: np.ndarray
    """(n_nodes + 1,) int64 into ``directory``"""
    directory: np.ndarray
    """uint32: where each bucket of a hashed node starts among its features"""
    first_feature: np.ndarray
    """(n_nodes + 1,) int64 into ``features``"""
    features: np.ndarray
    """int32: the feature of each place of a hashed node"""
    first_run: np.ndarray
    """(n_nodes + 1,) int64 into ``runs``"""
    runs: np.ndarray
    """uint32: where each place starts among the node's weights, and where the last ends; nothing where all are full"""
    first_weight: np.ndarray
    """(n_nodes + 1,) int64 into ``weights``"""
    weights: np.ndarray
    """int8: place after place, and ``PADDING``; a place that has as many bytes as there are children is full"""


class Chunk(NamedTuple):
    """What :class:`Chunks` has of one node: the same names and types."""

    scale: np.ndarray
    bits: int
    words: np.ndarray
    ranks: np.ndarray
    directory: np.ndarray
    features: np.ndarray
    runs: np.ndarray
    weights: np.ndarray
