"""How much an observed positive weighs, from its label's propensity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tailwise.errors import InvalidInput
from tailwise.parameters import Choice, OrFunction

_SMALLEST_WEIGHT = 1e-3
WEIGHTINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tail": lambda p: np.maximum(1 / p - 1, _SMALLEST_WEIGHT),
    "convex": lambda p: 2 / p - 1,
    "steep": lambda p: np.maximum(1 / p - 1, _SMALLEST_WEIGHT) ** 1.5,
    "none": np.ones_like,
}
"""Weight of a positive, from the propensity p of its label; ``1/p - 1`` is taken to be at least 0.001."""


WEIGHTING = OrFunction(Choice(*WEIGHTINGS))
"""The constraint of a parameter ``weighting``."""


def propensity_weights(weighting: str | Callable[[np.ndarray], np.ndarray], propensity: np.ndarray) -> np.ndarray:
    """Weights of positives (n_labels,) by a name of :data:`WEIGHTINGS`, or by a function of the propensities.

    >>> propensity_weights("convex", np.array([0.5, 1.0]))
    array([3., 1.])
    """
    function = WEIGHTINGS[weighting] if isinstance(weighting, str) else weighting
    weights = np.asarray(function(propensity), np.float64)
    if weights.shape != propensity.shape or not (np.isfinite(weights) & (weights > 0)).all():
        raise InvalidInput(
            f"weighting={weighting!r} returned shape {weights.shape} with values that are not all finite and above 0; "
            f"it must map {propensity.shape[0]:,} propensities to as many positive weights"
        )
    return weights
