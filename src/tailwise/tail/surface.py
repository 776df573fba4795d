"""A logistic surface of the third degree: P(hit) of pairs from a few numbers about each."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit, logit
from threadpoolctl import threadpool_limits

from tailwise.persistence.checks import check_exact, check_finite, check_range, check_that
from tailwise.validation import check_number

_DEGREE = 3
_RIDGE = 1.0
_STEPS, _HALVINGS, _TOL = 30, 12, 1e-6
_OUTSIDE = 1e-4
"""Of the pairs, at either end of each input: a cubic is not trusted there, and stays what it is at their edge."""
_CERTAIN = 20.0
"""Log-odds where all pairs are hits."""
_PAIRS_A_BLOCK = 8192


class Surface(NamedTuple):
    """``P = σ(Σ_m c_m Π_j z_j^e_mj)`` over the monomials of degree 3 and less of the inputs z, scaled and bounded.

    Inputs behind the first ``n_cubic`` are in those of degree 2 and less only: a third of the monomials, as good.
    """

    low: np.ndarray
    """(n_inputs,) float64: smaller values count as this"""
    high: np.ndarray
    """(n_inputs,) float64: larger values count as this"""
    centre: np.ndarray
    """(n_inputs,) float64"""
    scale: np.ndarray
    """(n_inputs,) float64 > 0: ``z = (value - centre) / scale``"""
    coefficients: np.ndarray
    """(n_monomials,) float64, in the order of :func:`monomials`"""
    n_cubic: int | None = None
    """None is all."""

    @classmethod
    def fit(
        cls, inputs: np.ndarray, hits: np.ndarray, weight: np.ndarray | None = None, n_cubic: int | None = None
    ) -> Self:
        """The most likely surface, a little drawn to a plane without slope: ``inputs`` (n_pairs, n_inputs).

        Minimises ``Σ_i weight_i ln(1 + exp(∓f_i)) + ½ Σ_m (c_m sd_m)²``, sd_m being the spread of monomial m, by
        Newton's method: about ten passes over the pairs, in blocks.
        """
        weight = np.ones(hits.size) if weight is None else weight
        inputs, hits, weight = inputs[weight > 0], hits[weight > 0], weight[weight > 0]
        n_inputs = inputs.shape[1]
        count = len(_powers(n_inputs, n_cubic))
        if hits.size == 0 or hits.all() or not hits.any():
            start = np.zeros(count)
            start[0] = _CERTAIN if hits.size and hits.all() else -_CERTAIN
            nothing = np.zeros(n_inputs)
            return cls(nothing, nothing, nothing, np.ones(n_inputs), start, n_cubic)
        low, high = (np.array(ends) for ends in zip(*map(_bounds, inputs.T), strict=True))
        bounded = np.clip(inputs, low, high)
        centre = np.average(bounded, axis=0, weights=weight)
        scale = np.sqrt(np.average((bounded - centre) ** 2, axis=0, weights=weight))
        start = np.zeros(count)
        start[0] = logit(np.average(hits, weights=weight))
        made = cls(low, high, centre, np.where(scale > 0, scale, 1.0), start, n_cubic)
        with threadpool_limits(1):  # the same sums for any number of threads
            return made._replace(coefficients=_newton(made, inputs, hits, weight))

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """The probability of each pair: (n_pairs,) float32."""
        return expit(self.log_odds(inputs)).astype(np.float32)

    def log_odds(self, inputs: np.ndarray) -> np.ndarray:
        """The log-odds of each pair: (n_pairs,) float64."""
        found = np.empty(inputs.shape[0])
        for part in _blocks(inputs.shape[0]):
            # Not a product by BLAS, whose sums depend on how many pairs there are.
            found[part] = np.einsum("ij,j->i", self._monomials(inputs[part]), self.coefficients)
        return found

    def check(self, n_inputs: int) -> None:
        """Refuse what is no surface over ``n_inputs``."""
        if self.n_cubic is not None:
            check_number("n_cubic of a surface", self.n_cubic, integer=True, low=0)
        for name, array in zip(self._fields[:-1], self[:-1], strict=True):
            size = len(_powers(n_inputs, self.n_cubic)) if name == "coefficients" else n_inputs
            check_finite(f"{name} of a surface", check_exact(f"{name} of a surface", array, np.float64, (size,)))
        check_range("scale of a surface", self.scale, np.finfo(np.float64).tiny)
        check_that((self.low <= self.high).all(), "low of a surface is above its high")

    def _monomials(self, inputs: np.ndarray) -> np.ndarray:
        return monomials((np.clip(inputs, self.low, self.high) - self.centre) / self.scale, self.n_cubic)


def monomials(z: np.ndarray, n_cubic: int | None = None) -> np.ndarray:
    """All products of two columns of ``z`` and fewer, and of three of the first ``n_cubic``: (n, n_monomials).

    The constant comes first.

    >>> monomials(np.array([[2.0, 3.0]]))
    array([[ 1.,  2.,  3.,  4.,  6.,  9.,  8., 12., 18., 27.]])
    """
    powers = _powers(z.shape[1], n_cubic)
    place = {power: number for number, power in enumerate(powers)}
    found = np.empty((z.shape[0], len(powers)))
    found[:, 0] = 1
    for number, power in enumerate(powers[1:], 1):
        np.multiply(found[:, place[power[:-1]]], z[:, power[-1]], out=found[:, number])
    return found


def _powers(n_inputs: int, n_cubic: int | None) -> list[tuple[int, ...]]:
    sizes = [n_inputs] * _DEGREE + [n_inputs if n_cubic is None else n_cubic]
    return [power for degree, size in enumerate(sizes) for power in combinations_with_replacement(range(size), degree)]


def _bounds(column: np.ndarray) -> tuple[float, float]:
    known = column[np.isfinite(column)]
    if not known.size:
        return 0.0, 0.0
    low, high = np.quantile(known, [_OUTSIDE, 1 - _OUTSIDE])
    return float(low), float(high)


def _blocks(n: int) -> list[slice]:
    return [slice(start, start + _PAIRS_A_BLOCK) for start in range(0, n, _PAIRS_A_BLOCK)]


def _newton(surface: Surface, inputs: np.ndarray, hits: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The coefficients that minimise the penalised loss, from those that the surface has."""
    blocks = _blocks(hits.size)
    sums = np.zeros((2, surface.coefficients.size))
    for part in blocks:
        m = surface._monomials(inputs[part])
        sums += np.stack([weight[part] @ m, weight[part] @ m**2])
    mean, square = sums / weight.sum()
    ridge = _RIDGE * np.maximum(square - mean**2, 1e-12)
    ridge[0] = 0.0

    def passed(c: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        loss, slope, curvature = 0.5 * float(ridge @ c**2), ridge * c, np.diag(ridge)
        for part in blocks:
            m = surface._monomials(inputs[part])
            odds = m @ c
            p = expit(odds)
            loss += float(weight[part] @ (np.logaddexp(0.0, odds) - hits[part] * odds))
            slope = slope + m.T @ (weight[part] * (p - hits[part]))
            curvature = curvature + (m * (weight[part] * p * (1 - p))[:, None]).T @ m
        return loss, slope, curvature

    c = surface.coefficients
    loss, slope, curvature = passed(c)
    for _ in range(_STEPS):
        step = np.linalg.lstsq(curvature, slope, rcond=None)[0]
        if slope @ step <= _TOL * (1 + loss):
            break
        for _ in range(_HALVINGS):
            new = passed(c - step)
            if new[0] <= loss:
                break
            step = step / 2
        else:
            break
        c, (loss, slope, curvature) = c - step, new
    return c
