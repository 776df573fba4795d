"""Which labels that a text names does it have? :class:`MatchedNames` learns it from what is known of each find."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from tailwise.base import TopK, XMCModel
from tailwise.changes import Change
from tailwise.errors import InvalidInput
from tailwise.explanation import Explanation, Part, not_ranked
from tailwise.kernels.text.names import COUNT, N_FACTS
from tailwise.parameters import Integer, Number
from tailwise.persistence.checks import check_exact, check_kind, check_range, check_that
from tailwise.tail.boosting import BoostedTrees
from tailwise.tail.candidates import Candidates, is_hit
from tailwise.tail.folds import split_folds
from tailwise.text.matcher import FACTS
from tailwise.validation import as_rng, as_seed

_PRIOR, _STRENGTH = 0.02, 5.0
"""How often a found name is right before anything is known of its label, and how many finds that is worth."""

_FOLDS = 5

INPUTS = (*FACTS, "share of finds that were right in training", "finds in training", "training frequency of the label")
"""What a find is judged by, in order."""


class Found(NamedTuple):
    """The labels found in each row, ascending, with their facts (n, N_FACTS) float32."""

    indptr: np.ndarray
    labels: np.ndarray
    facts: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """The row of each find."""
        return np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))


class MatchedNames(XMCModel):
    """Learns which of the labels whose names a text holds are right; also labels without a single training row.

    Reads the columns of :class:`~tailwise.LabelMatcher`, 15 a label. Gradient boosting over what is known of a find and
    how often finds of the label were right on other training rows. Label numbers are no input, so what was learnt on
    frequent labels holds for those never seen. Only found labels get a score, which is a probability.

    Parameters
    ----------
    n_pairs : int
        About how many finds to learn from: of wrong ones a share is drawn, weighted by its inverse.
    max_iter, learning_rate, max_leaf_nodes : int, float, int
        Of the boosting.
    random_state : int or None
        Draws the wrong finds and seeds the boosting.
    n_jobs : int or None
        Threads for evaluating the trees.

    Examples
    --------
    >>> from tailwise import LabelMatcher, Tagger
    >>> texts, labels = ["sea law", "law of fish", "fish in the sea"] * 20, [["sea"], ["fish"], ["fish", "sea"]] * 20
    >>> tagger = Tagger(MatchedNames(random_state=0), features=LabelMatcher(language="en")).fit(texts, labels)
    >>> [s.name for s in tagger.suggest(["the sea"], k=2)[0]]
    ['sea']
    """

    _parameters = {
        "n_pairs": Integer(low=1),
        "max_iter": Integer(low=1),
        "learning_rate": Number(low=0, open_low=True),
        "max_leaf_nodes": Integer(low=2),
    }
    scores_are_probabilities = True

    trees_: BoostedTrees
    found_: np.ndarray
    right_: np.ndarray

    def __init__(
        self,
        n_pairs: int = 200_000,
        *,
        max_iter: int = 150,
        learning_rate: float = 0.1,
        max_leaf_nodes: int = 31,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_pairs = n_pairs
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        self._check_columns()
        found = self._finds(X)
        rows = found.rows
        hits = is_hit(found.labels, Y, rows)
        kept, weights = self._sample(hits)
        if weight is not None:
            weights = weights * weight[rows[kept]]
        # What is told of a row's finds comes from rows of other folds. Leaving out the find alone would not do: a right
        # one would then be known by its label's count, which is one less than for the wrong ones.
        folds = split_folds(Y, min(_FOLDS, Y.shape[0]), self.random_state)
        inputs = np.empty((kept.size, len(INPUTS)), np.float32)
        for fold in range(folds.counts.shape[0]):
            own = folds.fold[rows] == fold
            history = self._history(found, hits, ~own)
            chosen = np.flatnonzero(own[kept])
            inputs[chosen] = _inputs(found, kept[chosen], *history, folds.counts[fold])
        self.found_, self.right_ = self._history(found, hits, np.ones(hits.size, bool))
        seed = as_seed(self.random_state)
        self.trees_ = BoostedTrees.fit(
            inputs,
            hits[kept],
            weights,
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.max_leaf_nodes,
            random_state=seed,
        )

    def _update(self, change: Change) -> int:
        # What makes a find right changes slowly: the trees stay, and how often each label was found is counted again.
        # Labels that are new have no columns, and are not looked for.
        found = self._finds(change.X)
        hits = is_hit(found.labels, change.Y, found.rows)
        self.found_, self.right_ = self._history(found, hits, np.ones(hits.size, bool))
        return 0

    def _check_columns(self) -> None:
        if self.n_features_in_ != N_FACTS * self.n_labels_:
            raise InvalidInput(
                f"X has {self.n_features_in_:,} columns, but MatchedNames reads {N_FACTS} for each of "
                f"{self.n_labels_:,} labels; make them with LabelMatcher(), and choose them with "
                "Columns(MatchedNames(), group='names')"
            )

    def _finds(self, X: sparse.csr_array) -> Found:
        """The labels that have a fact, row by row."""
        row = np.repeat(np.arange(X.shape[0], dtype=np.int64), np.diff(X.indptr))
        pair = row * self.n_labels_ + X.indices // N_FACTS
        first = np.append(True, pair[1:] != pair[:-1]) if pair.size else np.empty(0, bool)
        number = np.cumsum(first) - 1
        facts = np.zeros((int(first.sum()), N_FACTS), np.float32)
        facts[number, X.indices % N_FACTS] = X.data
        pairs = pair[first]
        indptr = np.searchsorted(pairs // self.n_labels_, np.arange(X.shape[0] + 1)).astype(np.int64)
        return Found(indptr, (pairs % self.n_labels_).astype(np.int32), facts)

    def _sample(self, hits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The finds to learn from, (n_kept,) positions, and their weights."""
        n_right = int(hits.sum())
        share = min(1.0, max(0.05, (self.n_pairs - n_right) / max(1, hits.size - n_right)))
        kept = np.flatnonzero(hits | (as_rng(self.random_state).random(hits.size) < share))
        return kept, np.where(hits[kept], 1.0, 1.0 / share)

    def _history(self, found: Found, hits: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How often each label was found and was right, (2, n_labels) each: within compounds only, and by itself."""
        places = (_is_whole(found.facts) * self.n_labels_ + found.labels)[used]
        size = 2 * self.n_labels_
        n_found, n_right = np.bincount(places, minlength=size), np.bincount(places, hits[used], minlength=size)
        return n_found.reshape(2, -1), n_right.reshape(2, -1).astype(np.int64)

    def _inputs(self, found: Found, chosen: np.ndarray) -> np.ndarray:
        return _inputs(found, chosen, self.found_, self.right_, self.label_counts_)

    def _check_state(self) -> None:
        super()._check_state()
        for name in ("found_", "right_"):
            counts = check_exact(name, getattr(self, name), np.int64, (2, self.n_labels_))
            check_range(name, counts, 0)
        n_named, rest = divmod(self._n_seen, N_FACTS)
        check_that(not rest and n_named <= self.n_labels_, f"{self._n_seen:,} columns are not {N_FACTS} a label")
        check_kind("trees_", self.trees_, BoostedTrees).check(len(INPUTS))

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        found = self._finds(X)
        scores = self.trees_.probabilities(self._inputs(found, np.arange(found.labels.size)), self.n_jobs)
        nothing = np.empty((found.labels.size, 0), np.float32)
        return Candidates(found.indptr, found.labels, nothing, nothing).best(scores, k)

    def _pair_inputs(self) -> tuple[str, ...]:
        return INPUTS

    def _describe_pairs(self, X: sparse.csr_array, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        found = self._finds(X)
        known = found.rows * self.n_labels_ + found.labels
        asked = rows.astype(np.int64) * self.n_labels_ + labels
        described = np.full((asked.size, len(INPUTS)), np.nan, np.float32)
        if known.size:
            place = np.minimum(np.searchsorted(known, asked), known.size - 1)
            there = known[place] == asked
            described[there] = self._inputs(found, place[there])
        return described

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        found = self._finds(x)
        (chosen,) = np.nonzero(found.labels == label)
        if not chosen.size:
            return not_ranked(label, "no name of the label is found")
        start, shares = self.trees_.contributions(self._inputs(found, chosen)[0])
        parts = [Part("log-odds before anything is known of the find", start)]
        columns = [*(label * N_FACTS + fact for fact in range(N_FACTS)), *(-1 for _ in INPUTS[N_FACTS:])]
        parts += [Part(name, float(share), column) for name, share, column in zip(INPUTS, shares, columns, strict=True)]
        odds = Explanation.sum_of(label, parts)
        return odds.then("probability 1/(1 + e^-s) of the log-odds s", float(expit(odds.score)))


def _inputs(
    found: Found, chosen: np.ndarray, n_found: np.ndarray, n_right: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """The inputs of chosen finds, (n_chosen, 18) float32, as :data:`INPUTS` has them."""
    facts, labels = found.facts[chosen], found.labels[chosen]
    whole = _is_whole(facts).astype(np.int64)
    n_found, n_right = n_found[whole, labels], n_right[whole, labels]
    share = (n_right + _PRIOR * _STRENGTH) / (n_found + _STRENGTH)
    return np.column_stack([facts, share, n_found, np.log1p(counts[labels])]).astype(np.float32)


def _is_whole(facts: np.ndarray) -> np.ndarray:
    """Whether a name was found as words of its own, which is right more often than within compounds."""
    return facts[:, COUNT] > 0
