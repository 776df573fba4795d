"""Losses for labels that go missing: the unbiased one for any pair of parts, and convex ones where they exist.

With propensity ``p = P(observed | relevant)`` and no spurious labels, the loss that charges an observed label
``(l+(s) + (p - 1) l-(s)) / p`` has on observed labels the expectation that the plain one has on complete labels
(Unbiased Loss Functions for Extreme Classification With Missing Labels, Theorem 1, equation 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tailwise.errors import InvalidInput
from tailwise.losses.base import Loss, get_loss
from tailwise.propensity.weighting import convex_weight, tail_weight
from tailwise.validation import check_choice

_REACH = 50.0
_STEPS = 4001
_FAR = 1e6
_TOLERANCE = 1e-9


class NoConvexSurrogate(InvalidInput):
    """The loss has no convex form under missing labels; the message says which part stands in the way."""


class Convexity(NamedTuple):
    """What a numerical look at ``l(s)`` found: is it convex, is it bounded below, and where does it bend down?"""

    convex: bool
    bounded_below: bool
    bends_down_at: float | None


def unbiased(loss: str | Loss, propensity: Any) -> Loss:
    """The loss whose expectation over missing labels is the plain loss on complete labels.

    ``l+(s) ← (l+(s) + (p - 1) l-(s)) / p``; ``l-`` stays. ``propensity`` is one number or (n_labels,) values in
    (0, 1]. The result may be negative, and need not be convex: see :func:`convexity`.

    >>> float(unbiased("squared_error", 0.5)(0.25, 1))  # (1 - 2s)/p + s²
    1.0625
    """
    plain, p = _plain(loss), _check_propensity(propensity)
    return replace(plain, name=f"unbiased {plain.name}", own=1 / p, other=(p - 1) / p)


def convex_surrogate(loss: str | Loss, propensity: Any) -> Loss:
    """The convex loss to train with when labels are missing.

    - The unbiased loss itself where that is convex and bounded below: squared error.
    - Otherwise ``(2/p - 1) l+(s)`` (equations 39 to 42): with convex parts that bound the 0-1 loss, up to a factor,
      it bounds the unbiased 0-1 loss shifted by a constant. So for the hinge and the squared hinge, whose unbiased
      forms are not convex, and for cross-entropy, whose unbiased form is convex but falls without bound.

    Raises
    ------
    NoConvexSurrogate
        If a part of the loss is itself not convex or does not bound the 0-1 loss.

    Examples
    --------
    >>> convex_surrogate("hinge", 0.5)(0.0, 1)
    array(3.)
    """
    plain, p = _plain(loss), _check_propensity(propensity)
    for side, part in (("positive", plain.positive), ("negative", plain.negative)):
        found = look_at(part)
        if not found.convex:
            raise NoConvexSurrogate(
                f"{plain.name} has no convex surrogate: its {side} part bends down at s = {found.bends_down_at:.3g}; "
                "train with a convex loss that bounds it, such as the hinge"
            )
    corrected = unbiased(plain, propensity)
    worst = convexity(plain, p.min())
    if worst.convex and worst.bounded_below:
        return replace(corrected, name=f"convex {plain.name}")
    if not _bounds_zero_one(plain):
        raise NoConvexSurrogate(
            f"{plain.name} has no convex surrogate: its unbiased form "
            + (
                "falls without bound"
                if worst.convex
                else f"bends down at s = {worst.bends_down_at:.3g} (at p = {p.min():.3g})"
            )
            + " and its parts do not bound the 0-1 loss, which (2/p - 1) l+ needs"
        )
    return replace(plain, name=f"convex {plain.name}", own=convex_weight(p))


def tail_weighted(loss: str | Loss, propensity: Any) -> Loss:
    """``(1/p - 1) l+(s)``: more relative weight to rare labels than theory asks (section 3, after equation 51).

    The choice the paper found best on its benchmarks; a label with p = 1 is then not learned at all.

    >>> tail_weighted("squared_hinge", 0.25)(0.0, 1)
    array(3.)
    """
    plain, p = _plain(loss), _check_propensity(propensity)
    return replace(plain, name=f"tail-weighted {plain.name}", own=tail_weight(p))


CORRECTIONS: dict[str, Callable[[str | Loss, Any], Loss]] = {
    "none": lambda loss, propensity: get_loss(loss),
    "unbiased": unbiased,
    "convex": convex_surrogate,
    "tail": tail_weighted,
}
"""The ways to correct a loss for missing labels, by name."""


def correct(loss: str | Loss, correction: str, propensity: Any) -> Loss:
    """``loss`` under the correction of that name: "none", "unbiased", "convex" or "tail"."""
    return CORRECTIONS[check_choice("correction", correction, CORRECTIONS)](loss, propensity)


def convexity(loss: str | Loss, propensity: float) -> Convexity:
    """Look numerically at what an observed label pays under :func:`unbiased` at one propensity.

    >>> convexity("hinge", 0.5)
    Convexity(convex=False, bounded_below=False, bends_down_at=-1.0)
    >>> convexity("cross_entropy", 0.5).convex, convexity("cross_entropy", 0.5).bounded_below
    (True, False)
    """
    return look_at(unbiased(loss, propensity).observed)


def look_at(part: Callable[[Any], Any]) -> Convexity:
    """Second differences of ``part`` on a fine grid of scores in [-50, 50], and whether it falls as far as ±10⁶.

    A kink is found wherever it lies, because second differences on a grid see it from both sides. A function that
    is negative and still falls at ±10⁶ is taken to be unbounded below.
    """
    scores = np.linspace(-_REACH, _REACH, _STEPS)
    values = np.asarray(part(scores), np.float64)
    bend = values[2:] - 2 * values[1:-1] + values[:-2]
    bends_down = np.flatnonzero(bend < -_TOLERANCE * (1 + np.abs(values[1:-1])))
    far = np.geomspace(_REACH, _FAR, 20)
    return Convexity(
        convex=bends_down.size == 0,
        bounded_below=not any(_keeps_falling(part, side * far) for side in (-1, 1)),
        bends_down_at=round(float(scores[1:-1][bends_down[0]]), 6) if bends_down.size else None,
    )


def _keeps_falling(part: Callable[[Any], Any], scores: np.ndarray) -> bool:
    with np.errstate(over="ignore"):
        values = np.asarray(part(scores), np.float64)
    return bool((values == -np.inf).any() or (values[-1] < 0 and values[-1] < values[-2]))


def _bounds_zero_one(loss: Loss) -> bool:
    """Whether some multiple of the parts lies above the 0-1 loss: they are >= 0, and > 0 on the wrong side."""
    wrong = np.linspace(0, _REACH, _STEPS)
    scores = np.linspace(-_REACH, _REACH, _STEPS)
    above = min(loss.positive(loss.threshold - wrong).min(), loss.negative(loss.threshold + wrong).min())
    return bool(above > 0 and min(loss.positive(scores).min(), loss.negative(scores).min()) >= 0)


def _plain(loss: str | Loss) -> Loss:
    loss = get_loss(loss)
    if np.any(loss.other) or np.any(np.asarray(loss.own) != 1):
        raise InvalidInput(f"loss={loss.name} is corrected already; pass the plain loss")
    return loss


def _check_propensity(propensity: Any) -> np.ndarray:
    p = np.asarray(getattr(propensity, "propensity_", propensity), np.float64)
    if p.ndim > 1 or p.size == 0:
        raise InvalidInput(f"propensity has shape {p.shape}; pass one number or one for each label")
    bad = ~((p > 0) & (p <= 1))
    if bad.any():
        raise InvalidInput(
            f"propensity={p[bad].flat[0]:g} is outside (0, 1]; pass probabilities, not their inverses, "
            "such as JainPropensity().fit(Y).propensity_"
        )
    return p
