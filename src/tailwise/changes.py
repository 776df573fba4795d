"""What an update brings: the rows that were there, those that take their place, those that are new."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput, Unsupported
from tailwise.persistence.checks import check_exact, check_range
from tailwise.validation import check_features, check_labels, label_counts

GROWTH = 0.1
"""New rows, as a share of those that a label was solved on, that make it worth solving again: a label of a thousand
rows does not change for ten more, one of two rows does. Twice the share would halve the cost of an update."""


class Change(NamedTuple):
    """Training rows after an update, and what about them is new.

    >>> told = check_features([[1.0], [2.0]]), check_labels([[1], [0]])
    >>> change = join_rows(told, [[2.0], [3.0]], [[1, 0], [0, 1]], rows=[1, -1])
    >>> change.X.toarray().ravel().tolist(), change.Y.toarray().astype(int).tolist()
    ([1.0, 2.0, 3.0], [[1, 0], [1, 0], [0, 1]])
    >>> change.n_known, change.relabelled.tolist(), change.touched.tolist()
    (2, [0], [0, 1])
    """

    X: sparse.csr_array
    """(n_samples, n_features) all rows: the known ones in their places, then the new ones"""
    Y: sparse.csr_array
    """(n_samples, n_labels) their labels"""
    n_known: int
    """how many rows there were before"""
    relabelled: np.ndarray
    """the labels that a known row has got or lost, or whose row reads otherwise now; ascending"""
    replaced: np.ndarray
    """the known rows whose place another row has taken; ascending"""

    @property
    def fresh(self) -> np.ndarray:
        """The rows that a model has not seen as they are: replaced ones, then new ones; ascending."""
        return np.append(self.replaced, np.arange(self.n_known, self.Y.shape[0]))

    @property
    def touched(self) -> np.ndarray:
        """The labels of new rows and of changed ones that have rows, ascending."""
        touched = np.union1d(self.Y.indices[self.Y.indptr[self.n_known] :], self.relabelled)
        return touched[label_counts(self.Y)[touched] > 0]


def join_rows(
    known: tuple[sparse.csr_array, sparse.csr_array], X: Any, Y: Any, rows: Any = None, *, owner: str = "the model"
) -> Change:
    """The known rows with those of ``X`` and ``Y`` in their places or after them; columns are new at the end only.

    ``rows`` (n,) holds for each row of X the number of the known row whose place it takes, -1 for a new one; None says
    that all are new.
    """
    old_X, old_Y = known
    X = check_features(X, owner=owner, allow_no_rows=True)
    Y = check_labels(Y, n_rows=X.shape[0])
    for name, new, old in (("X", X, old_X), ("Y", Y, old_Y)):
        if new.shape[1] < old.shape[1]:
            raise InvalidInput(
                f"{name} has {new.shape[1]:,} columns but {owner} knows {old.shape[1]:,}; keep those in their places "
                "and add new ones at the end"
            )
    place = _check_places(rows, X.shape[0], old_X.shape[0])
    replaces = place >= 0
    old_X, old_Y = widened(old_X, X.shape[1]), widened(old_Y, Y.shape[1])
    all_X, all_Y = _stack(old_X, X), _stack(old_Y, Y)
    if replaces.any():
        there = np.arange(old_X.shape[0])
        there[place[replaces]] = old_X.shape[0] + np.flatnonzero(replaces)
        order = np.append(there, old_X.shape[0] + np.flatnonzero(~replaces))
        all_X, all_Y = (sparse.csr_array(part[order]) for part in (all_X, all_Y))
    gone_X, gone_Y = (sparse.csr_array(part[place[replaces]]) for part in (old_X, old_Y))
    come_X, come_Y = (sparse.csr_array(part[replaces]) for part in (X, Y))
    reads_otherwise = np.diff(sparse.csr_array(gone_X != come_X).indptr) > 0
    relabelled = [
        sparse.csr_array(gone_Y != come_Y).indices,
        sparse.csr_array(gone_Y[reads_otherwise]).indices,
        sparse.csr_array(come_Y[reads_otherwise]).indices,
    ]
    relabelled_labels = np.unique(np.concatenate(relabelled))
    return Change(all_X, all_Y, old_X.shape[0], relabelled_labels, np.sort(place[replaces]))


def solved_rows(kept: np.ndarray | None, change: Change) -> np.ndarray:
    """How many rows there were when each label was solved, 0 for new labels: (n_labels,) int64.

    ``kept`` is what the model remembers of it, None before its first update, when all were there.
    """
    n_labels = change.Y.shape[1]
    if kept is None:
        return np.full(n_labels, change.n_known, np.int64)
    return np.append(kept, np.zeros(n_labels - kept.size, np.int64))


def labels_to_solve(change: Change, solved: np.ndarray) -> np.ndarray:
    """The labels to solve again, ascending: those that a known row got or lost, and those with new rows to speak of.

    ``solved`` (n_labels,) is how many rows there were when each was solved. A label is solved again when ``GROWTH`` new
    rows for each that it was solved on have come.
    """
    n_labels = change.Y.shape[1]
    row_of = np.repeat(np.arange(change.Y.shape[0]), np.diff(change.Y.indptr))
    counts = np.bincount(change.Y.indices, minlength=n_labels)
    news = np.bincount(change.Y.indices[row_of >= solved[change.Y.indices]], minlength=n_labels)
    again = (news > 0) & (news >= GROWTH * (counts - news))
    again[change.relabelled] = True
    return np.flatnonzero(again & (counts > 0))


def check_solved_rows(kept: Any, n_labels: int) -> None:
    """Refuse what is no ``solved_rows_`` of a model."""
    if kept is not None:
        check_range("solved_rows_", check_exact("solved_rows_", kept, np.int64, (n_labels,)), 0)


def check_known(known: Any, n_features: int, counts: np.ndarray, owner: str) -> tuple[Any, Any]:
    """What a model says it has learnt from so far, refused unless features and labels agree with what it kept."""
    if known is None:
        raise Unsupported(
            f"{owner} keeps no training rows, and cannot learn from new rows alone; pass known=(X, Y), the rows it has "
            "learnt from so far, or train with Tagger(keep_training_data=True)"
        )
    if not isinstance(known, tuple | list) or len(known) != 2:
        raise InvalidInput("known must be a pair (X, Y): the rows that the model has learnt from so far")
    X = check_features(known[0], n_features=n_features, owner=owner)
    Y = check_labels(known[1], n_rows=X.shape[0], n_labels=counts.size)
    wrong = np.flatnonzero(label_counts(Y) != counts)
    if wrong.size:
        raise InvalidInput(
            f"known has label {wrong[0]} on {label_counts(Y)[wrong[0]]:,} rows, but {owner} learnt it from "
            f"{counts[wrong[0]]:,}; pass all rows that it has learnt from so far, as they were"
        )
    return X, Y


def widened(matrix: sparse.csr_array, n_columns: int) -> sparse.csr_array:
    """The same entries in a matrix with columns added at the end."""
    if matrix.shape[1] == n_columns:
        return matrix
    return sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], n_columns))


def more_rows(matrix: sparse.csr_array, n_rows: int) -> sparse.csr_array:
    """The same entries in a matrix with empty rows added at the end."""
    if matrix.shape[0] == n_rows:
        return matrix
    indptr = np.append(matrix.indptr, np.full(n_rows - matrix.shape[0], matrix.indptr[-1], matrix.indptr.dtype))
    return sparse.csr_array((matrix.data, matrix.indices, indptr), shape=(n_rows, matrix.shape[1]))


def _stack(upper: sparse.csr_array, lower: sparse.csr_array) -> sparse.csr_array:
    return sparse.csr_array(sparse.vstack([upper, lower], format="csr"))


def _check_places(rows: Any, n: int, n_known: int) -> np.ndarray:
    if rows is None:
        return np.full(n, -1, np.int64)
    place = np.asarray(rows)
    if place.shape != (n,) or (n and not np.issubdtype(place.dtype, np.integer)):
        raise InvalidInput(f"rows has the shape {place.shape}; pass an integer for each of the {n:,} rows of X")
    place = place.astype(np.int64)
    wrong = np.flatnonzero((place < -1) | (place >= n_known))
    if wrong.size:
        raise InvalidInput(f"rows[{wrong[0]}]={place[wrong[0]]} is no training row; pass 0…{n_known - 1:,}, -1 for new")
    own = np.sort(place[place >= 0])
    twice = own[1:][own[1:] == own[:-1]]
    if twice.size:
        raise InvalidInput(f"rows has {twice[0]} twice; give each training row one row to take its place")
    return place
