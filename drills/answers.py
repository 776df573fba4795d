"""Does kill -9 at any moment of a review lose an answer that was acknowledged, or hand out a question twice?

A process answers questions of an audit without a pause, takes some back, and says each number that it was given; it is
killed after a random time. Every answer that it was told of must stand in the store, which must open and go on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from drills.harness import Outcome, processes

COUNT = 100
MODEST = 10
_LEASE = 0.05


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    yield kills(count, folder / "audit")


@cache
def _plan() -> Any:
    import tailwise as tw
    from tailwise.audit import plan_audit

    data = tw.make_longtail(1500, 300, 60, test_fraction=0, random_state=0)
    return plan_audit(tw.Centroid(n_jobs=1), data.X_train, data.Y_train, n_questions=2000, doubles=0.2)


def kills(count: int, path: Path) -> Outcome:
    """Kill a reviewer ``count`` times, and judge the store after each."""
    from tailwise.audit import Audit, Origin

    names = [f"label {i}" for i in range(60)]
    Audit.create(path, _plan(), Origin("model", "data", names, names)).close()
    outcome, context, chance = Outcome("answers"), processes(), random.Random(0)
    acknowledged: set[int] = set()
    for number in range(count):
        receiver, sender = context.Pipe(duplex=False)
        victim = context.Process(target=_review, args=(str(path), f"reviewer {number % 3}", sender))
        victim.start()
        sender.close()
        with suppress(EOFError):
            for place in range(1 + chance.randrange(20)):
                answer = receiver.recv()
                acknowledged |= {answer} if place else set()
            time.sleep(chance.random() * 0.02)
        victim.kill()
        victim.join()
        with suppress(EOFError):
            while True:
                acknowledged.add(receiver.recv())
        outcome.count(*_judged(path, acknowledged))
    outcome.name += f", {len(acknowledged):,} acknowledged"
    return outcome


def _judged(path: Path, acknowledged: set[int]) -> tuple[str, str]:
    from tailwise.audit import Audit

    try:
        with Audit.open(path, lease_seconds=_LEASE) as audit:
            history, standing = audit.history(), audit.standing()
            double = audit.plan.questions.double
    except Exception as error:
        return "broken", repr(error)
    if lost := acknowledged - {one.id for one in history}:
        return "broken", f"{len(lost)} acknowledged answers are lost"
    given: dict[int, list[str]] = {}
    for one in standing:
        given.setdefault(one.question, []).append(one.reviewer)
    for question, reviewers in given.items():
        if len(reviewers) > 1 + double[question] or len(set(reviewers)) < len(reviewers):
            return "broken", f"question {question} was answered by {reviewers}"
    return "intact", ""


def _review(path: str, reviewer: str, told: Any) -> None:
    from tailwise.audit import Audit

    chance = random.Random()
    with Audit.open(path, lease_seconds=_LEASE) as audit:
        told.send(0)
        while (question := audit.next_question(reviewer)) is not None:
            told.send(audit.answer(question.id, chance.choice(("yes", "no", "unsure")), reviewer))
            if chance.random() < 0.2:
                audit.undo(reviewer)
