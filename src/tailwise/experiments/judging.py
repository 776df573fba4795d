"""Metrics of the models of a :class:`~tailwise.experiments.trial.Trial`, and paired differences between them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tailwise.experiments.trial import Trial
from tailwise.metrics import Evaluation, compare, evaluate
from tailwise.metrics.comparison import Difference


def default_metrics(k: int = 5) -> list[str]:
    """What ``evaluate``, ``compare`` and ``report`` show unless told otherwise.

    >>> default_metrics(3)[:4]
    ['p@1', 'p@3', 'ndcg@3', 'f1@3']
    """
    ks = sorted({1, *(i for i in (3, 5) if i < k), k})
    return [
        *(f"p@{i}" for i in ks),
        f"ndcg@{k}",
        f"f1@{k}",
        f"recall@{k}",
        *(f"psp@{i}" for i in ks),
        f"psndcg@{k}",
        f"coverage@{k}",
        *(f"recall@{k}:{part}" for part in ("head", "torso", "tail")),
    ]


class Results(NamedTuple):
    """What :func:`judge_metrics` found."""

    evaluations: dict[str, Evaluation]
    """By model name."""
    differences: dict[str, dict[str, Difference]]
    """For every model but the first: metric → its value minus the first model's, paired row by row."""


def judge_metrics(trial: Trial, metrics: list[str], confidence: float | None = 0.95) -> Results:
    """The metrics of every model with intervals, and paired differences to the first model."""
    options: dict[str, Any] = {"propensity": trial.propensity, "label_counts": trial.counts}
    predictions = {judged.name: judged.topk for judged in trial.models}
    if len(predictions) > 1 and confidence is not None:
        comparison = compare(trial.Y, predictions, metrics, confidence=confidence, **options)
        return Results(comparison.evaluations, comparison.differences())
    found = {
        name: evaluate(trial.Y, topk, metrics, confidence=confidence, **options) for name, topk in predictions.items()
    }
    return Results(found, {})
