"""Softmax losses with pairwise margins, over every label or over sampled ones, for numpy arrays and torch tensors.

An example is one row ``x`` with one of its labels ``y``. Equations are those of "Disentangling Labeling and Sampling
Bias for Learning in Large-output Spaces".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from tailwise.losses.base import Array, namespace_of, softplus
from tailwise.validation import check_choice

_NOWHERE = -1e4
_SURE = 1 - 1e-6


def label_prior(label_counts: Any) -> np.ndarray:
    """π, the share of each label among all labels of the training rows: (n_labels,) float64, sums to one.

    A label without rows counts as half a row, so that logarithms stay finite.

    >>> label_prior([3, 1]).tolist()
    [0.75, 0.25]
    """
    counts = np.maximum(np.asarray(label_counts, np.float64), 0.5)
    return counts / counts.sum()


@dataclass(frozen=True)
class Margin:
    """The pairwise margins ``ρ_yy'`` of equation (6): a negative ``y'`` of an example ``y`` counts ρ-fold.

    Called with label indices that broadcast, it gives ρ. ``parts`` holds ``(log a, log b)`` where ``ρ_yy' = a_y b_y'``,
    which lets the full loss be computed a row at a time; it is None for other margins.

    Parameters
    ----------
    name : str
        What tables and messages call it.
    prior : (n_labels,) array
        π.
    function : callable
        ``function(y, y_negative)`` → ρ.
    parts : pair of (n_labels,) arrays or None
    """

    name: str
    _: KW_ONLY
    prior: np.ndarray
    function: Callable[[Any, Any], Any]
    parts: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, y: Any, y_negative: Any) -> np.ndarray:
        """ρ of each pair of label indices."""
        return np.asarray(self.function(np.asarray(y), np.asarray(y_negative)))

    def matrix(self) -> np.ndarray:
        """Every ρ as (n_labels, n_labels), for small label sets."""
        labels = np.arange(self.prior.size)
        return np.broadcast_to(self(labels[:, None], labels[None, :]), (labels.size, labels.size))

    @property
    def tilt(self) -> float:
        """How ρ moves with frequency: slope on log π of ``log ρ(·, l) - log ρ(l, ·)``, averaged over the other label.

        Rare labels are spared as negatives (or pushed as positives) where it is positive.
        """
        if not self.prior.size:
            return 0.0
        labels = np.unique(np.linspace(0, self.prior.size - 1, 200).astype(int))
        log_rho = np.log(np.broadcast_to(self(labels[:, None], labels[None, :]), (labels.size, labels.size)))
        log_prior = np.log(self.prior[labels])
        centred = log_prior - log_prior.mean()
        spread = float(centred @ centred)
        return float(centred @ (log_rho.mean(0) - log_rho.mean(1))) / spread if spread else 0.0

    @property
    def favours(self) -> str:
        """``"tail"``, ``"head"`` or ``"-"``: whom the margin helps, by the sign of :attr:`tilt`."""
        return "-" if abs(self.tilt) < 1e-6 else "tail" if self.tilt > 0 else "head"


def separable_margin(name: str, prior: np.ndarray, log_a: Any, log_b: Any) -> Margin:
    """The margin ``ρ_yy' = a_y b_y'`` from the logarithms of its factors (numbers or (n_labels,) arrays)."""
    a, b = (np.broadcast_to(np.asarray(part, np.float64), prior.shape) for part in (log_a, log_b))
    return Margin(name, prior=prior, function=lambda y, y_negative: np.exp(a[y] + b[y_negative]), parts=(a, b))


MARGINS: dict[str, Callable[[np.ndarray], Margin]] = {
    "softmax": lambda prior: separable_margin("softmax", prior, 0, 0),
    "adaptive": lambda prior: separable_margin("adaptive", prior, -0.25 * np.log(prior), 0),
    "equalised": lambda prior: separable_margin("equalised", prior, 0, np.log(prior)),
    "logit_adjusted": lambda prior: separable_margin("logit_adjusted", prior, -np.log(prior), np.log(prior)),
}
"""The margins of the full-label losses: 1, ``π_y^(-1/4)``, ``π_y'`` and ``π_y'/π_y`` (section 2.1)."""


def get_margin(margin: str | Margin, prior: Any) -> Margin:
    """A margin by its name; a :class:`Margin` as it is.

    >>> float(get_margin("logit_adjusted", np.array([0.8, 0.2]))(1, 0))
    4.0
    """
    if isinstance(margin, Margin):
        return margin
    return MARGINS[check_choice("margin", margin, MARGINS)](np.asarray(prior, np.float64))


def log_sum_exp(scores: Array) -> Array:
    """``ln Σ exp`` over the last axis; torch gradients flow and cost one product."""
    if namespace_of(scores) is np:
        from scipy.special import logsumexp

        return logsumexp(scores, axis=-1)
    from tailwise.losses.torch_ops import LogSumExp

    return LogSumExp.apply(scores)


def margin_softmax(scores: Array, rows: Any, labels: Any, log_a: Array, log_b: Array) -> Array:
    """Equation (6) for each example: ``ln(1 + Σ_{y'≠y} a_y b_y' e^(f_y' - f_y))``.

    ``scores`` is (n_rows, n_labels); example e is row ``rows[e]`` with label ``labels[e]``; ``log_a`` and ``log_b``
    are (n_labels,). One log-sum-exp a row serves all its examples: the label's own term is taken out of it again.

    >>> scores = np.array([[1.0, 0.0, 2.0]])
    >>> loss = margin_softmax(scores, [0], [1], np.zeros(3), np.zeros(3))
    >>> bool(np.isclose(loss[0], np.log(1 + np.e + np.e**2)))
    True
    """
    xp = namespace_of(scores)
    shifted = scores + log_b
    total = log_sum_exp(shifted)[rows]
    own = xp.clip(xp.exp(shifted[rows, labels] - total), 0, _SURE)
    return softplus(log_a[labels] + total + xp.log1p(-own) - scores[rows, labels])


def sampled_softmax(positive: Array, negatives: Array, weights: Array) -> Array:
    """Equation (7) for each example: ``ln(1 + Σ_{y' in N} w_yy' e^(f_y' - f_y))``.

    ``positive`` is (n,) scores of the labels, ``negatives`` and ``weights`` are (n, m); a weight of zero drops a draw.

    >>> bool(np.isclose(sampled_softmax(np.zeros(1), np.zeros((1, 2)), np.array([[1.0, 0.5]]))[0], np.log(2.5)))
    True
    """
    xp = namespace_of(negatives)
    kept = weights > 0
    log_weights = xp.where(kept, xp.log(xp.where(kept, weights, xp.ones_like(weights))), _NOWHERE)
    return softplus(log_sum_exp(negatives + log_weights) - positive)


class Decoupled(NamedTuple):
    """The parts of a decoupled loss (equation 5): ``positive(f_y) + Σ negative(f_y')``."""

    positive: Callable[[Array], Array]
    negative: Callable[[Array], Array]


contrastive = Decoupled(lambda f: (1 - f) ** 2, lambda f: namespace_of(f).clip(f, 0, None) ** 2)
"""Cosine contrastive loss: ``(1 - f_y)²`` and ``[f_y']+²``. The paper's (5) feeds ``-f_y'`` to ``[z]+²``, which would
charge negatives for scores *below* zero; this is the loss of Hadsell et al. that it cites."""


def sampled_decoupled(loss: Decoupled, positive: Array, negatives: Array, weights: Array) -> Array:
    """Equation (8) for each example: ``φ(f_y) + Σ_{y' in N} w_yy' ϕ(f_y')``; shapes as in :func:`sampled_softmax`."""
    return loss.positive(positive) + (weights * loss.negative(negatives)).sum(-1)
