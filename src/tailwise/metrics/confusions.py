"""What is predicted in a label's place where it is missed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.metrics.rows import Batch
from tailwise.validation import check_number


class Confusion(NamedTuple):
    """A label that was predicted, wrongly, on ``rows`` of the rows where another one was missed."""

    label: int
    rows: int


def confusions(Y_true: Any, topk: Any, k: int = 5, *, labels: Any = None, most: int = 3) -> list[list[Confusion]]:
    """For each of ``labels`` (all by default) the labels that stand in its place most often, at most ``most``.

    On the rows that carry label l without having it among the first k predictions, every prediction that is not
    observed on the row counts once: the product of missed and wrong labels. Ties break by label index. Costs as much
    as the pairs of missed and wrong labels of each row.

    >>> confusions([[1, 0], [1, 0], [1, 1]], np.array([[1], [0], [0]]), k=1)
    [[Confusion(label=1, rows=1)], []]
    """
    batch = Batch(Y_true, topk, None, check_number("k", k, integer=True, low=1))
    predicted, hits, n_labels = batch.labels[:, :k], batch.hits[:, :k], batch.Y.shape[1]
    chosen = np.arange(n_labels) if labels is None else np.asarray(labels, np.int64)
    found = _pairs(predicted, hits, batch.Y.shape)
    wrong = _pairs(predicted, (predicted >= 0) & ~hits, batch.Y.shape)
    missed = (batch.Y - found).tocsc()[:, chosen]
    missed.eliminate_zeros()
    counts = sparse.csr_array(missed.T @ wrong)
    result = []
    for first, last in zip(counts.indptr[:-1].tolist(), counts.indptr[1:].tolist(), strict=True):
        others, rows = counts.indices[first:last], counts.data[first:last]
        order = np.lexsort((others, -rows))[:most]
        result.append([Confusion(int(others[i]), round(float(rows[i]))) for i in order])
    return result


def _pairs(labels: np.ndarray, where: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    rows = np.broadcast_to(np.arange(labels.shape[0])[:, None], labels.shape)[where]
    return sparse.csr_array((np.ones(rows.size, np.float32), (rows, labels[where])), shape=shape)
