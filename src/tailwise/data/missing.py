"""Making labels go missing at a known rate."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.propensity import ConstantPropensity, JainPropensity, Propensity, resolve_propensity
from tailwise.validation import as_rng, check_labels

_BISECTIONS = 80


def drop_labels(Y: Any, propensity: Any = None, random_state: Any = None) -> sparse.csr_array:
    """Keep each label of ``Y`` with its propensity, independently: what an annotator who overlooks labels would leave.

    ``P(y_l = 1 | y*_l = 1) = p_l`` and never ``y_l = 1`` where ``y*_l = 0``, as in Jain et al. (KDD 2016), section 3.
    Returns (n_samples, n_labels) canonical CSR with float32 ones. Cost: one pass over the labels.

    Parameters
    ----------
    Y : (n_samples, n_labels) binary matrix
        The labels taken to be complete.
    propensity : None, float, (n_labels,) array or Propensity
        The chance that a label stays. A number holds for every label; a fitted Propensity has its values; any other
        Propensity, and None for ``JainPropensity()``, is fitted on ``Y``.
    random_state : int, numpy Generator or None
        The same seed drops the same labels.

    Examples
    --------
    >>> drop_labels([[1, 1], [0, 1]], [1.0, 1.0]).toarray()
    array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    Y = check_labels(Y)
    kept = as_rng(random_state).random(Y.nnz) < _values(propensity, Y)[Y.indices]
    indptr = np.concatenate([[0], np.cumsum(kept)])[Y.indptr].astype(Y.indptr.dtype)
    result = sparse.csr_array((np.ones(indptr[-1], np.float32), Y.indices[kept], indptr), shape=Y.shape)
    result.has_canonical_format = True
    return result


def _values(propensity: Any, Y: sparse.csr_array) -> np.ndarray:
    if isinstance(propensity, int | float) and not isinstance(propensity, bool):
        propensity = ConstantPropensity(float(propensity))
    if isinstance(propensity, Propensity) and propensity.__sklearn_is_fitted__():
        propensity = propensity.propensity_
    return resolve_propensity(propensity, Y)


def planted_propensity(propensity: Any, Y: sparse.csr_array) -> np.ndarray:
    """Propensities for the *complete* labels ``Y`` such that those of the labels left after dropping follow a model.

    Jain's curve speaks of observed counts n, and here the complete ones n* are known. Since n = n* p(n) in the mean,
    n solves ``n (1 + C (n + B)^(-A)) = n*``, whose left side grows with n where A <= 1: bisection, then p = n / n*.
    Fitting ``JainPropensity(a, b)`` on the observed labels then gives these values back, up to sampling noise.
    """
    if propensity is None:
        propensity = JainPropensity()
    if not isinstance(propensity, JainPropensity) or propensity.__sklearn_is_fitted__():
        return _values(propensity, Y)
    n_rows = Y.shape[0]
    complete = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float64)
    resolve_propensity(propensity, Y)
    low, high = np.zeros_like(complete), complete.copy()
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_much = middle * propensity.inverse_at(middle, n_rows) > complete
        high = np.where(too_much, middle, high)
        low = np.where(too_much, low, middle)
    return 1.0 / propensity.inverse_at((low + high) / 2, n_rows)
