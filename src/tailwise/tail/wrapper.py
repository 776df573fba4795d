"""What the wrappers share: fitting the wrapped model, out-of-fold predictions, scores as probabilities."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tailwise.base import TopK, XMCModel
from tailwise.errors import InvalidInput
from tailwise.validation import as_rng, check_number, label_counts


class Wrapper(XMCModel):
    """A model around ``base``, which is cloned and fitted by ``fit`` and kept as ``base_``."""

    base: Any
    base_: XMCModel

    @property
    def needs_nonnegative_features(self) -> bool:  # type: ignore[override]
        """As the wrapped model."""
        return bool(getattr(self.base, "needs_nonnegative_features", False))

    def _fit_base(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        self.base_ = clone(check_model("base", self.base)).fit(X, Y)


def check_model(name: str, model: Any) -> XMCModel:
    """Refuse what is not a model of the contract."""
    if not isinstance(model, XMCModel):
        raise InvalidInput(f"{name}={model!r} is not a tailwise model; pass one, such as DiSMEC()")
    return model


def as_probabilities(scores: np.ndarray, model: XMCModel) -> np.ndarray:
    """Scores on the scale [0, 1]: as they are where the model gives probabilities, else ``exp(-max(0, 1 - s)²)``.

    The second form is the likelihood that belongs to the squared hinge: a margin of 1 or more counts as certain.
    Absent labels (-inf) become 0.
    """
    if model.scores_are_probabilities:
        return np.where(np.isneginf(scores), 0.0, scores).astype(np.float32)
    return np.exp(-(np.maximum(0.0, 1.0 - scores.astype(np.float64)) ** 2)).astype(np.float32)


class Folds(NamedTuple):
    """A random split of the training rows: ``fold`` (n,) of each row, and ``counts`` (n_folds, n_labels) of label l in
    the rows outside each fold, which is what a model that is tested on that fold has seen of l.
    """

    fold: np.ndarray
    counts: np.ndarray

    def counts_seen(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """How often the out-of-fold model of each row has seen each label."""
        return self.counts[self.fold[rows], labels]


def split_folds(Y: sparse.csr_array, n_folds: int, random_state: int | np.random.Generator | None) -> Folds:
    """Draw ``n_folds`` folds of equal size."""
    check_number("n_folds", n_folds, integer=True, low=2)
    n = Y.shape[0]
    if n < n_folds:
        raise InvalidInput(f"n_folds={n_folds} needs at least that many rows, but X has n_samples={n}; use fewer folds")
    fold = np.empty(n, np.int32)
    fold[as_rng(random_state).permutation(n)] = np.arange(n) % n_folds
    counts = np.stack([label_counts(sparse.csr_array(Y[fold != f])) for f in range(n_folds)])
    return Folds(fold, counts)


def out_of_fold(model: XMCModel, X: sparse.csr_array, Y: sparse.csr_array, k: int, folds: Folds) -> TopK:
    """The top ``k`` of every training row, from a clone of ``model`` that did not see that row.

    Costs a training on the rest of the rows for each fold.
    """
    labels = np.full((X.shape[0], k), -1, np.int32)
    scores = np.full((X.shape[0], k), -np.inf, np.float32)
    for f in range(folds.counts.shape[0]):
        held_out, rest = np.flatnonzero(folds.fold == f), np.flatnonzero(folds.fold != f)
        top = clone(model).fit(X[rest], Y[rest]).predict_topk(X[held_out], k)
        labels[held_out], scores[held_out] = top
    return TopK(labels, scores)


def is_hit(labels: np.ndarray, Y: sparse.csr_array) -> np.ndarray:
    """Whether each predicted label is observed: boolean, of the shape of ``labels`` (n, k)."""
    n, n_labels = Y.shape
    observed = np.repeat(np.arange(n, dtype=np.int64), np.diff(Y.indptr)) * n_labels + Y.indices
    asked = np.arange(n, dtype=np.int64)[:, None] * n_labels + labels
    if not observed.size:
        return np.zeros(labels.shape, bool)
    place = np.minimum(np.searchsorted(observed, asked), observed.size - 1)
    return (observed[place] == asked) & (labels >= 0)


def sort_topk(labels: np.ndarray, scores: np.ndarray, k: int) -> TopK:
    """Candidates in any order (absent: -1) as a TopK: descending scores, ties by label index, the best ``k``."""
    scores = np.where(labels >= 0, scores, -np.inf).astype(np.float32)
    by_label = np.where(labels >= 0, labels, np.iinfo(np.int32).max)
    order = np.lexsort((by_label, -scores), axis=1)[:, :k]
    labels = np.take_along_axis(labels, order, axis=1).astype(np.int32)
    scores = np.take_along_axis(scores, order, axis=1)
    return TopK(np.where(np.isneginf(scores), -1, labels).astype(np.int32), scores).padded(k)
