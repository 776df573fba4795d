"""Plain twins of the losses: one score at a time, straight from the formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np

PARTS = {
    "squared_error": (lambda s: (1 - s) ** 2, lambda s: s**2),
    "hinge": (lambda s: max(0.0, 1 - s), lambda s: max(0.0, 1 + s)),
    "squared_hinge": (lambda s: max(0.0, 1 - s) ** 2, lambda s: max(0.0, 1 + s) ** 2),
    "cross_entropy": (lambda s: -math.log(1 / (1 + math.exp(-s))), lambda s: -math.log(1 / (1 + math.exp(s)))),
    "zero_one": (lambda s: float(s < 0), lambda s: float(s >= 0)),
}

CLOSED_FORMS = {
    "squared_error": lambda s, p: (1 - 2 * s) / p + s**2,
    "cross_entropy": lambda s, p: math.log1p(math.exp(-s)) - (1 / p - 1) * s,
    "zero_one": lambda s, p: 1 / p if s < 0 else 1 - 1 / p,
}
"""The corrected positive part where the literature simplifies it."""


def plain_loss(name, scores, labels):
    """Σ over rows and labels of the plain loss."""
    positive, negative = PARTS[name]
    return sum(
        positive(s) if y else negative(s)
        for row, truth in zip(scores, labels, strict=True)
        for s, y in zip(row, truth, strict=True)
    )


def corrected_loss(name, scores, labels, propensity):
    """Σ of the loss with the corrected positive part, equation 4."""
    positive, negative = PARTS[name]
    total = 0.0
    for row, seen in zip(scores, labels, strict=True):
        for s, y, p in zip(row, seen, propensity, strict=True):
            total += (positive(s) + (p - 1) * negative(s)) / p if y else negative(s)
    return total


def every_observation(labels, propensity):
    """Every way in which labels can go missing, each with its probability."""
    rows, columns = np.nonzero(labels)
    for kept in itertools.product((False, True), repeat=len(rows)):
        seen = np.zeros_like(labels)
        chance = 1.0
        for keep, i, l in zip(kept, rows, columns, strict=True):
            seen[i, l] = keep
            chance *= propensity[l] if keep else 1 - propensity[l]
        yield seen, chance
