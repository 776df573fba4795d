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


def csr_views(X: Any) -> Csr:
    """As :func:`csr_parts` without a change of types: for weights, whose indptr is too long to copy at each call."""
    return frozen(Csr(X.indptr, X.indices, X.data))
