"""The dual of a max-margin ranking loss with L1 and L2 penalties, one row at a time over its active labels.

``min ½|W|² + l1 |W|₁ + C Σ_i max_{k∉y_i, l∈y_i} [1 + f_k - f_l]+`` has the dual
``min ½ Σ_k |soft(v_k, l1)|² - Σ_i Σ_l a_il`` with ``v_k = Σ_i ±a_ik x_i``, + where k is a label of row i: a >= 0, and
within a row the sums over its labels and over the others are equal and at most C. The weights are
``w_k = soft(v_k, l1)``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.topk import push_any_order

_SPREAD = np.uint64(0x9E3779B1)
_HALVINGS = 40


class Active(NamedTuple):
    """The labels that may have a dual variable, row by row: all labels of the row first, then some others."""

    indptr: np.ndarray
    """(n_rows + 1,) int64"""
    labels: np.ndarray
    """(n_active,) int32"""
    alpha: np.ndarray
    """(n_active,) float32 >= 0"""
    n_own: np.ndarray
    """(n_rows,) int64: how many of a row's entries are its labels"""


class Tables(NamedTuple):
    """v by label: a hash table of features each, so that its memory is that of the features of the label's rows.

    A table has a power of two of slots, twice its features or as many as there are features. The slot of a feature is
    ``feature · odd`` modulo that: without collisions where there are as many slots as features.
    """

    starts: np.ndarray
    """(n_labels + 1,) int64"""
    features: np.ndarray
    """(n_slots,) int32, -1 where free"""
    values: np.ndarray
    """(n_slots,) float32"""


@njit(nogil=True, cache=True, boundscheck=False, inline="always")
def _slot(tables, start, mask, feature):
    at = (np.uint64(feature) * _SPREAD) & mask
    while tables.features[start + at] != feature and tables.features[start + at] != -1:
        at = (at + np.uint64(1)) & mask
    return start + at


@njit(nogil=True, cache=True, boundscheck=False)
def count_features(X, owners, rows, block, n_features, sizes):
    """How many slots the table of each label of ``block`` needs, into ``sizes`` (n_labels,) int64; 0 without rows.

    ``rows[owners[l] : owners[l + 1]]`` are the rows in which label l is active. Inputs may be read-only.
    """
    seen = np.full(n_features, -1, np.int64)
    for label in range(block[0], block[1]):
        count = 0
        for a in range(owners[label], owners[label + 1]):
            for b in range(X.indptr[rows[a]], X.indptr[rows[a] + 1]):
                feature = np.uint64(X.indices[b])
                if seen[feature] != label:
                    seen[feature] = label
                    count += 1
        size = 1
        while size < 2 * count and size < n_features:
            size *= 2
        sizes[label] = size if count else 0


@njit(nogil=True, cache=True, boundscheck=False)
def fill_tables(X, owners, rows, signed_alpha, block, tables):
    """Write ``v_k = Σ_i ±a_ik x_i`` of the labels of ``block`` into their tables.

    ``tables`` has room as :func:`count_features` says, features -1 and values 0; ``signed_alpha`` stands beside
    ``rows``, both in the order of labels. Other inputs may be read-only.
    """
    for label in range(block[0], block[1]):
        start = np.uint64(tables.starts[label])
        mask = np.uint64(tables.starts[label + 1] - tables.starts[label] - 1)
        for a in range(owners[label], owners[label + 1]):
            step = signed_alpha[a]
            for b in range(X.indptr[rows[a]], X.indptr[rows[a] + 1]):
                at = _slot(tables, start, mask, X.indices[b])
                tables.features[at] = X.indices[b]
                tables.values[at] += step * X.data[b]


@njit(nogil=True, cache=True, boundscheck=False)
def _shift(u, n_u, t, n_t, total, low, high):
    """The θ in [low, high] with ``Σ(u - θ)+ - Σ(t + θ)+ = total``, of which the left side falls."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        found = -total
        for a in range(n_u):
            found += max(u[a] - middle, 0.0)
        for b in range(n_t):
            found -= max(t[b] + middle, 0.0)
        if found > 0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@njit(nogil=True, cache=True, boundscheck=False)
def project(u, n_u, t, n_t, C):
    """The nearest ``a, b >= 0`` to ``u[:n_u], t[:n_t]`` (float64) with ``Σa = Σb <= C``, written over them."""
    most_u, most_t = -np.inf, -np.inf
    for a in range(n_u):
        most_u = max(most_u, u[a])
    for b in range(n_t):
        most_t = max(most_t, t[b])
    if most_u <= -most_t:
        u[:n_u] = 0
        t[:n_t] = 0
        return
    theta = _shift(u, n_u, t, n_t, 0.0, -most_t, most_u)
    total = 0.0
    for a in range(n_u):
        total += max(u[a] - theta, 0.0)
    theta_u, theta_t = theta, theta
    if total > C:
        theta_u = _shift(u, n_u, t, 0, C, most_u - C, most_u)
        theta_t = _shift(u, 0, t, n_t, -C, -most_t, C - most_t)
    for a in range(n_u):
        u[a] = max(u[a] - theta_u, 0.0)
    for b in range(n_t):
        t[b] = max(t[b] + theta_t, 0.0)


@njit(nogil=True, cache=True, boundscheck=False)
def descend(X, squares, order, active, tables, C, l1):
    """One step on each row in ``order``: its dual variables to the minimum of a bound of the dual; the largest change.

    ``C`` (n_rows,) float64 is what a row's loss weighs.
    The bound replaces the row's part of the Hessian by ``|x|²``. Changes ``active.alpha`` and ``tables.values`` in
    place; the rest may be read-only. Rows without own or without other active labels are left alone. Sequential.
    """
    widest = 0
    for i in range(active.n_own.shape[0]):
        widest = max(widest, active.indptr[i + 1] - active.indptr[i])
    steps = empty(widest, np.float64)
    l1 = np.float32(l1)
    largest = 0.0
    for i in order:
        first, n_own = active.indptr[i], active.n_own[i]
        n = active.indptr[i + 1] - first
        if squares[i] == 0 or n_own == 0 or n == n_own:
            continue
        for a in range(n):
            label = active.labels[first + a]
            start = np.uint64(tables.starts[label])
            mask = np.uint64(tables.starts[label + 1] - tables.starts[label] - 1)
            score = np.float32(0)
            for b in range(X.indptr[i], X.indptr[i + 1]):
                v = tables.values[_slot(tables, start, mask, X.indices[b])]
                score += X.data[b] * (max(v - l1, np.float32(0)) + min(v + l1, np.float32(0)))
            if a < n_own:
                steps[a] = active.alpha[first + a] + (1 - score) / squares[i]
            else:
                steps[a] = active.alpha[first + a] + score / squares[i]
        project(steps, n_own, steps[n_own:], n - n_own, C[i])
        for a in range(n):
            change = np.float32(steps[a]) - active.alpha[first + a]
            if change == 0:
                continue
            largest = max(largest, abs(change))
            active.alpha[first + a] = np.float32(steps[a])
            if a >= n_own:
                change = -change
            label = active.labels[first + a]
            start = np.uint64(tables.starts[label])
            mask = np.uint64(tables.starts[label + 1] - tables.starts[label] - 1)
            for b in range(X.indptr[i], X.indptr[i + 1]):
                tables.values[_slot(tables, start, mask, X.indices[b])] += change * X.data[b]
    return largest


@njit(nogil=True, cache=True, boundscheck=False)
def search_violators(X, Y, W, allowed, block, labels, losses):
    """The loss of each row of ``block`` and the labels, not its own, of the largest scores, best first.

    X, Y and W are :class:`Csr`, W with a row a feature. ``allowed`` (n_labels,) float32 is 0, or -inf for labels to
    leave out. Writes the block's rows of ``labels`` (n, m) int32, -1 where there is none, and of ``losses`` (n,)
    float32. Among equal scores each row has another favourite, because all are equal at
    the start. Inputs may be read-only.
    """
    n_labels = allowed.shape[0]
    total = empty(n_labels, np.float32)
    scores = empty(labels.shape[1], np.float32)
    for i in range(block[0], block[1]):
        labels[i, :] = -1
        losses[i] = 0
        if Y.indptr[i] == Y.indptr[i + 1]:
            continue
        for label in range(total.shape[0]):
            total[label] = allowed[label]
        for a in range(X.indptr[i], X.indptr[i + 1]):
            value = X.data[a]
            for b in range(np.uint64(W.indptr[X.indices[a]]), np.uint64(W.indptr[X.indices[a] + 1])):
                total[np.uint64(W.indices[b])] += value * W.data[b]
        least = np.float32(np.inf)
        for a in range(Y.indptr[i], Y.indptr[i + 1]):
            least = min(least, total[Y.indices[a]])
            total[Y.indices[a]] = -np.inf
        scores[:] = -np.inf
        favourite = np.int64((np.uint64(i) * _SPREAD) % np.uint64(n_labels))
        for rank in range(n_labels):
            label = rank + favourite if rank + favourite < n_labels else rank + favourite - n_labels
            if total[label] > scores[-1] and total[label] > least - 1:
                # By rank, not by label: push_any_order settles equal scores by the lower number.
                push_any_order(labels[i], scores, rank, total[label])
        for m in range(labels.shape[1]):
            if labels[i, m] >= 0:
                labels[i, m] = (labels[i, m] + favourite) % n_labels
        losses[i] = max(np.float32(0), 1 + scores[0] - least)


@njit(nogil=True, cache=True, boundscheck=False)
def renew_active(active, found):
    """Active labels for the next sweeps: a row's own, the others whose dual variable is not 0, and those ``found``.

    ``found`` is (n, m) int32, -1 where there is none. Inputs may be read-only.
    """
    n_rows = active.n_own.shape[0]
    most = active.labels.shape[0] + found.size
    indptr = zeros(n_rows + 1, np.int64)
    labels, alpha = empty(most, np.int32), empty(most, np.float32)
    used = 0
    for i in range(n_rows):
        first = active.indptr[i]
        for a in range(first, active.indptr[i + 1]):
            if a < first + active.n_own[i] or active.alpha[a] > 0:
                labels[used], alpha[used] = active.labels[a], active.alpha[a]
                used += 1
        kept = used
        for m in range(found.shape[1]):
            new = found[i, m] >= 0
            for a in range(indptr[i], kept):
                new = new and labels[a] != found[i, m]
            if new:
                labels[used], alpha[used] = found[i, m], 0
                used += 1
        indptr[i + 1] = used
    return indptr, labels[:used].copy(), alpha[:used].copy()
