"""Fitting Jain's curve to pairs (row, label) of which some were recorded and some were found to be missing.

The curve is one of expected counts, of which the observed ones are an image blurred by luck: :mod:`.expected`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares

from tailwise.errors import InvalidInput
from tailwise.propensity.expected import ExpectedCounts, expected_counts
from tailwise.propensity.fitting import BOUNDS, CurveFit, EstimatedPropensity
from tailwise.propensity.models import PRESETS, JainPropensity, jain_inverse
from tailwise.validation import as_rng

PAIRS_A_BIN = 30
_MOST_BINS = 10
_LEAST_NOISE = 0.25


class PairEvidence(NamedTuple):
    """Relevant pairs by how many *other* rows have their label, recorded ones and missing ones.

    The other rows, because a pair that is recorded adds to its label's count and one that is missing does not.
    ``recorded_frequency`` (n,): frequencies, each once, and ``recorded`` (1 + B, n) how many recorded and right pairs
    each has, in the estimate itself and in B replicates. ``missing_frequency`` (m,): that of each pair that was asked
    about; ``missing`` (1 + B, m): how many missing pairs it stands for. ``label_counts`` (n_labels,) of all rows.
    """

    recorded_frequency: np.ndarray
    recorded: np.ndarray
    missing_frequency: np.ndarray
    missing: np.ndarray
    label_counts: np.ndarray


class AuditedPropensity(EstimatedPropensity):
    """Jain's curve of *expected* counts, fitted to pairs that people have checked.

    A label's propensity is the curve's mean over what its observed count may be expected to be, given the counts of
    all labels: :func:`tailwise.propensity.expected.expected_counts`. Rare labels have higher ones than on the curve of
    observed counts, because luck made many of them rare.
    """

    def _at(self, counts: np.ndarray, n_samples: int) -> np.ndarray:
        expected = expected_counts(self.label_counts_)
        return expected.mean_of(counts)(jain_inverse(expected.grid, n_samples, float(self.a), float(self.b)))


def fit_pairs(
    evidence: PairEvidence, n_samples: int, source: str, confidence: float
) -> tuple[AuditedPropensity, np.ndarray]:
    """Jain's curve with the (a, b) that fits the pairs best, not yet fitted on labels; and (B, 2) of the replicates.

    Bins of frequency, which pass into each other, hold about equally many of the pairs that were asked about. A bin's
    rate is ``recorded / (recorded + missing)``, and least squares, in units of the rates' standard errors, make the
    curve's mean over the relevant pairs of each bin equal it. Pairs hardly tell B, which shapes the curve below the
    rarest label asked about: where they do not, it stays near 1.5, as the published values do (log B has a standard
    deviation of 1). Cost: a fit of two numbers for each replicate, a few ms.
    """
    m = evidence.missing_frequency.size
    n_bins = min(_MOST_BINS, m // PAIRS_A_BIN)
    if n_bins < 2:
        raise InvalidInput(
            f"{source} tells about {m:,} unrecorded pairs; two parameters need at least {2 * PAIRS_A_BIN}: bring more "
            "answers"
        )
    bins = _Bins(evidence, n_bins, expected_counts(evidence.label_counts))
    best = bins.fit(0, n_samples, list(PRESETS.values()))
    samples = np.array([bins.fit(b, n_samples, [tuple(best)]) for b in range(1, evidence.missing.shape[0])])
    found = AuditedPropensity(float(best[0]), b=float(best[1]))
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


def varied(counts: np.ndarray, n_replicates: int, random_state: Any) -> np.ndarray:
    """(1 + B, n): ``counts`` of recorded pairs, and B replicates in which each pair has an exponential weight.

    That is the Bayesian bootstrap; a sum of such weights is Gamma distributed.

    >>> varied(np.array([0, 9]), 2, 0).shape
    (3, 2)
    """
    return np.vstack([counts, as_rng(random_state).standard_gamma(counts, size=(n_replicates, counts.size))])


class _Bins:
    """Sums of pairs in bins of frequency, for the estimate (0) and its replicates.

    A label of n rows has its recorded pairs at n - 1 and its missing ones at n. A bin that began between them would
    part them; one that began where no label is would hold labels that luck brought there. So bins are hat functions of
    the logarithm of the frequency, by which both kinds of pairs of a frequent label weigh the same.
    """

    def __init__(self, evidence: PairEvidence, n_bins: int, expected: ExpectedCounts) -> None:
        self.evidence, self.grid = evidence, expected.grid
        frequencies = evidence.recorded_frequency, evidence.missing_frequency
        knots = np.unique(np.quantile(np.log(evidence.missing_frequency), (np.arange(n_bins) + 0.5) / n_bins))
        hats = np.eye(knots.size)
        self.of_recorded, self.of_missing = (
            np.column_stack([np.interp(np.log(part), knots, hat) for hat in hats]) for part in frequencies
        )
        self.at_recorded, self.at_missing = (expected.mean_of(part) for part in frequencies)
        n_replicates = evidence.missing.shape[0] - 1
        self.noise, self.usual = np.ones(knots.size), 0.0
        if n_replicates > 1:
            noise = np.array([self.rates(b) for b in range(1, 1 + n_replicates)]).std(axis=0)
            # A bin in which nobody said yes looks surer than it is.
            self.noise, self.usual = np.maximum(noise, max(_LEAST_NOISE * float(noise.mean()), 1e-6)), 1.0

    def _parts(self, b: int) -> tuple[np.ndarray, np.ndarray]:
        return self.evidence.recorded[b], self.evidence.missing[b]

    def _sums(self, recorded: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # Answers that are corrected for mistakes may add up to less than nothing.
        return recorded @ self.of_recorded, np.maximum(missing @ self.of_missing, 0.0)

    def rates(self, b: int) -> np.ndarray:
        recorded, missing = self._sums(*self._parts(b))
        return recorded / np.maximum(recorded + missing, 1e-9)

    def frequency(self, b: int) -> np.ndarray:
        return self._mean(b, self.evidence.recorded_frequency, self.evidence.missing_frequency)

    def means(self, b: int, n_samples: int, a: float, curve_b: float) -> np.ndarray:
        inverse = jain_inverse(self.grid, n_samples, a, curve_b)
        return self._mean(b, self.at_recorded(inverse), self.at_missing(inverse))

    def _mean(self, b: int, at_recorded: np.ndarray, at_missing: np.ndarray) -> np.ndarray:
        recorded, missing = self._parts(b)
        missing = np.maximum(missing, 0.0)
        total = sum(self._sums(recorded, missing))
        return sum(self._sums(recorded * at_recorded, missing * at_missing)) / np.maximum(total, 1e-9)

    def fit(self, b: int, n_samples: int, starts: list[tuple[float, float]]) -> np.ndarray:
        rates = self.rates(b)

        def residuals(logs: np.ndarray) -> np.ndarray:
            inside = np.clip(logs, *BOUNDS)
            unusual = self.usual * (logs[1] - np.log(JainPropensity().b))
            off = (self.means(b, n_samples, *np.exp(inside)) - rates) / self.noise
            return np.concatenate([off, (logs - inside) / self.noise.min(), [unusual]])

        # Without bounds of its own the solver is compiled; what leaves them costs its distance.
        found = [least_squares(residuals, np.log(start), method="lm", xtol=1e-5, ftol=1e-5) for start in starts]
        return np.exp(np.clip(min(found, key=lambda result: result.cost).x, *BOUNDS))
