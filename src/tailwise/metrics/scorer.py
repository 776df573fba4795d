"""Metrics as scikit-learn scorers, such as GridSearchCV wants them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailwise.metrics.evaluator import evaluate
from tailwise.metrics.names import parse_metric


def metric_scorer(
    metric: str, propensity: Any = None, label_counts: Any = None, **options: Any
) -> Callable[[Any, Any, Any], float]:
    """``scorer(model, X, Y)``: a metric of the model's predictions, larger is better (losses are negated).

    The model predicts as many labels as the metric looks at, 100 for metrics without a k. A slice takes the model's own
    ``label_counts_`` if none are given. Further arguments are those of :func:`evaluate`.

    >>> from tailwise import Popularity
    >>> model = Popularity().fit([[1.0], [1.0]], [[1, 0], [1, 1]])
    >>> metric_scorer("p@1")(model, [[1.0]], [[1, 0]])
    100.0
    """
    request = parse_metric(metric)
    sign = 1.0 if request.metric.higher_is_better else -1.0

    def score(model: Any, X: Any, Y: Any) -> float:
        counts = getattr(model, "label_counts_", None) if label_counts is None else label_counts
        top = model.predict_topk(X, request.k or min(100, model.n_labels_))
        return sign * evaluate(Y, top, metric, propensity, counts, None, **options)[metric].value

    return score
