"""Predictions for training rows from models that did not see them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tailwise.base import TopK, XMCModel
from tailwise.errors import InvalidInput
from tailwise.parameters import Integer, OrNone
from tailwise.runs import kept, share
from tailwise.validation import as_rng, label_counts

N_FOLDS = Integer(low=2)
"""The constraint of a parameter ``n_folds``."""
N_ROWS = OrNone(Integer(low=1))
"""The constraint of a parameter ``n_rows``."""


class Folds(NamedTuple):
    """A random split of the training rows: ``fold`` (n,) of each row, and ``counts`` (n_folds, n_labels) of label l in
    the rows outside each fold, which is what a model that is tested on that fold has seen of l. Rows of fold -1 are
    predicted by nobody.
    """

    fold: np.ndarray
    counts: np.ndarray

    def parts(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The rows of each fold, and the rows outside it."""
        for f in range(self.counts.shape[0]):
            yield np.flatnonzero(self.fold == f), np.flatnonzero(self.fold != f)

    def counts_seen(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """How often the out-of-fold model of each row has seen each label."""
        return self.counts[self.fold[rows], labels]


def split_folds(
    Y: sparse.csr_array, n_folds: int, random_state: int | np.random.Generator | None, n_rows: int | None = None
) -> Folds:
    """Draw ``n_folds`` folds of equal size.

    Where there are far more than ``n_rows`` rows, as few folds as have about that many, and none larger: a model of
    many rows is then fitted once more, not ``n_folds`` times.
    """
    n = Y.shape[0]
    n_folds = int(n_folds)  # not an int8, whose products overflow
    if n < n_folds:
        raise InvalidInput(f"n_folds={n_folds} needs at least that many rows, but X has n_samples={n}; use fewer folds")
    fold = np.empty(n, np.int32)
    number = np.arange(n) % n_folds
    if n_rows is not None:
        size = min(n_rows, -(-n // n_folds))
        n_asked = min(n_folds, round(n_rows / size))
        if n_asked < n_folds:
            number = np.where(np.arange(n) < n_asked * size, np.arange(n) % n_asked, -1)
            n_folds = n_asked
    fold[as_rng(random_state).permutation(n)] = number
    counts = np.stack([label_counts(sparse.csr_array(Y[fold != f])) for f in range(n_folds)])
    return Folds(fold, counts)


def out_of_fold(
    model: XMCModel,
    X: sparse.csr_array,
    Y: sparse.csr_array,
    k: int,
    folds: Folds,
    weight: np.ndarray | None = None,
    *,
    knows_all: bool = False,
) -> TopK:
    """The top ``k`` of every row of a fold, from a clone of ``model`` that did not see that row.

    Costs a training on the rest of the rows for each fold, or less where ``model`` was fitted on all of them, which
    ``knows_all`` says. Rows of no fold get no label.
    """
    labels = np.full((X.shape[0], k), -1, np.int32)
    scores = np.full((X.shape[0], k), -np.inf, np.float32)
    for held_out, rest in folds.parts():
        own = None if weight is None else weight[rest]
        # As many fits as folds, and behind them one on all rows.
        with share(1 / (folds.counts.shape[0] + 1)):
            if knows_all:
                fitted = kept(partial(model.fit_part, X[rest], Y[rest], rest, own))
            else:
                fitted = kept(partial(clone(model).fit, X[rest], Y[rest], own))
        top = fitted.predict_topk(X[held_out], k)
        labels[held_out], scores[held_out] = top
    return TopK(labels, scores)
