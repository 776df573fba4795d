"""Weights of nodes read back from how :mod:`tailwise.kernels.trees.layout` stores them."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, grown, part, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.trees.finding import _list_features, child_of
from tailwise.kernels.trees.layout import NARROW
from tailwise.kernels.trees.repacking import _count_places


@njit(nogil=True, cache=True, boundscheck=False)
def unpack_chunk(scale, features, runs, weights, children):
    """The weights of some ``children`` (n,) int64 of a node: their indptr int64, features int32, values float32.

    ``scale``, ``runs`` and ``weights`` are those of the node's :class:`Chunk`, ``features`` (n_places,) int32 its
    features by place. A child's features come in the order of the places. Inputs are only read.
    """
    n_children, n_places, n = np.uint64(scale.shape[0]), np.uint64(features.shape[0]), children.shape[0]
    # Entries of other children go where nobody reads.
    slot, fill = np.full(scale.shape[0], n, np.int64), empty(n + 1, np.int64)
    for number in range(n):
        slot[children[number]] = number
    for number in range(n + 1):
        fill[number] = number * features.shape[0]
    found, values = empty((n + 1) * features.shape[0] + 1, np.int32), empty((n + 1) * features.shape[0] + 1, np.float32)
    entry = np.uint64(2 + (scale.shape[0] > NARROW))
    for place in range(n_places):
        first, last = place * n_children, (place + np.uint64(1)) * n_children
        if runs.shape[0] > 0:
            first, last = np.uint64(runs[place]), np.uint64(runs[place + np.uint64(1)])
        if last - first == n_children:
            for number in range(n):
                weight, at = weights[first + np.uint64(children[number])], np.uint64(fill[number])
                found[at], values[at] = features[place], weight
                fill[number] += weight != 0
        else:
            while first < last:
                number = slot[child_of(weights, first, n_children)]
                at = np.uint64(fill[number])
                found[at], values[at] = features[place], weights[first]
                fill[number] += (weights[first] != 0) & (number < n)
                first += entry
    indptr, used = zeros(n + 1, np.int64), 0
    for number in range(n):
        for a in range(number * features.shape[0], fill[number]):
            found[used], values[used] = found[a], scale[children[number]] * values[a]
            used += 1
        indptr[number + 1] = used
    return indptr, part(found, 0, used), part(values, 0, used)


@njit(nogil=True, cache=True, boundscheck=False)
def unpack_edges(chunks, edges):
    """The same of ``edges`` (n,) int64 of ``chunks`` (:class:`Chunks`), those of a node together; -1 has no weights.

    Inputs are only read.
    """
    n = edges.shape[0]
    indptr, used, first = zeros(n + 1, np.int64), 0, 0
    found, values = empty(1024, np.int32), empty(1024, np.float32)
    while first < n:
        if edges[first] < 0:
            first += 1
            indptr[first] = used
            continue
        node = np.searchsorted(chunks.first_edge, edges[first], side="right") - 1
        begin, end = np.int64(chunks.first_edge[node]), np.int64(chunks.first_edge[node + 1])
        last, children = first, empty(n - first, np.int64)
        while last < n and begin <= edges[last] < end:
            children[last - first] = edges[last] - begin
            last += 1
        words = part(chunks.words, chunks.first_word[node], chunks.first_word[node + 1])
        ranks = part(chunks.ranks, chunks.first_word[node], chunks.first_word[node + 1])
        features = part(chunks.features, chunks.first_feature[node], chunks.first_feature[node + 1])
        listed = empty(_count_places(words, ranks, features), np.int32)
        _list_features(words, features, listed)
        own, its_features, its_values = unpack_chunk(
            part(chunks.scale, begin, end),
            listed,
            part(chunks.runs, chunks.first_run[node], chunks.first_run[node + 1]),
            part(chunks.weights, chunks.first_weight[node], chunks.first_weight[node + 1]),
            part(children, 0, last - first),
        )
        found, values = grown(found, used, used + own[last - first]), grown(values, used, used + own[last - first])
        for a in range(its_features.shape[0]):
            found[used + a], values[used + a] = its_features[a], its_values[a]
        for number in range(last - first):
            indptr[first + number + 1] = used + own[number + 1]
        used, first = used + own[last - first], last
    return indptr, part(found, 0, used), part(values, 0, used)
