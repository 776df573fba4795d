"""The store, on both databases: leases, doubles, append-only answers, retractions."""

import threading
from contextlib import suppress

import numpy as np
import pytest

from tailwise.audit import VERDICTS, Audit, Origin
from tailwise.audit.packing import pack, unpack
from tailwise.errors import DataFormatError, InvalidInput


@pytest.fixture
def audit(place, small, origin):
    with Audit.create(place, small, origin) as made:
        yield made


def answer_all(audit, reviewer, verdict="yes"):
    done = []
    while (question := audit.next_question(reviewer)) is not None:
        audit.answer(question.id, verdict, reviewer)
        done.append(question.id)
    return done


def test_the_plan_comes_back(audit, small, origin, place):
    opened = Audit.open(place)
    for room in ("pool", "questions", "cells"):
        for one, other in zip(getattr(opened.plan, room), getattr(small, room), strict=True):
            np.testing.assert_array_equal(one, other)
    assert opened.plan.settings == small.settings and opened.origin == origin
    first = opened.questions()[0]
    assert (first.record, first.label_id) == (small.questions.rows[0], f"L{small.questions.labels[0]}")
    assert len(opened.questions()) == small.questions.rows.size
    opened.close()


def test_a_single_reviewer_gets_every_question_once(audit, small):
    assert answer_all(audit, "anna") == list(range(small.questions.rows.size))
    assert answer_all(audit, "ben") == np.flatnonzero(small.questions.double).tolist()
    assert audit.next_question("carla") is None
    progress = audit.progress()
    assert progress["answers"] == progress["answers wanted"] == small.questions.rows.size + small.questions.double.sum()
    assert progress["by reviewer"] == {"anna": small.questions.rows.size, "ben": int(small.questions.double.sum())}


def test_asking_again_gives_the_same_question(audit):
    assert audit.next_question("anna") == audit.next_question("anna")
    assert audit.progress()["handed out"] == 1


def test_many_at_once_never_share_a_question(audit, place, small):
    given, lock = [], threading.Lock()

    def review(name):
        with Audit.open(place) as mine:
            while (question := mine.next_question(name)) is not None:
                with suppress(InvalidInput):  # who has two windows gets a question in both, and answers it once
                    mine.answer(question.id, "no", name)
                    with lock:
                        given.append((question.id, name))

    threads = [threading.Thread(target=review, args=(name,)) for name in ("anna", "ben", "carla", "anna")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = np.where(small.questions.double, 2, 1)
    counts = np.bincount([number for number, _ in given], minlength=wanted.size)
    standing = [(one.question, one.reviewer) for one in audit.standing()]
    assert len(standing) == len(set(standing)), "a double is two people's"
    assert sorted(standing) == sorted(set(given))
    np.testing.assert_array_equal(counts, wanted)


def test_a_lease_ends(place, small, origin):
    with Audit.create(place, small, origin, lease_seconds=0.001) as audit:
        first = audit.next_question("anna")
        assert audit.next_question("ben").id == first.id
        audit.answer(first.id, "yes", "ben")
        if not small.questions.double[first.id]:
            with pytest.raises(InvalidInput, match="ask for the next one"):
                audit.answer(first.id, "no", "anna")


def test_undo_adds_a_retraction_and_gives_the_question_back(audit):
    first = audit.next_question("anna")
    audit.answer(first.id, "yes", "anna")
    assert audit.undo("anna") == first
    assert audit.next_question("anna") == first
    assert audit.undo("anna") is None and audit.undo("ben") is None
    audit.answer(first.id, "no", "anna")
    assert [one.verdict for one in audit.history()] == ["yes", "retracted", "no"]
    assert [one.verdict for one in audit.standing()] == ["no"]
    assert audit.answers().verdict.tolist() == [VERDICTS["no"]]


def test_answers_carry_where_they_came_from(audit, small):
    audit.answer(3, "unsure", "anna")
    (one,) = audit.history()
    assert one.probability == small.questions.probability[3]
    assert (one.seed, one.model, one.verdict) == (small.settings.seed, "digest of a model", "unsure")
    assert one.time.endswith("+00:00")


def test_answers_are_never_changed(audit):
    from sqlalchemy import text
    from sqlalchemy.exc import DBAPIError

    audit.answer(0, "yes", "anna")
    for statement in ("UPDATE audit_answers SET verdict = 'no'", "DELETE FROM audit_answers"):
        with pytest.raises(DBAPIError, match="only ever added"), audit._engine.begin() as connection:
            connection.execute(text(statement))
    assert [one.verdict for one in audit.standing()] == ["yes"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda audit: audit.answer(0, "maybe", "anna"), "'yes', 'unsure'"),
        (lambda audit: audit.answer(10**6, "yes", "anna"), "there is no question 1000000"),
        (lambda audit: audit.answer(0, "yes", "  "), "must be a name"),
        (lambda audit: audit.next_question(None), "must be a name"),
        (lambda audit: [audit.answer(0, "yes", "anna"), audit.answer(0, "yes", "anna")], "take it back first"),
        (lambda audit: audit.retract(99), "no answer that stands"),
    ],
)
def test_what_cannot_be_is_refused(audit, call, message):
    with pytest.raises(InvalidInput, match=message):
        call(audit)


def test_several_answers_are_stored_whole_or_not_at_all(audit):
    with pytest.raises(InvalidInput, match="no question 9999"):
        audit.answer_all([(0, "yes"), (9999, "no")], "anna")
    assert audit.history() == []


def test_an_audit_is_never_replaced(audit, place, small, origin):
    with pytest.raises(InvalidInput, match=r"exists|holds an audit already"):
        Audit.create(place, small, origin)


def test_no_audit_is_told(tmp_path):
    with pytest.raises(InvalidInput, match="holds no audit"):
        Audit.open(tmp_path)
    with pytest.raises(InvalidInput, match="holds no audit"):
        Audit.open(f"sqlite:///{tmp_path / 'empty.db'}")
    with pytest.raises(InvalidInput, match="cannot be opened"):
        Audit.open("no-such-dialect://x")
    (tmp_path / "audit.db").write_bytes(b"not a database" * 100)
    with pytest.raises(InvalidInput, match="cannot be used"):
        Audit.open(tmp_path)


def test_a_password_is_never_shown():
    pytest.importorskip("psycopg")
    with pytest.raises(InvalidInput) as caught:
        Audit.open("postgresql://me:secret@127.0.0.1:1/x?connect_timeout=1")
    assert "secret" not in str(caught.value)


def test_texts_that_databases_refuse_are_kept_as_far_as_they_go(place, small):
    odd = Origin("m", "d", ["\0\ud800x"] * 300, ["name"] * 300)
    with Audit.create(place, small, odd, texts=["a\0b"] * 3000) as audit:
        assert audit.questions()[0].text == "a\ufffdb"


@pytest.mark.parametrize("name", ["questions.rows", "questions.labels", "pool.rows", "questions.stratum"])
def test_a_damaged_plan_is_refused(small, name):
    room, _, field = name.partition(".")
    part = getattr(small, room)
    broken = getattr(part, field).copy()
    broken[0] = 10**6 if broken.dtype.itemsize > 1 else 100
    content = pack(small._replace(**{room: part._replace(**{field: broken})}))
    with pytest.raises(DataFormatError, match="a plan that cannot be read"):
        unpack(content, "here")
    with pytest.raises(DataFormatError):
        unpack(b"PK nonsense", "here")
