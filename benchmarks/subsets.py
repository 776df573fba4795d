"""Stacks of some members of a stack: members are fitted once, and only the combining is learnt anew."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

import tailwise as tw
from tailwise.tail.candidates import Candidates
from tailwise.tail.committee import OutOfFold, describe


class Kept(tw.Stacked):
    """A stack that keeps what it learns to combine from."""

    def _fit_members(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> Iterator[OutOfFold]:
        self.kept = list(super()._fit_members(X, Y, weight))
        return iter(self.kept)


class Judged:
    """Rows to judge by, as a fitted stack's members see them."""

    def __init__(self, stack: Kept, X: sparse.csr_array) -> None:
        self._stack, self._candidates = stack, stack._candidates(X)
        self._described = describe(stack.members_, X, self._candidates)

    def rank(self, Y: sparse.csr_array, own: list[int], k: int) -> tw.TopK:
        """The top ``k`` by a stack of the members ``own``, which learns to combine from the training labels ``Y``."""
        stack = self._stack
        inputs = [len(member.pair_inputs()) for member in stack.members_]
        columns = np.concatenate([np.arange(sum(inputs[:m]), sum(inputs[: m + 1])) for m in own]).astype(int)
        parts = []
        for rows, candidates, known, seen in stack.kept:
            some, chosen = _only(candidates, own)
            parts.append(OutOfFold(rows, some, known[chosen][:, columns], seen[chosen]))
        trees = stack._combine(parts, Y)
        new, chosen = _only(self._candidates, own)
        asked = stack._features(new, self._described[chosen][:, columns], stack.label_counts_[new.labels])
        return new.best(trees.probabilities(asked), k)


def _only(candidates: Candidates, own: list[int]) -> tuple[Candidates, np.ndarray]:
    """The candidates of some members, and which of all they are."""
    chosen = np.flatnonzero(~np.isnan(candidates.scores[:, own]).all(axis=1))
    rows = candidates.rows[chosen]
    indptr = np.searchsorted(rows, np.arange(candidates.indptr.size)).astype(np.int64)
    parts = (candidates.labels[chosen], candidates.scores[chosen][:, own], candidates.ranks[chosen][:, own])
    return Candidates(indptr, *parts), chosen
