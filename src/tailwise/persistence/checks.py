"""What must hold in arrays that come from a file before a kernel trusts them: vectorised, one pass each.

Kernels run without bounds checks, so whoever opens a folder makes sure that every index is within range. The functions
name the array and show the first wrong value:

>>> check_indices("leaves_", np.array([0, 7, 2]), 5)
Traceback (most recent call last):
...
tailwise.persistence.checks.Violation: leaves_ holds 7 at position 1, outside [0, 4]
"""

from __future__ import annotations

from typing import IO, Any

import numpy as np
from scipy import sparse

_BLOCK = 1 << 18
"""Entries looked at together: they stay in the processor's cache, and what is made of them is small."""

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}

INTEGERS = "iu"
NUMBERS = "biuf"


class Violation(ValueError):
    """A restored state holds what ``fit`` never leaves; ``load`` turns it into a ModelFileError."""


def array_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, Fortran order and type of the array of a ``.npy`` file, which is read up to its first value."""
    return _HEADERS[np.lib.format.read_magic(file)](file)


def check_that(holds: Any, message: str) -> None:
    """Refuse with ``message`` unless it ``holds``."""
    if not holds:
        raise Violation(message)


def check_kind(name: str, value: Any, kind: type[Any]) -> Any:
    """A value of this class."""
    if not isinstance(value, kind):
        raise Violation(f"{name} is a {type(value).__name__}, not a {kind.__name__}")
    return value


def check_strings(name: str, value: Any, n: int | None = None) -> list[str]:
    """A list of ``n`` strings."""
    value = check_kind(name, value, list)
    check_that(n in (None, len(value)), f"{name} has {len(value):,} entries, not {n}")
    # By their classes first: one by one only where there is something to tell.
    if set(map(type, value)) - {str}:
        for item in value:
            check_kind(f"an entry of {name}", item, str)
    return value


def check_array(name: str, array: Any, kinds: str = NUMBERS) -> np.ndarray:
    """An array of native numbers of these ``kinds`` (numpy's letters), aligned as kernels want it."""
    if not isinstance(array, np.ndarray):
        raise Violation(f"{name} is a {type(array).__name__}, not an array")
    if array.dtype.kind not in kinds or not array.dtype.isnative:
        raise Violation(f"{name} has dtype {array.dtype.str}, not one of the kinds {', '.join(kinds)}")
    if not array.flags.aligned:
        raise Violation(f"{name} is not aligned")
    return array


def check_shape(name: str, array: Any, shape: tuple[int | None, ...], kinds: str = NUMBERS) -> np.ndarray:
    """An array of this ``shape``; None stands for any length."""
    array = check_array(name, array, kinds)
    agree = len(shape) == array.ndim and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    if not agree:
        wanted = ", ".join("any" if n is None else f"{n:,}" for n in shape)
        raise Violation(f"{name} has shape {array.shape}, not ({wanted})")
    return array


def check_exact(name: str, array: Any, dtype: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """An array of this dtype and ``shape``, its entries in C's order: what a kernel was compiled for."""
    dtype = np.dtype(dtype)
    array = check_shape(name, array, shape, dtype.kind)
    check_that(array.dtype == dtype, f"{name} has dtype {array.dtype}, not {dtype}")
    check_that(array.flags.c_contiguous, f"{name} is not in C's order")
    return array


def check_range(name: str, array: Any, low: float = -np.inf, high: float = np.inf) -> np.ndarray:
    """Numbers in [``low``, ``high``]; NaN is outside of every range."""
    array = check_array(name, array)
    least, most = _extremes(array)
    if array.size and not (least >= low and most <= high):
        flat = array.ravel()
        at = int(np.argmin((flat >= low) & (flat <= high)))
        raise Violation(f"{name} holds {flat[at]} at position {at:,}, outside [{low}, {high}]")
    return array


def _extremes(array: np.ndarray) -> tuple[Any, Any]:
    """The least and the largest entry, each NaN where any entry is; the array is read once, block by block."""
    flat = array.ravel(order="K")
    least, most = np.inf, -np.inf
    for first in range(0, flat.size, _BLOCK):
        block = flat[first : first + _BLOCK]
        least, most = np.minimum(least, block.min()), np.maximum(most, block.max())
    return least, most


def check_indices(name: str, array: Any, n: int, *, missing: bool = False) -> np.ndarray:
    """Integers that index ``n`` things: in [0, n - 1], or -1 too where ``missing`` says that it stands for none."""
    return check_range(name, check_array(name, array, INTEGERS), -1 if missing else 0, n - 1)


def check_finite(name: str, array: Any) -> np.ndarray:
    """Numbers without NaN and infinity."""
    array = check_array(name, array)
    # The extremes are NaN where any entry is: the common case makes no array of flags.
    if array.dtype.kind == "f" and array.size and not np.isfinite(_extremes(array)).all():
        flat = array.ravel()
        at = int(np.argmin(np.isfinite(flat)))
        raise Violation(f"{name} holds {flat[at]} at position {at:,}")
    return array


def check_monotone(name: str, array: Any, *, strict: bool = False) -> np.ndarray:
    """A one-dimensional array that never falls, or that always rises."""
    array = check_shape(name, array, (None,))
    for first in range(0, array.size, _BLOCK):
        block = array[first : first + _BLOCK + 1]
        wrong = block[1:] <= block[:-1] if strict else block[1:] < block[:-1]
        if wrong.any():
            at = first + int(np.argmax(wrong)) + 1
            raise Violation(f"{name} does not rise: it holds {array[at]} at position {at:,} after {array[at - 1]}")
    return array


def check_offsets(name: str, array: Any, n: int, total: int) -> np.ndarray:
    """Where each of ``n`` parts of ``total`` entries begins: n + 1 integers from 0 to ``total`` that never fall."""
    array = check_monotone(name, check_shape(name, array, (n + 1,), INTEGERS))
    if array[0] != 0 or array[-1] != total:
        raise Violation(f"{name} runs from {array[0]} to {array[-1]}, not from 0 to {total}")
    return array


def check_csr(name: str, data: Any, indices: Any, indptr: Any, shape: Any) -> tuple[int, int]:
    """The three arrays of a CSR matrix, agreeing with each other and with ``shape``, which is returned as a tuple."""
    whole = isinstance(shape, list | tuple) and len(shape) == 2 and all(type(n) is int for n in shape)
    if not whole or min(shape) < 0 or max(shape) > np.iinfo(np.int64).max:
        raise Violation(f"{name} has the shape {shape!r}, not two lengths")
    n, m = shape
    data = check_shape(f"{name}.data", data, (None,))
    indices = check_shape(f"{name}.indices", indices, (data.size,), "i")
    check_offsets(f"{name}.indptr", check_array(f"{name}.indptr", indptr, "i"), n, data.size)
    check_indices(f"{name}.indices", indices, m)
    return n, m


def check_matrix(name: str, matrix: Any, shape: tuple[int, int]) -> sparse.csr_array:
    """A CSR matrix of finite float32 of this ``shape``; its indices were checked when it was read."""
    matrix = check_kind(name, matrix, sparse.csr_array)
    check_that(matrix.shape == shape, f"{name} has shape {matrix.shape}, not {shape}")
    check_finite(f"{name}.data", check_exact(f"{name}.data", matrix.data, np.float32, (None,)))
    return matrix


def check_parts(name: str, array: Any, first: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Parts ``first[v] : first[v + 1]``, each empty, or rising from 0 to ``ends[v]``."""
    starts, stops = first[:-1], first[1:]
    used = stops > starts
    falls = array[1:] < array[:-1]
    falls[starts[used & (starts > 0)] - 1] = False
    right = not falls.any() and not array[starts[used]].any() and (array[stops[used] - 1] == ends[used]).all()
    check_that(right, f"{name} has a part that does not rise from 0 to the number of what it counts")
    return array
