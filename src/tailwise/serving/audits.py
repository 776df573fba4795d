"""What reviewers ask of audits: the next question, an answer, undo, progress and history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tailwise.errors import InvalidInput
from tailwise.serving import schemas as s
from tailwise.serving.bodies import JSON
from tailwise.serving.operations import WRITE, Call, Operation
from tailwise.serving.problems import Problem, overloaded

if TYPE_CHECKING:
    from tailwise.serving.review import Review

LATEST = 50
"""How many answers the history shows unless told otherwise."""
ANSWERS = ["yes", "no", "unsure"]


def _of(call: Call) -> Review:
    name, reviews = call.path["audit"], call.service.reviews
    if name not in reviews:
        raise Problem(404, f"there is no audit {name!r}; there are: {', '.join(reviews) or 'none'}")
    return reviews[name]


async def _run(work: Callable[..., Any], *arguments: Any) -> Any:
    """In a thread: a database may take its time. What it cannot do now may be tried again."""
    try:
        return await asyncio.to_thread(work, *arguments)
    except InvalidInput as error:
        raise overloaded(str(error)) from error


async def list_audits(call: Call) -> Any:
    """All audits."""
    return {"audits": [await _run(review.summary) for review in call.service.reviews.values()]}


async def show_audit(call: Call) -> Any:
    """How far an audit is."""
    return await _run(_of(call).progress)


async def next_question(call: Call) -> Any:
    """The next question for a reviewer, kept for them for half an hour."""
    return await _run(_of(call).next, call.body["reviewer"])


async def answer_question(call: Call) -> Any:
    """An answer."""
    body = call.body
    await _run(_of(call).answer, int(body["question"]), body["answer"], body["reviewer"])


async def undo_answer(call: Call) -> Any:
    """Take back the last answer of a reviewer; nothing is deleted."""
    return await _run(_of(call).undo, call.body["reviewer"])


async def audit_history(call: Call) -> Any:
    """Who said what when."""
    limit = int(call.query.get("limit", LATEST))
    return {"answers": await _run(_of(call).history, call.query.get("reviewer") or None, limit)}


_REVIEWER = {**s.STRING, "minLength": 1, "maxLength": 200, "description": "the name that is kept with every answer"}
_ANSWER = {"type": "string", "enum": ANSWERS}
_COUNTS = {"id": s.STRING, "questions": s.INTEGER, "wanted": s.INTEGER, "answered": s.INTEGER}
_PROGRESS = s.record(
    {
        **_COUNTS,
        "by_answer": s.record(dict.fromkeys(ANSWERS, s.INTEGER)),
        "reviewers": s.array(s.record({"name": s.STRING, "answered": s.INTEGER})),
    }
)
_QUESTION = s.record(
    {
        "id": s.INTEGER,
        "text": s.STRING,
        "label": s.STRING,
        "uri": s.URI,
        "recorded": s.array(
            s.record({"uri": s.URI, "label": s.STRING}),
            description="the record's other labels; whether it has this one is not told",
        ),
    }
)
_ASKED = s.record({"question": s.nullable(_QUESTION), "progress": _PROGRESS})
_LINE = s.record(
    {
        "question": s.INTEGER,
        "label": s.STRING,
        "uri": s.URI,
        "text": s.STRING,
        "answer": _ANSWER,
        "reviewer": s.STRING,
        "time": s.STRING,
        "withdrawn": s.BOOLEAN,
    }
)
_WHO = {JSON: s.record({"reviewer": _REVIEWER})}
_TAG, _ONE = "Review", "/v1/audits/{audit}"

OPERATIONS = [
    Operation(
        "GET",
        "/v1/audits",
        list_audits,
        "All audits",
        _TAG,
        s.record({"audits": s.array(s.record({**_COUNTS, "model": s.STRING}))}),
    ),
    Operation("GET", _ONE, show_audit, "How far an audit is", _TAG, _PROGRESS, problems=(404, 503)),
    Operation(
        "POST",
        f"{_ONE}/next",
        next_question,
        "The next question for a reviewer",
        _TAG,
        _ASKED,
        body=_WHO,
        access=WRITE,
        problems=(404, 503),
    ),
    Operation(
        "POST",
        f"{_ONE}/answers",
        answer_question,
        "Answer a question",
        _TAG,
        None,
        body={JSON: s.record({"question": s.INTEGER, "reviewer": _REVIEWER, "answer": _ANSWER})},
        access=WRITE,
        problems=(404, 409, 503),
    ),
    Operation(
        "POST",
        f"{_ONE}/undo",
        undo_answer,
        "Take back the last answer of a reviewer",
        _TAG,
        _ASKED,
        body=_WHO,
        access=WRITE,
        problems=(404, 503),
    ),
    Operation(
        "GET",
        f"{_ONE}/history",
        audit_history,
        "The latest answers, newest first",
        _TAG,
        s.record({"answers": s.array(_LINE)}),
        query=s.record(
            {},
            {
                "reviewer": s.STRING,
                "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": LATEST},
            },
        ),
        problems=(404, 503),
    ),
]
