"""Which pairs people are asked about, and with what probability each could have been chosen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailwise.audit.pool import FLOOR, STRATA, TOP, Pool, most_probable
from tailwise.errors import InvalidInput
from tailwise.validation import as_rng

QUESTIONS = 500
CERTAIN = 0.3
"""Share of a stratum's questions that are its best pairs: labels that are found are worth having too."""
RECORDED = 0.2
"""Share of questions about recorded pairs: are they right?"""
DOUBLES = 0.2
"""Share of questions that two reviewers answer."""
POWER = 0.75


class Questions(NamedTuple):
    """Pairs in the order in which they are asked, which is random: whoever stops early leaves a smaller sample.

    ``rows, labels`` (n,) name the pair; ``recorded`` says whether the data have it, ``stratum`` its place in
    :data:`STRATA`; ``probability`` is π, the probability with which the pair was drawn, 1 in the certainty part;
    ``size`` what it was made of (:func:`draw_questions`), ``place`` the label's rank in its row, ``seen`` how often its
    model had seen the label; ``double`` says that two reviewers are asked.
    """

    rows: np.ndarray
    labels: np.ndarray
    recorded: np.ndarray
    stratum: np.ndarray
    probability: np.ndarray
    size: np.ndarray
    place: np.ndarray
    seen: np.ndarray
    double: np.ndarray

    @property
    def cell(self) -> np.ndarray:
        """(n,) which part of the pool each pair stands for: see :class:`Cells`."""
        part = np.where(self.recorded, 2, np.where(self.probability >= 1, 0, 1))
        return self.stratum * 3 + part


class Cells(NamedTuple):
    """What each part of a stratum adds up to: (3 strata × certain, sampled, recorded) arrays."""

    pairs: np.ndarray
    """How many pairs it has."""
    size: np.ndarray
    """The sum of their sizes."""


def draw_questions(
    pool: Pool,
    n_questions: int = QUESTIONS,
    *,
    certain: float = CERTAIN,
    recorded: float = RECORDED,
    doubles: float = DOUBLES,
    floor: float = FLOOR,
    random_state: Any = 0,
) -> tuple[Questions, Cells]:
    """Draw about ``n_questions`` pairs: in each stratum its best ones, and a Poisson sample of the others.

    Strata share the unrecorded questions equally, as far as they have pairs. A pair of the sample is drawn on its own
    with ``π = min(1, c size^0.75)``, where size is its part in what is estimated, by its chance to be a missing label,
    taken as at least ``floor``; c makes the expected number right, so the number drawn differs a little. Recorded pairs
    are drawn alike, each with the same π within its stratum.
    """
    if not pool.rows.size:
        raise InvalidInput("no unrecorded pair is likely enough to be asked about; lower the floor or widen the pool")
    rng = as_rng(random_state)
    strata, own = pool.strata[pool.labels], pool.strata[pool.recorded_labels]
    n_recorded = round(recorded * n_questions)
    missing = np.maximum(pool.missing.astype(np.float64), floor)
    size = _sizes(pool, strata, missing)
    probability = np.zeros(size.size)
    for s, n in enumerate(_shares(n_questions - n_recorded, np.bincount(strata, minlength=len(STRATA)))):
        members = np.flatnonzero(strata == s)
        best = members[most_probable(missing[members], pool.chance[members])]
        probability[best] = _inclusion(size[best], n, round(certain * n))
    chance = np.zeros(own.size)
    for s, n in enumerate(_shares(n_recorded, np.bincount(own, minlength=len(STRATA)))):
        chance[own == s] = n / max(int((own == s).sum()), 1)
    drawn, kept = (np.flatnonzero(rng.random(p.size) < p) for p in (probability, chance))
    if not drawn.size:
        raise InvalidInput(f"n_questions={n_questions} drew no unrecorded pair; ask more questions")
    questions = Questions(
        rows=np.concatenate([pool.rows[drawn], pool.recorded_rows[kept]]),
        labels=np.concatenate([pool.labels[drawn], pool.recorded_labels[kept]]),
        recorded=np.repeat([False, True], [drawn.size, kept.size]),
        stratum=np.concatenate([strata[drawn], own[kept]]),
        probability=np.concatenate([probability[drawn], chance[kept]]),
        size=np.concatenate([size[drawn], np.ones(kept.size)]),
        place=np.concatenate([pool.place[drawn], pool.recorded_place[kept]]),
        seen=np.concatenate([pool.seen[drawn], pool.recorded_seen[kept]]),
        double=np.zeros(drawn.size + kept.size, bool),
    )
    order = rng.permutation(questions.rows.size)
    twice = rng.permutation(order.size) < round(doubles * order.size)
    questions = Questions(*(part[order] for part in questions))._replace(double=twice)
    return questions, _cells(strata, probability, size, own)


def _sizes(pool: Pool, strata: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """(n_pairs,) what each pair is expected to bring, as a share of its stratum, to the two things that are estimated:
    the number of missing labels, where a rare one stands for many that the pool does not hold, and those among a row's
    first places, of which true precision is made.
    """
    size = np.zeros(missing.size)
    for counts in (pool.beyond(pool.labels, pool.seen), pool.place < TOP):
        brings = missing * counts
        total = np.bincount(strata, brings, minlength=len(STRATA))
        size += brings / np.maximum(total, 1e-300)[strata]
    return size


def _shares(n: int, available: np.ndarray) -> np.ndarray:
    """``n`` divided equally among those that have enough; what one lacks the others get."""
    share = np.zeros(available.size)
    open_ones = available > 0
    while open_ones.any() and n - share.sum() > 1e-9:
        share[open_ones] += (n - share.sum()) / open_ones.sum()
        full = share >= available
        share[full] = available[full]
        open_ones &= ~full
    return share


def _inclusion(size: np.ndarray, n: float, n_certain: int) -> np.ndarray:
    """Probabilities whose sum is ``n``: 1 for the first ``n_certain`` pairs, else ``min(1, c size^0.75)``."""
    certain = min(n_certain, size.size)
    order = np.concatenate([np.arange(certain), certain + np.argsort(-size[certain:], kind="stable")])
    probability, weight = np.zeros(size.size), size[order] ** POWER
    while certain < size.size:
        rest = weight[certain:]
        scaled = rest * (max(n - certain, 0.0) / rest.sum())
        above = int(np.searchsorted(-scaled, -1.0, side="right"))
        if not above:
            probability[order[certain:]] = scaled
            break
        certain += above
    probability[order[:certain]] = 1.0
    return probability


def _cells(strata: np.ndarray, probability: np.ndarray, size: np.ndarray, own: np.ndarray) -> Cells:
    cell = strata * 3 + (probability < 1)
    kept = own * 3 + 2
    n = 3 * len(STRATA)
    pairs = np.bincount(cell, minlength=n) + np.bincount(kept, minlength=n)
    return Cells(pairs.astype(np.int64), np.bincount(cell, size, minlength=n) + np.bincount(kept, minlength=n))
