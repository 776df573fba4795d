"""Losses: pairs of parts, their unbiased and convex forms under missing labels, margins."""

from tailwise.losses.base import (
    LOSSES,
    Loss,
    cross_entropy,
    get_loss,
    hinge,
    solver_weights,
    squared_error,
    squared_hinge,
    zero_one,
)
from tailwise.losses.missing import (
    CORRECTIONS,
    Convexity,
    NoConvexSurrogate,
    convex_surrogate,
    convexity,
    correct,
    tail_weighted,
    unbiased,
)

__all__ = [
    "CORRECTIONS",
    "LOSSES",
    "Convexity",
    "Loss",
    "NoConvexSurrogate",
    "convex_surrogate",
    "convexity",
    "correct",
    "cross_entropy",
    "get_loss",
    "hinge",
    "solver_weights",
    "squared_error",
    "squared_hinge",
    "tail_weighted",
    "unbiased",
    "zero_one",
]
