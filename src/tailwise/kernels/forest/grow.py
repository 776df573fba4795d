"""Growing one tree over rows: split nodes by a sparse linear separator until few rows are left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty, grown, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.forest.ndcg_split import NodeLabels, alternate_sides, discount_of_rank
from tailwise.kernels.random import random_bits
from tailwise.kernels.solvers.l1_logistic import fit_l1_logistic
from tailwise.kernels.sparse.columns import Columns
from tailwise.kernels.sparse.sorting import descending_key, index_of, sort_keys

_TRIES = 3
_ONE = np.uint64(1)


class RowLabels(NamedTuple):
    """Labels by row in CSR form, what each label is worth (1 or 1/p_l), and ``I(y_i)`` and the weight of each row."""

    indptr: np.ndarray
    indices: np.ndarray
    worth: np.ndarray
    scale: np.ndarray
    weight: np.ndarray


class GrowSettings(NamedTuple):
    """What steers the growth of a tree."""

    max_leaf: int
    labels_per_leaf: int
    C: float
    tolerance: float
    max_newton: int


class Tree(NamedTuple):
    """A binary tree in arrays; node 0 is the root.

    ``children`` holds the negative and the positive child of each node, -1 and -1 at a leaf; ``bias`` and the CSR rows
    ``weight_indptr``, ``weight_indices``, ``weights`` separate them. The CSR rows ``leaf_indptr``, ``leaf_labels``,
    ``leaf_shares`` hold a leaf's labels, ascending, and their share of its ``n_rows``.
    """

    children: np.ndarray
    n_rows: np.ndarray
    bias: np.ndarray
    weight_indptr: np.ndarray
    weight_indices: np.ndarray
    weights: np.ndarray
    leaf_indptr: np.ndarray
    leaf_labels: np.ndarray
    leaf_shares: np.ndarray


@njit(nogil=True, cache=True, boundscheck=False)
def _labels_of(members, labels, number_of):
    """The labels of the rows ``members``, numbered within the node, and the label of each number, ascending.

    ``number_of`` (n_labels,) is -1 everywhere and is left so.
    """
    indptr = empty(members.shape[0] + 1, np.int64)
    indptr[0] = 0
    for i in range(members.shape[0]):
        row = members[i]
        indptr[i + 1] = indptr[i] + labels.indptr[row + 1] - labels.indptr[row]
    n_entries = indptr[members.shape[0]]
    indices = empty(n_entries, np.int32)
    gains = empty(n_entries, np.float32)
    present = empty(n_entries, np.int64)
    n_present = 0
    a = 0
    for row in members:
        for b in range(labels.indptr[row], labels.indptr[row + 1]):
            label = labels.indices[b]
            indices[a] = label
            gains[a] = labels.scale[row] * labels.worth[label] * labels.weight[row]
            a += 1
            if number_of[label] < 0:
                number_of[label] = 0
                present[n_present] = label
                n_present += 1
    sort_keys(present, n_present)
    for number in range(n_present):
        number_of[present[number]] = number
    for a in range(n_entries):
        indices[a] = number_of[indices[a]]
    for number in range(n_present):
        number_of[present[number]] = -1
    return NodeLabels(indptr, indices, gains, n_present), present


@njit(nogil=True, cache=True, boundscheck=False)
def _separate(columns, members, row_weights, node_labels, discounts, settings, state, weights, margins):
    """Part the node's rows and fit the separator; returns how many rows are on its positive side, 0 if none can."""
    n = margins.shape[0]
    positive = empty(n, np.bool_)
    targets = empty(n, np.float32)
    costs = empty(n, np.float32)
    n_labelled, labelled = 0, 0.0
    for i in range(n):
        has_labels = node_labels.indptr[i + 1] > node_labels.indptr[i]
        n_labelled += has_labels
        labelled += row_weights[members[i]] if has_labels else 0.0
    if node_labels.indices.shape[0] == n_labelled * node_labels.n_labels:
        # No labels, or the same ones on every row that has any: one ranking serves all.
        return 0
    for _ in range(_TRIES):
        for i in range(n):
            positive[i] = random_bits(state) & _ONE
        alternate_sides(node_labels, discounts, positive)
        n_positive, on_positive = 0, 0.0
        for i in range(n):
            if positive[i] and node_labels.indptr[i + 1] > node_labels.indptr[i]:
                n_positive += 1
                on_positive += row_weights[members[i]]
        if n_positive == 0 or n_positive == n_labelled:
            continue
        for i in range(n):
            # Both sides weigh the same; a row without labels belongs to neither.
            side = on_positive if positive[i] else labelled - on_positive
            has_labels = node_labels.indptr[i + 1] > node_labels.indptr[i]
            costs[i] = settings.C * labelled / side * row_weights[members[i]] if has_labels else 0.0
            targets[i] = 1 if positive[i] else -1
        fit_l1_logistic(columns, targets, costs, settings.tolerance, settings.max_newton, weights, margins)
        n_positive = 0
        for i in range(n):
            n_positive += margins[i] > 0
        if 0 < n_positive < n:
            return n_positive
    return 0


@njit(nogil=True, cache=True, boundscheck=False)
def _part_rows(members, margins, n_positive):
    """The rows on the negative and the positive side, in their order, and ``2 · place + side`` of each row."""
    on_negative = empty(members.shape[0] - n_positive, np.int32)
    on_positive = empty(n_positive, np.int32)
    codes = empty(members.shape[0], np.int32)
    n, p = 0, 0
    for i in range(members.shape[0]):
        if margins[i] > 0:
            on_positive[p] = members[i]
            codes[i] = 2 * p + 1
            p += 1
        else:
            on_negative[n] = members[i]
            codes[i] = 2 * n
            n += 1
    return on_negative, on_positive, codes


@njit(nogil=True, cache=True, boundscheck=False)
def _empty_columns(n_entries, n_features):
    # One entry more, because parting writes each entry to both sides and keeps it on one.
    return Columns(
        empty(n_features + 1, np.int64), empty(n_entries + 1, np.int32), empty(n_entries + 1, np.float32)
    ), empty(n_features, np.int32)


@njit(nogil=True, cache=True, boundscheck=False)
def _part_columns(columns, features, codes, n_positive_entries):
    """The columns of both sides with their features, without empty ones, in one pass over the parent's."""
    m = features.shape[0]
    n_entries = columns.indptr[m]
    negative, on_negative = _empty_columns(n_entries - n_positive_entries, m)
    positive, on_positive = _empty_columns(n_positive_entries, m)
    negative.indptr[0] = 0
    positive.indptr[0] = 0
    n, p = 0, 0
    n_features, p_features = 0, 0
    for j in range(m):
        for a in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + 1])):
            code = codes[np.uint64(columns.rows[a])]
            place, side = code >> 1, code & 1
            value = columns.values[a]
            # Without a branch, which would be mispredicted every second time.
            negative.rows[n] = place
            negative.values[n] = value
            positive.rows[p] = place
            positive.values[p] = value
            n += 1 - side
            p += side
        if n > negative.indptr[n_features]:
            on_negative[n_features] = features[j]
            n_features += 1
            negative.indptr[n_features] = n
        if p > positive.indptr[p_features]:
            on_positive[p_features] = features[j]
            p_features += 1
            positive.indptr[p_features] = p
    return negative, on_negative[:n_features], positive, on_positive[:p_features]


@njit(nogil=True, cache=True, boundscheck=False)
def _write_leaf(members, node_labels, present, labels, labels_per_leaf, leaf_labels, leaf_shares, start):
    """Write a leaf's labels, ascending, with ``Σ_i c_i y_il worth_l / Σ_i c_i``, the largest only; returns the end.

    c_i are the weights of rows.
    """
    shares = zeros(node_labels.n_labels, np.float32)
    whole = 0.0
    for i in range(members.shape[0]):
        weight = labels.weight[members[i]]
        whole += weight
        for a in range(node_labels.indptr[i], node_labels.indptr[i + 1]):
            shares[node_labels.indices[a]] += weight
    for number in range(node_labels.n_labels):
        shares[number] *= labels.worth[present[number]] / np.float32(whole)
    n_kept = min(node_labels.n_labels, labels_per_leaf)
    best = empty(node_labels.n_labels, np.int64)
    for number in range(node_labels.n_labels):
        best[number] = descending_key(shares[number], number)
    sort_keys(best, node_labels.n_labels)
    for a in range(n_kept):
        best[a] = index_of(best[a])
    sort_keys(best, n_kept)
    for a in range(n_kept):
        leaf_labels[start + a] = present[best[a]]
        leaf_shares[start + a] = shares[best[a]]
    return start + n_kept


@njit(nogil=True, cache=True, boundscheck=False)
def grow_tree(columns, features, row_sizes, labels, settings, seed):
    """Grow one tree on the rows of ``columns`` (n, n_columns), whose labels are ``labels``; returns a Tree.

    ``features`` (n_columns,) are the columns' features; the last column is all ones. ``row_sizes`` (n,) counts each
    row's entries. Depth first, so that beside the input about twice its size is held. The same seed (uint64) gives the
    same tree. Nothing given is written to; ``columns`` and ``features`` must be writable all the same, because those
    of other nodes are. The arrays returned are views of larger ones.
    """
    n = labels.scale.shape[0]
    ones = features[-1]
    n_labels = labels.worth.shape[0]
    state = empty(1, np.uint64)
    state[0] = seed
    discounts = discount_of_rank(n_labels)
    number_of = np.full(n_labels, -1, np.int32)

    # A tree has at most n leaves, and each row is in one of them. Pages that are never written take no memory.
    most_nodes = 2 * n
    child_of = empty(2 * most_nodes, np.int32)
    n_rows = empty(most_nodes, np.int32)
    bias = empty(most_nodes, np.float32)
    weight_indptr = empty(most_nodes + 1, np.int64)
    leaf_indptr = empty(most_nodes + 1, np.int64)
    leaf_labels = empty(labels.indices.shape[0], np.int32)
    leaf_shares = empty(labels.indices.shape[0], np.float32)
    weight_indices = empty(1024, np.int32)
    weights = empty(1024, np.float32)
    weight_indptr[0] = 0
    leaf_indptr[0] = 0

    members = empty(n, np.int32)
    for i in range(n):
        members[i] = i
    stack = [(-1, members, features, columns)]
    n_nodes = 0
    while len(stack) > 0:
        slot, members, features, columns = stack.pop()
        node = n_nodes
        n_nodes += 1
        if slot >= 0:
            child_of[slot] = node
        child_of[2 * node] = -1
        child_of[2 * node + 1] = -1
        n_rows[node] = members.shape[0]
        bias[node] = 0
        used_weights, used_labels = weight_indptr[node], leaf_indptr[node]

        node_labels, present = _labels_of(members, labels, number_of)
        w = empty(features.shape[0], np.float32)
        margins = empty(members.shape[0], np.float32)
        n_positive = 0
        if members.shape[0] > settings.max_leaf:
            n_positive = _separate(columns, members, labels.weight, node_labels, discounts, settings, state, w, margins)
        if n_positive > 0:
            weight_indices = grown(weight_indices, used_weights, used_weights + w.shape[0])
            weights = grown(weights, used_weights, used_weights + w.shape[0])
            for j in range(w.shape[0]):
                if features[j] == ones:
                    bias[node] = w[j]
                elif w[j] != 0:
                    weight_indices[used_weights] = features[j]
                    weights[used_weights] = w[j]
                    used_weights += 1
            on_negative, on_positive, codes = _part_rows(members, margins, n_positive)
            negative, positive = columns, columns
            negative_features, positive_features = features[:0], features[:0]
            if max(n_positive, members.shape[0] - n_positive) > settings.max_leaf:
                n_entries = 0
                for row in on_positive:
                    n_entries += row_sizes[row]
                negative, negative_features, positive, positive_features = _part_columns(
                    columns, features, codes, n_entries
                )
            stack.append((2 * node + 1, on_positive, positive_features, positive))
            stack.append((2 * node, on_negative, negative_features, negative))
        else:
            used_labels = _write_leaf(
                members, node_labels, present, labels, settings.labels_per_leaf, leaf_labels, leaf_shares, used_labels
            )
        weight_indptr[n_nodes], leaf_indptr[n_nodes] = used_weights, used_labels

    return Tree(
        child_of[: 2 * n_nodes],
        n_rows[:n_nodes],
        bias[:n_nodes],
        weight_indptr[: n_nodes + 1],
        weight_indices[: weight_indptr[n_nodes]],
        weights[: weight_indptr[n_nodes]],
        leaf_indptr[: n_nodes + 1],
        leaf_labels[: leaf_indptr[n_nodes]],
        leaf_shares[: leaf_indptr[n_nodes]],
    )
