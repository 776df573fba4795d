"""What people answered, as arrays beside a plan's questions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

VERDICTS = {"no": 0, "yes": 1, "unsure": -1}
"""What may be answered: the label does not belong to the record, it does, the reviewer cannot say."""


class Answers(NamedTuple):
    """Answers that stand: the number of the ``question``, its ``verdict`` (1 yes, 0 no, -1 unsure), the ``reviewer``.

    Arrays of one length, in the order in which answers came.
    """

    question: np.ndarray
    verdict: np.ndarray
    reviewer: np.ndarray

    @classmethod
    def of(cls, question: object, verdict: object, reviewer: object = 0) -> Answers:
        """Answers from anything array-like; one reviewer stands for all.

        >>> Answers.of([0, 2], [1, 0]).reviewer.tolist()
        [0, 0]
        """
        number = np.asarray(question, np.int64)
        return cls(number, np.asarray(verdict, np.int8), np.broadcast_to(np.asarray(reviewer), number.shape))


class Judged(NamedTuple):
    """Questions with at least one yes or no: their numbers, how many answers each has, how many of them are yes."""

    question: np.ndarray
    answers: np.ndarray
    yes: np.ndarray


def judged(answers: Answers, n_questions: int) -> Judged:
    """Count what was answered; who was unsure has not answered."""
    sure = answers.verdict >= 0
    total = np.bincount(answers.question[sure], minlength=n_questions)
    yes = np.bincount(answers.question[sure], answers.verdict[sure], minlength=n_questions)
    found = np.flatnonzero(total)
    return Judged(found, total[found], yes[found].astype(np.int64))


def doubles(answers: Answers) -> tuple[np.ndarray, np.ndarray]:
    """The first and the second verdict of the questions that two people answered with yes or no."""
    sure = np.flatnonzero(answers.verdict >= 0)
    order = sure[np.argsort(answers.question[sure], kind="stable")]
    same = np.flatnonzero(answers.question[order][1:] == answers.question[order][:-1])
    return answers.verdict[order[same]], answers.verdict[order[same + 1]]
