"""Mean and variance of a loss on drawn negatives, and the distribution to draw from that has the least variance.

Equations are those of "Disentangling Labeling and Sampling Bias for Learning in Large-output Spaces". m negatives are
drawn from q with replacement; a negative y' of the example's label y counts ``w_yy' = ρ_yy' / (m q_y')``, so that every
q has the same mean (equation 15). Arrays are over the labels, on the last axis; the label y itself has ρ = 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Moments(NamedTuple):
    """Mean and variance over draws."""

    mean: Any
    variance: Any


def decoupled_moments(positive: Any, negatives: Any, rho: Any, q: Any, n_negatives: int) -> Moments:
    """Of ``φ(f_y) + Σ_{y' drawn} w_yy' ϕ(f_y')`` (Lemma 1), given ``φ(f_y)`` and ``ϕ(f_y')`` of every label.

    ``Σ ρ ϕ`` is added to the positive part; the variance is ``(Σ (ρϕ)² / q - (Σ ρϕ)²) / m``.

    >>> moments = decoupled_moments(0.5, np.array([1.0, 3.0]), rho=np.ones(2), q=np.array([0.5, 0.5]), n_negatives=2)
    >>> float(moments.mean), float(moments.variance)   # 2 or 6 a draw, two draws
    (4.5, 2.0)
    """
    mean, variance = _importance_moments(np.asarray(rho) * np.asarray(negatives), q)
    return Moments(positive + mean, variance / n_negatives)


def softmax_moments(scores: Any, positive: Any, rho: Any, q: Any, n_negatives: int) -> Moments:
    """Of ``ln(1 + Σ_{y' drawn} w_yy' e^(f_y' - f_y))`` for many draws (Lemma 2, Theorem 3).

    The mean is the implicit loss ``ln μ`` with ``μ = 1 + Σ ρ e^(f_y' - f_y)``, the variance ``σ² / (m μ²)``, with
    σ² that of one draw's ``(ρ/q) e^(f_y' - f_y)``. ``scores`` is (…, n_labels), ``positive`` (…,).

    >>> moments = softmax_moments(np.zeros(2), 0.0, rho=np.ones(2), q=np.array([0.5, 0.5]), n_negatives=2)
    >>> float(moments.mean) == float(np.log(3)), float(moments.variance)
    (True, 0.0)
    """
    ratio = np.exp(np.asarray(scores) - np.asarray(positive)[..., None])
    mean, variance = _importance_moments(np.asarray(rho) * ratio, q)
    return Moments(np.log1p(mean), variance / (n_negatives * (1 + mean) ** 2))


def least_variance(rho: Any, negatives: Any) -> np.ndarray:
    """The q of least variance for the margins ρ (Proposition 5): ``q*_y' ∝ ρ_yy' ϕ(f_y')``.

    For parts ϕ that are never negative, as all here are, the variance is then zero: one draw tells the whole sum. It
    takes the scores of every label to know it. Where every part is zero, all q are alike, and this is uniform. For the
    softmax take ``e^(f_y')`` for ϕ: with ρ = 1 that is the model's own softmax.

    >>> least_variance(np.array([1.0, 1.0, 0.0]), np.array([0.3, 0.1, 0.6])).round(3).tolist()
    [0.75, 0.25, 0.0]
    """
    share = np.asarray(rho, np.float64) * np.asarray(negatives, np.float64)
    total = share.sum(axis=-1, keepdims=True)
    return np.divide(share, total, out=np.full(share.shape, 1 / share.shape[-1]), where=total > 0)


def _importance_moments(terms: np.ndarray, q: Any) -> Moments:
    """Mean and variance of ``terms / q`` of one draw from q; what has no term need not be drawn."""
    q = np.broadcast_to(np.asarray(q, np.float64), terms.shape)
    mean = terms.sum(axis=-1)
    squares = np.divide(terms**2, q, out=np.where(terms != 0, np.inf, 0.0), where=q > 0)
    return Moments(mean, np.maximum(squares.sum(axis=-1) - mean**2, 0))
