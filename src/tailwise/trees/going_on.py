"""Edges of label trees that go on from where their duals stood, each over the rows of its node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.dual_state import DualState, compact
from tailwise.kernels.solvers.problems import Support, Weights


class GoingOn(NamedTuple):
    """How the edges of a tree go on from where their duals stood."""

    dual: DualState
    before: np.ndarray
    """(n_edges,) int64: the edge of ``dual`` that it was; -1 for a new one"""
    is_fresh: np.ndarray
    """(n_rows,) bool: the rows that are new, or in the place of another"""
    bias: float
    """of a new edge"""
    restores: bool
    """whether weights are made of support vectors, rather than begin as they were stored"""

    def stood(self, edges: np.ndarray) -> Support:
        """Where the duals of ``edges`` stood, by numbers of rows."""
        return self.dual.of(self.before[edges])

    def kept(self, edges: np.ndarray) -> Support:
        """The same as it is kept, of edges that stay as they are."""
        return self.dual.kept(self.before[edges])

    def any_stood(self, edges: np.ndarray) -> bool:
        """Whether there is anything to go on from: a new edge goes on from nothing beside others, but not alone."""
        return bool((self.before[edges] >= 0).any())


def in_rows_of_all(weights: Weights, rows: np.ndarray, n_rows: int) -> Weights:
    """The same with support vectors as they are kept: by their numbers among all ``n_rows``, those of the problem being
    ``rows``.
    """
    if weights.support is None:
        return weights
    support = weights.support._replace(positions=rows[weights.support.positions])
    return weights._replace(support=compact(support, n_rows))


def split(weights: Weights, first_edge: np.ndarray) -> list[Weights]:
    """Those of edges ``first_edge[n] : first_edge[n + 1]``, one after the other."""
    ends = zip(first_edge[:-1].tolist(), first_edge[1:].tolist(), strict=True)
    support = weights.support
    return [
        Weights(
            *_some(*weights[:3], first, last),
            weights.bias[first:last],
            None if support is None else Support(*_some(*support, first, last)),
        )
        for first, last in ends
    ]


def _some(
    indptr: np.ndarray, places: np.ndarray, values: np.ndarray, first: int, last: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    begin, end = indptr[first], indptr[last]
    return indptr[first : last + 1] - begin, places[begin:end], values[begin:end]
