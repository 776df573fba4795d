"""What every linear model here is once it is fitted: sparse weights and a bias a label, which rank and explain."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.explanation import Explanation, linear_explanation, not_ranked
from tailwise.parameters import Flag
from tailwise.rows import AS_THEY_ARE, UNIT_LENGTH, RowView
from tailwise.scoring import check_linear, predict_topk_linear


class LinearModel(XMCModel):
    """``score_l = w_l·x + b_l`` for rows as they are or of unit length; a subclass writes ``_fit``.

    Attributes
    ----------
    weights_ : csr_array (n_features, n_labels)
        float32.
    bias_ : ndarray (n_labels,)
        Float32; -inf for a label without rows, which is never predicted.
    """

    _parameters = {"normalize": Flag()}

    normalize: bool
    n_jobs: int | None

    weights_: sparse.csr_array
    bias_: np.ndarray

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return UNIT_LENGTH if self.normalize else AS_THEY_ARE

    def _check_state(self) -> None:
        super()._check_state()
        check_linear(self.weights_, self.bias_, (self._n_seen, self.n_labels_))

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        return predict_topk_linear(X, self.weights_, self.bias_, k, n_jobs=self.n_jobs)

    def _label_weights(self) -> sparse.csr_array:
        return sparse.csr_array(self.weights_.T.tocsr())

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        if np.isneginf(self.bias_[label]):
            return not_ranked(label, "no training row has the label")
        return linear_explanation(label, x, self.weights_, self.bias_[label])
