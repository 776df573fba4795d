"""What ``annif eval`` prints, by the same names, of the same suggestions.

Annif's figures are fractions, not percent. They differ from ours in what they are taken over:

* a row's precision is over the labels suggested, which may be fewer than k, and a row without suggestions has 0;
* ``NDCG`` looks at every suggestion, and its ideal is over all true labels; a row without true labels has 1;
* "subj avg" is over *all* labels of the vocabulary: those that are in no row and never suggested count as 0;
* where suggestions have equal scores, numpy's ``argsort`` and ``argpartition`` decide, in the order of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.display import Cell, Printable, Table, plain
from tailwise.errors import InvalidInput
from tailwise.metrics.intervals import Bootstrap, Resample
from tailwise.topk import TopK
from tailwise.validation import check_labels

_KINDS = ("Precision", "Recall", "F1 score")
_REPLICATES = 1000
COUNTS = ("True positives", "False positives", "False negatives", "Documents evaluated")
NAMES = (
    *(f"{kind} ({over})" for over in ("doc avg", "subj avg", "weighted subj avg", "microavg") for kind in _KINDS),
    *("F1@5", "NDCG", "NDCG@5", "NDCG@10", "Precision@1", "Precision@3", "Precision@5"),
    *COUNTS,
)
"""All that ``annif eval`` prints, in its order."""


class AnnifEvaluation(Printable, Mapping[str, float]):
    """Annif's figures by name; ``intervals`` has those of what is a mean or a ratio of sums over rows."""

    def __init__(self, values: Mapping[str, float], intervals: Mapping[str, tuple[float, float]]) -> None:
        self._values, self.intervals = dict(values), dict(intervals)

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def to_dict(self) -> dict[str, Any]:
        """Values with their intervals, ready for JSON."""
        nowhere = (np.nan, np.nan)
        return plain(
            {
                name: {"value": value, "low": low, "high": high}
                for name, value in self.items()
                for low, high in [self.intervals.get(name, nowhere)]
            }
        )

    def table(self) -> Table:
        """A line a figure, as Annif writes them."""
        rows: list[list[Any]] = []
        for name, value in self.items():
            shown = f"{value:,}" if name in COUNTS else f"{value:.4f}"
            low, high = self.intervals.get(name, (np.nan, np.nan))
            rows.append([name, Cell(shown, "" if np.isnan(low) else f"[{low:.4f}, {high:.4f}]")])
        return Table("", ["metric", "value"], rows, ["as annif eval has them"])


def annif_metrics(
    Y: Any,
    suggested: TopK,
    *,
    n_labels: int | None = None,
    confidence: float | None = 0.95,
) -> AnnifEvaluation:
    """All of Annif's metrics of the labels ``suggested``, which are as many as ``annif eval --limit`` says (10).

    Parameters
    ----------
    Y : (n_samples, n_labels) binary matrix
        The true labels; columns in the order of the vocabulary, which only matters where scores are equal.
    suggested : TopK
        The suggestions, best first. Every one of them counts, whatever its score.
    n_labels : int, optional
        How many labels the vocabulary has, which "subj avg" is over; by default the columns of Y.
    confidence : float or None
        Of the bootstrap intervals over rows; None leaves them out.

    Examples
    --------
    >>> top = TopK(np.array([[0, 2]], np.int32), np.array([[0.9, 0.1]], np.float32))
    >>> found = annif_metrics([[1, 1, 0]], top, confidence=None)
    >>> found["Precision (doc avg)"], found["Recall (subj avg)"], round(found["NDCG"], 4)
    (0.5, 0.3333333333333333, 0.6131)
    """
    Y = check_labels(Y, n_rows=len(suggested.labels))
    if not Y.shape[0]:
        raise InvalidInput("Y has no rows; there is nothing to judge")
    found = suggested.to_csr(Y.shape[1])
    hits = sparse.csr_array(found.multiply(Y))
    columns = _row_columns(Y, suggested)
    values = _of_rows(columns.sum(axis=0), Y.shape[0]) | _of_labels(Y, found, hits, n_labels or Y.shape[1])
    values |= dict(zip(COUNTS, (*_counts(columns.sum(axis=0)), Y.shape[0]), strict=True))
    return AnnifEvaluation({name: values[name] for name in NAMES}, _intervals(columns, values, confidence))


_MEANS = (
    *(f"{kind} (doc avg)" for kind in _KINDS),
    *("F1@5", "NDCG", "NDCG@5", "NDCG@10", "Precision@1", "Precision@3", "Precision@5"),
)


def _row_columns(Y: sparse.csr_array, suggested: TopK) -> np.ndarray:
    """(n, 13) float64: what is a mean over rows, then hits, suggestions and true labels of each row."""
    there = suggested.labels >= 0
    right = _right(Y, suggested)
    true = np.diff(Y.indptr).astype(np.float64)
    shown = np.cumsum(there, axis=1, dtype=np.float64)
    hit = np.cumsum(right, axis=1, dtype=np.float64)
    _break_ties(suggested, right, hit)

    def at(k: int, counts: np.ndarray) -> np.ndarray:
        return counts[:, min(k, counts.shape[1]) - 1]

    width = suggested.labels.shape[1]
    found, all_hits = at(width, shown), at(width, hit)
    return np.column_stack(
        [
            _ratio(all_hits, found),
            _ratio(all_hits, true),
            _ratio(2 * all_hits, found + true),
            _ratio(2 * at(5, hit), at(5, shown) + true),
            *(_ndcg(right, true, limit) for limit in (None, 5, 10)),
            *(_ratio(at(k, hit), at(k, shown)) for k in (1, 3, 5)),
            all_hits,
            found,
            true,
        ]
    )


def _right(Y: sparse.csr_array, suggested: TopK) -> np.ndarray:
    """(n, k) bool: which suggestions are true labels."""
    n, k = suggested.labels.shape
    rows = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr))
    keys = rows * Y.shape[1] + Y.indices
    asked = np.arange(n, dtype=np.int64)[:, None] * Y.shape[1] + suggested.labels
    return (np.isin(asked, keys) & (suggested.labels >= 0)).reshape(n, k)


def _break_ties(suggested: TopK, right: np.ndarray, hit: np.ndarray) -> None:
    """Rank ``right`` and count ``hit`` anew in rows with equal scores, as Annif's numpy decides between them."""
    labels, scores = suggested
    for row in np.flatnonzero(((scores[:, 1:] == scores[:, :-1]) & (labels[:, 1:] >= 0)).any(axis=1)).tolist():
        n = int((labels[row] >= 0).sum())
        by_column = np.argsort(labels[row, :n])
        values, correct = scores[row, by_column], right[row, by_column]
        right[row, :n] = correct[values.argsort()[::-1]]
        for k in range(1, n):
            hit[row, k - 1] = correct[values.argpartition(-k)[-k:]].sum()


def _ndcg(right: np.ndarray, true: np.ndarray, limit: int | None) -> np.ndarray:
    width = right.shape[1] if limit is None else min(limit, right.shape[1])
    gains = right[:, :width] @ (1 / np.log2(np.arange(width) + 2))
    most = true.astype(np.int64) if limit is None else np.minimum(true.astype(np.int64), limit)
    ideal = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(int(most.max(initial=0))) + 2))])[most]
    return np.divide(gains, ideal, out=np.ones_like(gains), where=ideal > 0)


def _of_rows(sums: np.ndarray, n_rows: int) -> dict[str, float]:
    means = {name: float(total) / n_rows for name, total in zip(_MEANS, sums, strict=False)}
    return means | {f"{kind} (microavg)": float(v) for kind, v in zip(_KINDS, _micro(sums), strict=True)}


def _micro(sums: np.ndarray) -> tuple[Any, Any, Any]:
    hits, found, true = sums[..., -3], sums[..., -2], sums[..., -1]
    return _ratio(hits, found), _ratio(hits, true), _ratio(2 * hits, found + true)


def _counts(sums: np.ndarray) -> tuple[int, int, int]:
    hits, found, true = (int(total) for total in sums[-3:])
    return hits, found - hits, true - hits


def _of_labels(Y: sparse.csr_array, found: sparse.csr_array, hits: sparse.csr_array, size: int) -> dict[str, float]:
    right, shown, true = (
        np.bincount(matrix.indices, matrix.data != 0, minlength=Y.shape[1]) for matrix in (hits, found, Y)
    )
    by_label = _ratio(right, shown), _ratio(right, true), _ratio(2 * right, shown + true)
    total = true.sum()
    values = {f"{kind} (subj avg)": float(of.sum() / size) for kind, of in zip(_KINDS, by_label, strict=True)}
    weighted = [float((of * true).sum() / total) if total else 0.0 for of in by_label]
    return values | {f"{kind} (weighted subj avg)": v for kind, v in zip(_KINDS, weighted, strict=True)}


def _ratio(above: Any, below: Any) -> Any:
    above, below = np.asarray(above, np.float64), np.asarray(below, np.float64)
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _intervals(
    columns: np.ndarray, values: Mapping[str, float], confidence: float | None
) -> dict[str, tuple[float, float]]:
    if confidence is None:
        return {}
    weighted = np.ascontiguousarray(np.column_stack([columns, np.ones(len(columns))]))
    bootstrap = Bootstrap(_REPLICATES, weighted.shape[1], seed=0)
    bootstrap.add(weighted)
    sums = bootstrap.sums
    replicates = {name: _ratio(sums[:, place], sums[:, -1]) for place, name in enumerate(_MEANS)}
    replicates |= {f"{kind} (microavg)": of for kind, of in zip(_KINDS, _micro(sums[:, :-1]), strict=True)}
    return {name: Resample("bootstrap", of).interval(values[name], confidence) for name, of in replicates.items()}
