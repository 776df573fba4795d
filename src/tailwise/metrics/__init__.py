"""Ranking metrics and their unbiased forms, by slice, with intervals."""

from tailwise.metrics.comparison import Comparison, compare
from tailwise.metrics.definitions import METRICS
from tailwise.metrics.evaluator import Evaluator, evaluate
from tailwise.metrics.labelwise import LabelTable, label_table
from tailwise.metrics.names import metric_names, parse_metric
from tailwise.metrics.result import Estimate, Evaluation
from tailwise.metrics.scorer import metric_scorer, predict_topk
from tailwise.metrics.slices import label_slices

__all__ = [
    "METRICS",
    "Comparison",
    "Estimate",
    "Evaluation",
    "Evaluator",
    "LabelTable",
    "compare",
    "evaluate",
    "label_slices",
    "label_table",
    "metric_names",
    "metric_scorer",
    "parse_metric",
    "predict_topk",
]
