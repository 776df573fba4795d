"""Packing nodes of which some children have other weights now; those of the others are copied byte by byte."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import empty, grown, part, zeros
from tailwise.kernels.bits import count_bits
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.problems import Weights
from tailwise.kernels.trees.chunks import _MOST_BYTES, _index
from tailwise.kernels.trees.finding import _list_features, child_of
from tailwise.kernels.trees.layout import BITMAP, FULL_FROM, FULL_SCALE, NARROW, PADDING, Chunk


@njit(nogil=True, cache=True, boundscheck=False)
def repack_nodes(chunks, nodes, first_number, number, first_solved, solved, children, scratch):
    """:func:`repack_chunk` of some ``nodes`` (n,) int64 of ``chunks`` (:class:`Chunks`), one after the other.

    What belongs to node n is ``number[first_number[n] : first_number[n + 1]]``, and the same of ``children`` and of the
    children of ``solved`` by ``first_solved``; both (n + 1,) int64. Returns where each node begins, (6, n + 1) int64,
    in ``scale``, ``words``, ``directory``, ``features``, ``runs`` and ``weights``; ``bits``; and these arrays, with
    ``ranks`` behind ``words``. Nodes without a change are copied, for as many features as ``scratch`` has.
    """
    n_nodes, n_words = nodes.shape[0], (scratch.shape[1] + 63) // 64
    starts, bits = zeros((6, n_nodes + 1), np.int64), empty(n_nodes, np.uint8)
    scale, weights = empty(1024, np.float32), empty(1024, np.int8)
    words, ranks, directory = empty(1024, np.uint64), empty(1024, np.uint32), empty(1024, np.uint32)
    features, runs = empty(1024, np.int32), empty(1024, np.uint32)
    for n in range(n_nodes):
        node = nodes[n]
        chunk = Chunk(
            part(chunks.scale, chunks.first_edge[node], chunks.first_edge[node + 1]),
            chunks.bits[node],
            part(chunks.words, chunks.first_word[node], chunks.first_word[node + 1]),
            part(chunks.ranks, chunks.first_word[node], chunks.first_word[node + 1]),
            part(chunks.directory, chunks.first_bucket[node], chunks.first_bucket[node + 1]),
            part(chunks.features, chunks.first_feature[node], chunks.first_feature[node + 1]),
            part(chunks.runs, chunks.first_run[node], chunks.first_run[node + 1]),
            part(chunks.weights, chunks.first_weight[node], chunks.first_weight[node + 1]),
        )
        own = part(number, first_number[n], first_number[n + 1])
        first, last = first_solved[n], first_solved[n + 1]
        edge, word, bucket, feature, run, weight = starts[:, n]
        if first == last and _all_stay(own):
            bits[n] = chunk.bits
            scale, starts[0, n + 1] = _append(scale, edge, chunk.scale)
            words, starts[1, n + 1] = _append(words, word, chunk.words)
            ranks, _ = _append(ranks, word, chunk.ranks)
            directory, starts[2, n + 1] = _append(directory, bucket, chunk.directory)
            features, starts[3, n + 1] = _append(features, feature, chunk.features)
            runs, starts[4, n + 1] = _append(runs, run, chunk.runs)
            weights, starts[5, n + 1] = _append(weights, weight, chunk.weights)
            if chunk.bits == BITMAP:
                # For features that rows have got since: a search asks for these too.
                n_places, end = _count_places(chunk.words, chunk.ranks, chunk.features), word + n_words
                words, ranks = grown(words, starts[1, n + 1], end), grown(ranks, starts[1, n + 1], end)
                for at in range(starts[1, n + 1], end):
                    words[at], ranks[at] = 0, n_places
                starts[1, n + 1] = end
            continue
        changed = Weights(part(solved.indptr, first, last + 1), solved.features, solved.values, solved.bias, None)
        new = repack_chunk(chunk, own, changed, part(children, first, last), scratch)
        bits[n] = new.bits
        scale, starts[0, n + 1] = _append(scale, edge, new.scale)
        words, starts[1, n + 1] = _append(words, word, new.words)
        ranks, _ = _append(ranks, word, new.ranks)
        directory, starts[2, n + 1] = _append(directory, bucket, new.directory)
        features, starts[3, n + 1] = _append(features, feature, new.features)
        runs, starts[4, n + 1] = _append(runs, run, new.runs)
        weights, starts[5, n + 1] = _append(weights, weight, new.weights)
    return (
        starts,
        bits,
        part(scale, 0, starts[0, n_nodes]),
        part(words, 0, starts[1, n_nodes]),
        part(ranks, 0, starts[1, n_nodes]),
        part(directory, 0, starts[2, n_nodes]),
        part(features, 0, starts[3, n_nodes]),
        part(runs, 0, starts[4, n_nodes]),
        part(weights, 0, starts[5, n_nodes]),
    )


@njit(nogil=True, cache=True, boundscheck=False)
def _all_stay(number):
    """Whether every child stays where it is."""
    n_others = 0
    for child in range(number.shape[0]):
        n_others += number[child] != child
    return n_others == 0


@njit(nogil=True, cache=True, boundscheck=False)
def _append(array, used, more):
    """``array`` with ``more`` behind the first ``used``, copied where it has too little room, and the end of these."""
    array = grown(array, used, used + more.shape[0])
    for n in range(np.uint64(more.shape[0])):
        array[np.uint64(used) + n] = more[n]
    return array, used + more.shape[0]


@njit(nogil=True, cache=True, boundscheck=False)
def repack_chunk(chunk, number, solved, children, scratch):
    """The :class:`Chunk` of a node of which child c of ``chunk`` becomes child ``number[c]``, or is left out if -1.

    Child n of ``solved`` (:class:`Weights`) becomes child ``children[n]``. ``number`` and ``children``, int64, name
    each child of the new node once. ``scratch`` is as in :func:`tailwise.kernels.trees.chunks.pack_chunk`; the rest
    may be read-only. Time: the bytes of the node.
    """
    # The arrays alone go to other functions: each array of a tuple would be counted, for each call.
    words, ranks, old_features, old_runs = chunk.words, chunk.ranks, chunk.features, chunk.runs
    old_scale, old_weights = chunk.scale, chunk.weights
    n_old, n_solved = number.shape[0], children.shape[0]
    staying, n_staying = empty(n_old, np.int64), 0
    for child in range(n_old):
        staying[n_staying] = child
        n_staying += number[child] >= 0
    staying, n_children = part(staying, 0, n_staying), n_staying + n_solved
    scale = empty(n_children, np.float32)
    for child in staying:
        scale[number[child]] = old_scale[child]
    listed = empty(_count_places(words, ranks, old_features), np.int32)
    _list_features(words, old_features, listed)
    count, at = scratch[0], scratch[1]
    # Each is written before it is known to be another one.
    touched = empty(min(count.shape[0], listed.shape[0] + solved.indptr[n_solved]) + 1, np.int32)
    n_places = _count_staying(old_runs, old_weights, number, staying, listed, count, at, touched)
    for n in range(n_solved):
        largest = np.float32(0)
        for a in range(solved.indptr[n], solved.indptr[n + 1]):
            largest = max(largest, abs(solved.values[a]))
            feature = np.uint64(solved.features[a])
            touched[n_places] = feature
            n_places += count[feature] == 0
            count[feature] += 1
        scale[children[n]] = largest / np.float32(FULL_SCALE)
    bits, words, ranks, directory, features = _index(part(touched, 0, n_places), count.shape[0])
    entry = 2 + (n_children > NARROW)
    runs, origin = empty(n_places + 1, np.uint32), empty(n_places, np.int64)
    size = runs[0] = 0
    for place in range(n_places):
        feature = np.uint64(features[place])
        origin[place] = at[feature] - 1
        at[feature] = size
        size += n_children if count[feature] * FULL_FROM >= n_children else count[feature] * entry
        runs[place + 1] = size
    if size > _MOST_BYTES:
        raise ValueError("the weights of a node take more than 4 GB: give it fewer children")
    weights = zeros(size + PADDING if n_places else 0, np.int8)
    _copy_staying(old_runs, old_weights, number, staying, origin, features, runs, n_children, at, weights)
    for n in range(n_solved):
        child = children[n]
        inverse = 1 / scale[child] if scale[child] > 0 else np.float32(0)
        for a in range(solved.indptr[n], solved.indptr[n + 1]):
            feature = np.uint64(solved.features[a])
            weight, place = np.int8(np.rint(solved.values[a] * inverse)), at[feature]
            if count[feature] * FULL_FROM >= n_children:
                weights[np.uint64(place + child)] = weight
            else:
                _put(weights, np.uint64(place), weight, child, entry)
                at[feature] += entry
    for place in range(n_places):
        count[np.uint64(features[place])] = at[np.uint64(features[place])] = 0
    features_kept = part(features, 0, 0 if bits == BITMAP else n_places)
    runs_kept = part(runs, 0, 0 if size == n_places * n_children else n_places + 1)
    return Chunk(scale, bits, words, ranks, directory, features_kept, runs_kept, weights)


@njit(nogil=True, cache=True, boundscheck=False)
def _count_places(words, ranks, features):
    if words.shape[0] == 0:
        return features.shape[0]
    last = words.shape[0] - 1
    return np.int64(ranks[last]) + np.int64(count_bits(words[last]))


@njit(nogil=True, cache=True, boundscheck=False)
def _count_staying(runs, weights, number, staying, listed, count, at, touched):
    """Count the weights of children that stay, feature by feature; which place has them, from 1 on, goes to ``at``."""
    n_children, n_places = np.uint64(number.shape[0]), 0
    step = np.uint64(2 + (number.shape[0] > NARROW))
    for place in range(np.uint64(listed.shape[0])):
        first, last = place * n_children, (place + np.uint64(1)) * n_children
        if runs.shape[0] > 0:
            first, last = np.uint64(runs[place]), np.uint64(runs[place + np.uint64(1)])
        left = 0
        if last - first == n_children:
            for child in staying:
                left += weights[first + np.uint64(child)] != 0
        else:
            while first < last:
                left += (number[child_of(weights, first, n_children)] >= 0) & (weights[first] != 0)
                first += step
        if left > 0:
            feature = np.uint64(listed[place])
            count[feature], at[feature] = left, np.int64(place) + 1
            touched[n_places] = feature
            n_places += 1
    return n_places


@njit(nogil=True, cache=True, boundscheck=False)
def _copy_staying(old_runs, old, number, staying, origin, features, runs, n_children, at, weights):
    """Copy the weights of children that stay; ``at`` becomes where the next entry of a feature goes.

    An entry is written before it is known to stay, where the next one goes; the last one may lie in the next place.
    """
    n_old, old_step = np.uint64(number.shape[0]), np.uint64(2 + (number.shape[0] > NARROW))
    entry, one = 2 + (n_children > NARROW), np.uint64(1)
    for place in range(origin.shape[0]):
        if origin[place] < 0:
            continue
        was, to = np.uint64(origin[place]), np.int64(runs[place])
        first, last = was * n_old, (was + one) * n_old
        if old_runs.shape[0] > 0:
            first, last = np.uint64(old_runs[was]), np.uint64(old_runs[was + one])
        full, was_full = np.int64(runs[place + 1]) - to == n_children, last - first == n_old
        if full and was_full:
            for child in staying:
                weights[np.uint64(to + number[child])] = old[first + np.uint64(child)]
        elif full:
            while first < last:
                child = number[child_of(old, first, n_old)]
                if child >= 0:
                    weights[np.uint64(to + child)] = old[first]
                first += old_step
        elif was_full:
            for child in staying:
                weight = old[first + np.uint64(child)]
                _put(weights, np.uint64(to), weight, number[child], entry)
                to += entry * (weight != 0)
        else:
            while first < last:
                child, weight = number[child_of(old, first, n_old)], old[first]
                _put(weights, np.uint64(to), weight, child, entry)
                to += entry * ((child >= 0) & (weight != 0))
                first += old_step
        if not full:
            _put(weights, np.uint64(to), np.int8(0), 0, entry)
            at[np.uint64(features[place])] = to


@njit(nogil=True, cache=True, boundscheck=False, inline="always")
def _put(weights, place, weight, child, entry):
    weights[place], weights[place + np.uint64(1)] = weight, child & 255
    if entry > 2:
        weights[place + np.uint64(2)] = child >> 8
