"""How many pairs each answer stands for, in the estimate itself and in its bootstrap replicates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailwise.audit.answers import Answers, judged
from tailwise.audit.drawing import Questions
from tailwise.audit.plan import Plan
from tailwise.audit.reviewers import ErrorRates, error_rates, question_groups
from tailwise.errors import InvalidInput
from tailwise.validation import as_rng


class Weighed(NamedTuple):
    """Answered questions with their weights: arrays of shape (1 + B, n), the estimate first, then B replicates.

    ``said`` (n,) is the share of a question's answers that are yes, ``right`` that, corrected for the reviewers'
    mistakes; ``weight`` how many pairs of its part of the pool the question stands for. ``Σ weight · right`` over
    unrecorded pairs is the number of missing labels in the pool.
    ``beyond`` is by how much that grows with the pairs outside the pool.
    """

    questions: Questions
    said: np.ndarray
    right: np.ndarray
    weight: np.ndarray
    beyond: np.ndarray
    errors: ErrorRates

    @property
    def missing(self) -> np.ndarray:
        """(1 + B, n): how many missing labels of the pool each unrecorded question stands for; 0 for recorded ones."""
        return self.weight * self.right * ~self.questions.recorded


def weigh(plan: Plan, answers: Answers, n_bootstrap: int, random_state: Any = 0) -> Weighed:
    """Weigh the answers: Hájek's estimator in every cell of the plan, resampling whole records.

    A pair drawn with probability π stands for 1/π pairs (Horvitz and Thompson). Within a cell the weights are scaled
    such that they give the cell's known sum of sizes (Hájek): that takes out the luck of how many pairs were drawn
    and, because the order of questions is random, makes up for those not answered or answered with "unsure". With
    rates e0 of wrong yes and e1 of wrong no, ``(answer - e0) / (1 - e0 - e1)`` has the right mean (Rogan and Gladen).

    A replicate gives every record a weight drawn from the exponential distribution, with all its questions (the
    Bayesian bootstrap over records), and rates of mistakes drawn from what is known of them.
    """
    asked = plan.questions
    done = judged(answers, asked.rows.size)
    if not done.question.size:
        raise InvalidInput("no question was answered with yes or no; answer some first")
    mine = Questions(*(part[done.question] for part in asked))
    errors = error_rates(done.yes, done.answers, question_groups(mine.recorded, _chance(plan, mine)))
    rng = as_rng(random_state)
    records, record = np.unique(mine.rows, return_inverse=True)
    luck = np.vstack([np.ones(records.size), rng.exponential(size=(n_bootstrap, records.size))])[:, record]
    rates = np.vstack([errors.mean, errors.draw(n_bootstrap, rng)])
    said = done.yes / done.answers
    right = (said - rates[:, :1]) / (1.0 - rates.sum(axis=1, keepdims=True))
    weight = luck / mine.probability
    for cell in np.unique(mine.cell):
        own = mine.cell == cell
        weight[:, own] *= plan.cells.size[cell] / (weight[:, own] @ mine.size[own])[:, None]
    beyond = plan.pool.beyond(mine.labels, mine.seen, plan.pool.varied_reach(n_bootstrap, rng))
    return Weighed(mine, said, right, weight, beyond, errors)


def _chance(plan: Plan, mine: Questions) -> np.ndarray:
    """(n,) the chance to be a missing label that the plan gave to each pair; that of recorded ones means nothing."""
    return plan.pool.missing[plan.pool.find(mine.rows, mine.labels)]
