"""What happens at the desk where questions are handed out: the steps of a transaction, as SQL.

Imported only where sqlalchemy is. Every function works within the transaction of ``connection``. In PostgreSQL rows
are locked where they are taken (``FOR UPDATE``); in SQLite the whole transaction has the right to write.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, exists, func, insert, or_, select, update

from tailwise.audit.plan import Plan
from tailwise.audit.records import RETRACTED, Answer, Origin, Question, storable
from tailwise.audit.schema import answers, facts, metadata, questions, seats
from tailwise.errors import InvalidInput


class Stamp(NamedTuple):
    """What every answer carries: the seed of the plan and the digest of its model."""

    seed: int
    model: str


def own_seat(connection: Connection, reviewer: str) -> Any:
    """The seat that ``reviewer`` has taken and not answered yet."""
    mine = select(seats.c.id, seats.c.question).where(
        seats.c.reviewer == reviewer, seats.c.answer.is_(None), seats.c.until > time.time()
    )
    return connection.execute(mine.order_by(seats.c.question).limit(1).with_for_update()).first()


def free_seat(connection: Connection, reviewer: str, question: int | None = None, after: int = -1) -> Any:
    """A seat that ``reviewer`` may take: nobody's, theirs, or one whose lease has ended; never both of a double."""
    other = seats.alias()
    taken = exists().where(other.c.question == seats.c.question, other.c.id != seats.c.id, other.c.reviewer == reviewer)
    free = select(seats.c.id, seats.c.question).where(
        seats.c.answer.is_(None),
        or_(seats.c.reviewer.is_(None), seats.c.until <= time.time(), seats.c.reviewer == reviewer),
        ~taken,
        seats.c.question > after,
    )
    if question is not None:
        free = free.where(seats.c.question == question)
    ordered = free.order_by(seats.c.question, seats.c.seat).limit(1)
    return connection.execute(ordered.with_for_update(skip_locked=question is None)).first()


def take(connection: Connection, seat: int, reviewer: str, seconds: float, answer: int | None = None) -> None:
    """Give ``seat`` to ``reviewer``, with their ``answer`` where there is one."""
    values = {"reviewer": reviewer, "until": time.time() + seconds, "answer": answer}
    connection.execute(update(seats).where(seats.c.id == seat).values(**values))


def hand_out(connection: Connection, reviewer: str, n: int | None, seconds: float) -> list[int]:
    """Give ``reviewer`` up to ``n`` seats that they may take, theirs included; returns the questions in order."""
    found: list[int] = []
    while n is None or len(found) < n:
        seat = free_seat(connection, reviewer, after=found[-1] if found else -1)
        if seat is None:
            break
        take(connection, seat.id, reviewer, seconds)
        found.append(seat.question)
    return found


def give_answer(connection: Connection, number: int, verdict: str, reviewer: str, seconds: float, stamp: Stamp) -> int:
    """Add an answer and fill its seat; returns its number."""
    question = find_question(connection, number)
    seat = free_seat(connection, reviewer, question.id)
    if seat is None:
        raise InvalidInput(_why_not(connection, question.id, reviewer))
    made = _add(connection, question.id, verdict, reviewer, stamp)
    take(connection, seat.id, reviewer, seconds, made)
    return made


def _why_not(connection: Connection, number: int, reviewer: str) -> str:
    own = select(seats.c.id).where(seats.c.question == number, seats.c.reviewer == reviewer)
    if connection.execute(own).first() is not None:
        return f"question {number} has an answer of {reviewer!r}; take it back first: undo({reviewer!r})"
    return f"question {number} is answered, or with another reviewer; ask for the next one"


def _add(
    connection: Connection, number: int, verdict: str, reviewer: str, stamp: Stamp, retracts: int | None = None
) -> int:
    probability = connection.scalar(select(questions.c.probability).where(questions.c.id == number))
    values = {
        "question": number,
        "verdict": verdict,
        "reviewer": reviewer,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "retracts": retracts,
        "probability": probability,
        **stamp._asdict(),
    }
    return int(connection.execute(insert(answers).values(**values).returning(answers.c.id)).scalar_one())


def retract(
    connection: Connection, seconds: float, stamp: Stamp, *, reviewer: str | None = None, answer: int | None = None
) -> Question | None:
    """Take back the last standing answer of ``reviewer``, or the one numbered ``answer``; None where there is none."""
    later = answers.alias()
    stands = ~exists().where(later.c.retracts == answers.c.id)
    found = select(answers).where(answers.c.verdict != RETRACTED, stands)
    found = found.where(answers.c.reviewer == reviewer if answer is None else answers.c.id == answer)
    last = connection.execute(found.order_by(answers.c.id.desc()).limit(1)).first()
    if last is None:
        return None
    found = select(seats.c.id).where(seats.c.answer == last.id).with_for_update()
    seat = connection.execute(found).scalar_one()
    _add(connection, last.question, RETRACTED, last.reviewer, stamp, last.id)
    take(connection, seat, last.reviewer, seconds)
    return find_question(connection, last.question)


def find_question(connection: Connection, number: int) -> Question:
    """The question of a number."""
    found = connection.execute(_questions().where(questions.c.id == number)).first()
    if found is None:
        raise InvalidInput(f"there is no question {number}; they count from 0")
    return Question(*found)


def all_questions(connection: Connection) -> list[Question]:
    """Every question, in order."""
    return [Question(*row) for row in connection.execute(_questions().order_by(questions.c.id))]


def _questions() -> Any:
    return select(*(questions.c[name] for name in Question._fields))


def history(connection: Connection) -> list[Answer]:
    """Every answer and retraction, in order."""
    columns = select(*(answers.c[name] for name in Answer._fields))
    return [Answer(*row) for row in connection.execute(columns.order_by(answers.c.id))]


def count_seats(connection: Connection) -> tuple[int, int]:
    """How many answers are wanted, and how many questions are handed out now."""
    wanted = select(func.count()).select_from(seats)
    leased = wanted.where(seats.c.answer.is_(None), seats.c.until > time.time())
    return int(connection.scalar(wanted) or 0), int(connection.scalar(leased) or 0)


def find_fact(connection: Connection, name: str) -> bytes | None:
    """What is kept under a name."""
    return connection.scalar(select(facts.c.value).where(facts.c.name == name))


def fill(
    connection: Connection, plan: Plan, origin: Origin, texts: Sequence[str] | None, known: dict[str, bytes]
) -> None:
    """Make the tables and write the plan's questions and seats; ``known`` is kept under its names."""
    asked = plan.questions
    metadata.create_all(connection)
    connection.execute(insert(facts), [{"name": name, "value": value} for name, value in known.items()])
    pairs = zip(asked.rows, asked.labels, asked.probability, asked.double, strict=True)
    lines = [
        {
            "id": number,
            "record": int(row),
            "text": f"row {row}" if texts is None else storable(texts[row]),
            "label_id": storable(origin.label_ids[label]),
            "label": storable(origin.label_names[label]),
            "probability": float(probability),
            "double": bool(double),
        }
        for number, (row, label, probability, double) in enumerate(pairs)
    ]
    connection.execute(insert(questions), lines)
    places = [
        {"question": number, "seat": seat, "until": 0.0}
        for number, double in enumerate(asked.double.tolist())
        for seat in range(1 + double)
    ]
    connection.execute(insert(seats), places)
