"""The tables of an audit's database, the same in SQLite and in PostgreSQL; imported only where sqlalchemy is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import (
    DDL,
    URL,
    Boolean,
    Column,
    Engine,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
)

metadata = MetaData()

facts = Table(
    "audit_facts",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

questions = Table(
    "audit_questions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),  # the order in which they are asked
    Column("record", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("label_id", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("probability", Float, nullable=False),
    Column("double", Boolean, nullable=False),
)

seats = Table(  # who may answer a question: one, or two where it is a double
    "audit_seats",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("question", ForeignKey(questions.c.id), nullable=False),
    Column("seat", Integer, nullable=False),
    Column("reviewer", String(200)),
    Column("until", Float, nullable=False, default=0.0),
    Column("answer", Integer),
    UniqueConstraint("question", "seat"),
    UniqueConstraint("question", "reviewer"),  # the two seats of a double are two people's
)

answers = Table(
    "audit_answers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("question", ForeignKey(questions.c.id), nullable=False),
    Column("verdict", String(10), nullable=False),
    Column("reviewer", String(200), nullable=False),
    Column("time", String(40), nullable=False),
    Column("retracts", ForeignKey("audit_answers.id"), unique=True),
    Column("probability", Float, nullable=False),
    Column("seed", Integer, nullable=False),
    Column("model", String(80), nullable=False),
)

_REFUSAL = "answers are only ever added; a retraction is one more"
for _change in ("UPDATE", "DELETE"):
    event.listen(
        answers,
        "after_create",
        DDL(
            f"CREATE TRIGGER audit_no_{_change.lower()} BEFORE {_change} ON audit_answers "
            f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
        ).execute_if(dialect="sqlite"),
    )
for _statement in (
    f"CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
    "CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_answers "
    "FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()",
):
    event.listen(answers, "after_create", DDL(_statement).execute_if(dialect="postgresql"))


def in_folder(path: Path) -> URL:
    """The URL of an SQLite file, whatever characters its path has."""
    return URL.create("sqlite", database=str(path))


def connect(url: str | URL) -> Engine:
    """An engine whose transactions are durable when they are committed.

    SQLite: write-ahead log, synced at every commit; a transaction takes the right to write when it begins, so that
    what it read still holds when it writes. PostgreSQL does all this by itself; rows are locked where they are taken.
    """
    engine = create_engine(url, pool_pre_ping=True)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def _prepare(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # the driver would begin transactions of its own
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
        connection.execute(f"PRAGMA {setting}")
