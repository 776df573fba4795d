"""Edges of label trees that go on from where their duals stood, each over the rows of its node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tailwise.dual_state import DualState, compact
from tailwise.kernels.solvers.problems import Labels, Standing, Support, Weights
from tailwise.kernels.sparse.csr import spread
from tailwise.kernels.trees.chunks import Chunks
from tailwise.trees.structure import LabelTree


class GoingOn(NamedTuple):
    """How the edges of a tree go on from where their duals stood."""

    dual: DualState
    before: np.ndarray
    """(n_edges,) int64: the edge of ``dual`` that it was; -1 for a new one, which is solved from the start"""
    rounds: int
    """of a look at all rows of the node and a descent, at most"""

    def stood(self, edges: np.ndarray) -> Support:
        """Where the duals of ``edges`` stood, by numbers of rows."""
        return self.dual.of(self.before[edges])

    def members(self, edges: np.ndarray) -> np.ndarray:
        """The support vectors of all of ``edges``, some of them several times."""
        return self.stood(edges[self.before[edges] >= 0]).positions

    def solve(
        self, problem: Any, labels: Labels, edges: np.ndarray, rows: np.ndarray, solve: Callable[..., Weights]
    ) -> Weights:
        """The classifiers of ``edges``, whose ``problem`` has the ``rows``, ascending."""
        is_new = self.before[edges] < 0
        parts: list[tuple[np.ndarray, Weights]] = []
        if is_new.any():
            own = np.flatnonzero(is_new)
            parts.append((own, solve(problem, _some_labels(labels, own))))
        if not is_new.all():
            own = np.flatnonzero(~is_new)
            standing = Standing(_local(self.stood(edges[own]), rows), self.rounds)
            parts.append((own, solve(problem, _some_labels(labels, own), standing)))
        return _in_order(parts) if len(parts) > 1 else parts[0][1]


def in_rows_of_all(weights: Weights, rows: np.ndarray, n_rows: int) -> Weights:
    """The same with support vectors as they are kept: by their numbers among all ``n_rows``, those of the problem being
    ``rows``.
    """
    if weights.support is None:
        return weights
    support = weights.support._replace(positions=rows[weights.support.positions])
    return weights._replace(support=compact(support, n_rows))


def _local(support: Support, rows: np.ndarray) -> Support:
    """By places in ``rows``, without what is not among them."""
    place = np.minimum(np.searchsorted(rows, support.positions), max(0, rows.size - 1))
    there = rows[place] == support.positions if rows.size else np.zeros(place.size, bool)
    indptr = np.append(0, np.cumsum(there))[support.indptr]
    return Support(indptr, place[there].astype(np.int32), support.values[there])


def _some_labels(labels: Labels, own: np.ndarray) -> Labels:
    if own.size == labels.negative_costs.size:
        return labels
    indptr, take = spread(labels.indptr[own], np.diff(labels.indptr)[own])
    return Labels(indptr, labels.positions[take], labels.positive_costs[take], labels.negative_costs[own])


def _in_order(parts: list[tuple[np.ndarray, Weights]]) -> Weights:
    """The classifiers of all places, each of which is in one of the parts."""
    order = np.argsort(np.concatenate([own for own, _ in parts]))
    all_weights = [weights for _, weights in parts]

    def laid(indptrs: list[np.ndarray], *arrays: list[np.ndarray]) -> list[np.ndarray]:
        sizes = np.concatenate([np.diff(indptr) for indptr in indptrs])
        begin = np.cumsum(sizes) - sizes
        indptr, take = spread(begin[order], sizes[order])
        return [indptr, *(np.concatenate(array)[take] for array in arrays)]

    indptr, features, values = laid(
        [w.indptr for w in all_weights], [w.features for w in all_weights], [w.values for w in all_weights]
    )
    bias = np.concatenate([w.bias for w in all_weights])[order]
    supports = [w.support for w in all_weights if w.support is not None]
    support = None
    if len(supports) == len(parts):
        support = Support(
            *laid([s.indptr for s in supports], [s.positions for s in supports], [s.values for s in supports])
        )
    return Weights(indptr, features, values, bias, support)


def edges_before(chunks: Chunks, tree: int, new: LabelTree, n_labels: int) -> np.ndarray:
    """For each edge of ``new``, which ``tree`` has become, the edge of ``chunks`` that it was, -1 for none: int64.

    Edges between nodes are known again where no node has gone.
    """
    ends = np.append(chunks.roots, chunks.bits.size)
    first, last = chunks.first_edge[ends[tree]], chunks.first_edge[ends[tree + 1]]
    target = chunks.target[first:last]
    home = np.full(n_labels, -1, np.int64)
    home[~target[target < 0]] = first + np.flatnonzero(target < 0)
    before = np.full(new.target.size, -1, np.int64)
    before[new.target < 0] = home[~new.target[new.target < 0]]
    was, now = np.flatnonzero(target >= 0), np.flatnonzero(new.target >= 0)
    if np.array_equal(target[was] - ends[tree], new.target[now]):
        before[now] = first + was
    return before
