"""Growing one tree over rows: split nodes by a sparse linear separator until few rows are left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from tailwise.kernels.l1_logistic import Columns, fit_l1_logistic
from tailwise.kernels.ndcg_split import NodeLabels, alternate_sides, discount_of_rank
from tailwise.kernels.random import random_bits

_TRIES = 3
_ONE = np.uint64(1)


class RowLabels(NamedTuple):
    """Labels by row in CSR form, what each label is worth (1 or 1/p_l), and ``I(y_i)`` of each row."""

    indptr: np.ndarray
    indices: np.ndarray
    worth: np.ndarray
    scale: np.ndarray


class GrowSettings(NamedTuple):
    """What steers the growth of a tree."""

    max_leaf: int
    labels_per_leaf: int
    C: float
    tolerance: float
    max_newton: int


class Tree(NamedTuple):
    """A binary tree in arrays; node 0 is the root.

    ``children`` (n_nodes, 2) int32 are the negative and the positive child, or -1 and -1 at a leaf; ``bias`` and the
    CSR rows ``weight_indptr``, ``weight_indices``, ``weights`` separate them. The CSR rows ``leaf_indptr``,
    ``leaf_labels``, ``leaf_shares`` hold a leaf's labels, ascending, and their share of its ``n_rows``.
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
def _room_for(array, used, more):
    """``array``, or a copy of at least twice the length when ``more`` entries do not fit after ``used``."""
    if used + more <= array.shape[0]:
        return array
    larger = np.empty(max(2 * array.shape[0], used + more), array.dtype)
    larger[:used] = array[:used]
    return larger


@njit(nogil=True, cache=True, boundscheck=False)
def _labels_of(members, labels, number_of):
    """The labels of the rows ``members``, numbered within the node. ``number_of`` (n_labels,) is -1 and stays so."""
    indptr = np.empty(members.shape[0] + 1, np.int64)
    indptr[0] = 0
    for i in range(members.shape[0]):
        row = members[i]
        indptr[i + 1] = indptr[i] + labels.indptr[row + 1] - labels.indptr[row]
    indices = np.empty(indptr[-1], np.int32)
    gains = np.empty(indptr[-1], np.float32)
    present = np.empty(indptr[-1], np.int32)
    n_present = 0
    a = 0
    for row in members:
        for b in range(labels.indptr[row], labels.indptr[row + 1]):
            label = labels.indices[b]
            indices[a] = label
            gains[a] = labels.scale[row] * labels.worth[label]
            a += 1
            if number_of[label] < 0:
                number_of[label] = 0
                present[n_present] = label
                n_present += 1
    present = np.sort(present[:n_present])
    for number in range(n_present):
        number_of[present[number]] = number
    for a in range(indices.shape[0]):
        indices[a] = number_of[indices[a]]
    for label in present:
        number_of[label] = -1
    return NodeLabels(indptr, indices, gains, n_present), present


@njit(nogil=True, cache=True, boundscheck=False)
def _separate(columns, node_labels, discounts, settings, state, weights, margins):
    """Part the node's rows and fit the separator; True when both sides of it have rows."""
    n = margins.shape[0]
    if node_labels.n_labels == 0:
        return False
    positive = np.empty(n, np.bool_)
    targets = np.empty(n, np.float32)
    costs = np.empty(n, np.float32)
    for _ in range(_TRIES):
        for i in range(n):
            positive[i] = random_bits(state) & _ONE
        alternate_sides(node_labels, discounts, positive)
        n_positive = 0
        n_labelled = 0
        for i in range(n):
            if node_labels.indptr[i + 1] > node_labels.indptr[i]:
                n_labelled += 1
                n_positive += positive[i]
        if n_positive == 0 or n_positive == n_labelled:
            continue
        for i in range(n):
            targets[i] = 1 if positive[i] else -1
            side = n_positive if positive[i] else n_labelled - n_positive
            # A row without labels belongs to neither side.
            has_labels = node_labels.indptr[i + 1] > node_labels.indptr[i]
            costs[i] = settings.C * n_labelled / side if has_labels else 0.0
        fit_l1_logistic(columns, targets, costs, settings.tolerance, settings.max_newton, weights, margins)
        n_positive = 0
        for i in range(n):
            n_positive += margins[i] > 0
        if 0 < n_positive < n:
            return True
    return False


@njit(nogil=True, cache=True, boundscheck=False)
def _columns_of_side(columns, features, margins, side, n_members):
    """The columns of the rows on one side of the separator, without empty ones, and their features."""
    number_of = np.empty(margins.shape[0], np.int32)
    count = 0
    for i in range(margins.shape[0]):
        number_of[i] = count if (margins[i] > 0) == side else -1
        count += number_of[i] >= 0
    rows = np.empty(columns.rows.shape[0] + 1, np.int32)
    values = np.empty(columns.rows.shape[0] + 1, np.float32)
    indptr = np.empty(features.shape[0] + 1, np.int64)
    kept = np.empty(features.shape[0], np.int32)
    indptr[0] = 0
    m = 0
    used = 0
    for j in range(features.shape[0]):
        for a in range(columns.indptr[j], columns.indptr[j + 1]):
            number = number_of[np.uint64(columns.rows[a])]
            # Written always, kept if the row is on this side: a branch here would be mispredicted half of the time.
            rows[used] = number
            values[used] = columns.values[a]
            used += number >= 0
        if used > indptr[m]:
            kept[m] = features[j]
            m += 1
            indptr[m] = used
    return Columns(indptr[: m + 1].copy(), rows[:used].copy(), values[:used].copy()), kept[:m].copy()


@njit(nogil=True, cache=True, boundscheck=False)
def _leaf_of(node_labels, present, labels, n_members, labels_per_leaf):
    """A leaf's labels, ascending, and their shares ``Σ_i y_il worth_l / n``: the largest ``labels_per_leaf`` ones."""
    shares = np.zeros(present.shape[0], np.float64)
    for a in range(node_labels.indices.shape[0]):
        shares[node_labels.indices[a]] += 1.0
    for number in range(present.shape[0]):
        shares[number] *= labels.worth[present[number]] / n_members
    if present.shape[0] <= labels_per_leaf:
        return present, shares.astype(np.float32)
    best = np.sort(np.argsort(-shares, kind="mergesort")[:labels_per_leaf])
    return present[best], shares[best].astype(np.float32)


@njit(nogil=True, cache=True, boundscheck=False)
def grow_tree(columns, labels, settings, seed):
    """Grow one tree on the rows of ``columns`` (n, n_features), whose labels are ``labels``; returns a Tree.

    Depth first, so that besides the input at most about twice its size is held. The same seed gives the same tree.
    """
    n = labels.scale.shape[0]
    n_features = columns.indptr.shape[0] - 1
    n_labels = labels.worth.shape[0]
    state = np.array([seed], np.uint64)
    discounts = discount_of_rank(n_labels)
    number_of = np.full(n_labels, -1, np.int32)

    room = 64
    child_of = np.empty(2 * room, np.int32)
    n_rows = np.empty(room, np.int32)
    bias = np.empty(room, np.float32)
    weight_indptr = np.zeros(room + 1, np.int64)
    leaf_indptr = np.zeros(room + 1, np.int64)
    weight_indices = np.empty(room, np.int32)
    weights = np.empty(room, np.float32)
    leaf_labels = np.empty(room, np.int32)
    leaf_shares = np.empty(room, np.float32)

    everything = np.arange(n).astype(np.int32)
    all_features = np.arange(n_features).astype(np.int32)
    stack = [(-1, everything, all_features, columns)]
    n_nodes = 0
    while len(stack) > 0:
        slot, members, features, node_columns = stack.pop()
        node = n_nodes
        n_nodes += 1
        if slot >= 0:
            child_of[slot] = node
        child_of = _room_for(child_of, 2 * node, 2)
        n_rows = _room_for(n_rows, node, 1)
        bias = _room_for(bias, node, 1)
        weight_indptr = _room_for(weight_indptr, n_nodes, 1)
        leaf_indptr = _room_for(leaf_indptr, n_nodes, 1)
        child_of[2 * node], child_of[2 * node + 1] = -1, -1
        n_rows[node] = members.shape[0]
        bias[node] = 0
        used_weights, used_labels = weight_indptr[node], leaf_indptr[node]

        node_labels, present = _labels_of(members, labels, number_of)
        margins = np.empty(members.shape[0], np.float32)
        w = np.empty(features.shape[0] + 1, np.float32)
        if members.shape[0] > settings.max_leaf and _separate(
            node_columns, node_labels, discounts, settings, state, w, margins
        ):
            bias[node] = w[-1]
            support = np.flatnonzero(w[:-1])
            weight_indices = _room_for(weight_indices, used_weights, support.shape[0])
            weights = _room_for(weights, used_weights, support.shape[0])
            for j in support:
                weight_indices[used_weights] = features[j]
                weights[used_weights] = w[j]
                used_weights += 1
            for side in (True, False):
                side_members = members[(margins > 0) == side]
                if side_members.shape[0] > settings.max_leaf:
                    side_columns, side_features = _columns_of_side(
                        node_columns, features, margins, side, side_members.shape[0]
                    )
                    stack.append((2 * node + side, side_members, side_features, side_columns))
                else:
                    stack.append((2 * node + side, side_members, features[:0], node_columns))
        else:
            found, shares = _leaf_of(node_labels, present, labels, members.shape[0], settings.labels_per_leaf)
            leaf_labels = _room_for(leaf_labels, used_labels, found.shape[0])
            leaf_shares = _room_for(leaf_shares, used_labels, found.shape[0])
            leaf_labels[used_labels : used_labels + found.shape[0]] = found
            leaf_shares[used_labels : used_labels + found.shape[0]] = shares
            used_labels += found.shape[0]
        weight_indptr[n_nodes], leaf_indptr[n_nodes] = used_weights, used_labels

    return Tree(
        child_of[: 2 * n_nodes].copy().reshape(n_nodes, 2),
        n_rows[:n_nodes].copy(),
        bias[:n_nodes].copy(),
        weight_indptr[: n_nodes + 1].copy(),
        weight_indices[: weight_indptr[n_nodes]].copy(),
        weights[: weight_indptr[n_nodes]].copy(),
        leaf_indptr[: n_nodes + 1].copy(),
        leaf_labels[: leaf_indptr[n_nodes]].copy(),
        leaf_shares[: leaf_indptr[n_nodes]].copy(),
    )
