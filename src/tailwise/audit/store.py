"""An audit where it is kept: questions handed to reviewers, and answers that are only ever added.

A folder holds ``audit.db`` (SQLite) and ``plan.json``, which is for people to read; a database URL such as
``postgresql+psycopg://…`` holds the same tables for several servers. The library, the command and the service all go
through :class:`Audit`.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from tailwise.atomic import fsync_folder, temporary_folder, told_when_unwritable, write_whole
from tailwise.audit.answers import VERDICTS, Answers
from tailwise.audit.packing import pack, unpack
from tailwise.audit.plan import Plan
from tailwise.audit.records import RETRACTED, Answer, Origin, Question, storable
from tailwise.errors import DataFormatError, InvalidInput, import_extra
from tailwise.validation import check_choice, check_number

DATABASE = "audit.db"
FORMAT = 1
LEASE_SECONDS = 1800.0
"""For how long a question that was handed out is kept for its reviewer."""
_TRIES = 20
_LONGEST_NAME = 200


class Audit:
    """Questions, reviewers and answers of one plan.

    :meth:`create` writes a new audit, :meth:`open` opens one; :meth:`next_question`, :meth:`answer`, :meth:`undo` and
    :meth:`progress` are what a review page needs. Any number of processes may do so at once: a question is handed to
    one reviewer (a double to two different ones), and an answer that was taken survives the end of the process.
    """

    def __init__(self, where: str | Path, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._errors = import_extra("sqlalchemy", "audit", "an audit's store").exc
        from tailwise.audit import desk

        self._desk: Any = desk
        self.where = str(where)
        self.lease_seconds = check_number("lease_seconds", lease_seconds, low=0, open_low=True)
        self._engine = _connect(self.where)

    @classmethod
    def create(
        cls, where: str | Path, plan: Plan, origin: Origin, texts: Sequence[str] | None = None, **options: Any
    ) -> Self:
        """Write ``plan`` to a new folder or an empty database; ``texts`` are those of all rows, where there are any."""
        cls.check_free(where)
        if is_url(where):
            made = cls(where, **options)
            made._fill(plan, origin, texts)
            return made
        target = Path(where)
        with told_when_unwritable(target), temporary_folder(target) as scratch:
            made = cls(scratch, **options)
            made._fill(plan, origin, texts)
            made.close()
            write_whole(scratch / "plan.json", _for_people(plan, origin))
            scratch.rename(target)
            fsync_folder(target.parent)
        return cls(where, **options)

    @classmethod
    def check_free(cls, where: str | Path) -> None:
        """Refuse a place that holds something already, or that cannot be reached, before a plan is made for it."""
        if is_url(where):
            with cls(where) as found:
                if found._holds_one():
                    raise InvalidInput(f"{shown(found.where)} holds an audit already; each needs a database of its own")
            return
        import_extra("sqlalchemy", "audit", "an audit's store")
        target = Path(where)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InvalidInput(f"{target} exists; an audit is never replaced: choose another place, or remove it")

    @classmethod
    def open(cls, where: str | Path, **options: Any) -> Self:
        """Open the audit in a folder or at a database URL; ``lease_seconds`` says how long questions are kept."""
        if not is_url(where) and not (Path(where) / DATABASE).is_file():
            raise InvalidInput(f"{where} holds no audit; make one with `tailwise audit plan MODEL DATA -o {where}`")
        opened = cls(where, **options)
        if not opened._holds_one():
            raise InvalidInput(f"{shown(opened.where)} holds no audit; make one with `tailwise audit plan`")
        found = json.loads(opened._fact("format"))
        if found != FORMAT:
            raise DataFormatError(shown(opened.where), None, f"an audit of format {found}", f"format {FORMAT}")
        return opened

    def close(self) -> None:
        """Give back the connections; a closed audit opens them again when it is used."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    @cached_property
    def plan(self) -> Plan:
        """The plan whose questions these are."""
        return unpack(self._fact("plan"), shown(self.where))

    @cached_property
    def origin(self) -> Origin:
        """What the questions are about."""
        return Origin(**json.loads(zlib.decompress(self._fact("origin"))))

    def next_question(self, reviewer: str) -> Question | None:
        """The next question for ``reviewer``, kept for them until the lease ends; None where none is left.

        Who asks again before answering gets the same question again.
        """
        reviewer = check_reviewer(reviewer)
        for _ in range(_TRIES):
            try:
                with self._transaction() as connection:
                    seat = self._desk.own_seat(connection, reviewer) or self._desk.free_seat(connection, reviewer)
                    if seat is None:
                        return None
                    self._desk.take(connection, seat.id, reviewer, self.lease_seconds)
                    return self._desk.find_question(connection, seat.question)
            except _Conflict:
                # The same reviewer, in another window, took the other seat of this double at the same moment.
                continue
        raise InvalidInput(f"no question could be handed to {reviewer!r}; the store is too busy: try again")

    def hand_out(self, reviewer: str, n_questions: int | None, seconds: float) -> list[Question]:
        """The next ``n_questions`` (None: all that are left) for ``reviewer`` at once, kept for ``seconds``."""
        reviewer = check_reviewer(reviewer)
        with self._transaction() as connection:
            handed = self._desk.hand_out(connection, reviewer, n_questions, seconds)
            return [self._desk.find_question(connection, number) for number in handed]

    def exchange(self, retracted: Sequence[int], added: Mapping[str, Sequence[tuple[int, str]]]) -> None:
        """Take back answers by their numbers and add others by reviewer, all in one step or none."""
        stamp = self._stamp
        with self._transaction() as connection:
            for number in retracted:
                self._desk.retract(connection, self.lease_seconds, stamp, answer=number)
            for reviewer, verdicts in added.items():
                for number, verdict in verdicts:
                    name = check_reviewer(reviewer)
                    self._desk.give_answer(connection, number, verdict, name, self.lease_seconds, stamp)

    def answer(self, question_id: int, verdict: str, reviewer: str) -> int:
        """Add an answer, "yes", "no" or "unsure"; returns its number when it is safe on the disk.

        It need not have been handed out first: a question that is free, or whose lease has ended, may be answered.
        """
        return self.answer_all([(question_id, verdict)], reviewer)[0]

    def answer_all(self, verdicts: Sequence[tuple[int, str]], reviewer: str) -> list[int]:
        """Add several answers of one reviewer, all or none."""
        reviewer, stamp = check_reviewer(reviewer), self._stamp
        for _, verdict in verdicts:
            check_choice("verdict", verdict, tuple(VERDICTS))
        with self._transaction() as connection:
            return [
                self._desk.give_answer(connection, int(number), verdict, reviewer, self.lease_seconds, stamp)
                for number, verdict in verdicts
            ]

    def undo(self, reviewer: str) -> Question | None:
        """Take back the last answer of ``reviewer`` that stands, by adding a retraction; the question is theirs again.

        None where there is nothing to take back.
        """
        reviewer, stamp = check_reviewer(reviewer), self._stamp
        with self._transaction() as connection:
            return self._desk.retract(connection, self.lease_seconds, stamp, reviewer=reviewer)

    def retract(self, answer_id: int) -> Question:
        """Take back one answer, by its number."""
        stamp = self._stamp
        with self._transaction() as connection:
            found = self._desk.retract(connection, self.lease_seconds, stamp, answer=answer_id)
        if found is None:
            raise InvalidInput(f"answer_id={answer_id} is no answer that stands")
        return found

    def progress(self) -> dict[str, Any]:
        """How far it is: questions, answers wanted (a double wants two), given, unsure, handed out, by reviewer."""
        with self._transaction() as connection:
            wanted, handed_out = self._desk.count_seats(connection)
            n = len(self._desk.all_questions(connection))
        standing = self.standing()
        return {
            "questions": n,
            "answers wanted": wanted,
            "answers": len(standing),
            "unsure": sum(one.verdict == "unsure" for one in standing),
            "questions answered": len({one.question for one in standing}),
            "handed out": handed_out,
            "by reviewer": dict(Counter(one.reviewer for one in standing)),
        }

    def questions(self) -> list[Question]:
        """All questions, in their order."""
        with self._transaction() as connection:
            return self._desk.all_questions(connection)

    def history(self) -> list[Answer]:
        """Every answer and retraction, in the order in which they came."""
        with self._transaction() as connection:
            return self._desk.history(connection)

    def standing(self) -> list[Answer]:
        """The answers that were not taken back."""
        history = self.history()
        gone = {one.retracts for one in history}
        return [one for one in history if one.verdict != RETRACTED and one.id not in gone]

    def answers(self) -> Answers:
        """The answers that stand, as arrays beside ``plan.questions``."""
        found = self.standing()
        return Answers.of(
            [one.question for one in found],
            [VERDICTS[one.verdict] for one in found],
            np.array([one.reviewer for one in found], dtype=np.str_),
        )

    @cached_property
    def _stamp(self) -> Any:
        return self._desk.Stamp(**json.loads(self._fact("stamp")))

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except self._errors.IntegrityError as error:
            raise _Conflict(f"two took the same question of {shown(self.where)} at once; try again") from error
        except self._errors.DBAPIError as error:
            reason = next(iter(str(error.orig).strip().splitlines()), type(error).__name__)
            raise InvalidInput(f"{shown(self.where)} cannot be used: {reason}") from error

    def _fill(self, plan: Plan, origin: Origin, texts: Sequence[str] | None) -> None:
        stamp = {"seed": int(plan.settings.seed), "model": origin.model}
        facts = {
            "format": json.dumps(FORMAT).encode(),
            "stamp": json.dumps(stamp).encode(),
            "plan": pack(plan),
            "origin": zlib.compress(json.dumps(origin._asdict()).encode()),
        }
        with self._transaction() as connection:
            self._desk.fill(connection, plan, origin, texts, facts)

    def _holds_one(self) -> bool:
        import sqlalchemy

        with self._transaction() as connection:
            return bool(sqlalchemy.inspect(connection).has_table(self._desk.facts.name))

    def _fact(self, name: str) -> bytes:
        with self._transaction() as connection:
            found = self._desk.find_fact(connection, name)
        if found is None:
            raise DataFormatError(shown(self.where), None, f"no {name}", "what `audit plan` wrote")
        return found


class _Conflict(InvalidInput):
    """Two transactions wanted the same seat."""


def is_url(where: str | Path) -> bool:
    """Whether an audit is kept in a database of its own rather than in a folder."""
    return isinstance(where, str) and "://" in where


def _connect(where: str) -> Any:
    from tailwise.audit import schema

    if not is_url(where):
        return schema.connect(schema.in_folder(Path(where) / DATABASE))
    if where.startswith(("postgresql:", "postgres:")):
        where = "postgresql+psycopg:" + where.partition(":")[2]
    if where.startswith("postgresql"):
        import_extra("psycopg", "audit", "an audit in PostgreSQL")
    try:
        return schema.connect(where)
    except Exception as error:
        raise InvalidInput(
            f"{shown(where)} cannot be opened ({type(error).__name__}); pass a folder, or a URL such as "
            "postgresql://user@host/database"
        ) from error


def shown(where: str) -> str:
    """A URL without its password."""
    head, at, tail = where.rpartition("@")
    return f"{head.rpartition(':')[0] if head.count(':') > 1 else head}{at}{tail}"


def check_reviewer(reviewer: Any) -> str:
    """A reviewer's name as it is kept; refused where it is none."""
    if not isinstance(reviewer, str) or not reviewer.strip() or len(reviewer) > _LONGEST_NAME:
        raise InvalidInput(f"reviewer={reviewer!r} must be a name of 1 to {_LONGEST_NAME} characters")
    return storable(reviewer.strip())


def _for_people(plan: Plan, origin: Origin) -> str:
    facts = {
        "format": FORMAT,
        "model": origin.model,
        "data": origin.data,
        "settings": plan.settings._asdict(),
        "plan": str(plan).splitlines(),
    }
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
