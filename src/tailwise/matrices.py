"""Sparse matrices that keep their promises, from whatever a caller passes as one.

Compiled code, scipy's and ours, follows the indices of a matrix without looking, and arrays that were put in place of a
matrix's own may break any promise. Here is the one look at them, before anything follows them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput

_COMPRESSED = ("csr", "csc", "bsr")
_REBUILD = "build the matrix anew: scipy.sparse.csr_array((data, (rows, columns)), shape=shape)"


def canonical_csr(name: str, matrix: Any, dtype: Any) -> sparse.csr_array:
    """A 2-D scipy matrix of any format as CSR: consistent in itself, sorted, without duplicates; messages say ``name``.

    Shares the arrays where they are in order, and never changes them.
    """
    in_order = check_consistent(name, matrix)
    if in_order and matrix.dtype == dtype and type(matrix) in (sparse.csr_array, sparse.csr_matrix):
        return matrix if type(matrix) is sparse.csr_array else _as_array(matrix)
    try:
        csr = sparse.csr_array(matrix, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} cannot be read as a matrix of {np.dtype(dtype)} ({error})") from error
    if matrix.format in ("lil", "dia"):
        check_consistent(name, csr)
    # A new object, whose flags nobody can have set: scipy looks at the indices themselves.
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _as_array(matrix: sparse.csr_matrix) -> sparse.csr_array:
    """The same arrays in the class with the operators of arrays; the constructor would look at them all again."""
    array = sparse.csr_array.__new__(sparse.csr_array)
    vars(array).update(vars(matrix))
    return array


def check_consistent(name: str, matrix: Any) -> bool:
    """Refuse a scipy matrix whose arrays disagree or lead outside of it, before compiled code follows them.

    Says whether its rows (of CSC, columns) are known to be sorted and without duplicates.
    """
    if matrix.format in _COMPRESSED:
        height, width = matrix.blocksize if matrix.format == "bsr" else (1, 1)
        n, m = matrix.shape[0] // height, matrix.shape[1] // width
        n, m = (m, n) if matrix.format == "csc" else (n, m)
        return _check_compressed(name, matrix, n, m)
    if matrix.format == "coo":
        for axis, (indices, size) in enumerate(zip(matrix.coords, matrix.shape, strict=True)):
            what = f"{name}.coords[{axis}]"
            _check_index_array(what, indices)
            if indices.size != matrix.data.size:
                raise InvalidInput(
                    f"{what} has {indices.size:,} entries but {name}.data has {matrix.data.size:,}; {_REBUILD}"
                )
            _check_within(what, indices, size, lambda at: f"entry {at:,}")
    elif matrix.format == "dia" and matrix.offsets.shape != matrix.data.shape[:1]:
        raise InvalidInput(
            f"{name}.offsets has shape {matrix.offsets.shape} but {name}.data has {matrix.data.shape}; {_REBUILD}"
        )
    return False


def _check_compressed(name: str, matrix: Any, n: int, m: int) -> bool:
    # Not at the top, because numba takes long to import and reading the help needs no matrix.
    from tailwise.kernels.arrays import read_only
    from tailwise.kernels.sparse.rows import BROKEN, CANONICAL, row_order

    indices, indptr = matrix.indices, matrix.indptr
    _check_index_array(f"{name}.indices", indices)
    _check_index_array(f"{name}.indptr", indptr)
    shape = (indices.size, *(matrix.blocksize if matrix.format == "bsr" else ()))
    if not isinstance(matrix.data, np.ndarray) or matrix.data.shape != shape:
        raise InvalidInput(
            f"{name}.data has shape {np.shape(matrix.data)} but {name}.indices has {indices.size:,} entries; {_REBUILD}"
        )
    if indptr.size != n + 1:
        raise InvalidInput(f"{name}.indptr has {indptr.size:,} entries; {name} of shape {matrix.shape} needs {n + 1:,}")
    order = row_order(read_only(indptr.astype(np.int64, copy=False)), read_only(indices), m)
    if order == BROKEN:
        _tell_what_is_broken(name, matrix, m)
    return bool(order == CANONICAL)


def _tell_what_is_broken(name: str, matrix: Any, m: int) -> None:
    """Refuse a matrix that :func:`row_order` found broken, with the place."""
    indices, indptr = matrix.indices, matrix.indptr
    line = "column" if matrix.format == "csc" else "row"
    if indptr[0] != 0 or indptr[-1] != indices.size:
        raise InvalidInput(
            f"{name}.indptr runs from {indptr[0]:,} to {indptr[-1]:,}, not from 0 to the {indices.size:,} entries of "
            f"{name}.indices; {_REBUILD}"
        )
    if not (indptr[1:] >= indptr[:-1]).all():
        at = int(np.argmax(indptr[1:] < indptr[:-1]))
        raise InvalidInput(
            f"{name}.indptr falls from {indptr[at]:,} to {indptr[at + 1]:,} at {line} {at:,} but may only rise; "
            f"{_REBUILD}"
        )

    def place(at: int) -> str:
        return f"{line} {int(np.searchsorted(indptr, at, side='right')) - 1:,} (entry {at:,})"

    _check_within(f"{name}.indices", indices, m, place)


def _check_index_array(name: str, array: Any) -> None:
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind != "i" or not array.dtype.isnative:
        raise InvalidInput(f"{name} is {array!r:.80}; it must be a 1-D array of signed integers: {_REBUILD}")


def _check_within(name: str, indices: np.ndarray, size: int, place: Callable[[int], str]) -> None:
    if indices.size and not (np.minimum.reduce(indices) >= 0 and np.maximum.reduce(indices) < size):
        at = int(np.argmax((indices < 0) | (indices >= size)))
        raise InvalidInput(f"{name} holds {indices[at]} at {place(at)}, outside [0, {size - 1:,}]; {_REBUILD}")
