"""Labels of the most similar training rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.sparse.topk import topk_csr
from tailwise.parallel import map_blocks, row_blocks
from tailwise.scoring import predict_topk_linear
from tailwise.validation import check_number, unit_rows

_ROWS_A_BLOCK = 1024


class NearestRows(XMCModel):
    """Vote with the labels of the ``k`` most similar training rows, each vote weighted by the similarity.

    ``score_l = Σ_i s_i y_il / Σ_i s_i`` over the ``k`` rows of highest cosine ``s_i > 0``: a share of votes in [0, 1].
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

    def __init__(self, k: int = 30, sharpness: float = 1.0, n_jobs: int | None = None) -> None:
        self.k = k
        self.sharpness = sharpness
        self.n_jobs = n_jobs

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        check_number("k", self.k, integer=True, low=1)
        check_number("sharpness", self.sharpness, low=0)
        labelled = np.flatnonzero(np.diff(Y.indptr))
        self.rows_ = sparse.csr_array(unit_rows(X[labelled]).T.tocsr())
        self.labels_ = sparse.csr_array(Y[labelled])

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        n_rows = self.rows_.shape[1]
        if n_rows == 0:
            return TopK(np.full((X.shape[0], 1), -1, np.int32), np.full((X.shape[0], 1), -np.inf, np.float32)).padded(k)
        near = predict_topk_linear(
            unit_rows(X), self.rows_, np.zeros(n_rows, np.float32), min(self.k, n_rows), n_jobs=self.n_jobs
        )
        top = TopK(np.empty((X.shape[0], k), np.int32), np.empty((X.shape[0], k), np.float32))

        def vote(block: tuple[int, int]) -> None:
            rows = slice(*block)
            voters = sparse.csr_array(TopK(near.labels[rows], near.scores[rows]).to_csr(n_rows, binary=False))
            voters.data = np.where(voters.data > 0, np.abs(voters.data) ** np.float32(self.sharpness), np.float32(0))
            votes = sparse.csr_array(voters @ self.labels_)
            totals = np.repeat(voters.sum(axis=1), np.diff(votes.indptr))
            shares = np.full(votes.data.shape, -np.inf, np.float32)
            np.divide(votes.data, totals, out=shares, where=votes.data > 0)
            topk_csr(csr_parts(votes, np.minimum(shares, 1)), top.labels[rows], top.scores[rows])

        map_blocks(vote, row_blocks(X.shape[0], _ROWS_A_BLOCK), n_jobs=self.n_jobs)
        return top
