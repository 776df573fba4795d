"""From answers to better labels: what was confirmed is added, what was rejected removed, and all of it is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.audit.pool import missing_chance, most_probable
from tailwise.audit.store import Audit
from tailwise.audit.tagging import in_space, rows_digest
from tailwise.data.dataset import Dataset, TextDataset
from tailwise.data.labelled import Rows
from tailwise.data.relabelling import Edit
from tailwise.errors import InvalidInput


class Change(NamedTuple):
    """What became of a pair that somebody judged, and by whose word."""

    record: int
    label_id: str
    label: str
    change: str
    """added, removed, kept (right and recorded), rejected (wrong and not recorded), disputed or unsure."""
    verdicts: str
    reviewers: str
    times: str
    question: int


class Unchecked(NamedTuple):
    """A pair that is probably a missing label, and that nobody has judged."""

    rank: int
    record: int
    label_id: str
    label: str
    chance: float


def changes_of(audit: Audit) -> list[Change]:
    """Every judged question with its outcome, in the order of the questions; who disagree change nothing."""
    asked, questions = audit.plan.questions, audit.questions()
    by_question: dict[int, list[Any]] = {}
    for one in audit.standing():
        by_question.setdefault(one.question, []).append(one)
    found = []
    for number, answers in sorted(by_question.items()):
        sure = {one.verdict for one in answers} - {"unsure"}
        recorded = bool(asked.recorded[number])
        if len(sure) != 1:
            outcome = "disputed" if sure else "unsure"
        elif "yes" in sure:
            outcome = "kept" if recorded else "added"
        else:
            outcome = "removed" if recorded else "rejected"
        question = questions[number]
        verdicts, reviewers, times = (
            " | ".join(getattr(one, name) for one in answers) for name in ("verdict", "reviewer", "time")
        )
        pair = question.record, question.label_id, question.label
        found.append(Change(*pair, outcome, verdicts, reviewers, times, number))
    return found


def apply_changes(audit: Audit, data: Dataset | TextDataset, changes: list[Change]) -> Dataset | TextDataset:
    """``data``, which must be the rows that the plan was made for, with what was confirmed and without what was not."""
    rows = _same_rows(audit, data)
    ids, names = list(rows.label_ids), list(rows.label_names)
    known = set(ids)
    for one in changes:
        if one.change == "added" and one.label_id not in known:
            known.add(one.label_id)
            ids.append(one.label_id)
            names.append(one.label)
    space = sorted(ids) if isinstance(data, TextDataset) else ids
    name_of = dict(zip(ids, names, strict=True))
    Y = in_space(rows.Y, rows.label_ids, space).tolil()
    column = {label: place for place, label in enumerate(space)}
    for one in changes:
        if one.change in ("added", "removed") and one.label_id in column:
            Y[one.record, column[one.label_id]] = float(one.change == "added")
    changed = sparse.csr_array(Y, dtype=np.float32)
    changed.eliminate_zeros()
    Y_test = None if data.Y_test is None else in_space(data.Y_test, rows.label_ids, space)
    return replace(
        data, Y_train=changed, Y_test=Y_test, label_ids=space, label_names=[name_of[label] for label in space]
    )


def edits_of(audit: Audit, data: TextDataset, changes: list[Change]) -> dict[int, Edit]:
    """The same by row, for :func:`tailwise.data.relabelling.write_relabelled`: what comes that was not there, and what
    goes that was.
    """
    rows = _same_rows(audit, data)
    column = {label: place for place, label in enumerate(rows.label_ids)}
    found: dict[int, Edit] = {}
    for one in changes:
        place = column.get(one.label_id)
        recorded = place is not None and rows.Y[one.record, place] > 0
        if one.change == ("removed" if recorded else "added"):
            edit = found.setdefault(one.record, Edit([], []))
            (edit.removed if recorded else edit.added).append(one.label_id)
    return found


def _same_rows(audit: Audit, data: Dataset | TextDataset) -> Rows:
    rows = Rows.of(data)
    if audit.origin.rows and rows_digest(rows.rows) != audit.origin.rows:
        raise InvalidInput(
            f"{rows.name} has other rows than the audit was planned for ({audit.origin.data}); pass the same data, "
            "read in the same way"
        )
    return rows


def unchecked(audit: Audit, propensity: Any = None, n: int | None = None) -> Iterator[Unchecked]:
    """Pairs of the pool that nobody has judged with yes or no, the most probable missing labels first.

    ``propensity`` is the one that the answers gave, fitted on the training counts; None keeps the guess of the plan.
    """
    plan, origin = audit.plan, audit.origin
    pool = plan.pool
    answers = audit.answers()
    done = plan.questions
    judged = np.unique(answers.question[answers.verdict >= 0])
    keys = pool.rows.astype(np.int64) * pool.label_counts.size + pool.labels
    known = np.isin(keys, done.rows[judged].astype(np.int64) * pool.label_counts.size + done.labels[judged])
    chance = pool.missing.astype(np.float64)
    if propensity is not None:
        chance = missing_chance(pool.chance.astype(np.float64), propensity.propensity_[pool.labels])
    order = most_probable(chance, pool.chance)
    order = order[~known[order]][:n]
    for rank, pair in enumerate(order.tolist(), start=1):
        label = int(pool.labels[pair])
        names = origin.label_ids[label], origin.label_names[label]
        yield Unchecked(rank, int(pool.rows[pair]), *names, round(float(chance[pair]), 4))
