"""What an error at a leaf costs: how a tree is trained for the tail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput
from tailwise.propensity import resolve_propensity

LEAF_WEIGHTINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tail": lambda p: 1 / p - 1,
    "convex": lambda p: 2 / p - 1,
}
"""Weight of a label's positives as a function of its propensity: ``Cp`` of PW-DiSMEC, with ``Cn = 1``."""

_LEAST = 1e-6


def check_leaf_weighting(leaf_weighting: Any) -> None:
    """Refuse what is neither None, a known name nor a function."""
    if leaf_weighting is not None and leaf_weighting not in LEAF_WEIGHTINGS and not callable(leaf_weighting):
        names = ", ".join(repr(name) for name in LEAF_WEIGHTINGS)
        raise InvalidInput(
            f"leaf_weighting={leaf_weighting!r} is not one of {names}, None or a function of the propensities"
        )


def leaf_costs(leaf_weighting: Any, propensity: Any, Y: sparse.csr_array) -> np.ndarray:
    """How much each label's positives weigh at the leaves, negatives weighing 1: (n_labels,) float64.

    ``None``: 1. ``"tail"``: ``1/p - 1``, which serves rare labels best. ``"convex"``: ``2/p - 1``, the convex surrogate
    of the unbiased loss. A function gets the propensities (n_labels,) and returns the weights.

    >>> leaf_costs("convex", [0.5, 1.0], sparse.csr_array([[1.0, 1.0]]))
    array([3., 1.])
    """
    check_leaf_weighting(leaf_weighting)
    n_labels = Y.shape[1]
    if leaf_weighting is None:
        return np.ones(n_labels)
    weigh = leaf_weighting if callable(leaf_weighting) else LEAF_WEIGHTINGS[leaf_weighting]
    costs = np.asarray(weigh(resolve_propensity(propensity, Y)), np.float64)
    if costs.shape != (n_labels,) or not (np.isfinite(costs).all() and (costs >= 0).all()):
        raise InvalidInput(
            f"leaf_weighting returned an array of shape {costs.shape}; it must return {n_labels:,} finite weights >= 0"
        )
    return np.maximum(costs, _LEAST)
