"""Edges of label trees that go on from where their duals stood, each over the rows of its node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tailwise.dual_state import DualState, compact
from tailwise.kernels.solvers.problems import Labels, Support, Weights
from tailwise.kernels.trees.chunks import Chunks
from tailwise.trees.structure import LabelTree
from tailwise.trees.updating import bounds


class GoingOn(NamedTuple):
    """How the edges of a tree go on from where their duals stood."""

    dual: DualState
    before: np.ndarray
    """(n_edges,) int64: the edge of ``dual`` that it was; -1 for a new one"""
    is_fresh: np.ndarray
    """(n_rows,) bool: the rows that are new, or in the place of another"""

    def stood(self, edges: np.ndarray) -> Support:
        """Where the duals of ``edges`` stood, by numbers of rows."""
        return self.dual.of(self.before[edges])

    def solve(
        self, problem: Any, labels: Labels, edges: np.ndarray, rows: np.ndarray, solve: Callable[..., Weights]
    ) -> Weights:
        """The classifiers of ``edges``, whose ``problem`` has the ``rows``, ascending.

        A new edge goes on from nothing; where all are new they are solved from the start.
        """
        if (self.before[edges] < 0).all():
            return solve(problem, labels)
        return solve(problem, labels, _local(self.stood(edges), rows), np.flatnonzero(self.is_fresh[rows]))


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


def edges_before(home: np.ndarray, chunks: Chunks, tree: int, new: LabelTree) -> np.ndarray:
    """For each edge of ``new``, which ``tree`` has become, the edge of ``chunks`` that it was, -1 for none: int64.

    ``home`` is what :func:`tailwise.trees.updating.homes_of_labels` says. Edges between nodes are known again where no
    node has gone.
    """
    root, first, last = bounds(chunks, tree)
    target = chunks.target[first:last]
    before = np.full(new.target.size, -1, np.int64)
    before[new.target < 0] = home[~new.target[new.target < 0]]
    was, now = np.flatnonzero(target >= 0), np.flatnonzero(new.target >= 0)
    if np.array_equal(target[was] - root, new.target[now]):
        before[now] = first + was
    return before
