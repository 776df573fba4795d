"""Dense vectors beside texts: a NumPy file with a row a text."""

from __future__ import annotations

import tokenize
from pathlib import Path

import numpy as np

from tailwise.data.files import check_file
from tailwise.errors import DataFormatError, InvalidInput

LONGEST = 1 << 16
"""How many numbers a vector may have."""
_ROWS_A_BLOCK = 4096
# What numpy raises for a header that is none.
_FOREIGN = (ValueError, OSError, EOFError, SyntaxError, TypeError, OverflowError, MemoryError, tokenize.TokenError)


def read_vectors(path: str | Path, n_rows: int) -> np.ndarray:
    """The vectors of ``n_rows`` texts in an ``.npy`` file, (n_rows, dim), mapped; refused unless whole and finite."""
    return check_vectors(read_array(path), n_rows, str(path))


def read_array(path: str | Path) -> np.ndarray:
    """The array in an ``.npy`` file, mapped."""
    path = check_file(path)
    expected = "an .npy file of numbers, a row a text or word"
    try:
        # Not np.load: it opens archives too, and pickles where it is told to.
        return np.lib.format.open_memmap(path, "r")
    except _FOREIGN as error:
        raise DataFormatError(path, None, f"damaged or foreign data, no array ({error})", expected) from error


def check_vectors(vectors: np.ndarray, n_rows: int, name: str = "vectors") -> np.ndarray:
    """``vectors`` where they are finite numbers, a row for each of ``n_rows`` texts."""
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not vectors.shape[1]:
        raise InvalidInput(f"{name} holds {vectors.dtype} of shape {vectors.shape}; it must be numbers, a row a text")
    if vectors.shape[1] > LONGEST:
        raise InvalidInput(f"{name} has {vectors.shape[1]:,} numbers a text; at most {LONGEST:,} are taken")
    if len(vectors) != n_rows:
        raise InvalidInput(f"{name} has {len(vectors):,} rows but there are {n_rows:,} texts; make a row for each text")
    for first in range(0, n_rows, _ROWS_A_BLOCK):
        block = np.asarray(vectors[first : first + _ROWS_A_BLOCK])
        if not np.isfinite(block).all():
            row = first + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
            raise InvalidInput(f"{name} holds NaN or infinity at row {row:,}; every vector must be finite")
    return vectors
