"""Reviewing an audit over HTTP: the next question, an answer, undo, progress, and who said what when.

Everything is kept by :class:`~tailwise.audit.Audit`, which any number of servers may share: a question is handed to one
reviewer (a double to two), answers are only ever added, and taking one back adds a retraction.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tailwise.audit import VERDICTS, Audit, Question
from tailwise.audit.records import RETRACTED
from tailwise.audit.store import check_reviewer
from tailwise.errors import InvalidInput
from tailwise.validation import check_choice

EXCERPT = 160
"""How many characters of a record the history shows."""
LATEST = 50
"""How many answers the history shows unless told otherwise."""
_LARGEST_BODY = 10_000


def routes(audits: Mapping[str, Audit]) -> list[Route]:
    """The routes under ``/v1/audits`` for audits by their ids; what is wrong raises starlette's ``HTTPException``."""
    reviews = {name: Review(name, audit) for name, audit in audits.items()}

    def of_one(answer: Callable[[Review, Request, dict[str, Any]], Any]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            review = reviews.get(request.path_params["audit"])
            if review is None:
                known = ", ".join(reviews) or "none"
                raise HTTPException(404, f"there is no audit {request.path_params['audit']!r}; there are: {known}")
            body = await _body(request) if request.method == "POST" else {}
            found = await run_in_threadpool(_told, answer, review, request, body)
            return Response(status_code=204) if found is None else JSONResponse(found)

        return endpoint

    async def listed(request: Request) -> Response:
        found = [await run_in_threadpool(_told, Review.summary, review) for review in reviews.values()]
        return JSONResponse({"audits": found})

    return [
        Route("/v1/audits", listed, methods=["GET"]),
        Route("/v1/audits/{audit}", of_one(lambda review, *_: review.progress()), methods=["GET"]),
        Route("/v1/audits/{audit}/next", of_one(_next), methods=["POST"]),
        Route("/v1/audits/{audit}/answers", of_one(_answer), methods=["POST"]),
        Route("/v1/audits/{audit}/undo", of_one(_undo), methods=["POST"]),
        Route("/v1/audits/{audit}/history", of_one(_history), methods=["GET"]),
    ]


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


def _next(review: Review, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    question = review.audit.next_question(check_reviewer(body.get("reviewer")))
    return {"question": review.shown(question), "progress": review.progress()}


def _answer(review: Review, request: Request, body: dict[str, Any]) -> None:
    number = body.get("question")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(review.questions):
        raise HTTPException(400, f"question={number!r} must be a number from 0 to {len(review.questions) - 1}")
    reviewer = check_reviewer(body.get("reviewer"))
    verdict = check_choice("answer", body.get("answer"), tuple(VERDICTS))
    try:
        review.audit.answer(number, verdict, reviewer)
    except InvalidInput as error:
        raise HTTPException(409, str(error)) from error


def _undo(review: Review, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    question = review.audit.undo(check_reviewer(body.get("reviewer")))
    return {"question": review.shown(question), "progress": review.progress()}


def _history(review: Review, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    asked = request.query_params.get("limit", str(LATEST))
    if not (asked.isascii() and asked.isdigit() and 1 <= int(asked[:6]) <= 1000):
        raise HTTPException(400, f"limit={asked!r} must be a number from 1 to 1000")
    return {"answers": review.history(request.query_params.get("reviewer") or None, int(asked))}


def _told(answer: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return answer(*arguments)
    except InvalidInput as error:
        raise HTTPException(400, str(error)) from error


async def _body(request: Request) -> dict[str, Any]:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > _LARGEST_BODY:
            raise HTTPException(
                413, f"the body is longer than {_LARGEST_BODY:,} bytes; it names a reviewer and an answer"
            )
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise HTTPException(400, f"the body must be a JSON object, not {type(found).__name__}")
    return found
