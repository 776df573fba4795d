"""Baselines that every model must beat: the constant ranking, the nearest label mean, the nearest rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.changes import Change
from tailwise.explanation import Explanation, Part, not_ranked
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.sparse.topk import topk_csr
from tailwise.parallel import map_blocks, row_blocks
from tailwise.parameters import Integer, Number
from tailwise.persistence.checks import (
    INTEGERS,
    check_exact,
    check_matrix,
    check_monotone,
    check_range,
    check_shape,
    check_that,
)
from tailwise.ranges import Range, Ranges
from tailwise.rows import UNIT_LENGTH, RowView, scaled_rows, unit_rows
from tailwise.scoring import predict_topk_linear
from tailwise.sparse_linear import SparseLinear

_ROWS_A_BLOCK = 1024


class Popularity(XMCModel):
    """Predict the most frequent labels for every row: ``score_l = n_l / n_samples``.

    >>> Popularity().fit([[1.0], [2.0]], [[0, 1, 0], [1, 1, 0]]).predict_topk([[3.0]], k=2).labels
    array([[1, 0]], dtype=int32)
    """

    scores_are_probabilities = True

    def _check_state(self) -> None:
        super()._check_state()
        ranking = check_exact("ranking_", self.ranking_, np.int32, (None,))
        known = np.flatnonzero(self.label_counts_)
        check_that(np.isin(ranking, known).all(), "ranking_ has a label that label_counts_ does not")
        check_that(np.unique(ranking).size == ranking.size, "ranking_ has a label twice")
        frequency = check_exact("frequency_", self.frequency_, np.float32, ranking.shape)
        check_monotone("frequency_, read backwards,", check_range("frequency_", frequency, 0, 1)[::-1])

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        if weight is None:
            self._keep(self.label_counts_, X.shape[0])
        else:
            self._keep(np.asarray(weight @ Y).ravel(), weight.sum())

    def _update(self, change: Change) -> int:
        self._fit(change.X, change.Y, None)
        return change.touched.size

    def _keep(self, counts: np.ndarray, n_rows: float) -> None:
        order = np.lexsort((np.arange(self.n_labels_), -counts))
        self.ranking_ = order[counts[order] > 0].astype(np.int32)
        self.frequency_ = (counts[self.ranking_] / n_rows).astype(np.float32)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        best = TopK(self.ranking_[None, :k], self.frequency_[None, :k]).padded(k)
        return TopK(*(np.repeat(part, X.shape[0], axis=0) for part in best))

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        if label not in self.ranking_:
            return not_ranked(label, "no training row has the label")
        share = float(self.frequency_[self.ranking_ == label][0])
        return Explanation.sum_of(label, [Part(f"share of training rows, {self.label_counts_[label]:,}", share)])


class Centroid(SparseLinear):
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

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return UNIT_LENGTH

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        # A mean does not mind a common factor; without one, large weights could leave float32.
        Y = Y if weight is None else scaled_rows(Y, weight / weight.max())
        means = unit_rows(sparse.csr_array(Y.T.tocsr() @ X))
        self.weights_ = sparse.csr_array(means.T.tocsr())
        self.bias_ = np.where(np.bincount(Y.indices, minlength=Y.shape[1]) > 0, 0.0, -np.inf).astype(np.float32)

    def _update(self, change: Change) -> int:
        # One sparse product; a mean of the same rows has the same bits.
        self._fit(change.X, change.Y, None)
        return change.touched.size


class NearestRows(XMCModel):
    """Vote with the labels of the ``k`` most similar training rows, each vote weighted by the similarity.

    ``score_l = Σ_i s_i y_il / Σ_i s_i`` over the ``k`` rows of highest cosine ``s_i > 0``: a share of votes in [0, 1].
    With ``sample_weight`` a row's vote counts so often; it still is one of the ``k``.
    The search is exact: one pass over an inverted index of the training rows. Keeps all training rows.

    Parameters
    ----------
    k : int
        Number of neighbours.
    sharpness : float
        Votes weigh ``s_i ** sharpness``; larger values trust the nearest rows more.
    n_jobs : int or None
        Threads for prediction.

    Examples
    --------
    >>> model = NearestRows(k=1).fit([[1.0, 0], [0, 1.0]], [[1, 0], [0, 1]])
    >>> model.predict_topk([[0.9, 0.1]], k=1).labels
    array([[0]], dtype=int32)
    """

    scores_are_probabilities = True

    _parameters = {"k": Integer(low=1), "sharpness": Number(low=0)}

    def __init__(self, k: int = 30, *, sharpness: float = 1.0, n_jobs: int | None = None) -> None:
        self.k = k
        self.sharpness = sharpness
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {"k": Range.around(self.k, 8, integer=True), "sharpness": Range(0.0, 4.0, self.sharpness)}

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return UNIT_LENGTH

    def _check_state(self) -> None:
        super()._check_state()
        numbers = check_shape("row_numbers_", self.row_numbers_, (None,), INTEGERS)
        check_range("row_numbers_", numbers, 0)
        check_matrix("neighbours_", self.neighbours_, (self._n_seen, numbers.size))
        check_range("labels_.data", check_matrix("labels_", self.labels_, (numbers.size, self.n_labels_)).data, 0, 1)

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        self.row_numbers_ = np.flatnonzero(np.diff(Y.indptr))
        self.neighbours_ = sparse.csr_array(X[self.row_numbers_].T.tocsr())
        self.labels_ = sparse.csr_array(Y[self.row_numbers_])
        if weight is not None:
            # Each row here has a label, so that its entries can tell what its vote weighs.
            self.labels_ = scaled_rows(self.labels_, weight[self.row_numbers_] / weight.max())

    def _update(self, change: Change) -> int:
        self._fit(change.X, change.Y, None)
        return change.touched.size

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        near = self._nearest(X)
        top = TopK(np.empty((X.shape[0], k), np.int32), np.empty((X.shape[0], k), np.float32))

        def vote(block: tuple[int, int]) -> None:
            rows = slice(*block)
            voters = self._voters(TopK(near.labels[rows], near.scores[rows]))
            votes = sparse.csr_array(voters @ self.labels_)
            totals = np.repeat(voters @ self._row_weights, np.diff(votes.indptr))
            shares = np.full(votes.data.shape, -np.inf, np.float32)
            np.divide(votes.data, totals, out=shares, where=votes.data > 0)
            topk_csr(csr_parts(votes, np.minimum(shares, 1)), top.labels[rows], top.scores[rows])

        map_blocks(vote, row_blocks(X.shape[0], _ROWS_A_BLOCK), n_jobs=self.n_jobs)
        return top

    @property
    def _row_weights(self) -> np.ndarray:
        """What each training row's vote weighs beside its similarity: its entries in ``labels_``, at least one."""
        return self.labels_.data[self.labels_.indptr[:-1]]

    def _nearest(self, X: sparse.csr_array) -> TopK:
        """The most similar training rows, in place of labels, with their cosines."""
        n_rows = self.row_numbers_.size
        if n_rows == 0:
            return TopK(np.full((X.shape[0], 1), -1, np.int32), np.full((X.shape[0], 1), -np.inf, np.float32))
        no_bias = np.zeros(n_rows, np.float32)
        return predict_topk_linear(X, self.neighbours_, no_bias, min(self.k, n_rows), n_jobs=self.n_jobs)

    def _voters(self, near: TopK) -> sparse.csr_array:
        """How similar each training row that votes is, sharpened: (n, n_training_rows)."""
        voters = near.to_csr(self.row_numbers_.size, binary=False)
        voters.data = np.where(voters.data > 0, np.abs(voters.data) ** np.float32(self.sharpness), np.float32(0))
        return voters

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        voters = self._voters(self._nearest(x))
        weights = voters.data * self._row_weights[voters.indices]
        total = weights.sum(dtype=np.float64)
        has_label = self.labels_[:, [label]].toarray().ravel() > 0
        parts = [
            Part(f"training row {self.row_numbers_[row]}", float(weight / total), row=int(self.row_numbers_[row]))
            for row, weight in zip(voters.indices, weights, strict=True)
            if has_label[row] and weight > 0
        ]
        return Explanation.sum_of(label, parts) if parts else not_ranked(label, "no near training row has the label")
