"""The form in which kernels take sparse rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailwise.kernels.arrays import frozen


class Csr(NamedTuple):
    """Sparse rows, only read: entries ``indptr[i] : indptr[i + 1]`` of ``indices`` and ``data`` are row i."""

    indptr: np.ndarray
    """(n_rows + 1,) int64"""
    indices: np.ndarray
    """(nnz,) int32"""
    data: np.ndarray
    """(nnz,) float32"""


def csr_parts(X: Any, data: np.ndarray | None = None) -> Csr:
    """The parts of a scipy CSR matrix (or of a :class:`Csr`), with other values if ``data`` is given.

    They are read-only and of the types above, so that every kernel compiles once. Nothing is copied but what has
    another type: of int32 indptr n_rows + 1 numbers. A few microseconds for one row.

    >>> csr_parts(Csr(np.array([0, 1], np.int32), np.array([4]), np.array([0.5]))).indptr.dtype
    dtype('int64')
    """
    values = X.data if data is None else data
    return frozen(
        Csr(
            X.indptr.astype(np.int64, copy=False),
            X.indices.astype(np.int32, copy=False),
            values.astype(np.float32, copy=False),
        )
    )


def spread(begin: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parts of an array that are laid end to end: where each begins then, (n + 1,) int64, and the place of each entry.

    >>> spread(np.array([7, 2]), np.array([2, 3]))
    (array([0, 2, 5]), array([7, 8, 2, 3, 4]))
    """
    indptr = np.zeros(count.shape[0] + 1, np.int64)
    np.cumsum(count, out=indptr[1:])
    return indptr, np.repeat(begin - indptr[:-1], count) + np.arange(indptr[-1])


def csr_views(X: Any) -> Csr:
    """As :func:`csr_parts` without a change of types: for weights, whose indptr is too long to copy at each call."""
    return frozen(Csr(X.indptr, X.indices, X.data))
