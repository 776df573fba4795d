"""Fitting Jain's curve to pairs (row, label) of which some were recorded and some were found to be missing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from tailwise.errors import InvalidInput
from tailwise.propensity.fitting import BOUNDS, CurveFit, EstimatedPropensity
from tailwise.propensity.models import PRESETS, JainPropensity, jain_inverse

PAIRS_A_BIN = 30
_MOST_BINS = 10
_NOISE = 0.03
"""How far the rate of a bin is off, about: what a step of B away from its usual value weighs against."""


class PairEvidence(NamedTuple):
    """Relevant pairs by the frequency of their labels, recorded ones and missing ones.

    ``recorded_frequency, recorded`` (n,): frequencies, each once, and how many recorded and right pairs each has.
    ``missing_frequency`` (m,): that of each pair that was asked about. ``missing`` (1 + B, m): how many missing pairs
    it stands for, in the estimate itself and in B replicates; a replicate's recorded pairs are ``recorded`` (1 + B, n)
    where they vary too.
    """

    recorded_frequency: np.ndarray
    recorded: np.ndarray
    missing_frequency: np.ndarray
    missing: np.ndarray


def fit_pairs(
    evidence: PairEvidence, n_samples: int, source: str, confidence: float
) -> tuple[EstimatedPropensity, np.ndarray]:
    """Jain's curve with the (a, b) that fits the pairs best, not yet fitted on labels; and (B, 2) of the replicates.

    Bins of frequency hold equally many of the pairs that were asked about, so that all are known about equally well.
    A bin's rate is ``recorded / (recorded + missing)``, and least squares make the curve's mean over the relevant
    pairs of each bin equal it. Pairs hardly tell B, which shapes the curve below the rarest label asked about: where
    they do not, it stays near 1.5, as the published values do (log B has a standard deviation of 1). Cost: a fit of
    two numbers for each replicate, about 2 ms.
    """
    m = evidence.missing_frequency.size
    n_bins = min(_MOST_BINS, m // PAIRS_A_BIN)
    if n_bins < 2:
        raise InvalidInput(
            f"{source} tells about {m:,} unrecorded pairs; two parameters need at least {2 * PAIRS_A_BIN}: bring more "
            "answers"
        )
    levels = np.linspace(0, 1, n_bins + 1)[1:-1]
    edges = np.unique(np.quantile(evidence.missing_frequency, levels))
    bins = _Bins(evidence, edges)
    best = bins.fit(0, n_samples, list(PRESETS.values()))
    samples = np.array([bins.fit(b, n_samples, [tuple(best)]) for b in range(1, evidence.missing.shape[0])])
    found = EstimatedPropensity(float(best[0]), b=float(best[1]))
    rates = np.array([bins.rates(b) for b in range(evidence.missing.shape[0])])
    curves = np.array([bins.means(0, n_samples, *pair) for pair in (samples if len(samples) else [best])])
    bounds = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(curves, bounds, axis=0)
    (a_low, b_low), (a_high, b_high) = np.quantile(samples if len(samples) else best[None], bounds, axis=0)
    fitted = bins.means(0, n_samples, *best)
    found.fit_ = CurveFit(
        source,
        n_samples,
        m,
        bins.frequency(0),
        rates[0],
        fitted,
        low,
        high,
        (float(a_low), float(a_high)),
        (float(b_low), float(b_high)),
        float(np.sqrt(((fitted - rates[0]) ** 2).mean())),
        confidence,
    )
    return found, samples


class _Bins:
    """Sums of pairs in bins of frequency, for the estimate (0) and its replicates."""

    def __init__(self, evidence: PairEvidence, edges: np.ndarray) -> None:
        self.evidence = evidence
        self.of_recorded, self.of_missing = (
            np.searchsorted(edges, part, side="right")
            for part in (evidence.recorded_frequency, evidence.missing_frequency)
        )
        self.n = edges.size + 1

    def _parts(self, b: int) -> tuple[np.ndarray, np.ndarray]:
        recorded = self.evidence.recorded
        return (recorded if recorded.ndim == 1 else recorded[b]), self.evidence.missing[b]

    def _sums(self, recorded: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (
            np.bincount(self.of_recorded, recorded, minlength=self.n),
            # Answers that are corrected for mistakes may add up to less than nothing.
            np.maximum(np.bincount(self.of_missing, missing, minlength=self.n), 0.0),
        )

    def rates(self, b: int) -> np.ndarray:
        recorded, missing = self._sums(*self._parts(b))
        return recorded / np.maximum(recorded + missing, 1e-9)

    def frequency(self, b: int) -> np.ndarray:
        return self._mean(b, self.evidence.recorded_frequency, self.evidence.missing_frequency)

    def means(self, b: int, n_samples: int, a: float, curve_b: float) -> np.ndarray:
        parts = self.evidence.recorded_frequency, self.evidence.missing_frequency
        return self._mean(b, *(1.0 / jain_inverse(part, n_samples, a, curve_b) for part in parts))

    def _mean(self, b: int, at_recorded: np.ndarray, at_missing: np.ndarray) -> np.ndarray:
        recorded, missing = self._parts(b)
        missing = np.maximum(missing, 0.0)
        total = sum(self._sums(recorded, missing))
        return sum(self._sums(recorded * at_recorded, missing * at_missing)) / np.maximum(total, 1e-9)

    def fit(self, b: int, n_samples: int, starts: list[tuple[float, float]]) -> np.ndarray:
        rates = self.rates(b)

        def residuals(logs: np.ndarray) -> np.ndarray:
            inside = np.clip(logs, *BOUNDS)
            unusual = _NOISE * (logs[1] - np.log(JainPropensity().b))
            return np.concatenate([self.means(b, n_samples, *np.exp(inside)) - rates, logs - inside, [unusual]])

        # Without bounds of its own the solver is compiled; what leaves them costs its distance.
        found = [least_squares(residuals, np.log(start), method="lm", xtol=1e-5, ftol=1e-5) for start in starts]
        return np.exp(np.clip(min(found, key=lambda result: result.cost).x, *BOUNDS))
