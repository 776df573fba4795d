"""What an error at a leaf costs: how a tree is trained for the tail."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.propensity import resolve_propensity
from tailwise.propensity.weighting import check_weighting, propensity_weights
from tailwise.validation import label_counts


def check_leaf_weighting(leaf_weighting: Any) -> None:
    """Refuse what is neither None, a known name nor a function."""
    if leaf_weighting is not None:
        check_weighting(leaf_weighting, "leaf_weighting")


def leaf_costs(leaf_weighting: Any, propensity: Any, Y: sparse.csr_array) -> np.ndarray:
    """How much each label's positives weigh at the leaves, negatives weighing 1: (n_labels,) float64.

    ``None``: 1. Otherwise a weighting of :mod:`tailwise.propensity.weighting`, or a function from the propensities
    (n_labels,) to weights, scaled to a mean of 1 over all positives: the tail gains what the head gives, and C keeps
    its meaning however large inverse propensities are.

    >>> leaf_costs("convex", [0.5, 1.0], sparse.csr_array([[1.0, 1.0]]))
    array([1.5, 0.5])
    """
    if leaf_weighting is None:
        return np.ones(Y.shape[1])
    weights = propensity_weights(leaf_weighting, resolve_propensity(propensity, Y), "leaf_weighting")
    counts = label_counts(Y)
    return weights / np.average(weights, weights=counts) if counts.any() else weights
