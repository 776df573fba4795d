"""Dense vectors beside texts: a NumPy file with a row a text."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tailwise.data.files import check_file
from tailwise.errors import DataFormatError, InvalidInput

_ROWS_A_BLOCK = 4096


def read_vectors(path: str | Path, n_rows: int) -> np.ndarray:
    """The vectors of ``n_rows`` texts in an ``.npy`` file, (n_rows, dim), mapped; refused unless whole and finite."""
    path = check_file(path)
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataFormatError(path, None, f"no array ({error})", "an .npy file of numbers, a row a text") from error
    if not isinstance(found, np.ndarray):
        raise DataFormatError(path, None, "several arrays", "an .npy file of one")
    return check_vectors(found, n_rows, str(path))


def check_vectors(vectors: np.ndarray, n_rows: int, name: str = "vectors") -> np.ndarray:
    """``vectors`` where they are finite numbers, a row for each of ``n_rows`` texts."""
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not vectors.shape[1]:
        raise InvalidInput(f"{name} holds {vectors.dtype} of shape {vectors.shape}; it must be numbers, a row a text")
    if len(vectors) != n_rows:
        raise InvalidInput(f"{name} has {len(vectors):,} rows but there are {n_rows:,} texts; make a row for each text")
    for first in range(0, n_rows, _ROWS_A_BLOCK):
        block = np.asarray(vectors[first : first + _ROWS_A_BLOCK])
        if not np.isfinite(block).all():
            row = first + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
            raise InvalidInput(f"{name} holds NaN or infinity at row {row:,}; every vector must be finite")
    return vectors
