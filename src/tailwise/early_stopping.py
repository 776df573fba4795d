"""Early stopping: rows held out of training, what they say of a model, and the best weights so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.metrics import evaluate, parse_metric
from tailwise.validation import label_counts

_DEFAULT_K = 100
_MOST_ROWS = 5000

Parameters = dict[str, Any]
"""Weights by name."""


class EarlyStopping:
    """The best parameters so far by a metric, and whether it is time to stop.

    Parameters
    ----------
    metric : str
        What the measure is called.
    patience : int
        Epochs without a better value after which to stop.
    measure : callable or None
        From parameters to the metric's value, larger is better. None: no rows are held out, so the last parameters
        count as the best and training goes on.
    copy : callable
        How parameters are kept: for those that training changes in place, a copy.

    Attributes
    ----------
    epoch, best_epoch : int
        The last epoch that was judged, and the best one; 0 before the first.
    best : dict
        The best epoch's parameters.
    """

    def __init__(
        self,
        metric: str,
        *,
        patience: int,
        measure: Callable[[Parameters], float] | None,
        copy: Callable[[Parameters], Parameters] = lambda parameters: parameters,
    ) -> None:
        self.metric = metric
        self.patience = patience
        self.measure = measure
        self.copy = copy
        self.epoch = self.best_epoch = 0
        self.best_value: float | None = None
        self.best: Parameters = {}

    def keep(self, epoch: int, parameters: Parameters, value: float | None = None) -> None:
        """Take these parameters for the best: before the first epoch, from a checkpoint, or because they are."""
        self.best = self.copy(parameters)
        self.best_epoch, self.best_value = epoch, value

    def judge(self, epoch: int, parameters: Parameters) -> dict[str, float]:
        """Measure the parameters after an epoch; the value by the metric's name, or nothing where none is measured."""
        self.epoch = epoch
        if self.measure is None:
            self.keep(epoch, parameters)
            return {}
        value = self.measure(parameters)
        if self.best_value is None or value > self.best_value:
            self.keep(epoch, parameters, value)
        return {self.metric: value}

    @property
    def should_stop(self) -> bool:
        """Whether ``patience`` epochs have passed since the best one."""
        return self.measure is not None and self.epoch - self.best_epoch >= self.patience


class HeldOut(NamedTuple):
    """Rows and labels to validate on, and what the metric needs besides: propensities, counts of training labels."""

    X: sparse.csr_array
    Y: sparse.csr_array
    metric: str
    propensity: np.ndarray | None
    label_counts: np.ndarray

    def measure(self, predict: Callable[[sparse.csr_array, int], TopK]) -> float:
        """The metric's value for a model, given how it predicts the best k labels of rows."""
        metric = parse_metric(self.metric)
        k = min(metric.k or _DEFAULT_K, self.Y.shape[1])
        values = evaluate(
            self.Y,
            predict(self.X, k).padded(metric.k or k),
            [self.metric],
            propensity=self.propensity if metric.scored else None,
            label_counts=self.label_counts,
            confidence=None,
        )
        return float(values[self.metric].value)


def split_off(
    X: sparse.csr_array,
    Y: sparse.csr_array,
    fraction: float,
    rng: np.random.Generator,
    *,
    metric: str,
    propensity: np.ndarray | None,
) -> tuple[np.ndarray, HeldOut]:
    """The rows to train on and those held out: ``fraction`` of the rows with labels, at most 5,000; none where it is 0.

    Each label keeps a row to train on. Rows without labels are in neither.
    """
    labelled = np.flatnonzero(np.diff(Y.indptr) > 0)
    chosen = np.empty(0, np.int64)
    if fraction > 0:
        chosen = hold_out(Y, rng.permutation(labelled), min(_MOST_ROWS, round(fraction * labelled.size)))
    rows = np.setdiff1d(labelled, chosen)
    return rows, HeldOut(X[chosen], Y[chosen], metric, propensity, label_counts(Y[rows]))


def hold_out(Y: sparse.csr_array, order: np.ndarray, wanted: int) -> np.ndarray:
    """Up to ``wanted`` rows, taken in ``order``, that leave each of their labels another row.

    >>> hold_out(sparse.csr_array(np.array([[1, 0], [1, 0], [0, 1]])), np.array([2, 1, 0]), wanted=3).tolist()
    [1]
    """
    left = np.bincount(Y.indices, minlength=Y.shape[1])
    chosen: list[int] = []
    for row in order:
        if len(chosen) >= wanted:
            break
        labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
        if (left[labels] > 1).all():
            left[labels] -= 1
            chosen.append(int(row))
    return np.asarray(chosen, np.int64)
