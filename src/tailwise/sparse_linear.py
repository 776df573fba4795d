"""What a model of sparse weights and a bias a label is once it is fitted: it ranks, explains, and has coefficients."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.explanation import Explanation, linear_explanation, not_ranked
from tailwise.scoring import check_linear, predict_topk_linear


class SparseLinear(XMCModel):
    """``score_l = w_l·x + b_l`` for rows as the model sees them; a subclass writes ``_fit``.

    Attributes
    ----------
    weights_ : csr_array (n_features, n_labels)
        float32.
    bias_ : ndarray (n_labels,)
        Float32; -inf for a label without rows, which is never predicted.
    """

    n_jobs: int | None

    weights_: sparse.csr_array
    bias_: np.ndarray

    @property
    def coef_(self) -> sparse.csr_array:
        """The weights as scikit-learn's linear models have them, but sparse: CSR (n_labels, n_features)."""
        return self._label_weights()

    @property
    def intercept_(self) -> np.ndarray:
        """The bias of each label: (n_labels,); -inf for a label without rows."""
        return self.bias_

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
