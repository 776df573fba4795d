"""An audit as its review page sees it: questions one at a time, answers, undo, progress, and who said what when.

Everything is kept by :class:`~tailwise.audit.Audit`, which any number of servers may share: a question is handed to one
reviewer (a double to two), answers are only ever added, and taking one back adds a retraction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from tailwise.audit import VERDICTS, Audit, Question
from tailwise.audit.records import RETRACTED
from tailwise.audit.store import check_reviewer
from tailwise.errors import InvalidInput
from tailwise.serving.problems import Problem

EXCERPT = 160
"""How many characters of a record the history shows."""


def open_reviews(places: Mapping[str, str]) -> dict[str, Review]:
    """The audits in folders or at database URLs, by their ids; refused where one cannot be opened."""
    return {name: Review(name, Audit.open(where)) for name, where in places.items()}


class Review:
    """One audit as its review page sees it."""

    def __init__(self, name: str, audit: Audit) -> None:
        self.name, self.audit = name, audit

    @cached_property
    def questions(self) -> list[Question]:
        """All questions; they never change."""
        return self.audit.questions()

    @cached_property
    def recorded(self) -> dict[int, list[int]]:
        """The recorded labels of the rows that are asked about, by row."""
        asked = {question.record for question in self.questions}
        found: dict[int, list[int]] = {row: [] for row in asked}
        pool = self.audit.plan.pool
        for row, label in zip(pool.recorded_rows.tolist(), pool.recorded_labels.tolist(), strict=True):
            if row in asked:
                found[row].append(label)
        return found

    def summary(self) -> dict[str, Any]:
        """The audit in a line."""
        progress = self.progress()
        return {key: progress[key] for key in ("id", "questions", "wanted", "answered")} | {
            "model": self.audit.origin.model
        }

    def progress(self) -> dict[str, Any]:
        """How far it is; a question for two reviewers wants two answers."""
        found = self.audit.progress()
        by_answer = Counter(one.verdict for one in self.audit.standing())
        return {
            "id": self.name,
            "questions": found["questions"],
            "wanted": found["answers wanted"],
            "answered": found["answers"],
            "by_answer": {verdict: by_answer[verdict] for verdict in VERDICTS},
            "reviewers": [{"name": name, "answered": count} for name, count in found["by reviewer"].items()],
        }

    def shown(self, question: Question | None) -> dict[str, Any] | None:
        """A question with the record's other recorded labels; whether the asked one is recorded is not told."""
        if question is None:
            return None
        origin = self.audit.origin
        others = [label for label in self.recorded[question.record] if origin.label_ids[label] != question.label_id]
        return {
            "id": question.id,
            "text": question.text,
            "label": question.label,
            "uri": question.label_id,
            "recorded": [{"uri": origin.label_ids[label], "label": origin.label_names[label]} for label in others],
        }

    def history(self, reviewer: str | None, limit: int) -> list[dict[str, Any]]:
        """The latest answers, newest first: who, when, what, and whether it was taken back."""
        lines = self.audit.history()
        withdrawn = {one.retracts for one in lines}
        latest = [one for one in reversed(lines) if one.verdict != RETRACTED and reviewer in (None, one.reviewer)]
        return [
            {
                "question": one.question,
                "label": self.questions[one.question].label,
                "uri": self.questions[one.question].label_id,
                "text": self.questions[one.question].text[:EXCERPT],
                "answer": one.verdict,
                "reviewer": one.reviewer,
                "time": one.time,
                "withdrawn": one.id in withdrawn,
            }
            for one in latest[:limit]
        ]

    def next(self, reviewer: str) -> dict[str, Any]:
        """The next question for a reviewer, and how far the audit is."""
        question = self.audit.next_question(self._who(reviewer))
        return {"question": self.shown(question), "progress": self.progress()}

    def answer(self, number: int, verdict: str, reviewer: str) -> None:
        """Add an answer; a problem where the question is not the reviewer's to answer."""
        who = self._who(reviewer)
        if not 0 <= number < len(self.questions):
            raise Problem(400, f"question={number} must be a number from 0 to {len(self.questions) - 1}")
        try:
            self.audit.answer(number, verdict, who)
        except InvalidInput as error:
            raise Problem(409, str(error)) from error

    def undo(self, reviewer: str) -> dict[str, Any]:
        """Take back the reviewer's last answer by adding a retraction; the question is theirs again."""
        question = self.audit.undo(self._who(reviewer))
        return {"question": self.shown(question), "progress": self.progress()}

    def _who(self, reviewer: str) -> str:
        try:
            return check_reviewer(reviewer)
        except InvalidInput as error:
            raise Problem(400, str(error)) from error
