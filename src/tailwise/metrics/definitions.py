"""The metrics, one idea a definition, and the table of them all.

A *row metric* gives each row a numerator and a denominator; its value is the ratio of their sums. Most are linear in
the gains of the predicted labels: row i earns ``c_i Σ_j u_j g_ij`` with a discount u_j of the place and a scale c_i of
the row. The plain form has ``g = y``; the propensity-scored form (prefix ``ps``) has ``g = y / p_l`` (Theorem 4.1 of
Jain et al., 2016) and is reported relative to the same formula on the best ranking of the observed labels.
A *label metric* counts over labels instead of rows.

| name | a row (a label) earns | remarks |
|---|---|---|
| p@k | Σ g / k | |
| ndcg@k | Σ g_j / log2(j+1), over that of min(k, labels of the row) hits | as in the public evaluation code |
| dcg@k | Σ g_j / log2(j+1), over that of k hits | psdcg is unbiased as it is, psndcg where R is known |
| recall@k | Σ g / R | R = labels of the row; the truly relevant ones where that is known |
| f1@k | 2 Σ g / (labels predicted + R) | the mean of the rows' F-scores |
| mrr | Σ (g_j / j) / R | the mean over *all* relevant labels: only so can it be propensity-scored |
| adg | Σ (g_j / log2(j+1)) / R | average discounted gain |
| hamming | Σ_true g - 2 Σ_hits g + labels predicted | wrong labels a row, smaller is better; Theorem 4.4 |
| hit@k | 1 if one of the k is correct | no propensity-scored form |
| mrr_first | 1 / place of the first correct label | the usual reciprocal rank; no propensity-scored form |
| coverage@k | 1 if it is correct in some row's top k | over the distinct labels of the truth |
| predicted@k | 1 if it is in some row's top k | over all labels |
| macro_p@k | correct / predicted | the mean over all labels, 0 for one that is never predicted |
| macro_recall@k | correct / true | likewise, 0 for one that no row has |
| macro_f1@k | 2 correct / (predicted + true) | likewise |

mrr, adg, hamming and mrr_first look at the whole prediction unless a k is given.
A slice (``recall@5:tail``) keeps the predictions and lets only the slice's labels count. p@k and hamming then sum to
the whole over head, torso and tail. ndcg@k averages over the rows that have a label of the slice. recall@k, f1@k, mrr
and adg pool all (row, label) pairs, as if a row with t labels were t rows with one: sums over sums. Their scored forms
divide by the estimated number of relevant pairs ``Σ y / p_l``, so they estimate the pooled value on complete labels.
``:all`` is the slice of every label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tailwise.metrics.rows import RowFacts, View

Columns = tuple[np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class Metric:
    """What a metric is called and how to read it."""

    name: str
    summary: str
    needs_k: bool = True
    can_be_scored: bool = False
    percent: bool = True
    higher_is_better: bool = True


@dataclass(frozen=True)
class RowMetric(Metric):
    """A metric whose value is a sum over rows, divided by another sum over rows."""

    def columns(self, facts: RowFacts, k: int) -> Columns:
        """Numerator and denominator of every row, (n,) float64 each; None stands for ones."""
        raise NotImplementedError

    def widths(self, view: View) -> tuple[float, float] | None:
        """How far one row's numerator and denominator can range, for Hoeffding's inequality; None if unbounded."""
        return 1.0, 0.0


@dataclass(frozen=True)
class GainMetric(RowMetric):
    """``c_i Σ_j u_j g_ij``: linear in the gains, hence unbiased when they are divided by the propensities."""

    can_be_scored: bool = True
    discount: Callable[[int], np.ndarray] = np.ones
    scale: Callable[[RowFacts, int], np.ndarray] = lambda facts, k: np.ones(facts.gains.shape[0])
    pool: Callable[[RowFacts, int], np.ndarray] | None = None
    skips_rows_outside_slice: bool = False

    def columns(self, facts: RowFacts, k: int) -> Columns:
        """See :meth:`RowMetric.columns`."""
        discount = self.discount(k)
        earned = facts.gains[:, :k] @ discount
        if facts.view.sliced and self.pool is not None:
            return earned, self.pool(facts, k)
        scale = self.scale(facts, k)
        if facts.view.scored and facts.view.normalize:
            return scale * earned, scale * (facts.best[:, :k] @ discount)
        if facts.view.sliced and self.skips_rows_outside_slice:
            return scale * earned, (facts.n_true > 0).astype(np.float64)
        return scale * earned, None

    def widths(self, view: View) -> tuple[float, float] | None:
        """A row earns between 0 and ρ, the largest ``1 / p_l`` (Theorem 4.3)."""
        if view.sliced and self.pool is not None:
            return None
        if view.scored and view.normalize:
            return view.max_gain, view.max_gain
        return view.max_gain, 1.0 if view.sliced and self.skips_rows_outside_slice else 0.0


@dataclass(frozen=True)
class Hamming(RowMetric):
    """``Σ_l [ y_l (1 - 2ŷ_l) / p_l + ŷ_l² ]`` (Theorem 4.4): the number of wrong labels of a row."""

    def columns(self, facts: RowFacts, k: int) -> Columns:
        """See :meth:`RowMetric.columns`."""
        return facts.true_gain - 2.0 * facts.gains[:, :k].sum(axis=1) + facts.n_predicted(k), None

    def widths(self, view: View) -> tuple[float, float] | None:
        """Every label adds a term that ranges over ``1 / p_l``; the theorem's bound ρL is at least their sum."""
        return view.total_gain, 0.0


@dataclass(frozen=True)
class FirstHit(RowMetric):
    """A value of the place of the first correct label; rows without a label of the slice do not count in it."""

    value: Callable[[np.ndarray], np.ndarray] = np.ones_like

    def columns(self, facts: RowFacts, k: int) -> Columns:
        """See :meth:`RowMetric.columns`."""
        hits = facts.gains[:, :k] > 0
        earned = np.where(hits.any(axis=1), self.value(1.0 + hits.argmax(axis=1)), 0.0)
        return earned, (facts.n_true > 0).astype(np.float64) if facts.view.sliced else None

    def widths(self, view: View) -> tuple[float, float] | None:
        """A row earns at most 1."""
        return 1.0, 1.0 if view.sliced else 0.0


@dataclass(frozen=True)
class LabelMetric(Metric):
    """A metric over labels: ``Σ_l s_l / Σ_l m_l``.

    ``statistic(correct, predicted, true)`` gives (s, m) from how many rows predict each label correctly, predict it,
    and carry it: float64 arrays of any shape.
    """

    statistic: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] = lambda c, p, t: (c, t)


def _discounts(k: int) -> np.ndarray:
    return 1.0 / np.log2(np.arange(2.0, k + 2.0))


def _inverse(values: np.ndarray) -> np.ndarray:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def _ideal_dcg(facts: RowFacts, k: int) -> np.ndarray:
    best = np.concatenate([[0.0], np.cumsum(_discounts(k))])
    return best[np.minimum(facts.n_relevant, k).astype(np.int64)]


def _ratio(part: np.ndarray, whole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return part * _inverse(whole), np.ones_like(whole)


def _relevant(facts: RowFacts, k: int) -> np.ndarray:
    return _inverse(facts.n_relevant)


def _pairs(facts: RowFacts, k: int) -> np.ndarray:
    return facts.true_gain


_METRICS = (
    GainMetric("p", "precision of the first k labels", scale=lambda facts, k: np.full(len(facts.gains), 1.0 / k)),
    GainMetric(
        "ndcg",
        "normalised discounted cumulative gain",
        discount=_discounts,
        scale=lambda facts, k: _inverse(_ideal_dcg(facts, k)),
        skips_rows_outside_slice=True,
    ),
    GainMetric(
        "dcg",
        "discounted cumulative gain, beside that of k correct labels",
        discount=_discounts,
        scale=lambda facts, k: np.full(len(facts.gains), 1.0 / _discounts(k).sum()),
    ),
    GainMetric("recall", "share of the row's labels among the first k", scale=_relevant, pool=_pairs),
    GainMetric(
        "f1",
        "harmonic mean of precision and recall, by row",
        discount=lambda k: np.full(k, 2.0),
        scale=lambda facts, k: _inverse(facts.n_predicted(k) + facts.n_relevant),
        pool=lambda facts, k: facts.n_predicted(k) + facts.true_gain,
    ),
    GainMetric(
        "mrr",
        "mean reciprocal rank of the relevant labels",
        needs_k=False,
        discount=lambda k: 1.0 / np.arange(1.0, k + 1.0),
        scale=_relevant,
        pool=_pairs,
    ),
    GainMetric("adg", "average discounted gain", needs_k=False, discount=_discounts, scale=_relevant, pool=_pairs),
    Hamming(
        "hamming",
        "wrong labels a row",
        needs_k=False,
        can_be_scored=True,
        percent=False,
        higher_is_better=False,
    ),
    FirstHit("hit", "rows with a correct label among the first k"),
    FirstHit("mrr_first", "reciprocal rank of the first correct label", needs_k=False, value=lambda place: 1.0 / place),
    LabelMetric(
        "coverage",
        "labels of the truth that are correct in some row's first k",
        statistic=lambda correct, predicted, true: ((correct > 0) * 1.0, (true > 0) * 1.0),
    ),
    LabelMetric(
        "predicted",
        "share of all labels that are ever predicted",
        statistic=lambda correct, predicted, true: ((predicted > 0) * 1.0, np.ones_like(true)),
    ),
    LabelMetric(
        "macro_p",
        "mean over labels of the share of their predictions that is correct",
        statistic=lambda correct, predicted, true: _ratio(correct, predicted),
    ),
    LabelMetric(
        "macro_recall",
        "mean over labels of the share of their rows that is found",
        statistic=lambda correct, predicted, true: _ratio(correct, true),
    ),
    LabelMetric(
        "macro_f1",
        "mean over labels of the F-score",
        statistic=lambda correct, predicted, true: _ratio(2.0 * correct, predicted + true),
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _METRICS}
"""Every metric by its plain name; ``ps`` before a name that can be scored makes it propensity-scored."""
