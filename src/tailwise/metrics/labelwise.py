"""Counting over labels: how often each is predicted, correct and true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.display import Printable, Table
from tailwise.errors import InvalidInput
from tailwise.metrics.definitions import LabelMetric
from tailwise.metrics.rows import Batch
from tailwise.propensity import known_propensity
from tailwise.validation import check_number


class LabelPairs(NamedTuple):
    """The (row, label) pairs that are predicted or true; ``predicted`` and ``true`` are 0 or 1."""

    row: np.ndarray
    label: np.ndarray
    predicted: np.ndarray
    true: np.ndarray


class LabelCounter:
    """Accumulates, for the first ``k`` predicted labels, three (n_labels,) float64 counts of rows.

    With ``keep_pairs`` it also remembers every pair (four bytes and a bit a label), which the jackknife needs.
    """

    def __init__(self, n_labels: int, k: int, *, keep_pairs: bool = False) -> None:
        self.k, self.n_rows, self.keep_pairs = k, 0, keep_pairs
        self.correct, self.predicted, self.true = (np.zeros(n_labels) for _ in range(3))
        self._batches: list[LabelPairs] = []

    def add(self, batch: Batch) -> None:
        """Count the rows of a batch."""
        labels, hits = batch.labels[:, : self.k], batch.hits[:, : self.k]
        n_labels = len(self.true)
        self.correct += np.bincount(labels[hits], minlength=n_labels)
        self.predicted += np.bincount(labels[labels >= 0], minlength=n_labels)
        self.true += np.bincount(batch.Y.indices, minlength=n_labels)
        if self.keep_pairs:
            self._batches.append(_pairs(batch.Y, labels, hits, self.n_rows))
        self.n_rows += len(labels)

    def value(self, metric: LabelMetric, mask: np.ndarray | None) -> float:
        """The metric over the labels of ``mask``, NaN if there are none."""
        part, whole = self._sums(metric, mask)
        return part / whole if whole else np.nan

    def leave_one_out(self, metric: LabelMetric, mask: np.ndarray | None) -> np.ndarray:
        """The metric without each row in turn: (n_rows,) float64.

        Only the counts of the row's own labels change, so all rows together cost one pass over the pairs.
        """
        part, whole = self._sums(metric, mask)
        lost_part, lost_whole = np.zeros(self.n_rows), np.zeros(self.n_rows)
        for pairs in self._batches:
            at = pairs.label
            before = metric.statistic(self.correct[at], self.predicted[at], self.true[at])
            after = metric.statistic(
                self.correct[at] - pairs.predicted * pairs.true,
                self.predicted[at] - pairs.predicted,
                self.true[at] - pairs.true,
            )
            inside = 1.0 if mask is None else mask[at]
            lost_part += np.bincount(pairs.row, (before[0] - after[0]) * inside, minlength=self.n_rows)
            lost_whole += np.bincount(pairs.row, (before[1] - after[1]) * inside, minlength=self.n_rows)
        remaining = whole - lost_whole
        return np.divide(part - lost_part, remaining, out=np.zeros(self.n_rows), where=remaining > 0)

    def _sums(self, metric: LabelMetric, mask: np.ndarray | None) -> tuple[float, float]:
        part, whole = metric.statistic(self.correct, self.predicted, self.true)
        inside = slice(None) if mask is None else mask
        return float(part[inside].sum()), float(whole[inside].sum())


def _pairs(Y: sparse.csr_array, labels: np.ndarray, hits: np.ndarray, first_row: int) -> LabelPairs:
    n, k = labels.shape
    present = labels >= 0
    rows = np.repeat(np.arange(n), k).reshape(n, k)
    found = sparse.csr_array((np.ones(hits.sum(), np.float32), (rows[hits], labels[hits])), shape=Y.shape)
    missed = sparse.coo_array(Y - found)
    missed.eliminate_zeros()
    return LabelPairs(
        np.concatenate([rows[present], missed.coords[0]]) + first_row,
        np.concatenate([labels[present], missed.coords[1]]),
        np.concatenate([np.ones(present.sum(), bool), np.zeros(missed.nnz, bool)]),
        np.concatenate([hits[present], np.ones(missed.nnz, bool)]),
    )


class LabelTable(Printable):
    """How a model does on each label; every column is an (n_labels,) array.

    ``true`` rows carry the label, ``predicted`` rows have it among their first k, ``correct`` rows both.
    ``precision`` = correct / predicted, ``recall`` = correct / true, ``f1`` their harmonic mean, in percent and NaN
    where there is nothing to divide by. With propensities, ``ps_precision`` = precision / p_l estimates the
    precision on complete labels. ``frequency`` is the number of training rows, ``name`` the label's name.
    """

    def __init__(self, k: int, columns: dict[str, Any]) -> None:
        self.k = k
        self.columns = columns

    def __getitem__(self, column: str) -> Any:
        if column not in self.columns:
            raise InvalidInput(f"column {column!r} is not one of {', '.join(self.columns)}")
        return self.columns[column]

    def __len__(self) -> int:
        return len(self.columns["true"])

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as lists, ready for JSON or a data frame."""
        return {name: list(np.asarray(values).tolist()) for name, values in self.columns.items()}

    def records(self) -> list[dict[str, Any]]:
        """One dict a label."""
        columns = self.to_dict()
        return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]

    def __repr__(self) -> str:
        return f"LabelTable({len(self):,} labels; {', '.join(self.columns)})"

    def sort(self, by: str = "true", *, ascending: bool = False) -> LabelTable:
        """The table ordered by a column; ties by label index, NaN last."""
        values = np.asarray(self[by])
        if values.dtype.kind == "f" or values.dtype.kind in "iu":
            order = np.argsort(values if ascending else -values.astype(np.float64), kind="stable")
        else:
            order = np.argsort(values, kind="stable")
            order = order if ascending else order[::-1]
        return LabelTable(self.k, {name: np.asarray(column)[order] for name, column in self.columns.items()})

    def table(self, limit: int = 20) -> Table:
        """The first ``limit`` labels."""
        rows = [[_cell(values[i]) for values in self.columns.values()] for i in range(min(limit, len(self)))]
        more = [f"… and {len(self) - limit:,} more labels"] if len(self) > limit else []
        return Table(f"Labels among the first {self.k} predictions", list(self.columns), rows, more)


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "–" if np.isnan(value) else f"{value:.2f}"
    return str(value)


def label_table(
    Y_true: Any,
    topk: Any,
    k: int = 5,
    *,
    propensity: Any = None,
    label_counts: Any = None,
    label_names: Sequence[str] | None = None,
) -> LabelTable:
    """Precision, recall, F-score and counts of every label.

    >>> table = label_table([[1, 0], [1, 1]], np.array([[0], [0]]), k=1)
    >>> table["precision"], table["recall"]
    (array([100.,  nan]), array([100.,   0.]))
    """
    batch = Batch(Y_true, topk, None, check_number("k", k, integer=True, low=1))
    n_labels = batch.Y.shape[1]
    counter = LabelCounter(n_labels, k)
    counter.add(batch)
    columns: dict[str, Any] = {"label": np.arange(n_labels)}
    for name, values in (("name", label_names), ("frequency", label_counts)):
        if values is not None:
            if len(values) != n_labels:
                raise InvalidInput(f"label_{name}s has {len(values):,} entries but Y_true has {n_labels:,} columns")
            columns[name] = np.asarray(values)
    for name in ("true", "predicted", "correct"):
        columns[name] = getattr(counter, name).astype(np.int64)
    with np.errstate(invalid="ignore", divide="ignore"):
        columns["precision"] = 100 * counter.correct / counter.predicted
        columns["recall"] = 100 * counter.correct / counter.true
        columns["f1"] = 200 * counter.correct / (counter.predicted + counter.true)
        if propensity is not None:
            columns["ps_precision"] = columns["precision"] / known_propensity(propensity, n_labels)
    return LabelTable(k, columns)
