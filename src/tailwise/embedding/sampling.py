"""Which negatives to draw, how to weigh them, and which loss a pair of the two really minimises.

``m`` negatives are drawn from ``q`` and weighted by ``w``. What is then minimised is the softmax with pairwise margins
``ρ_yy' = m q_y' w_yy'`` (Lemma 2): some pairs favour frequent labels, some rare ones. Equations and tables are those of
"Disentangling Labeling and Sampling Bias for Learning in Large-output Spaces".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from tailwise.errors import InvalidInput
from tailwise.losses.margins import Margin, get_margin, separable_margin
from tailwise.validation import check_choice, check_number


class Draw(NamedTuple):
    """What a weighting sees. Arrays (or tensors) broadcast to (n_examples, m).

    ``y``, ``y_negative`` are label indices; ``q_`` and ``prior_`` the probabilities of drawing and of meeting them.
    """

    n_negatives: int
    y: Any
    y_negative: Any
    q_positive: Any
    q_negative: Any
    prior_positive: Any
    prior_negative: Any


Weighting = Callable[[Draw], Any]
"""From a :class:`Draw` to the weights ``w_yy' >= 0`` of the negatives."""

WEIGHTINGS: dict[str, Weighting] = {
    "constant": lambda draw: 1 / draw.n_negatives + 0 * draw.q_negative,
    "importance": lambda draw: 1 / (draw.n_negatives * draw.q_negative),
    "relative": lambda draw: draw.q_positive / draw.q_negative,
    "tail": lambda draw: draw.prior_negative / (draw.n_negatives * draw.q_negative * draw.prior_positive),
}
"""Table 1 and equation (16) of the paper, by name."""


@dataclass(frozen=True)
class Sampler:
    """A source of negatives: ``q`` from the prior π, or None where it depends on the row (the model's own scores)."""

    name: str
    _: KW_ONLY
    distribution: Callable[[np.ndarray], np.ndarray] | None


SAMPLERS = {
    sampler.name: sampler
    for sampler in (
        Sampler("uniform", distribution=lambda prior: np.full(prior.shape, 1 / max(1, prior.size))),
        Sampler("within_batch", distribution=lambda prior: np.asarray(prior)),
        Sampler("model", distribution=None),
    )
}
"""The samplers by name. ``within_batch`` takes the labels of the other rows of the batch, whose distribution is π."""


def get_weighting(weighting: str | Weighting) -> Weighting:
    """A weighting by its name; a callable as it is."""
    if callable(weighting):
        return weighting
    return WEIGHTINGS[check_choice("weighting", weighting, WEIGHTINGS)]


def implicit_margin(
    sampler: str, weighting: str | Weighting, prior: Any, n_negatives: int = 256, q: Any = None
) -> Margin:
    """The ρ of the softmax loss that ``sampler`` and ``weighting`` minimise: ``ρ_yy' = m q_y' w_yy'`` (Lemma 2).

    ``q`` (n_labels,) stands in for the distribution of ``"model"``, which depends on the row.

    >>> rho = implicit_margin("within_batch", "constant", np.array([0.8, 0.2]))
    >>> rho.matrix().tolist(), rho.favours   # equalised: π_y'
    ([[0.8, 0.2], [0.8, 0.2]], 'tail')
    """
    check_number("n_negatives", n_negatives, integer=True, low=1)
    prior, q = np.asarray(prior, np.float64), _distribution(sampler, prior, q)
    weigh = get_weighting(weighting)

    def rho(y: Any, y_negative: Any) -> Any:
        draw = Draw(n_negatives, y, y_negative, q[y], q[y_negative], prior[y], prior[y_negative])
        return n_negatives * q[y_negative] * weigh(draw)

    name = f"{sampler}, {weighting if isinstance(weighting, str) else 'own'} weights"
    if not isinstance(weighting, str):
        return Margin(name, prior=prior, function=rho)
    log_m, log_q, log_prior = np.log(n_negatives), np.log(q), np.log(prior)
    log_a = {"relative": log_m + log_q, "tail": -log_prior}.get(weighting, 0)
    log_b = {"constant": log_q, "tail": log_prior}.get(weighting, 0)
    return separable_margin(name, prior, log_a, log_b)


def weights_for(margin: str | Margin, sampler: str, prior: Any, q: Any = None) -> Weighting:
    """The weighting with which ``sampler`` minimises the softmax with ``margin``: ``w = ρ / (m q)`` (Proposition 4).

    The inverse of :func:`implicit_margin`; pass the result as ``weighting``. ``margin`` is a name of
    ``tailwise.losses.MARGINS`` or a :class:`~tailwise.losses.Margin`.

    >>> prior = np.array([0.8, 0.2])
    >>> weighting = weights_for("logit_adjusted", "uniform", prior)
    >>> implicit_margin("uniform", weighting, prior).matrix().round(6).tolist()
    [[1.0, 0.25], [4.0, 1.0]]
    """
    wanted = get_margin(margin, prior)
    if sampler != "model":
        _distribution(sampler, prior, q)

    def weigh(draw: Draw) -> Any:
        rho = wanted(np.asarray(draw.y), np.asarray(draw.y_negative))
        if type(draw.q_negative).__module__.startswith("torch"):
            rho = draw.q_negative.new_tensor(rho)
        return rho / (draw.n_negatives * draw.q_negative)

    return weigh


def _distribution(sampler: str, prior: Any, q: Any) -> np.ndarray:
    chosen = SAMPLERS[check_choice("sampler", sampler, SAMPLERS)]
    if q is not None:
        return np.asarray(q, np.float64)
    if chosen.distribution is None:
        raise InvalidInput(
            f"sampler={sampler!r} draws from the model's own scores; pass q, its probabilities for a row"
        )
    return chosen.distribution(np.asarray(prior, np.float64))
