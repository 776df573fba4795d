"""What models made of several members share: fitting them, and their candidates out of fold and for new rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import Models, TopK, XMCModel
from tailwise.changes import Change
from tailwise.persistence.checks import check_kind, check_that
from tailwise.runs import kept, share
from tailwise.tail.candidates import Candidates, candidate_blocks, gather_candidates
from tailwise.tail.evidence import Evidence
from tailwise.tail.folds import N_FOLDS, N_ROWS, split_folds
from tailwise.tail.ranking import N_CANDIDATES, followed_by
from tailwise.tail.wrapper import fresh, log_odds


class OutOfFold(NamedTuple):
    """Candidates of some training rows from members that did not see them, and what those members know of each.

    ``rows`` (n,) numbers the rows. ``described`` (n_pairs, m) float32 is what :func:`describe` says, ``seen``
    (n_pairs,) how often the members saw the label.
    """

    rows: np.ndarray
    candidates: Candidates
    described: np.ndarray
    seen: np.ndarray

    @property
    def pair_rows(self) -> np.ndarray:
        """The training row of each pair."""
        return self.rows[self.candidates.rows]


def describe(members: list[XMCModel], X: sparse.csr_array, candidates: Candidates) -> np.ndarray:
    """What the members know of each candidate beside their scores, side by side: (n_pairs, m) float32."""
    rows = candidates.rows
    nothing = np.empty((rows.size, 0), np.float32)
    return np.concatenate([nothing, *(one.describe_pairs(X, rows, candidates.labels) for one in members)], axis=1)


def _judged(
    members: list[XMCModel], part: tuple[Any, ...], X: sparse.csr_array, width: int
) -> Iterator[tuple[slice, Candidates, np.ndarray]]:
    """Candidates for ``X`` of members fitted on a ``part`` of their rows, and what these know of each, in blocks.

    ``part`` is what ``fit_part`` takes. One member after the other: one that knows nothing beside its scores is gone
    before the next is fitted, and none is left at the end.
    """
    tops, describing = [], []
    for member in members:
        with share(1 / len(members)):
            fitted = kept(partial(member.fit_part, *part))
        tops.append(fitted.predict_topk(X, width))
        if fitted.pair_inputs():
            describing.append(fitted)
    for rows, found in candidate_blocks(tops, members[0].n_labels_):
        yield rows, found, describe(describing, X[rows], found)


class Committee(XMCModel):
    """A model of several ``members``, which are cloned and fitted by ``fit`` and kept as ``members_``."""

    _parameters = {"members": Models(), "n_candidates": N_CANDIDATES, "n_folds": N_FOLDS, "n_rows": N_ROWS}

    members: list[XMCModel]
    n_candidates: int
    n_folds: int
    n_rows: int | None
    random_state: int | None
    n_jobs: int | None
    members_: list[XMCModel]

    def _fit_members(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> Iterator[OutOfFold]:
        """Fit every member on all rows; then their out-of-fold candidates, some thousand rows at a time."""
        width = min(self.n_candidates, self.n_labels_)
        # The same folds for each member: a pair's scores then come from models that saw the same rows.
        folds = split_folds(Y, self.n_folds, self.random_state, self.n_rows)
        n_fits = folds.counts.shape[0] + 1
        self.members_ = []
        for member in self.members:
            with share(1 / n_fits / len(self.members)):
                self.members_.append(kept(partial(fresh(member, self.n_jobs).fit, X, Y, weight)))
        for counts, (held_out, rest) in zip(folds.counts, folds.parts(), strict=True):
            part = (X[rest], Y[rest], rest, None if weight is None else weight[rest])
            evidence = self._evidence_of(part[0], part[1], part[3])
            with share(1 / n_fits):
                for rows, found, known in _judged(self.members_, part, X[held_out], width):
                    known = self._with_evidence(known, evidence, X[held_out[rows]], found)
                    yield OutOfFold(held_out[rows], found, known, counts[found.labels])

    def _evidence_of(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> Evidence | None:
        """What these training rows tell of pairs beside what members know; nothing unless a committee asks."""
        return None

    def _with_evidence(
        self, described: np.ndarray, evidence: Evidence | None, X: sparse.csr_array, candidates: Candidates
    ) -> np.ndarray:
        """What members know of candidates, ``described``, and behind it the evidence, by the first member's ranking."""
        if evidence is None:
            return described
        found = evidence.describe_pairs(X, self._standing(candidates), self.n_jobs)
        return np.concatenate([described, found], axis=1)

    def _standing(self, candidates: Candidates) -> Candidates:
        """With scores without bounds, and with the row's lowest of a member where it did not name the label."""
        own = candidates.scores.T
        scores = np.array([log_odds(one, member) for one, member in zip(own, self.members_, strict=True)])
        return candidates._replace(scores=scores.T.astype(np.float32)).filled()

    def _check_updates(self) -> None:
        super()._check_updates()
        for member in self.members_:
            member._check_updates()

    def _update(self, change: Change) -> int:
        # Members learn; how their word is weighed, which took trainings out of fold, stays.
        self.members_ = [member.updated(change) for member in self.members_]
        return max(member.n_learnt_again for member in self.members_)

    def _check_state(self) -> None:
        super()._check_state()
        check_that(check_kind("members_", self.members_, list), "members_ is empty")
        for number, member in enumerate(self.members_):
            self._check_part(f"members_[{number}]", member, XMCModel)

    @abstractmethod
    def _score(self, X: sparse.csr_array, candidates: Candidates) -> np.ndarray:
        """The score of each candidate: (n_pairs,)."""

    def _candidates(self, X: sparse.csr_array) -> Candidates:
        return gather_candidates(self._tops(X, self.n_candidates), self.n_labels_)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        ranked = TopK(np.empty((X.shape[0], k), np.int32), np.empty((X.shape[0], k), np.float32))
        for rows, candidates in candidate_blocks(self._tops(X, self.n_candidates), self.n_labels_):
            ranked.labels[rows], ranked.scores[rows] = candidates.best(self._score(X[rows], candidates), k)
        if k <= self.n_candidates:
            return ranked
        # Seen apart: with deeper looks of its members a candidate would have another score.
        for rows, deeper in candidate_blocks(self._tops(X, k), self.n_labels_):
            first = TopK(ranked.labels[rows], ranked.scores[rows])
            ranked.labels[rows], ranked.scores[rows] = followed_by(first, deeper.beyond(self.n_candidates, k), k)
        return ranked

    def _tops(self, X: sparse.csr_array, k: int) -> list[TopK]:
        return [member.predict_topk(X, min(k, self.n_labels_)) for member in self.members_]
