"""Two baselines every model must beat: the constant ranking, and the nearest label mean."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.scoring import predict_topk_linear
from tailwise.validation import unit_rows


class Popularity(XMCModel):
    """Predict the most frequent labels for every row: ``score_l = n_l / n_samples``.

    >>> Popularity().fit([[1.0], [2.0]], [[0, 1, 0], [1, 1, 0]]).predict_topk([[3.0]], k=2).labels
    array([[1, 0]], dtype=int32)
    """

    scores_are_probabilities = True

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        order = np.lexsort((np.arange(self.n_labels_), -self.label_counts_))
        self.ranking_ = order[self.label_counts_[order] > 0].astype(np.int32)
        self.frequency_ = (self.label_counts_[self.ranking_] / X.shape[0]).astype(np.float32)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        best = TopK(self.ranking_[None, :k], self.frequency_[None, :k]).padded(k)
        return TopK(*(np.repeat(part, X.shape[0], axis=0) for part in best))


class Centroid(XMCModel):
    """Score each label by the cosine between the row and the mean of the label's training rows.

    ``score_l = x·μ_l / (|x| |μ_l|)``. Time and memory are those of the sparse product ``Yᵀ X``; prediction
    visits only the labels that share a feature with the row. Labels without rows are never predicted.

    Parameters
    ----------
    n_jobs : int or None
        Threads for prediction; None uses every core.

    Examples
    --------
    >>> Centroid().fit([[1.0, 0], [0, 1.0]], [[1, 0], [0, 1]]).predict_topk([[0.9, 0.1]], k=1).labels
    array([[0]], dtype=int32)
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        means = unit_rows(sparse.csr_array(Y.T.tocsr() @ unit_rows(X)))
        self.weights_ = sparse.csr_array(means.T.tocsr())
        self.bias_ = np.where(self.label_counts_ > 0, 0.0, -np.inf).astype(np.float32)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        return predict_topk_linear(unit_rows(X), self.weights_, self.bias_, k, n_jobs=self.n_jobs)
