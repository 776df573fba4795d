"""A learned re-ranker over several models: gradient boosting on what the members say of each candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from scipy import sparse
from scipy.special import expit

from tailwise.base import XMCModel
from tailwise.changes import Change
from tailwise.explanation import Explanation, Part, not_ranked
from tailwise.parameters import Choice, Flag, Integer, Number
from tailwise.persistence.checks import check_kind
from tailwise.propensity import PropensityLike, resolve_propensity
from tailwise.ranges import Range, Ranges
from tailwise.tail.boosting import BoostedTrees
from tailwise.tail.candidates import Candidates
from tailwise.tail.committee import Committee, OutOfFold, describe
from tailwise.tail.evidence import Evidence
from tailwise.tail.pairs import Pairs, PairSample
from tailwise.tail.smoothed import SmoothedTrees
from tailwise.validation import as_seed

# A negative that no member ranks this high is easy: a share of them, weighted up, teaches as much as all.
_EASY_RANK = 8


class Stacked(Committee):
    """Learn which candidates of several models are right, from their out-of-fold scores.

    Candidates are the union of the members' best labels. A candidate's features are, for each member, its score,
    its distance to the row's best score and its rank (missing where the member did not name the label), and the
    label's training frequency; the final model is scikit-learn's histogram gradient boosting with log-loss, so
    scores are calibrated probabilities. Costs ``n_folds + 1`` trainings of each member, of which
    those of one-vs-rest models out of fold go on from the one on all rows and take about half.

    With ``nearest=True`` features are, too, what :class:`TailCalibrated` knows of a pair: the label's mean row, its
    companions in the first member's ranking, and votes of training rows that are alike, out of fold as all others. The
    final model is then the mean of the log-odds of the trees and of a surface as there, over all members' scores. The
    model keeps its training rows.

    Parameters
    ----------
    members : list of XMCModel
        Models of any kind; the more they differ, the better. They are cloned.
    sample_weights : None or "propensity"
        "propensity" weights a positive candidate by 1/p: probabilities then estimate the complete labels.
    propensity : Propensity, array or None
        For ``sample_weights="propensity"``; None is ``JainPropensity()``.
    n_candidates, n_folds : int
        Labels that each member names in a row, and folds.
    n_rows : int or None
        About how many rows are predicted out of fold, to learn from: of far more rows not every fold is, and a member
        is then fitted twice and not ``n_folds + 1`` times. None is all.
    n_pairs : int
        About how many candidates to train on: beyond that, candidates that are wrong and that no member ranks among its
        first eight are sampled, and weighted by the inverse of their share.
    nearest : bool
        Compare rows with the training rows themselves, and learn a surface beside the trees. The first member matters
        most, and rows count as the stack sees them: where they are damped, put the stack into :class:`Sublinear`.
    max_iter, learning_rate, max_leaf_nodes : int, float, int
        Of the boosting.
    random_state : int or None
        Draws the folds and seeds the boosting.
    n_jobs : int or None
        Threads for evaluating the trees, and of the members; None is every core, and leaves the members their own.

    Examples
    --------
    >>> from tailwise import Centroid, Popularity
    >>> X, Y = [[1.0, 0], [0.9, 0.2], [0, 1.0], [0.1, 0.9]] * 20, [[1, 0], [1, 0], [0, 1], [0, 1]] * 20
    >>> model = Stacked([Centroid(), Popularity()], random_state=0).fit(X, Y)
    >>> model.predict_topk([[0.0, 2.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {
        "sample_weights": Choice(None, "propensity"),
        "propensity": PropensityLike(),
        "n_pairs": Integer(low=1),
        "nearest": Flag(),
        "max_iter": Integer(low=1),
        "learning_rate": Number(low=0, open_low=True),
        "max_leaf_nodes": Integer(low=2),
    }
    scores_are_probabilities = True

    evidence_: Evidence | None = None
    trees_: BoostedTrees | SmoothedTrees

    def __init__(
        self,
        members: list[XMCModel],
        *,
        sample_weights: str | None = None,
        propensity: object = None,
        n_candidates: int = 50,
        n_folds: int = 3,
        n_rows: int | None = 20_000,
        n_pairs: int = 400_000,
        nearest: bool = False,
        max_iter: int = 200,
        learning_rate: float = 0.08,
        max_leaf_nodes: int = 31,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.members = members
        self.sample_weights = sample_weights
        self.propensity = propensity
        self.n_candidates = n_candidates
        self.n_folds = n_folds
        self.n_rows = n_rows
        self.n_pairs = n_pairs
        self.nearest = nearest
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {"learning_rate": Range.around(self.learning_rate, 4)}

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        self.evidence_ = self._evidence_of(X, Y, weight)
        self.trees_ = self._combine(self._fit_members(X, Y, weight), Y, weight)

    def _combine(
        self, parts: Iterable[OutOfFold], Y: sparse.csr_array, weight: np.ndarray | None = None
    ) -> BoostedTrees | SmoothedTrees:
        """Learn from what members said out of fold."""
        inverse = 1.0 / resolve_propensity(self.propensity, Y) if self.sample_weights == "propensity" else None
        sample = PairSample(self.n_pairs, self.random_state)
        for part in parts:
            candidates, described, seen = part.candidates, part.described, part.seen
            hits = candidates.are_hits(sparse.csr_array(Y[part.rows]))
            weights = np.ones(hits.size) if weight is None else weight[part.pair_rows]
            if inverse is not None:
                weights = weights * np.where(hits, inverse[candidates.labels], 1.0)
            easy = ~hits & ~(candidates.ranks < _EASY_RANK).any(axis=1)
            sample.add(Pairs(self._features(candidates, described, seen), hits, weights), easy)
        return self._learner()(
            *sample.taken(),
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.max_leaf_nodes,
            random_state=as_seed(self.random_state),
        )

    def _learner(self) -> Callable[..., BoostedTrees | SmoothedTrees]:
        """What learns from pairs. Of a surface's inputs, those of the first member and of the label come first."""
        if self.evidence_ is None:
            return BoostedTrees.fit
        n, n_evidence = len(self.members), self.evidence_.n_inputs
        n_features = len(self._inputs())
        mean, company, *votes = range(n_features - n_evidence, n_features)
        first = [0, n, 3 * n, mean, company]
        columns = np.array([*first, *votes, *range(1, n), *range(n + 1, 2 * n)], np.int64)
        return partial(SmoothedTrees.fit, columns=columns, n_cubic=len(first))

    def _evidence_of(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> Evidence | None:
        return Evidence.of(X, Y, weight, nearest=True, n_jobs=self.n_jobs) if self.nearest else None

    def _update(self, change: Change) -> int:
        self.evidence_ = self._evidence_of(change.X, change.Y, None)
        return super()._update(change)

    def _features(self, candidates: Candidates, described: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """(n_pairs, 3 · n_members + 2 + m) float32: scores, distances to the row's best, ranks, log frequency, votes.

        ``counts`` (n_pairs,) is how often the members have seen the label. Out of fold that is less than its count:
        with the whole count, a label with a single row would look impossible, since no fold can find it.
        ``described`` (n_pairs, m) is what members know beside their scores, and comes last.
        """
        if self.evidence_ is not None:
            candidates = self._standing(candidates)  # which a surface needs: it has no branch for what is missing
        best = np.full((candidates.indptr.size - 1, candidates.scores.shape[1]), np.nan, np.float32)
        if candidates.labels.size:
            occupied = np.flatnonzero(np.diff(candidates.indptr))
            filled = np.where(np.isnan(candidates.scores), -np.inf, candidates.scores)
            best[occupied] = np.maximum.reduceat(filled, candidates.indptr[occupied], axis=0)
        distance = candidates.scores - best[candidates.rows]
        frequency = np.log1p(counts).astype(np.float32)
        votes = (~np.isnan(candidates.ranks)).sum(axis=1).astype(np.float32)
        return np.ascontiguousarray(
            np.column_stack([candidates.scores, distance, candidates.ranks, frequency, votes, described]),
            dtype=np.float32,
        )

    def _check_state(self) -> None:
        super()._check_state()
        if self.evidence_ is not None:
            check_kind("evidence_", self.evidence_, Evidence).check(self._n_seen, self.n_labels_)
        kind = BoostedTrees if self.evidence_ is None else SmoothedTrees
        check_kind("trees_", self.trees_, kind).check(len(self._inputs()))

    def _score(self, X: sparse.csr_array, candidates: Candidates) -> np.ndarray:
        return self.trees_.probabilities(self._features_of(X, candidates), self.n_jobs)

    def _features_of(self, X: sparse.csr_array, candidates: Candidates) -> np.ndarray:
        """:meth:`_features` of candidates for new rows."""
        described = describe(self.members_, X, candidates)
        described = self._with_evidence(described, self.evidence_, X, candidates)
        return self._features(candidates, described, self.label_counts_[candidates.labels])

    def _inputs(self) -> list[str]:
        """What :meth:`_features` has in each column."""
        names = [member.title for member in self.members_]
        return [
            *(f"score of {name}" for name in names),
            *(f"distance of {name}'s score to the row's best" for name in names),
            *(f"rank by {name}" for name in names),
            "training frequency of the label",
            "number of members that name the label",
            *(what for member in self.members_ for what in member.pair_inputs()),
            *([] if self.evidence_ is None else self.evidence_.names),
        ]

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        candidates = self._candidates(x)
        features = self._features_of(x, candidates)
        (chosen,) = np.nonzero(candidates.labels == label)
        if not chosen.size:
            return not_ranked(label, "no member names the label")
        start, shares = self.trees_.contributions(features[chosen[0]])
        parts = [Part("log-odds before any input is known", start)]
        for number, (name, share) in enumerate(zip(self._inputs(), shares, strict=True)):
            is_score = number < len(self.members_) and not np.isnan(candidates.scores[chosen[0], number])
            parts.append(Part(name, float(share), of=self.members_[number].explain(x, label) if is_score else None))
        odds = Explanation.sum_of(label, parts)
        return odds.then("probability 1/(1 + e^-s) of the log-odds s", float(expit(odds.score)))
