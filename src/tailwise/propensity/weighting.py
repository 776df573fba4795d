"""How much an observed positive weighs, from its label's propensity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tailwise.errors import InvalidInput
from tailwise.parameters import Choice, OrFunction

_SMALLEST_WEIGHT = 1e-3


def convex_weight(propensity: Any) -> Any:
    """``2/p - 1`` of numbers, arrays or tensors: what the convex surrogates charge an observed label."""
    return 2 / propensity - 1


def tail_weight(propensity: Any) -> Any:
    """``1/p - 1`` of numbers, arrays or tensors: more relative weight to rare labels, none where p is 1."""
    return 1 / propensity - 1


def _solvable_tail_weight(p: np.ndarray) -> np.ndarray:
    return np.maximum(tail_weight(p), _SMALLEST_WEIGHT)


WEIGHTINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tail": _solvable_tail_weight,
    "convex": convex_weight,
    "mild": lambda p: np.sqrt(_solvable_tail_weight(p)),
    "steep": lambda p: _solvable_tail_weight(p) ** 1.5,
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
