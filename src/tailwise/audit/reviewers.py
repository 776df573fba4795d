"""How far reviewers can be trusted: their agreement, and the error rates that agreement and answers tell."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailwise.validation import as_rng

_RATES = 0.3 * np.linspace(0.0, 1.0, 34)[1:] ** 2
_SHARES = np.linspace(0.005, 0.995, 67)
_PRIOR = 9.5
_GROUPS = 6


class ErrorRates(NamedTuple):
    """What is known of the reviewers' mistakes: a grid of both rates with the probability of each.

    ``wrong_yes`` is the rate of yes to labels that are wrong, ``wrong_no`` that of no to labels that are right.
    """

    grid: np.ndarray
    """(n, 2): wrong_yes and wrong_no of each point."""
    probability: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """(2,) expected wrong_yes and wrong_no."""
        return self.probability @ self.grid

    def draw(self, n: int, random_state: Any) -> np.ndarray:
        """(n, 2) rates drawn by their probability."""
        return self.grid[as_rng(random_state).choice(self.probability.size, n, p=self.probability)]

    def interval(self, confidence: float) -> np.ndarray:
        """(2, 2): low and high of wrong_yes and of wrong_no."""
        found = []
        for values in self.grid.T:
            order = np.argsort(values, kind="stable")
            below = np.cumsum(self.probability[order])
            found.append([values[order][np.searchsorted(below, level)] for level in _levels(confidence)])
        return np.array(found)


def _levels(confidence: float) -> tuple[float, float]:
    return (1 - confidence) / 2, (1 + confidence) / 2


def cohens_kappa(first: np.ndarray, second: np.ndarray) -> float:
    """Agreement of two reviewers beyond chance on the pairs that both judged: 1 is perfect, 0 is chance.

    ``kappa = (o - e) / (1 - e)`` with o the share of equal verdicts and e that expected from how often each says
    what. Here "first" and "second" are whoever came first and second, so e is made of both together (Scott's form
    where the two are exchangeable). NaN without pairs.

    >>> cohens_kappa(np.array([1, 1, 0, 0]), np.array([1, 1, 0, 1])).round(3)
    np.float64(0.467)
    """
    if not first.size:
        return float("nan")
    both = np.concatenate([first, second])
    expected = sum(float((both == verdict).mean()) ** 2 for verdict in np.unique(both))
    observed = float((first == second).mean())
    return np.float64((observed - expected) / (1 - expected)) if expected < 1 else np.float64(1.0)


def error_rates(yes: np.ndarray, answers: np.ndarray, group: np.ndarray) -> ErrorRates:
    """The rates of wrong yes and wrong no, from questions of which some were answered twice.

    A question of group g is right with an unknown share m_g; each answer is wrong by itself with the same two rates.
    Then a single yes has probability ``m (1 - wrong_no) + (1 - m) wrong_yes``, and of two answers both, one or none
    are yes with probabilities of the same kind (the model of Hui and Walter). Doubles tell how often answers differ;
    groups of which nearly none or nearly all is right tell which of the two mistakes it is. Shares are integrated out;
    before any answer, rates are small: density ``19 (1 - e)^18``, mean 5 %.

    Parameters
    ----------
    yes, answers : (n,) int
        How many of a question's answers (1 or 2) said yes.
    group : (n,) int
        Groups of questions that differ in how many are right: recorded pairs, and others by their score.
    """
    e0, e1 = (rate.ravel() for rate in np.meshgrid(_RATES, _RATES, indexing="ij"))
    share = _SHARES[:, None]
    log = (_PRIOR - 1) * (np.log1p(-e0) + np.log1p(-e1))
    for g in np.unique(group):
        own = group == g
        likelihood = np.zeros((_SHARES.size, e0.size))
        for n in (1, 2):
            for k in range(n + 1):
                count = int(((yes == k) & (answers == n) & own).sum())
                if count:
                    right = (1 - e1) ** k * e1 ** (n - k)
                    wrong = e0**k * (1 - e0) ** (n - k)
                    likelihood += count * np.log(share * right + (1 - share) * wrong)
        top = likelihood.max(axis=0)
        log = log + top + np.log(np.exp(likelihood - top).sum(axis=0))
    probability = np.exp(log - log.max())
    return ErrorRates(np.column_stack([e0, e1]), probability / probability.sum())


def question_groups(recorded: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Recorded pairs as one group, the others in six by their chance to be right: (n,) int."""
    group = np.zeros(recorded.size, np.int64)
    others = np.flatnonzero(~recorded)
    order = others[np.argsort(chance[others], kind="stable")]
    group[order] = 1 + np.arange(order.size) * _GROUPS // max(order.size, 1)
    return group
