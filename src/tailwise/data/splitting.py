"""Which rows train and which test: with rare labels on both sides, by group, or by time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput
from tailwise.validation import as_rng, check_labels, check_number

ON_BOTH_SIDES = 5
_LOOKED_AT = 20  # rows of a label among which the one with most labels still to be tested is taken


class Split(NamedTuple):
    """Rows to train on and rows to test on, each in the order of the file."""

    train: np.ndarray
    test: np.ndarray


def split_rows(
    Y: Any,
    test_fraction: float = 0.2,
    *,
    groups: Sequence[Any] | np.ndarray | None = None,
    order: Sequence[Any] | np.ndarray | None = None,
    random_state: Any = 0,
) -> Split:
    """Divide rows into training and test rows.

    Every label of at least 2 rows keeps one in training. Labels of at least 5 rows get one in the test rows too,
    rarest first, as long as no other label loses its last training row by that; where they need more test rows than
    ``test_fraction``, they get them. The remaining test rows are drawn at random.

    Parameters
    ----------
    Y : (n_rows, n_labels) sparse or array
        The labels of each row.
    test_fraction : float
        The share of rows that are tested on, between 0 and 1.
    groups : (n_rows,) sequence, optional
        What a row belongs to, such as its author: a group is never on both sides. Labels are then counted by the
        groups that have them.
    order : (n_rows,) sequence, optional
        When a row came: the latest are tested on, whatever their labels.
    random_state : int, Generator or None
        The same number gives the same rows.

    Examples
    --------
    >>> split_rows(np.ones((5, 1)), 0.4, order=[3, 1, 5, 2, 4]).test
    array([2, 4])
    """
    Y = check_labels(Y)
    n_rows = Y.shape[0]
    check_number("test_fraction", test_fraction, low=0, high=1, open_low=True, open_high=True)
    if n_rows < 2:
        raise InvalidInput(f"Y has {n_rows} rows; it needs 2 to be split")
    if groups is not None and order is not None:
        raise InvalidInput("groups and order were both passed; split by one of them")
    for name, values in (("groups", groups), ("order", order)):
        if values is not None and len(values) != n_rows:
            raise InvalidInput(f"{name} has {len(values):,} entries but Y has {n_rows:,} rows")
    n_test = min(max(1, round(test_fraction * n_rows)), n_rows - 1)
    tested = np.zeros(n_rows, bool)
    if order is not None:
        tested[np.argsort(np.asarray(order), kind="stable")[n_rows - n_test :]] = True
    elif groups is None:
        tested[:] = _choose(Y, np.ones(n_rows, np.int64), n_test, as_rng(random_state))
    else:
        group = _numbered(groups)
        sizes = np.bincount(group)
        if sizes.size < 2:
            raise InvalidInput("groups has one value in every row; it needs 2 groups to be split")
        member = sparse.csr_array((np.ones(n_rows, np.float32), (group, np.arange(n_rows))))
        together = sparse.csr_array(member @ Y)
        tested[:] = _choose(together, sizes, n_test, as_rng(random_state))[group]
    return Split(np.flatnonzero(~tested), np.flatnonzero(tested))


def _numbered(groups: Sequence[Any] | np.ndarray) -> np.ndarray:
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups], np.int64)


def _choose(Y: sparse.csr_array, sizes: np.ndarray, n_test: int, rng: np.random.Generator) -> np.ndarray:
    """Which units (rows, or groups of ``sizes`` rows) are tested on."""
    by_label = sparse.csc_array(Y)
    counts = np.diff(by_label.indptr)
    left, tests = counts.copy(), np.zeros_like(counts)
    tested = np.zeros(Y.shape[0], bool)

    def labels_of(unit: int) -> np.ndarray:
        return Y.indices[Y.indptr[unit] : Y.indptr[unit + 1]]

    def may_go(unit: int) -> bool:
        labels = labels_of(unit)
        return not (tested[unit] or ((left[labels] == 1) & (counts[labels] > 1)).any())

    def take(unit: int) -> None:
        tested[unit] = True
        left[labels_of(unit)] -= 1
        tests[labels_of(unit)] += 1

    def gain(unit: int) -> int:
        labels = labels_of(unit)
        return int((wanted[labels] & (tests[labels] == 0)).sum())

    wanted = counts >= ON_BOTH_SIDES
    for label in np.argsort(counts, kind="stable").tolist():
        if not wanted[label] or tests[label]:
            continue
        units = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        able = list(islice(filter(may_go, rng.permutation(units).tolist()), _LOOKED_AT))
        if able:
            take(max(able, key=gain))
    room = n_test - int(sizes[tested].sum())
    for unit in rng.permutation(tested.size).tolist():
        if room <= 0:
            break
        if sizes[unit] <= room and may_go(unit):
            take(unit)
            room -= int(sizes[unit])
    if not tested.any():
        take(int(np.argmin(sizes)))
    return tested
