"""Fitting a curve to pairs (row, label) of which some were recorded and some were found to be missing.

It has the form of Jain's, but its height is free, and it may fall. It is a curve of expected counts, of which the
observed ones are an image blurred by luck: :mod:`.expected`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares

from tailwise.errors import InvalidInput
from tailwise.parameters import Number, OrNone
from tailwise.propensity.expected import ExpectedCounts, expected_counts
from tailwise.propensity.fitting import CurveFit, EstimatedPropensity
from tailwise.propensity.models import JainPropensity, curve_inverse
from tailwise.validation import as_rng

PAIRS_A_BIN = 30
_MOST_BINS = 10
_BOUNDS = np.array([[-2.0, np.log(0.01), np.log(1e-4)], [2.0, np.log(1000.0), np.log(1e4)]])
"""Of a, ln b and ln odds: wide, because replicates that all stop at a bound make the curve look surer than it is."""
_USUAL = 1.0, 1.0, 2.0
"""How far a, ln b and ln odds may be expected to lie from Jain's guess, as standard deviations."""
_WIDER = 1.2
"""Replicates of a few answers with large weights vary too little. Chosen in ``benchmarks audit_coverage --tuning``."""


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
    """A curve of *expected* counts, fitted to pairs that people checked: ``1/p = 1 + odds ((n + B) / (1 + B))^(-A)``.

    Jain's curve has ``odds = ln N - 1``: for each recorded label of one row so many are missing, whatever the data.
    Answers may say otherwise, and also that rare labels are missing no more often than others (A = 0), or less.

    A label's propensity is the curve's mean over what its observed count may be expected to be, given the counts of
    all labels: :func:`tailwise.propensity.expected.expected_counts`. Rare labels have higher ones than on the curve of
    observed counts, because luck made many of them rare.

    Parameters
    ----------
    a : float
        How fast the propensity grows with the frequency; below 0 it falls.
    b : float
        Where the growth starts, above 0.
    odds : float or None
        Missing to recorded labels at a frequency of 1; None is Jain's ``ln N - 1``.

    Examples
    --------
    >>> AuditedPropensity(0.0, odds=1.0).fit([[1, 0], [1, 0], [1, 1], [1, 0]]).propensity_
    array([0.5, 0.5])
    """

    _parameters = {"a": Number(), "b": Number(low=0, open_low=True), "odds": OrNone(Number(low=0))}

    def __init__(self, a: float = 0.55, *, b: float = 1.5, odds: float | None = None) -> None:
        super().__init__(a, b=b)
        self.odds = odds

    def inverse_at(self, counts: np.ndarray, n_samples: int) -> np.ndarray:
        """The curve itself, ``1 / p`` of labels that are expected ``counts`` (n,) times in ``n_samples`` rows."""
        if self.odds is None:
            return super().inverse_at(counts, n_samples)
        return curve_inverse(counts, float(self.a), float(self.b), float(self.odds))

    def _at(self, counts: np.ndarray, n_samples: int) -> np.ndarray:
        expected = expected_counts(self.label_counts_)
        return expected.mean_of(counts)(self.inverse_at(expected.grid, n_samples))


def fit_pairs(
    evidence: PairEvidence, n_samples: int, source: str, confidence: float
) -> tuple[AuditedPropensity, np.ndarray]:
    """The curve that fits the pairs best, not yet fitted on labels; and (2 B, 3): a, b and odds of the replicates.

    Bins of frequency, which pass into each other, hold about equally many of the pairs that were asked about. A bin's
    rate is ``recorded / (recorded + missing)``, and least squares, in units of the rates' mean standard error, make the
    curve's mean over the relevant pairs of each bin equal it. What pairs do not tell stays near Jain's guess: they
    hardly tell B, which shapes the curve below the rarest label asked about (log B has a standard deviation of 1 around
    that of 1.5), but A (1 around 0.55) and the odds (log odds 2 around ``ln(ln N - 1)``) are mostly theirs. Cost: a fit
    of three numbers for each replicate, a few ms. Each replicate is followed by its mirror image.
    """
    m = evidence.missing_frequency.size
    n_bins = min(_MOST_BINS, m // PAIRS_A_BIN)
    if n_bins < 2:
        raise InvalidInput(
            f"{source} tells about {m:,} unrecorded pairs; a curve needs at least {2 * PAIRS_A_BIN}: bring more answers"
        )
    guess = JainPropensity()
    usual = np.array([guess.a, np.log(guess.b), np.log(max(np.log(n_samples) - 1.0, 0.1))])
    bins = _Bins(evidence, n_bins, expected_counts(evidence.label_counts), usual)
    best = bins.fit(0, usual)
    n_replicates = evidence.missing.shape[0] - 1
    samples = _mirrored(best, np.array([bins.fit(b, best) for b in range(1, 1 + n_replicates)]).reshape(-1, 3))
    curves = np.array([bins.means(0, one) for one in (samples if n_replicates else best[None])])
    bounds = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(curves, bounds, axis=0)
    samples[:, 1:] = np.exp(samples[:, 1:])
    a, curve_b, odds = (float(number) for number in (best[0], *np.exp(best[1:])))
    found = AuditedPropensity(a, b=curve_b, odds=odds)
    spread = samples[:, :2] if n_replicates else np.array([[a, curve_b]])
    (a_low, b_low), (a_high, b_high) = np.quantile(spread, bounds, axis=0).tolist()
    fitted, rates = bins.means(0, best), bins.rates(0)
    found.fit_ = CurveFit(
        source,
        n_samples,
        m,
        bins.frequency(0),
        rates,
        fitted,
        low,
        high,
        (a_low, a_high),
        (b_low, b_high),
        float(np.sqrt(((fitted - rates) ** 2).mean())),
        confidence,
    )
    return found, samples


def _mirrored(best: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """(2 B, 3): each replicate of a, ln b and ln odds on both sides of the estimate.

    Missing labels that were not drawn make the estimate, and all replicates, say that too few are missing: the truth
    lies on the other side. On the scale of logarithms what is not known is about the same on both.

    >>> _mirrored(np.zeros(3), np.array([[1.0, -1.0, 0.0]])).round(1).tolist()
    [[1.2, -1.2, 0.0], [-1.2, 1.2, 0.0]]
    """
    off = _WIDER * (samples - best)
    return np.clip(np.stack([best + off, best - off], axis=1).reshape(-1, 3), *_BOUNDS)


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

    def __init__(self, evidence: PairEvidence, n_bins: int, expected: ExpectedCounts, usual: np.ndarray) -> None:
        self.evidence, self.grid, self.usual = evidence, expected.grid, usual
        frequencies = evidence.recorded_frequency, evidence.missing_frequency
        knots = np.unique(np.quantile(np.log(evidence.missing_frequency), (np.arange(n_bins) + 0.5) / n_bins))
        hats = np.eye(knots.size)
        self.of_recorded, self.of_missing = (
            np.column_stack([np.interp(np.log(part), knots, hat) for hat in hats]) for part in frequencies
        )
        self.at_recorded, self.at_missing = (expected.mean_of(part) for part in frequencies)
        n_replicates = evidence.missing.shape[0] - 1
        self.noise, self.strictness = 1.0, np.full(3, 1e-3)
        if n_replicates > 1:
            # One for all bins: a bin with few yes has a rate that is too high, and looks surer than it is.
            noise = np.array([self.rates(b) for b in range(1, 1 + n_replicates)]).std(axis=0)
            self.noise, self.strictness = max(float(noise.mean()), 1e-6), 1.0 / np.array(_USUAL)

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

    def means(self, b: int, at: np.ndarray) -> np.ndarray:
        a, log_b, log_odds = at
        inverse = curve_inverse(self.grid, a, np.exp(log_b), np.exp(log_odds))
        return self._mean(b, self.at_recorded(inverse), self.at_missing(inverse))

    def _mean(self, b: int, at_recorded: np.ndarray, at_missing: np.ndarray) -> np.ndarray:
        recorded, missing = self._parts(b)
        missing = np.maximum(missing, 0.0)
        total = sum(self._sums(recorded, missing))
        return sum(self._sums(recorded * at_recorded, missing * at_missing)) / np.maximum(total, 1e-9)

    def fit(self, b: int, start: np.ndarray) -> np.ndarray:
        """(3,): a, ln b and ln odds."""
        rates = self.rates(b)

        def residuals(at: np.ndarray) -> np.ndarray:
            inside = np.clip(at, *_BOUNDS)
            off = (self.means(b, inside) - rates) / self.noise
            return np.concatenate([off, (at - inside) / self.noise, (at - self.usual) * self.strictness])

        # Without bounds of its own the solver is compiled; what leaves them costs its distance.
        found = least_squares(residuals, start, method="lm", xtol=1e-5, ftol=1e-5)
        return np.clip(found.x, *_BOUNDS)
