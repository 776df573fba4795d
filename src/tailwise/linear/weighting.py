"""How much an observed positive weighs, from its label's propensity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tailwise.errors import InvalidInput
from tailwise.validation import check_choice

_SMALLEST_WEIGHT = 1e-3


def check_weighting(weighting: Any) -> None:
    """Refuse what is neither the name of a weighting nor a function."""
    if not callable(weighting):
        check_choice("weighting", weighting, ("tail", "convex", "none"))


def propensity_weights(weighting: str | Callable[[np.ndarray], np.ndarray], propensity: np.ndarray) -> np.ndarray:
    """Weights of positives (n_labels,): ``1/p - 1`` ("tail", at least 0.001), ``2/p - 1`` ("convex"), 1, or your own.

    >>> propensity_weights("convex", np.array([0.5, 1.0]))
    array([3., 1.])
    """
    if weighting == "none":
        return np.ones_like(propensity)
    if weighting == "convex":
        return 2 / propensity - 1
    if weighting == "tail":
        return np.maximum(1 / propensity - 1, _SMALLEST_WEIGHT)
    assert callable(weighting)
    weights = np.asarray(weighting(propensity), np.float64)
    if weights.shape != propensity.shape or not (np.isfinite(weights) & (weights > 0)).all():
        raise InvalidInput(
            f"weighting={weighting!r} returned shape {weights.shape} with values that are not all finite and above 0; "
            f"it must map {propensity.shape[0]:,} propensities to as many positive weights"
        )
    return weights
