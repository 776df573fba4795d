"""Where the dual of each label stood when it was solved, kept so that an update goes on from there."""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from tailwise.kernels.arrays import read_only
from tailwise.kernels.solvers.problems import Support
from tailwise.kernels.sparse.parts import copy_parts
from tailwise.parallel import gathered, map_blocks
from tailwise.persistence.checks import (
    check_exact,
    check_indices,
    check_kind,
    check_offsets,
    check_range,
    check_shape,
    check_that,
)

_LARGEST = float(np.finfo(np.float16).max)
_SHORT = 2**16
_ENTRIES_A_BLOCK = 1 << 19
"""Support vectors, about, that are laid in place at once."""


class DualState(NamedTuple):
    """The support vectors of every label: four bytes each where there are at most 65,536 rows, six otherwise.

    An α rounded to half precision is itself a point of the dual, from which descent goes on as well.
    """

    n_rows: int
    """how many rows there were"""
    indptr: np.ndarray
    """(n_labels + 1,) int64"""
    rows: np.ndarray
    """(nnz,) uint16 or int32, ascending within a label"""
    values: np.ndarray
    """(nnz,) float16: α z"""

    def of(self, labels: np.ndarray) -> Support:
        """The support vectors of ``labels``, in their order; labels that are newer, or -1, have none."""
        indptr, rows, values = self.kept(labels)
        return Support(indptr, rows.astype(np.int32, copy=False), values.astype(np.float32))

    def kept(self, labels: np.ndarray) -> Support:
        """The same in the types in which they are kept."""
        old = np.clip(labels, 0, max(0, self.indptr.size - 2))
        there = (old == labels) if self.indptr.size > 1 else np.zeros(old.size, np.bool_)
        begin = np.where(there, self.indptr[old], 0)
        counts = np.where(there, self.indptr[old + there] - begin, 0)
        indptr = np.append(0, np.cumsum(counts))
        rows, values = np.empty(indptr[-1], self.rows.dtype), np.empty(indptr[-1], np.float16)
        _copy((self.rows, self.values), begin, counts, (rows, values), indptr[:-1])
        return Support(indptr, rows, values)

    def among(self, rows: np.ndarray) -> DualState:
        """The support vectors that are among ``rows`` (n,), ascending, which are numbered anew.

        >>> state = DualState(3, np.array([0, 1, 3]), np.array([1, 0, 2], np.uint16), np.ones(3, np.float16))
        >>> state.among(np.array([0, 2]))[1:3]
        (array([0, 0, 2]), array([0, 1], dtype=uint16))
        """
        number = np.full(self.n_rows, -1, np.int32)
        number[rows] = np.arange(rows.size)
        found = number[self.rows]
        there = found >= 0
        indptr = np.append(0, np.cumsum(there))[self.indptr]
        return DualState(rows.size, indptr, found[there].astype(_row_type(rows.size)), self.values[there])

    def check(self, n_labels: int) -> None:
        """Refuse what no model of this many labels keeps."""
        check_that(type(self.n_rows) is int and self.n_rows > 0, f"dual_.n_rows is {self.n_rows!r}")
        rows = check_shape("dual_.rows", self.rows, (None,), "iu")
        check_exact("dual_.rows", check_indices("dual_.rows", rows, self.n_rows), _row_type(self.n_rows), (None,))
        check_exact("dual_.indptr", self.indptr, np.int64, (n_labels + 1,))
        ends = check_offsets("dual_.indptr", self.indptr, n_labels, rows.size)[1:-1]
        falls = rows[1:] <= rows[:-1]
        falls[ends[(ends > 0) & (ends < rows.size)] - 1] = False
        check_that(not falls.any(), "dual_.rows does not rise within a label")
        check_range(
            "dual_.values", check_exact("dual_.values", self.values, np.float16, (rows.size,)), -_LARGEST, _LARGEST
        )


class DualStore:
    """Takes the support vectors of blocks of labels in any order, from any thread; the result does not depend on it."""

    def __init__(self, n_rows: int, n_labels: int) -> None:
        self._n_rows = n_rows
        self._sizes = np.zeros(n_labels, np.int64)
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._whole = True
        self._lock = Lock()

    def add(self, labels: np.ndarray, support: Support | None) -> None:
        """Keep those of ``labels``, in their order; None says that their solver has no dual."""
        with self._lock:
            if support is None:
                self._whole = False
                return
            self._sizes[labels] = np.diff(support.indptr)
            own = compact(support, self._n_rows)
            self._parts.append((labels, own.positions, own.values))

    def finish(self, n_jobs: int | None = 1) -> DualState | None:
        """What to keep; None where a solver has no dual. The store is empty afterwards."""
        # Neighbours are laid together: the first who writes to a page of memory waits for it.
        parts, self._parts = sorted((part for part in self._parts if part[0].size), key=lambda part: part[0][0]), []
        if not self._whole:
            return None
        indptr = np.append(0, np.cumsum(self._sizes))
        rows, values = np.empty(indptr[-1], _row_type(self._n_rows)), np.empty(indptr[-1], np.float16)

        def lay_parts(block: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> None:
            for labels, own, alphas in block:
                counts = self._sizes[labels]
                _copy((own, alphas), np.cumsum(counts) - counts, counts, (rows, values), indptr[labels])

        map_blocks(lay_parts, gathered(parts, lambda part: part[1].size, _ENTRIES_A_BLOCK), n_jobs=n_jobs)
        return DualState(self._n_rows, indptr, rows, values)


def _copy(
    arrays: tuple[np.ndarray, np.ndarray],
    begin: np.ndarray,
    count: np.ndarray,
    into: tuple[np.ndarray, np.ndarray],
    place: np.ndarray,
) -> None:
    """Copy parts of rows and values."""
    ends = [read_only(np.asarray(own, np.int64)) for own in (begin, count, place)]
    for array, other in zip(arrays, into, strict=True):
        # Kernels know no half precision, and copying needs none.
        kind = np.uint16 if array.dtype == np.float16 else array.dtype
        copy_parts(read_only(array).view(kind), *ends[:2], other.view(kind), ends[2])


def compact(support: Support, n_rows: int) -> Support:
    """As it is kept of a problem with so many rows; what is so already is not copied."""
    values = support.values
    if values.dtype != np.float16:
        values = np.clip(values, -_LARGEST, _LARGEST).astype(np.float16)
    return Support(support.indptr, support.positions.astype(_row_type(n_rows), copy=False), values)


def check_dual(state: Any, n_labels: int) -> None:
    """Refuse what is no ``dual_`` of a model."""
    if state is not None:
        check_kind("dual_", state, DualState).check(n_labels)


def _row_type(n_rows: int) -> type[np.integer[Any]]:
    return np.uint16 if n_rows <= _SHORT else np.int32
