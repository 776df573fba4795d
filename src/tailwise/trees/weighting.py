"""What an error at a leaf costs: how a tree is trained for the tail."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.propensity import propensity_weights, resolve_propensity
from tailwise.validation import label_counts


def leaf_costs(weighting: Any, propensity: Any, Y: sparse.csr_array, weight: np.ndarray | None = None) -> np.ndarray:
    """How much each label's positives weigh at the leaves, negatives weighing 1: (n_labels,) float64.

    ``weighting`` is one of :mod:`tailwise.propensity.weighting`, or a function from the propensities (n_labels,) to
    weights. They are scaled to a mean of 1 over all positives, which count ``weight`` times: the tail gains what the
    head gives, and C keeps its meaning however large inverse propensities are.

    >>> leaf_costs("convex", [0.5, 1.0], sparse.csr_array([[1.0, 1.0]]))
    array([1.5, 0.5])
    """
    if weighting == "none" and propensity is None:
        return np.ones(Y.shape[1])
    weights = propensity_weights(weighting, resolve_propensity(propensity, Y))
    counts = label_counts(Y) if weight is None else weight @ Y
    return weights / np.average(weights, weights=counts) if counts.any() else weights
