"""Weights of one byte each: packing those of a sparse linear model, and scoring rows by them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.topk import push

LARGEST = 127
_LONGEST_GAP = 65535


class ByteWeights(NamedTuple):
    """Weights (n_features, n_labels): a label's are whole numbers from -127 to 127, times its ``scale``.

    Features that many labels have a weight for hold one of each label in ``dense``; of the others, the labels are
    kept by how far each lies from the one before.
    """

    scale: np.ndarray
    """(n_labels,) float32"""
    places: np.ndarray
    """(n_features,) int32: which row of ``dense`` the feature has, or -1"""
    dense: np.ndarray
    """(n_dense, n_labels) int8"""
    indptr: np.ndarray
    """(n_features + 1,) int64: entries ``indptr[f] : indptr[f + 1]`` are of feature f, none where it is dense"""
    gaps: np.ndarray
    """(n_entries,) uint16: how far an entry's label lies from that of the entry before, or from 0"""
    values: np.ndarray
    """(n_entries,) int8; 0 stands between labels that lie further apart than a gap can say"""


@njit(nogil=True, cache=True, boundscheck=False)
def pack_bytes(W, scale, places, dense):
    """The entries of features whose ``places`` are -1 (indptr, gaps, values); ``dense`` is 0 and gets the others.

    W is a :class:`Csr` with a row a feature, label indices ascending; ``scale`` is above 0.
    """
    n_features = W.indptr.shape[0] - 1
    indptr = zeros(n_features + 1, np.int64)
    gaps, values = empty(0, np.uint16), empty(0, np.int8)
    for writing in (False, True):
        if writing:
            gaps, values = empty(indptr[n_features], np.uint16), empty(indptr[n_features], np.int8)
        used = 0
        for feature in range(n_features):
            last, place = 0, places[feature]
            for b in range(W.indptr[feature], W.indptr[feature + 1]):
                label = W.indices[b]
                value = np.int8(np.rint(W.data[b] / scale[label]))
                if place >= 0:
                    dense[place, label] = value
                elif value != 0:
                    while label - last > _LONGEST_GAP:
                        if writing:
                            gaps[used], values[used] = _LONGEST_GAP, 0
                        last += _LONGEST_GAP
                        used += 1
                    if writing:
                        gaps[used], values[used] = label - last, value
                    last = label
                    used += 1
            indptr[feature + 1] = used
    return indptr, gaps, values


@njit(nogil=True, cache=True, boundscheck=False)
def furthest_label(indptr, gaps):
    """The highest label that gaps of any feature lead to, or -1."""
    furthest = -1
    for feature in range(indptr.shape[0] - 1):
        label = 0
        for b in range(indptr[feature], indptr[feature + 1]):
            label += gaps[b]
            furthest = max(furthest, label)
    return furthest


@njit(nogil=True, cache=True, boundscheck=False)
def predict_by_bytes(X, block, W, bias, labels, scores):
    """Top-k labels of rows ``block[0]:block[1]`` by ``bias + scale · Σ x_f w_f``, W being :class:`ByteWeights`.

    X is a :class:`Csr` over features. Writes the block's rows of ``labels`` (n, k) int32 and ``scores`` (n, k) float32.
    """
    n_labels = bias.shape[0]
    k = labels.shape[1]
    total = empty(n_labels, np.float32)
    for i in range(block[0], block[1]):
        total[:] = 0
        for a in range(X.indptr[i], X.indptr[i + 1]):
            feature, value = X.indices[a], X.data[a]
            place = W.places[feature]
            if place >= 0:
                for label in range(n_labels):
                    total[label] += value * np.float32(W.dense[place, label])
            else:
                at = np.uint64(0)
                for b in range(W.indptr[feature], W.indptr[feature + 1]):
                    at += np.uint64(W.gaps[b])
                    total[at] += value * np.float32(W.values[b])
        labels[i, :] = -1
        scores[i, :] = -np.inf
        for label in range(n_labels):
            score = bias[label] + W.scale[label] * total[label]
            if score > scores[i, k - 1]:
                push(labels[i], scores[i], label, score)
