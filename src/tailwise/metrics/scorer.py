"""Metrics as scikit-learn scorers, such as GridSearchCV wants them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.errors import InvalidInput
from tailwise.label_lists import known_labels
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
        model, X = at_the_end(model, X)
        counts = getattr(model, "label_counts_", None) if label_counts is None else label_counts
        top = model.predict_topk(X, request.k or min(100, model.n_labels_))
        Y, unknown = known_labels(Y, getattr(model, "label_names_in_", None))
        if np.any(unknown):
            Y = _with_unknown(Y, unknown)
            counts = None if counts is None else np.append(counts, np.zeros(Y.shape[1] - len(counts), np.int64))
        return sign * evaluate(Y, top, metric, propensity, counts, None, **options)[metric].value

    return score


def predict_topk(model: Any, X: Any, k: int = 5) -> TopK:
    """The ``k`` best labels of each row by a model, a Tagger, or a scikit-learn Pipeline or search that ends in one.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MaxAbsScaler
    >>> from tailwise import Centroid
    >>> pipeline = make_pipeline(MaxAbsScaler(), Centroid()).fit([[1.0, 0], [0, 1.0]], [[1, 0], [0, 1]])
    >>> predict_topk(pipeline, [[0.9, 0.1]], k=1).labels
    array([[0]], dtype=int32)
    """
    model, X = at_the_end(model, X)
    return model.predict_topk(X, k)


def at_the_end(model: Any, X: Any) -> tuple[Any, Any]:
    """The model at the end of a Pipeline or a search, and the rows as they arrive there."""
    from sklearn.pipeline import Pipeline

    while not hasattr(model, "predict_topk"):
        if isinstance(model, Pipeline):
            X = model[:-1].transform(X) if len(model) > 1 else X
            model = model[-1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            raise InvalidInput(
                f"model={model!r:.200} has no predict_topk; pass a model of tailwise, or a Pipeline or a fitted search "
                "that ends in one"
            )
    return model, X


def _with_unknown(Y: sparse.csr_array, unknown: np.ndarray) -> sparse.csr_array:
    """Y with columns behind it for labels that training did not know: each row's first ``unknown`` of them."""
    columns = np.arange(unknown.max())
    return sparse.csr_array(sparse.hstack([Y, sparse.csr_array((columns < unknown[:, None]).astype(np.float32))]))
