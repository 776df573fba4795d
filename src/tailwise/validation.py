"""Input checking, in one place: what a user may pass as ``X``, ``Y``, ``k``, and what a kernel can rely on."""

from __future__ import annotations

import difflib
import math
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput, argument
from tailwise.matrices import canonical_csr
from tailwise.runs import current_run

_DENSE_WARNING_SIZE = 10_000_000


def as_rng(random_state: int | np.random.Generator | np.random.RandomState | None) -> np.random.Generator:
    """A numpy Generator from whatever scikit-learn users pass as ``random_state``."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(_entropy() if random_state is None else random_state)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"random_state={random_state!r}; pass an integer, a numpy Generator or None") from error


def as_seed(random_state: Any) -> int | None:
    """An integer for libraries that take no Generator; None stays None.

    >>> as_seed(3), as_seed(None), as_seed(np.random.default_rng(0))
    (3, None, 1826701615)
    """
    if random_state is None or isinstance(random_state, _INTEGERS):
        return None if random_state is None else int(random_state)
    return int(as_rng(random_state).integers(2**31))


def _entropy() -> int | None:
    run = current_run()
    return None if run is None else run.entropy()


_INTEGERS = (int, np.integer)
_NUMBERS = (*_INTEGERS, float, np.floating)


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
    """Refuse a number outside its interval, naming it and showing its value. Infinity and NaN are in no interval."""
    kind: Any = _INTEGERS if integer else _NUMBERS
    if isinstance(value, bool) or not isinstance(value, kind):
        raise InvalidInput(f"{argument(name, value)} must be {'an integer' if integer else 'a number'}")
    if isinstance(value, _INTEGERS) and int(value).bit_length() > 63:
        raise InvalidInput(f"{name} has {int(value).bit_length():,} bits; pass a number that compiled code can take")
    below = value <= low if open_low else value < low
    above = value >= high if open_high else value > high
    if below or above or not math.isfinite(value):
        raise InvalidInput(f"{argument(name, value)} is outside {interval(low, high, open_low, open_high)}")
    return value


def interval(low: float, high: float, open_low: bool = False, open_high: bool = False) -> str:
    """An interval as mathematicians write it.

    >>> interval(0, np.inf)
    '[0, inf)'
    """
    left = "(" if open_low or low == -np.inf else "["
    right = ")" if open_high or high == np.inf else "]"
    return f"{left}{low:g}, {high:g}{right}"


def check_choice(name: str, value: Any, choices: Any) -> Any:
    """Refuse a value that is not one of ``choices``; a misspelt word is answered with the nearest."""
    # Not `in`, by which 1 would be True, and an array could not be compared.
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        words = [choice for choice in choices if isinstance(choice, str)]
        near = difflib.get_close_matches(value, words, 1) if isinstance(value, str) else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(f"{argument(name, value)} is not one of {', '.join(map(repr, choices))}{hint}")
    return value


def _as_csr(name: str, value: Any, dtype: Any) -> sparse.csr_array:
    if sparse.issparse(value):
        if value.ndim != 2:
            raise InvalidInput(
                f"{name} has {value.ndim} dimension(s); pass a 2-D matrix. One row of a csr_array stays a matrix as "
                f"{name}[[i]]"
            )
        if np.issubdtype(value.dtype, np.complexfloating):
            raise InvalidInput(f"{name} has complex values. Complex data not supported: pass real numbers")
        return canonical_csr(name, value, dtype)
    return _dense_to_csr(name, value, dtype)


def _dense_to_csr(name: str, value: Any, dtype: Any) -> sparse.csr_array:
    try:
        dense = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} cannot be read as a matrix ({error}); pass rows of equal length") from error
    if dense.ndim < 2 and _has_texts(dense):
        raise InvalidInput(
            f"{name} has texts, such as {str(dense.ravel()[0])[:40]!r}, where rows of numbers were expected; "
            "Tagger() takes texts, and TextFeatures().fit_transform(texts) makes rows of them"
        )
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


def _has_texts(values: np.ndarray) -> bool:
    return values.size > 0 and isinstance(values.ravel()[0], str)


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
    # The two extremes tell it without an array beside the values, which may be more than memory holds.
    if csr.nnz and not np.isfinite([csr.data.min(), csr.data.max()]).all():
        bad = int(np.flatnonzero(~np.isfinite(csr.data))[0])
        row = int(np.searchsorted(csr.indptr, bad, side="right")) - 1
        kind = "NaN" if np.isnan(csr.data[bad]) else "infinity (inf)"
        raise InvalidInput(
            f"X has {kind} at row {row}, column {csr.indices[bad]}; replace or remove such values "
            "(float32 holds magnitudes up to 3.4e38)"
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


def check_sample_weight(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """``sample_weight`` as (n_rows,) float64, finite and not negative, not all 0; None stays None.

    >>> check_sample_weight([1, 2], 2)
    array([1., 2.])
    """
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"sample_weight={sample_weight!r:.80} is no array of numbers ({error})") from error
    if weight.shape != (n_rows,):
        raise InvalidInput(f"sample_weight has shape {weight.shape}; pass one number for each of the {n_rows:,} rows")
    if not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        bad = weight[~(np.isfinite(weight) & (weight >= 0))]
        raise InvalidInput(
            f"sample_weight {f'has the value {bad[0]:g}' if bad.size else 'is 0 for every row'}; "
            "weights must be finite, not negative and not all 0"
        )
    return weight


def counted_rows(
    X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None
) -> tuple[sparse.csr_array, sparse.csr_array, np.ndarray | None]:
    """X, Y and the ``weight`` that was given without rows of weight 0; the weight is None where all others count once.

    >>> one = sparse.csr_array(np.eye(3))
    >>> X, Y, weight = counted_rows(one, one, np.array([1.0, 0.0, 1.0]))
    >>> X.shape, weight
    ((2, 3), None)
    """
    if weight is None:
        return X, Y, None
    kept = np.flatnonzero(weight)
    if kept.size < weight.size:
        X, Y, weight = sparse.csr_array(X[kept]), sparse.csr_array(Y[kept]), weight[kept]
    return X, Y, None if (weight == 1).all() else weight


def feature_names(X: Any) -> np.ndarray | None:
    """The names of a table's columns as (n_features,) str; None for a matrix, or where not all names are strings."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.asarray(list(columns), dtype=np.str_)


def check_feature_names(X: Any, expected: np.ndarray | None, *, owner: str = "this model") -> None:
    """Refuse a table whose columns are not those of training, in their order; a matrix has no names to compare."""
    names = feature_names(X) if expected is not None else None
    if expected is None or names is None or names.tolist() == expected.tolist():
        return
    if sorted(names.tolist()) == sorted(expected.tolist()):
        at = int(np.flatnonzero(names != expected)[0])
        raise InvalidInput(
            f"X has the feature names of training in another order (column {at} is {str(names[at])!r}, {owner} expects "
            f"{str(expected[at])!r}); reorder it: X[model.feature_names_in_]"
        )
    unknown = [name for name in names.tolist() if name not in set(expected.tolist())]
    missing = [name for name in expected.tolist() if name not in set(names.tolist())]
    raise InvalidInput(
        f"X has other feature names than {owner} was fitted on: {len(unknown):,} unknown {unknown[:3]}, "
        f"{len(missing):,} missing {missing[:3]}; pass the columns X[model.feature_names_in_]"
    )


def label_counts(Y: sparse.csr_array) -> np.ndarray:
    """How many rows carry each label: (n_labels,) int64."""
    return np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64)
