"""Arrays that cannot be written to, and arrays that grow."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np

from tailwise.kernels.compilation import njit

Parts = TypeVar("Parts", bound=NamedTuple)


def read_only(array: np.ndarray) -> np.ndarray:
    """A plain view that cannot be written to: kernels compile once for arrays of memory and of mapped files."""
    view = array.view(np.ndarray)
    view.setflags(write=False)
    return view


def frozen(parts: Parts) -> Parts:
    """A NamedTuple with all its arrays read-only.

    >>> class Pair(NamedTuple):
    ...     values: np.ndarray
    ...     number: int
    >>> frozen(Pair(np.zeros(2), 3)).values.flags.writeable
    False
    """
    kept: Any = (read_only(part) if isinstance(part, np.ndarray) else part for part in parts)
    return type(parts)(*kept)


@njit(nogil=True, cache=True, boundscheck=False)
def grown(array, used, size):
    """``array`` if it has room for ``size`` entries; else a copy of its first ``used``, at least twice as long.

    ``array`` is one-dimensional, contiguous and writable, and is not written to; entries after ``used`` are arbitrary.
    """
    if size <= array.shape[0]:
        return array
    larger = np.empty(max(size, 2 * array.shape[0]), array.dtype)
    for a in range(used):
        larger[a] = array[a]
    return larger
