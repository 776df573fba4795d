"""Losses as pairs of a positive and a negative part, written once for numpy arrays and torch tensors.

A loss that sums over labels is two functions of a score: ``l+(s)`` for a label that is there and ``l-(s)`` for one
that is not. Every correction for missing labels in this room keeps both functions and only changes how much of
each an *observed* label pays: ``own · l+(s) + other · l-(s)``. Those two weights are all a solver has to know.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np

from tailwise.errors import InvalidInput
from tailwise.validation import check_choice

Array = Any
"""A numpy array or a torch tensor: what goes in comes out."""

Part = Callable[[Array], Array]


def namespace_of(values: Array) -> Any:
    """The module whose functions act on ``values``: torch for its tensors, numpy for all else."""
    return sys.modules["torch"] if type(values).__module__.partition(".")[0] == "torch" else np


def as_scores(values: Any) -> Array:
    """Numbers and lists as float64 numpy arrays; floating arrays and tensors unchanged."""
    if namespace_of(values) is not np or (isinstance(values, np.ndarray) and values.dtype.kind == "f"):
        return values
    return np.asarray(values, np.float64)


def _like(weight: float | np.ndarray, scores: Array) -> Any:
    """A weight in the type of ``scores``; float32 scores stay float32."""
    xp = namespace_of(scores)
    if xp is np:
        return np.asarray(weight, scores.dtype)
    return xp.as_tensor(np.asarray(weight), dtype=scores.dtype, device=scores.device)


@dataclass(frozen=True)
class Loss:
    """One label's loss: ``own · l+(s) + other · l-(s)`` where it is observed, ``l-(s)`` where it is not.

    Calling it gives the loss of each score; :meth:`total` sums it over a matrix of scores without a dense matrix
    of labels. Scores may be numpy arrays or torch tensors (gradients flow); weights of shape (n_labels,) apply
    along the last axis.

    Parameters
    ----------
    name : str
        What messages call it.
    positive, negative : callable
        ``l+`` and ``l-``, elementwise, for numpy arrays and torch tensors alike.
    threshold : float
        The label is predicted where the score is at least this.
    own, other : float or array of shape (n_labels,)
        What an observed label pays of each part: (1, 0) in the plain loss.
    trainable : bool
        Whether its gradient is of use; the 0-1 loss has none.

    Examples
    --------
    >>> hinge([0.5, 2.0], [1, 0])
    array([0.5, 3. ])
    """

    name: str
    _: KW_ONLY
    positive: Part = field(repr=False)
    negative: Part = field(repr=False)
    threshold: float = 0.0
    own: float | np.ndarray = 1.0
    other: float | np.ndarray = 0.0
    trainable: bool = True

    def observed(self, scores: Any) -> Array:
        """The loss of labels that were observed, as they are charged now: corrected, if a correction was applied."""
        scores = as_scores(scores)
        value = _like(self.own, scores) * self.positive(scores)
        return value + _like(self.other, scores) * self.negative(scores) if np.any(self.other) else value

    def unobserved(self, scores: Any) -> Array:
        """The loss of labels that were not observed: ``l-(s)``, under every correction."""
        return self.negative(as_scores(scores))

    def __call__(self, scores: Any, labels: Any) -> Array:
        """The loss of each score for ``labels`` of the same shape, holding 0 and 1."""
        scores = as_scores(scores)
        present = labels if namespace_of(labels) is not np else np.asarray(labels)
        return namespace_of(scores).where(present > 0, self.observed(scores), self.unobserved(scores))

    def total(self, scores: Array, rows: Any, labels: Any, weight: Array | None = None) -> Array:
        """The sum over an (n_rows, n_labels) block of scores whose observed labels are at ``[rows, labels]``.

        ``Σ l-(s)`` over the block plus ``own · l+ + (other - 1) · l-`` at the observed entries, so the cost beyond
        one pass over the block follows the number of observed labels. Row i counts ``weight[i]`` times; None is once.
        """
        scores = as_scores(scores)
        at = scores[rows, labels]
        more = self.at_labels(labels).observed(at) - self.negative(at)
        if weight is None:
            return self.negative(scores).sum() + more.sum()
        return (self.negative(scores).sum(1) * weight).sum() + (more * weight[rows]).sum()

    def at_labels(self, labels: Any) -> Loss:
        """The loss whose weights are gathered for one entry a label index."""
        index = np.asarray(labels)
        return replace(self, own=_gather(self.own, index), other=_gather(self.other, index))


def _gather(weight: float | np.ndarray, index: np.ndarray) -> float | np.ndarray:
    return weight[index] if isinstance(weight, np.ndarray) and weight.ndim else weight


def softplus(values: Array) -> Array:
    """``ln(1 + e^v)``, without overflow."""
    xp = namespace_of(values)
    return xp.logaddexp(values, xp.zeros_like(values))


def _ramp(values: Array) -> Array:
    return namespace_of(values).clip(values, 0, None)


def _indicator(values: Array, where: Array) -> Array:
    xp = namespace_of(values)
    return xp.where(where, xp.ones_like(values), xp.zeros_like(values))


squared_error = Loss("squared_error", positive=lambda s: (1 - s) ** 2, negative=lambda s: s**2, threshold=0.5)
hinge = Loss("hinge", positive=lambda s: _ramp(1 - s), negative=lambda s: _ramp(1 + s))
squared_hinge = Loss("squared_hinge", positive=lambda s: _ramp(1 - s) ** 2, negative=lambda s: _ramp(1 + s) ** 2)
cross_entropy = Loss("cross_entropy", positive=lambda s: softplus(-s), negative=softplus)
zero_one = Loss(
    "zero_one",
    positive=lambda s: _indicator(s, s < 0),
    negative=lambda s: _indicator(s, s >= 0),
    trainable=False,
)

LOSSES = {loss.name: loss for loss in (squared_error, hinge, squared_hinge, cross_entropy, zero_one)}
"""The plain losses by name."""


def get_loss(loss: str | Loss) -> Loss:
    """A plain loss by its name; a :class:`Loss` as it is.

    >>> get_loss("hinge") is hinge
    True
    """
    if isinstance(loss, Loss):
        return loss
    return LOSSES[check_choice("loss", loss, LOSSES)]


def solver_weights(loss: Loss, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """``(Cp, Cn)``, each (n_labels,) float64: how a linear solver weighs positive and negative rows of each label.

    >>> solver_weights(hinge, 2)
    (array([1., 1.]), array([1., 1.]))
    """
    if np.any(loss.other):
        raise InvalidInput(
            f"loss={loss.name} charges an observed label for its negative part too, with a negative weight, which "
            "no linear solver can take; use convex_surrogate(loss, propensity)"
        )
    own = np.broadcast_to(np.asarray(loss.own, np.float64), (n_labels,)).copy()
    return own, np.ones(n_labels)
