"""Input checking, in one place: what a user may pass as ``X``, ``Y``, ``k``, and what a kernel can rely on."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput

_DENSE_WARNING_SIZE = 10_000_000


def as_rng(random_state: int | np.random.Generator | np.random.RandomState | None) -> np.random.Generator:
    """A numpy Generator from whatever scikit-learn users pass as ``random_state``."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"random_state={random_state!r}; pass an integer, a numpy Generator or None") from error


def check_number(
    name: str,
    value: Any,
    *,
    integer: bool = False,
    low: float = -np.inf,
    high: float = np.inf,
    open_low: bool = False,
    open_high: bool = False,
) -> Any:
    """Refuse a numeric parameter outside its range, naming it and showing its value."""
    kind: Any = numbers.Integral if integer else numbers.Real
    if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
        raise InvalidInput(f"{name}={value!r} must be {'an integer' if integer else 'a number'}")
    below = value <= low if open_low else value < low
    above = value >= high if open_high else value > high
    if below or above or value != value:
        interval = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
        raise InvalidInput(f"{name}={value!r} is outside {interval}")
    return value


def check_choice(name: str, value: Any, choices: Any) -> Any:
    """Refuse a value that is not one of ``choices``."""
    if value not in choices:
        raise InvalidInput(f"{name}={value!r} is not one of {', '.join(repr(c) for c in choices)}")
    return value


def _as_csr(name: str, value: Any, dtype: Any) -> sparse.csr_array:
    if sparse.issparse(value):
        if value.ndim != 2:
            raise InvalidInput(f"{name} has {value.ndim} dimension(s); pass a 2-D matrix")
        if np.issubdtype(value.dtype, np.complexfloating):
            raise InvalidInput(f"{name} has complex values. Complex data not supported: pass real numbers")
        csr = sparse.csr_array(value, dtype=dtype)
    else:
        csr = _dense_to_csr(name, value, dtype)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _dense_to_csr(name: str, value: Any, dtype: Any) -> sparse.csr_array:
    dense = np.asarray(value)
    if dense.ndim != 2:
        raise InvalidInput(
            f"{name} has shape {dense.shape}; pass a 2-D matrix. "
            "Reshape your data either using array.reshape(-1, 1) or array.reshape(1, -1)"
        )
    if np.issubdtype(dense.dtype, np.complexfloating):
        raise InvalidInput(f"{name} has complex values. Complex data not supported: pass real numbers")
    if dense.size > _DENSE_WARNING_SIZE:
        warnings.warn(
            f"{name} is a dense array of {dense.size:,} entries and is converted to CSR; "
            "pass scipy.sparse.csr_array to save the time and memory",
            stacklevel=5,
        )
    try:
        with np.errstate(over="ignore"):
            return sparse.csr_array(dense.astype(dtype))
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{name} has dtype {dense.dtype}; argument must be a string or a number ({error})"
        ) from error


def _with_small_indices(csr: sparse.csr_array) -> sparse.csr_array:
    """int32 indices wherever they fit, so that kernels compile for one type in nearly every case."""
    limit = np.iinfo(np.int32).max
    if csr.indices.dtype != np.int32 and csr.nnz <= limit and max(csr.shape) <= limit:
        csr = sparse.csr_array((csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int32)), shape=csr.shape)
        csr.has_canonical_format = True
    return csr


def check_features(
    X: Any,
    *,
    n_features: int | None = None,
    nonnegative: bool = False,
    allow_no_rows: bool = False,
    owner: str = "this model",
) -> sparse.csr_array:
    """X as canonical float32 CSR: sorted, without duplicates, finite. The caller's arrays are never changed.

    Takes csr_matrix, csr_array, any other scipy format, and dense arrays. Messages speak of ``owner``.

    >>> check_features([[0, 1.5], [2, 0]]).dtype
    dtype('float32')
    """
    csr = _as_csr("X", X, np.float32)
    if csr.shape[0] == 0 and not allow_no_rows:
        raise InvalidInput(
            f"X has shape {csr.shape}: found array with 0 sample(s) (shape={csr.shape}) while a minimum of 1 "
            "is required; pass at least one row"
        )
    if csr.shape[1] == 0:
        raise InvalidInput(
            f"X has 0 feature(s) (shape={csr.shape}) while a minimum of 1 is required; pass at least one column"
        )
    if not np.isfinite(csr.data).all():
        bad = int(np.flatnonzero(~np.isfinite(csr.data))[0])
        row = int(np.searchsorted(csr.indptr, bad, side="right")) - 1
        kind = "NaN" if np.isnan(csr.data[bad]) else "infinity (inf)"
        raise InvalidInput(
            f"X has {kind} at row {row}, column {csr.indices[bad]}; replace or remove such values "
            "(float32 holds magnitudes up to 3.4e38)"
        )
    if nonnegative and csr.nnz and csr.data.min() < 0:
        raise InvalidInput(
            f"Negative values in data passed to X (smallest {csr.data.min():g}); {owner} needs features >= 0, "
            "such as TF-IDF or counts"
        )
    if n_features is not None and csr.shape[1] != n_features:
        raise InvalidInput(
            f"X has {csr.shape[1]:,} features, but {owner} is expecting {n_features:,} features as input; "
            "transform X with the same vectoriser as in training"
        )
    return _with_small_indices(csr)


def check_labels(Y: Any, *, n_rows: int | None = None, n_labels: int | None = None) -> sparse.csr_array:
    """Y as canonical binary CSR with float32 ones; explicit zeros are dropped.

    >>> check_labels([[0, 1], [1, 1]]).nnz
    3
    """
    if Y is None:
        raise InvalidInput("Y is None; requires y to be passed, but the target y is None: pass a binary matrix")
    csr = _as_csr("Y", Y, np.float32)
    if not ((csr.data == 1) | (csr.data == 0)).all():
        bad = int(np.flatnonzero((csr.data != 1) & (csr.data != 0))[0])
        row = int(np.searchsorted(csr.indptr, bad, side="right")) - 1
        raise InvalidInput(
            f"Y has the value {csr.data[bad]:g} at row {row}, column {csr.indices[bad]} (or that entry twice); "
            "Y must hold only 0 and 1"
        )
    if csr.shape[1] == 0:
        raise InvalidInput(f"Y has shape {csr.shape}; it needs at least one label column")
    if n_rows is not None and csr.shape[0] != n_rows:
        raise InvalidInput(f"Y has {csr.shape[0]:,} rows but X has {n_rows:,}; they must describe the same rows")
    if n_labels is not None and csr.shape[1] != n_labels:
        raise InvalidInput(f"Y has {csr.shape[1]:,} columns but {n_labels:,} labels were expected")
    if csr.nnz and not csr.data.all():
        csr = csr.copy()
        csr.eliminate_zeros()
    return _with_small_indices(csr)


def check_k(k: Any) -> int:
    """K as a positive int; it may exceed the number of labels (the rest is then padded)."""
    return int(check_number("k", k, integer=True, low=1))


def label_counts(Y: sparse.csr_array) -> np.ndarray:
    """How many rows carry each label: (n_labels,) int64."""
    return np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64)


def unit_rows(X: sparse.csr_array) -> sparse.csr_array:
    """X with every non-empty row scaled to unit length (a copy; empty rows stay empty)."""
    scaled = sparse.csr_array((unit_data(X), X.indices, X.indptr), shape=X.shape)
    scaled.has_canonical_format = True
    return scaled


def unit_data(X: sparse.csr_array) -> np.ndarray:
    """The ``data`` of :func:`unit_rows`, for single rows, where a new matrix costs more than its values."""
    # Not at the top, because numba takes long to import and reading the help needs no rows.
    from tailwise.kernels.sparse.rows import unit_values

    return unit_values(X.indptr, X.data)


def smooth_idf(n_having: np.ndarray, n_rows: int) -> np.ndarray:
    """``ln((1 + n_rows) / (1 + n_having)) + 1``, the weight of a feature that ``n_having`` of the rows have.

    >>> smooth_idf(np.array([0, 9]), 9).round(2)
    array([3.3, 1. ], dtype=float32)
    """
    return (np.log((1.0 + n_rows) / (1.0 + n_having)) + 1.0).astype(np.float32)
