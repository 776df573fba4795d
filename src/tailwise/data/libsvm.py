"""The libsvm (svmlight) format with several labels a row: ``l1,l2 index:value …``, without a header."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.data import rows
from tailwise.data.files import read_buffer
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.validation import check_choice, check_number


def read_libsvm(
    path: str | Path,
    *,
    zero_based: bool | str = "auto",
    n_features: int | None = None,
    n_labels: int | None = None,
    duplicates: str = "refuse",
    n_jobs: int | None = None,
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Read X (rows, features) float32 and Y (rows, labels), float32 ones, as canonical CSR; gz and xz too.

    A ``#`` starts a comment. To read a training and a test file, whose numbers must mean the same, use
    :func:`read_libsvm_files`.

    Parameters
    ----------
    path : str or Path
        The file; its name may end in .gz or .xz.
    zero_based : bool or "auto"
        Whether features and labels count from 0. "auto" takes features to count from 1 where index 0 never comes, and
        labels likewise, as scikit-learn does for features.
    n_features, n_labels : int, optional
        The widths of X and Y; by default what the largest index needs. A larger index is refused.
    duplicates : {"refuse", "merge"}
        As in :func:`read_xmc`.
    n_jobs : int or None
        Threads that parse; None is every core.
    """
    return read_libsvm_files(
        [path], zero_based=zero_based, n_features=n_features, n_labels=n_labels, duplicates=duplicates, n_jobs=n_jobs
    )[0]


def read_libsvm_files(
    paths: Sequence[str | Path],
    *,
    zero_based: bool | str = "auto",
    n_features: int | None = None,
    n_labels: int | None = None,
    duplicates: str = "refuse",
    n_jobs: int | None = None,
) -> list[tuple[sparse.csr_array, sparse.csr_array]]:
    """Read several files as one data set: the widths of X and Y, and where counting starts, are the same for all."""
    check_choice("zero_based", zero_based, (True, False, "auto"))
    found = []
    for path in paths:
        limits = rows.Limits(comments=True)
        part = rows.parse(Path(path), read_buffer(path), 0, limits, duplicates=duplicates, n_jobs=n_jobs)
        if part.starts.size == 0:
            raise DataFormatError(path, None, "no row", "lines of the form: l1,l2 index:value index:value")
        found.append(part)
    X = _align([part.X for part in found], "feature", zero_based, n_features, paths)
    Y = _align([part.Y for part in found], "label", zero_based, n_labels, paths)
    return list(zip(X, Y, strict=True))


def write_libsvm(path: str | Path, X: object, Y: object, *, zero_based: bool = False) -> None:
    """Write X and Y as libsvm: features from 1 (the format's custom) or from 0, labels as their column numbers."""
    features, labels = rows.check_pair(X, Y)
    rows.write(path, features, labels, b"", base=0 if zero_based else 1)


def _align(
    matrices: list[Any], word: str, zero_based: bool | str, width: int | None, paths: Sequence[str | Path]
) -> list[sparse.csr_array]:
    smallest = min((int(matrix.indices.min()) for matrix in matrices if matrix.nnz), default=0)
    base = int(smallest > 0) if zero_based == "auto" else int(not zero_based)
    if smallest < base:
        raise InvalidInput(f"{paths[0]} has {word} 0 in its files; pass zero_based=True")
    needed = max(1, *(int(matrix.shape[1]) - base for matrix in matrices))
    if width is not None:
        check_number(f"n_{word}s", width, integer=True, low=1)
        if needed > width:
            raise InvalidInput(f"n_{word}s={width:,}, but {paths[0]} needs {needed:,}; raise it or leave it out")
        needed = width
    aligned = []
    for matrix in matrices:
        indices = matrix.indices - np.asarray(base, matrix.indices.dtype)
        shifted = sparse.csr_array((matrix.data, indices, matrix.indptr), shape=(matrix.shape[0], needed))
        shifted.has_canonical_format = True
        aligned.append(shifted)
    return aligned
