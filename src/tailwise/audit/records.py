"""What an audit hands out and keeps: questions, answers, and where they came from."""

from __future__ import annotations

from typing import NamedTuple

RETRACTED = "retracted"


class Question(NamedTuple):
    """What a reviewer is asked: does this label belong to this record? Whether it is recorded is not told."""

    id: int
    record: int
    """The row's number in the data, from 0."""
    text: str
    label_id: str
    label: str


class Answer(NamedTuple):
    """One line of the record: an answer, or the retraction of an earlier one."""

    id: int
    question: int
    verdict: str
    reviewer: str
    time: str
    retracts: int | None
    probability: float
    seed: int
    model: str


class Origin(NamedTuple):
    """Where a plan came from: what the model is, by digest, and what the labels are called."""

    model: str
    data: str
    label_ids: list[str]
    label_names: list[str]
    rows: str = ""
    """The digest of the rows, by which they are known again; empty where it was not taken."""


def storable(text: str) -> str:
    """A text that every database takes: no NUL, no lone surrogates.

    >>> storable("a\\0b")
    'a\ufffdb'
    """
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
