"""The contract every model keeps: :class:`XMCModel`, and what it predicts: :class:`TopK`."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from tailwise import persistence
from tailwise.errors import NotFitted
from tailwise.validation import check_features, check_k, check_labels, label_counts


class TopK(NamedTuple):
    """The best labels of each row.

    ``labels`` is (n, k) int32, best first, -1 where there is no label. ``scores`` is (n, k) float32,
    descending, -inf where there is no label. Equal scores are ordered by label index.
    """

    labels: np.ndarray
    scores: np.ndarray

    def padded(self, k: int) -> TopK:
        """The same predictions with exactly ``k`` columns: cut, or filled with -1 and -inf."""
        n, have = self.labels.shape
        if have >= k:
            return TopK(self.labels[:, :k], self.scores[:, :k])
        labels = np.full((n, k), -1, np.int32)
        scores = np.full((n, k), -np.inf, np.float32)
        labels[:, :have], scores[:, :have] = self.labels, self.scores
        return TopK(labels, scores)

    def to_csr(self, n_labels: int, *, binary: bool = True) -> sparse.csr_array:
        """The predictions as an (n, n_labels) CSR matrix: ones, or the scores.

        >>> TopK(np.array([[2, 0]], np.int32), np.array([[0.5, 0.1]], np.float32)).to_csr(3).toarray()
        array([[1., 0., 1.]], dtype=float32)
        """
        n, k = self.labels.shape
        present = self.labels >= 0
        rows = np.repeat(np.arange(n), k).reshape(n, k)[present]
        data = np.ones(rows.size, np.float32) if binary else self.scores[present]
        csr = sparse.csr_array((data, (rows, self.labels[present])), shape=(n, n_labels))
        csr.sort_indices()
        return csr


class XMCModel(persistence.Saveable, BaseEstimator):
    """A model that names the best labels of each row.

    A subclass writes ``_fit(X, Y)`` and ``_predict_topk(X, k)``; both get checked input (canonical float32
    CSR, ``1 <= k <= n_labels_``). Parameters are set in ``__init__`` and never changed by ``fit``; what ``fit``
    learns ends in ``_`` and is what ``save`` keeps. The same ``random_state`` gives the same bits for every
    ``n_jobs``. Nothing is ever densified to rows × labels.
    """

    scores_are_probabilities: bool = False
    needs_nonnegative_features: bool = False

    n_labels_: int
    n_features_in_: int
    label_counts_: np.ndarray

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from ``X`` (n_samples, n_features) and the observed binary labels ``Y`` (n_samples, n_labels)."""
        X = check_features(X, nonnegative=self.needs_nonnegative_features, owner=type(self).__name__)
        Y = check_labels(Y, n_rows=X.shape[0])
        before = dict(self.__dict__)
        try:
            self.n_features_in_, self.n_labels_ = X.shape[1], Y.shape[1]
            self.label_counts_ = label_counts(Y)
            self._fit(X, Y)
        except BaseException:
            # Ctrl-C or an error leaves what was there: an unfitted model, or the old fit.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def predict_topk(self, X: Any, k: int = 5) -> TopK:
        """The ``k`` best labels of each row with their scores; ties break by label index."""
        self._check_is_fitted()
        k = check_k(k)
        X = check_features(
            X,
            n_features=self.n_features_in_,
            nonnegative=self.needs_nonnegative_features,
            allow_no_rows=True,
            owner=type(self).__name__,
        )
        return self._predict_topk(X, min(k, self.n_labels_)).padded(k)

    def predict(self, X: Any, k: int = 5) -> sparse.csr_array:
        """The ``k`` best labels of each row as a binary (n_samples, n_labels) CSR matrix."""
        return self.predict_topk(X, k).to_csr(self.n_labels_)

    def save(self, path: str | Path) -> None:
        """Write the fitted model as a folder that :func:`tailwise.load` opens; atomic, no pickle."""
        self._check_is_fitted()
        persistence.save(self, path)

    @abstractmethod
    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        """Learn from checked input; set attributes that end in ``_``."""

    @abstractmethod
    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        """Predict for checked input, 1 <= k <= n_labels_."""

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            name = type(self).__name__
            raise NotFitted(f"this {name} is not fitted yet; call {name}.fit(X, Y) first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "label_counts_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.needs_nonnegative_features
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags
