"""What the answers say: how much is missing and wrong, where, and how good the model truly is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from tailwise.audit.answers import Answers, doubles, judged
from tailwise.audit.plan import Plan
from tailwise.audit.pool import STRATA, TOP
from tailwise.audit.reviewers import ErrorRates, cohens_kappa
from tailwise.audit.weighing import Weighed, weigh
from tailwise.display import Printable, Table
from tailwise.errors import InvalidInput
from tailwise.metrics import label_slices
from tailwise.metrics.intervals import Resample
from tailwise.metrics.result import Estimate
from tailwise.propensity import AuditedPropensity, Propensity
from tailwise.propensity.pairs import PairEvidence, fit_pairs, varied
from tailwise.validation import as_rng, check_number

KS = (1, 3, 5)
N_BOOTSTRAP = 500
MORE = 100


@dataclass(frozen=True)
class Part:
    """One stratum or group of labels. Estimates are in percent."""

    name: str
    recorded: int
    """Recorded pairs."""
    answered: int
    """Questions answered with yes or no."""
    missing: Estimate
    """Share of the right labels that is missing, with those outside the pool; 100 less the propensity."""
    missing_in_pool: Estimate
    """The same without them: what holds without any assumption, and at least so much is missing."""
    wrong: Estimate
    """Share of the recorded labels that is wrong."""
    with_more: Estimate
    """``missing`` with the interval that 100 more answers would be expected to leave."""

    @property
    def propensity(self) -> float:
        """The share of right labels that is recorded, in [0, 1]."""
        return 1 - self.missing.value / 100


@dataclass(frozen=True)
class AuditEstimate(Printable):
    """What the answers to a plan say; ``print`` shows it."""

    strata: dict[str, Part]
    groups: dict[str, Part]
    precision: dict[int, tuple[float, Estimate]]
    """By k: P@k of the model on the recorded labels, and on the true ones."""
    propensity: AuditedPropensity | None
    """The curve, fitted to the answers and on the training counts; None where the answers are too few."""
    curves: np.ndarray
    """(2 n_bootstrap, 3): a, b and odds of the replicates, each followed by its mirror image."""
    errors: ErrorRates
    kappa: float
    n_doubles: int
    n_answers: int
    n_unsure: int
    n_questions: int
    confidence: float

    def table(self) -> Table:
        """By stratum and group: shares with intervals, and below them precision, reviewers and the curve."""
        rows = [
            [
                part.name,
                f"{part.recorded:,}",
                part.answered,
                part.missing.cell(),
                part.missing_in_pool.cell(),
                part.wrong.cell(),
                part.with_more.cell().detail,
            ]
            for part in [*self.strata.values(), *self.groups.values()]
        ]
        header = ["labels", "recorded", "answers", "missing %", "at least", "wrong %", f"with {MORE} more"]
        title = (
            f"{self.n_answers:,} answers ({self.n_unsure:,} unsure) to {self.n_questions:,} questions; "
            f"{self.confidence:.0%} intervals"
        )
        return Table(title, header, rows, self.notes())

    def judge(self, score: Callable[[Propensity], float], n_replicates: int = 100) -> Estimate:
        """A number that depends on the propensities, such as PSP@5, with the interval that the answers leave to it.

        ``score`` gets a fitted propensity and gives the number; it is called ``n_replicates + 1`` times. Variation of
        the rows that are scored is no part of the interval.
        """
        if self.propensity is None:
            return Estimate(float("nan"))
        known = self.propensity
        values = np.array(
            [
                score(AuditedPropensity(a, b=b, odds=odds).fit_counts(known.label_counts_, known.fit_.n_samples))
                for a, b, odds in self.curves[:n_replicates]
            ]
        )
        value, found = score(known), Resample("bootstrap", values)
        return Estimate(value, *found.interval(value, self.confidence), "bootstrap", True, found)

    def notes(self) -> list[str]:
        """Sentences on precision, reviewers and the propensity curve."""
        lines = [
            f"P@{k} of the model on these rows: {recorded:.1f} on what is recorded, {true.value:.1f} "
            f"[{true.low:.1f}, {true.high:.1f}] in truth"
            for k, (recorded, true) in self.precision.items()
        ]
        (yes_low, yes_high), (no_low, no_high) = 100 * self.errors.interval(self.confidence)
        yes, no = 100 * self.errors.mean
        kappa = f"kappa {self.kappa:.2f} on {self.n_doubles:,} doubles" if self.n_doubles else "nobody judged a double"
        lines.append(
            f"reviewers: {kappa}; they say yes to a wrong label in {yes:.1f} % [{yes_low:.0f}, {yes_high:.0f}] of the "
            f"cases and no to a right one in {no:.1f} % [{no_low:.0f}, {no_high:.0f}], which is taken into account"
        )
        if self.propensity is None:
            lines.append("there are too few answers about unrecorded pairs for a propensity curve")
        else:
            fit = self.propensity.fit_
            lines.append(
                f"propensity curve: a = {self.propensity.a:.3f} [{fit.a_interval[0]:.3f}, {fit.a_interval[1]:.3f}], "
                f"b = {self.propensity.b:.3f} [{fit.b_interval[0]:.3f}, {fit.b_interval[1]:.3f}], "
                f"odds = {self.propensity.odds:.2f}"
            )
        return lines

    def records(self) -> list[dict[str, Any]]:
        """One record a stratum or group."""
        return [
            {"labels": part.name, "recorded": part.recorded, "answered": part.answered}
            | {
                f"{name} {field}": getattr(getattr(part, name), field)
                for name in ("missing", "missing_in_pool", "wrong", "with_more")
                for field in ("value", "low", "high")
            }
            for part in [*self.strata.values(), *self.groups.values()]
        ]


def estimate_audit(
    plan: Plan,
    answers: Answers,
    *,
    groups: str | Mapping[str, Any] = "deciles",
    confidence: float = 0.95,
    n_bootstrap: int = N_BOOTSTRAP,
    random_state: Any = 0,
) -> AuditEstimate:
    """Estimate from ``answers`` what is missing and wrong, the propensity curve, and the model's true precision.

    Parameters
    ----------
    plan : Plan
        Of :func:`plan_audit`.
    answers : Answers
        Those that stand; a part of the questions is enough.
    groups : "deciles", "quantiles" or mapping of names to (n_labels,) bool
        Labels to tell apart beside head, torso and tail, as :func:`label_slices` takes them.
    confidence, n_bootstrap, random_state
        Of the intervals: bootstrap over records.
    """
    check_number("confidence", confidence, low=0, high=1, open_low=True, open_high=True)
    check_number("n_bootstrap", n_bootstrap, integer=True, low=20)
    rng = as_rng(random_state)
    found = weigh(plan, answers, n_bootstrap, rng)
    counted = judged(answers, plan.questions.rows.size)
    strata = {name: plan.pool.strata == s for s, name in enumerate(STRATA)}
    others = label_slices(plan.pool.label_counts, groups)
    more = 1 + MORE / counted.question.size
    make = _Maker(plan, found, confidence, more, rng)
    first, second = doubles(answers)
    propensity, curves = make.curve()
    return AuditEstimate(
        {name: make.part(name, mask) for name, mask in strata.items()},
        {name: make.part(name, mask) for name, mask in others.items()},
        {k: make.precision(k) for k in KS if k <= TOP},
        propensity,
        curves,
        found.errors,
        cohens_kappa(first, second),
        first.size,
        answers.question.size,
        int((answers.verdict < 0).sum()),
        plan.questions.rows.size,
        confidence,
    )


class _Maker:
    def __init__(self, plan: Plan, found: Weighed, confidence: float, more: float, random_state: Any) -> None:
        self.plan, self.found, self.confidence, self.more = plan, found, confidence, more
        self.random_state = random_state
        pool = plan.pool
        self.recorded = np.bincount(pool.recorded_labels, minlength=pool.label_counts.size)
        self.missing = found.missing
        self.wrong_by_stratum = np.array([self._wrong(pool.strata == s) for s in range(len(STRATA))])

    def part(self, name: str, members: np.ndarray) -> Part:
        """The estimates for the labels of a mask."""
        asked = self.found.questions
        mine = members[asked.labels] & ~asked.recorded
        recorded = int(self.recorded[members].sum())
        wrong = self._wrong(members)
        # Without an answer about recorded labels of the group, those of its strata speak for it.
        right = recorded * (1 - (self._wrong_of_strata(members) if np.isnan(wrong).all() else wrong))
        missing, at_least = (
            self._missing_share((self.missing * factor)[:, mine], right, mine, members)
            for factor in (self.found.beyond, np.ones(mine.size))
        )
        if at_least.value > missing.value:
            # No's that are corrected for mistakes count as less than nothing, and stand for others beyond the pool.
            at_least = missing
        kept = members[asked.labels] & asked.recorded
        none_wrong = _none_of(int(kept.sum())) if (self.found.said[kept] == 1).all() else 0.0
        return Part(
            name,
            recorded,
            int((mine | kept).sum()),
            missing,
            at_least,
            self._estimate(100 * wrong, self.found.weight[0, kept], 100 * none_wrong),
            _narrowed(missing, self.more),
        )

    def _missing_share(self, missing: np.ndarray, right: np.ndarray, mine: np.ndarray, members: np.ndarray) -> Estimate:
        """The share that ``missing`` (1 + B, n) labels have of all right ones, in percent.

        What is estimated is a sum, and its interval is that of the sum: from there to the share of ``right + sum``.
        """
        n = missing.shape[1]
        if not n:
            return Estimate(float("nan"))
        odds = missing.sum(axis=1) / np.maximum(right, 1e-9)
        low, high = self._ends(odds, float(odds[1:].std()), missing[0])
        if not self.found.said[mine].any():
            # Where nobody said yes, replicates do not vary; yet up to so many pairs of the pool may be missing labels.
            high = max(high, members[self.plan.pool.labels].sum() * _none_of(n) / max(right[0], 1e-9))
        value, low, high = (_share(max(end, 0.0)) for end in (float(odds[0]), low, high))
        resample = Resample("bootstrap", _share(np.maximum(odds[1:], 0.0)))
        return Estimate(value, low, high, "bootstrap", False, resample)

    def _wrong(self, members: np.ndarray) -> np.ndarray:
        """(1 + B,) share of wrong labels among the recorded ones of a mask; NaN where nobody was asked."""
        asked = self.found.questions.recorded & members[self.found.questions.labels]
        if not asked.any():
            return np.full(self.found.weight.shape[0], np.nan)
        weight = self.found.weight[:, asked]
        return 1 - (weight * self.found.right[:, asked]).sum(axis=1) / weight.sum(axis=1)

    def _wrong_of_strata(self, members: np.ndarray) -> np.ndarray:
        share = np.bincount(self.plan.pool.strata[members], self.recorded[members], minlength=len(STRATA))
        return np.nan_to_num(self.wrong_by_stratum).T @ (share / max(share.sum(), 1))

    def precision(self, k: int) -> tuple[float, Estimate]:
        """P@k on recorded and on true labels, in percent."""
        pool, asked = self.plan.pool, self.found.questions
        first = (pool.recorded_place >= 0) & (pool.recorded_place < k)
        hits = np.bincount(pool.strata[pool.recorded_labels[first]], minlength=len(STRATA))
        right = (1 - np.nan_to_num(self.wrong_by_stratum)).T @ hits
        parts = self.missing[:, asked.place < k]
        missed = parts.sum(axis=1)
        scale = 100 / (k * pool.n_rows)
        values = scale * (right + missed)
        low, high = right[0] + self._ends(missed, float((right + missed)[1:].std()), parts[0])
        value, low, high = np.clip([values[0], scale * low, scale * high], 0.0, 100.0).tolist()
        resample = Resample("bootstrap", values[1:])
        return float(scale * hits.sum()), Estimate(value, low, high, "bootstrap", True, resample)

    def curve(self) -> tuple[AuditedPropensity | None, np.ndarray]:
        """Jain's curve through the weighted pairs, fitted on the training counts."""
        pool, asked = self.plan.pool, self.found.questions
        elsewhere = pool.recorded_elsewhere
        wrong = np.nan_to_num(self.wrong_by_stratum)[:, 0]
        frequency, place = np.unique(elsewhere[elsewhere > 0], return_inverse=True)
        right = np.bincount(place, np.maximum(1 - wrong, 0.0)[pool.strata[pool.recorded_labels[elsewhere > 0]]])
        evidence = PairEvidence(
            frequency,
            varied(right, self.missing.shape[0] - 1, self.random_state),
            pool.label_counts[asked.labels[~asked.recorded]],
            (self.missing * self.found.beyond)[:, ~asked.recorded],
            pool.label_counts,
        )
        try:
            found, samples = fit_pairs(evidence, pool.n_samples, "an audit of pairs", self.confidence)
        except InvalidInput:
            return None, np.empty((0, 3))
        return found.fit_counts(pool.label_counts, pool.n_samples), samples

    def _estimate(self, values: np.ndarray, parts: np.ndarray, highest: float) -> Estimate:
        """Percents with an interval: the replicates' standard error, and Student's t for the terms of their sum."""
        if np.isnan(values[0]):
            return Estimate(float("nan"))
        reach = self._t(parts) * float(values[1:].std())
        value, low, high = np.clip([values[0], values[0] - reach, max(values[0] + reach, highest)], 0, 100).tolist()
        return Estimate(value, low, high, "bootstrap", False, Resample("bootstrap", values[1:]))

    def _ends(self, sums: np.ndarray, error: float, parts: np.ndarray) -> np.ndarray:
        """(2,) the interval of a sum (1 + B,) of ``parts`` that cannot be negative, with its standard ``error``.

        A few terms with large weights make a sum skewed: one that misses the large ones is too small, and looks surer
        than it is. Its logarithm, whose error is about that of the sum over the sum, is nearly symmetric; for a share
        that is the scale of its log odds. Answers that are corrected for mistakes may add up to nothing or less: then
        the scale is that of the sum, and where replicates do so the low end is 0.
        """
        reach = self._t(parts) * error
        if sums[0] <= 0:
            return np.array([0.0, reach])
        factor = np.exp(min(reach / float(sums[0]), 50.0))
        none = float(np.quantile(sums[1:], (1 - self.confidence) / 2)) <= 0
        return float(sums[0]) * np.array([0.0 if none else 1 / factor, factor])

    def _t(self, parts: np.ndarray) -> float:
        """Student's t with ``(Σ w)² / Σ w² - 1`` degrees of freedom, w the terms of a sum: wide for few large ones."""
        size = np.abs(parts).sum() ** 2 / max(float((parts**2).sum()), 1e-300)
        return float(stdtrit(max(size - 1.0, 1.0), (1 + self.confidence) / 2))


def _share(odds: Any) -> Any:
    return 100 * odds / (1 + odds)


def _none_of(n: int) -> float:
    """The largest share of which none among ``n`` is seen in more than one of twenty cases: about 3/n.

    >>> round(_none_of(100), 3)
    0.03
    """
    return 1.0 - 0.05 ** (1.0 / n) if n else 1.0


def _narrowed(found: Estimate, more: float) -> Estimate:
    """The interval that ``more`` times as many answers, spread alike, would be expected to leave."""
    shrink = more**-0.5
    low, high = (found.value + (end - found.value) * shrink for end in (found.low, found.high))
    return Estimate(found.value, low, high, found.method, found.higher_is_better)
