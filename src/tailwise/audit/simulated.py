"""Reviewers who know the truth and sometimes err: what experiments and tests ask in place of people."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.audit.answers import Answers
from tailwise.audit.drawing import Questions
from tailwise.tail.candidates import is_hit
from tailwise.validation import as_rng, check_number


def simulate_answers(
    questions: Questions,
    Y_complete: sparse.csr_array,
    *,
    wrong_yes: float = 0.0,
    wrong_no: float = 0.0,
    unsure: float = 0.0,
    n_reviewers: int = 2,
    random_state: Any = 0,
) -> Answers:
    """Answers to all questions, doubles by two reviewers, from reviewers who say no to a right label with probability
    ``wrong_no``, yes to a wrong one with ``wrong_yes``, and that they are unsure with ``unsure``.
    """
    for name, value in (("wrong_yes", wrong_yes), ("wrong_no", wrong_no), ("unsure", unsure)):
        check_number(name, value, low=0, high=1)
    rng = as_rng(random_state)
    n = questions.rows.size
    number = np.concatenate([np.arange(n), np.flatnonzero(questions.double)])
    first = rng.integers(n_reviewers, size=n)
    reviewer = np.concatenate([first, (first[questions.double] + 1) % n_reviewers])
    right = is_hit(questions.labels[number], Y_complete, questions.rows[number])
    mistaken = rng.random(number.size) < np.where(right, wrong_no, wrong_yes)
    verdict = np.where(rng.random(number.size) < unsure, -1, right ^ mistaken).astype(np.int8)
    return Answers(number, verdict, reviewer)
