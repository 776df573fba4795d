"""The ladder of a search: settings are tried on a part of rows and labels first, and the better ones on more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.metrics.names import parse_metric
from tailwise.validation import label_counts

FACTOR = 3
"""How much more a rung has than the one below it, and of how many settings one goes up."""
_LEAST_ROWS = 1_500
_LEAST_LABELS = 500
_MOST_RUNGS = 4


class Rung(NamedTuple):
    """Rows to fit on, rows to judge by, and the labels that count; all are in the order of the data."""

    rows: np.ndarray
    held_out: np.ndarray
    labels: np.ndarray

    def matrices(
        self, X: sparse.csr_array, Y: sparse.csr_array
    ) -> tuple[sparse.csr_array, sparse.csr_array, sparse.csr_array, sparse.csr_array]:
        """``(X_train, Y_train, X_held_out, Y_held_out)``."""
        whole = self.labels.size == Y.shape[1]
        own = Y if whole else sparse.csr_array(Y[:, self.labels])
        return X[self.rows], sparse.csr_array(own[self.rows]), X[self.held_out], sparse.csr_array(own[self.held_out])


def at_depth(metric: str, share: float) -> str:
    """The metric where a row has only a ``share`` of its labels: at a k that shrinks with them.

    With a third of the labels P@5 would ask for every label that a row has left, and prefer other settings than P@5 of
    all labels does; P@2 prefers the same ones.

    >>> at_depth("psp@5:tail", 1 / 3), at_depth("p@1", 0.1), at_depth("coverage@5", 1.0)
    ('psp@2:tail', 'p@1', 'coverage@5')
    """
    request = parse_metric(metric)
    if request.k is None:
        return metric
    return metric.replace(f"@{request.k}", f"@{max(1, round(request.k * share))}")


def ladder(Y: sparse.csr_array, training: np.ndarray, held_out: np.ndarray, rng: np.random.Generator) -> list[Rung]:
    """The rungs from the smallest to all rows and labels; what a rung has, the next has too.

    Labels are taken evenly along their frequencies, so that a small rung has rare and frequent ones in the same
    proportion. A rung's rows to judge by are those with one of its labels.
    """
    n_rungs = 1
    while n_rungs < _MOST_RUNGS and training.size >= _LEAST_ROWS * FACTOR**n_rungs:
        n_rungs += 1
    order = rng.permutation(training)
    by_frequency = np.argsort(-label_counts(Y), kind="stable")
    rungs = []
    for below in range(n_rungs - 1, -1, -1):
        step = FACTOR**below
        while step > 1 and Y.shape[1] < _LEAST_LABELS * step:
            step //= FACTOR
        labels = np.sort(by_frequency[::step])
        rows = np.sort(order[: -(-order.size // FACTOR**below)])
        judged = held_out
        if labels.size < Y.shape[1]:
            counted = np.diff(sparse.csr_array(Y[held_out][:, labels]).indptr)
            judged = held_out[counted > 0]
        rungs.append(Rung(rows, judged, labels))
    return rungs
