"""Which unrecorded pairs (row, label) may be missing labels: scored by models that did not learn from the row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.metrics import label_slices
from tailwise.tail.calibrated import calibrate, fit_curves, frequency_edges
from tailwise.tail.candidates import gather_candidates
from tailwise.tail.folds import Folds, out_of_fold, split_folds
from tailwise.validation import as_rng, label_counts

STRATA = ("head", "torso", "tail")
"""Labels by how often training rows have them, as metrics slice them."""
TOP = 5
"""Places of a row that are always in the pool, however unlikely: true P@1 to P@5 need no assumption then."""
WIDTH = 100
"""Labels of a row that are looked at."""
FLOOR = 0.1
"""Pairs that are missing labels with a smaller chance are not asked about, unless they stand among the first places."""

_BINS = 5
_BORROWED = 20
"""So many pairs' worth of the bin before it keeps a handful of pairs from saying 0, by which weights are divided."""
_LEAST_REACH = 0.01
_REACH_EDGES = np.array([2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 1024])


class Pool(NamedTuple):
    """The unrecorded pairs that questions are drawn from, and what is known of the rest.

    A pair is in the pool if the model ranks the label among the first :data:`TOP` of the row, or within the width with
    a chance of at least the floor. ``rows, labels, chance, missing, place, seen`` (n_pairs,): the pair, the calibrated
    probability q that it is recorded, the probability that it is missing, its 0-based rank in the row, and how many
    rows with the label the model that scored it had learned from.

    Missing labels outside the pool are never asked about. How many there are, recorded labels tell: the model that
    scored a row knows neither its recorded nor its missing labels, so if labels go missing regardless of the row, both
    are in the pool equally often. ``reach`` (n_bins,) is the share of recorded pairs in the pool, by ``seen``.
    """

    rows: np.ndarray
    labels: np.ndarray
    chance: np.ndarray
    missing: np.ndarray
    place: np.ndarray
    seen: np.ndarray
    recorded_rows: np.ndarray
    """The recorded pairs, by row: (n_recorded,), as ``recorded_labels``, ``recorded_place``, ``recorded_seen``."""
    recorded_labels: np.ndarray
    recorded_place: np.ndarray
    """The rank of a recorded pair in its row, -1 outside the width."""
    recorded_seen: np.ndarray
    label_counts: np.ndarray
    """(n_labels,) training rows of each label."""
    n_samples: int
    """Training rows."""
    n_rows: int
    """Rows that are audited."""
    counts_own: bool
    """Whether the audited rows are among the training rows, so that a recorded pair counts in its label's frequency."""
    seen_share: np.ndarray
    """(n_labels,) share of the rows whose model has seen the label at all."""
    reach: np.ndarray

    @property
    def recorded_elsewhere(self) -> np.ndarray:
        """(n_recorded,): how many training rows but its own have the label of each recorded pair."""
        return self.label_counts[self.recorded_labels] - int(self.counts_own)

    @property
    def strata(self) -> np.ndarray:
        """(n_labels,) int8: the place in :data:`STRATA` of each label."""
        return strata_of(self.label_counts)

    def reach_of(self, seen: np.ndarray) -> np.ndarray:
        """The share of the pairs of labels ``seen`` so often that the pool holds; NaN where nobody can know."""
        return np.where(seen > 0, self.reach[np.searchsorted(_REACH_EDGES, seen, side="right")], np.nan)

    def find(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(n,) which of the unrecorded pairs each (row, label) is; -1 for those that the pool does not hold."""
        keys, wanted = (
            r.astype(np.int64) * self.label_counts.size + c for r, c in ((self.rows, self.labels), (rows, labels))
        )
        place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        return np.where(keys[place] == wanted, place, -1)

    def beyond(self, labels: np.ndarray, seen: np.ndarray, reach: np.ndarray | None = None) -> np.ndarray:
        """How many missing labels each missing one of the pool stands for, with those that the pool does not hold.

        ``labels`` (n,) and how often the model that scored the pair had ``seen`` them. ``reach`` in place of the
        estimate may have replicates: (B, n_bins) gives (B, n).
        """
        bins = np.searchsorted(_REACH_EDGES, np.maximum(seen, 1), side="right")
        return 1.0 / np.maximum((self.reach if reach is None else reach)[..., bins] * self.seen_share[labels], 1e-9)

    def varied_reach(self, n_replicates: int, random_state: Any) -> np.ndarray:
        """(1 + B, n_bins): the reach, and B draws of what it may be, given how many recorded pairs tell it."""
        bins = np.searchsorted(_REACH_EDGES, self.recorded_seen[self.recorded_seen > 0], side="right")
        n = np.bincount(bins, minlength=self.reach.size) + _BORROWED
        drawn = as_rng(random_state).beta(n * self.reach, n * (1 - self.reach) + 1e-9, (n_replicates, n.size))
        return np.vstack([self.reach, np.maximum(drawn, _LEAST_REACH)])

    def reach_by_stratum(self) -> dict[str, float]:
        """The share of the recorded pairs of each stratum that the pool holds, with labels never seen outside it."""
        strata = self.strata[self.recorded_labels]
        found = np.where(self.recorded_seen > 0, self.reach_of(self.recorded_seen), 0.0)
        return {
            name: float(found[strata == s].mean()) if (strata == s).any() else np.nan for s, name in enumerate(STRATA)
        }


def strata_of(counts: np.ndarray) -> np.ndarray:
    """(n_labels,) int8: 0 head, 1 torso, 2 tail."""
    slices = label_slices(counts)
    return np.select([slices[name] for name in STRATA], list(range(len(STRATA)))).astype(np.int8)


def missing_chance(chance: np.ndarray, propensity: np.ndarray) -> np.ndarray:
    """P(the label is right but missing | it is not recorded), from q = P(recorded) and the propensity p.

    ``(r - q) / (1 - q)`` with ``r = min(1, q / p)`` the probability that the label is right.

    >>> missing_chance(np.array([0.0, 0.25, 0.5]), np.array([0.5, 0.5, 0.5])).round(3)
    array([0.   , 0.333, 1.   ])
    """
    right = np.minimum(1.0, chance / propensity)
    return np.where(chance < 1, (right - chance) / np.maximum(1.0 - chance, 1e-12), 0.0)


def most_probable(missing: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Pairs by their chance to be missing, largest first; of those that are equal, as all of 1 are, by q.

    >>> most_probable(np.array([1.0, 0.2, 1.0]), np.array([0.3, 0.1, 0.9]))
    array([2, 0, 1])
    """
    return np.lexsort((np.arange(missing.size), -chance, -missing))


def make_pool(
    model: XMCModel,
    X: Any,
    Y: sparse.csr_array,
    propensity: np.ndarray,
    *,
    width: int = WIDTH,
    floor: float = FLOOR,
    n_folds: int = 3,
    random_state: Any = 0,
) -> Pool:
    """The pool of rows that ``model`` may have learned from: it is cloned and trained on the others, ``n_folds`` times.

    ``propensity`` (n_labels,) is a guess; a wrong one makes questions less telling, never the answer wrong.
    """
    folds = split_folds(Y, n_folds, random_state)
    top = out_of_fold(model, X, Y, min(width, Y.shape[1]), folds)
    return _pool(top, Y, folds, propensity, label_counts(Y), Y.shape[0], True, floor)


def make_pool_of_new_rows(
    model: XMCModel,
    X: Any,
    Y: sparse.csr_array,
    propensity: np.ndarray,
    n_samples: int,
    *,
    width: int = WIDTH,
    floor: float = FLOOR,
) -> Pool:
    """The pool of rows that the fitted ``model``, trained on ``n_samples`` others, has never seen: nothing is trained.

    ``Y`` may have more columns than the model has labels: labels that training did not have.
    """
    n_labels = Y.shape[1]
    top = model.predict_topk(X, min(width, model.n_labels_))
    counts = np.zeros(n_labels, np.int64)
    counts[: model.n_labels_] = model.label_counts_
    folds = Folds(np.zeros(Y.shape[0], np.int32), counts[None])
    return _pool(top, Y, folds, propensity, counts, n_samples, False, floor)


def _pool(
    top: TopK,
    Y: sparse.csr_array,
    folds: Folds,
    propensity: np.ndarray,
    counts: np.ndarray,
    n_samples: int,
    counts_own: bool,
    floor: float,
) -> Pool:
    candidates = gather_candidates([top], Y.shape[1])
    rows, labels = candidates.rows.astype(np.int32), candidates.labels
    seen, hits = folds.counts_seen(rows, labels), candidates.are_hits(Y)
    scores, place = candidates.scores[:, 0], candidates.ranks[:, 0].astype(np.int32)
    edges = frequency_edges(seen, _BINS)
    chance = calibrate(edges, fit_curves(edges, seen, scores, hits, "isotonic"), seen, scores)
    missing = missing_chance(chance.astype(np.float64), propensity[labels])
    inside = (missing >= floor) | (place < TOP)
    own = np.repeat(np.arange(Y.shape[0], dtype=np.int32), np.diff(Y.indptr))
    recorded_seen = folds.counts_seen(own, Y.indices)
    keys = rows[hits].astype(np.int64) * Y.shape[1] + labels[hits]
    found = np.searchsorted(own.astype(np.int64) * Y.shape[1] + Y.indices, keys)
    recorded_place, reached = np.full(Y.nnz, -1, np.int32), np.zeros(Y.nnz, bool)
    recorded_place[found], reached[found] = place[hits], inside[hits]
    chosen = inside & ~hits
    return Pool(
        rows=rows[chosen],
        labels=labels[chosen],
        chance=chance[chosen],
        missing=missing[chosen].astype(np.float32),
        place=place[chosen],
        seen=seen[chosen],
        recorded_rows=own,
        recorded_labels=Y.indices.astype(np.int32),
        recorded_place=recorded_place,
        recorded_seen=recorded_seen,
        label_counts=counts,
        n_samples=n_samples,
        n_rows=Y.shape[0],
        counts_own=counts_own,
        seen_share=_seen_share(folds),
        reach=_reach(recorded_seen, reached),
    )


def _seen_share(folds: Folds) -> np.ndarray:
    sizes = np.bincount(folds.fold, minlength=folds.counts.shape[0])
    return (folds.counts > 0).T @ (sizes / sizes.sum())


def _reach(seen: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """Share reached by bins of ``seen``; a bin with few recorded pairs leans on the bins before it."""
    bins = np.searchsorted(_REACH_EDGES, seen[seen > 0], side="right")
    n = np.bincount(bins, minlength=_REACH_EDGES.size + 1).astype(float)
    found = np.bincount(bins, reached[seen > 0], minlength=_REACH_EDGES.size + 1)
    share, before = np.empty(n.size), found.sum() / max(n.sum(), 1.0)
    for b in range(n.size):
        share[b] = before = (found[b] + _BORROWED * before) / (n[b] + _BORROWED)
    return np.maximum(share, _LEAST_REACH)
