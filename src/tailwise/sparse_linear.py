"""What a model of sparse weights and a bias a label is once it is fitted: it ranks, explains, and has coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.byte_weights import bytes_of_label, check_bytes, from_bytes, predict_topk_by_bytes
from tailwise.errors import Unsupported
from tailwise.explanation import Explanation, linear_explanation, margin_explanation, not_ranked
from tailwise.kernels.sparse.bytes import ByteWeights
from tailwise.scoring import check_bias, check_linear, predict_topk_linear


class SparseLinear(XMCModel):
    """``score_l = w_l·x + b_l`` for rows as the model sees them; a subclass writes ``_fit``.

    Attributes
    ----------
    weights_ : csr_array (n_features, n_labels), or ByteWeights
        float32; one byte each once :func:`tailwise.compact` was there.
    bias_ : ndarray (n_labels,)
        Float32; -inf for a label without rows, which is never predicted.
    """

    n_jobs: int | None

    weights_: Any
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
        shape = (self._n_seen, self.n_labels_)
        if isinstance(self.weights_, ByteWeights):
            check_bytes(self.weights_, shape)
            check_bias(self.bias_, self.n_labels_)
        else:
            check_linear(self.weights_, self.bias_, shape)

    def _check_updates(self) -> None:
        super()._check_updates()
        if isinstance(self.weights_, ByteWeights):
            raise Unsupported(
                f"{type(self).__name__} was made compact, and rounded weights cannot learn further; update the model "
                "that it was made from, and make that compact again"
            )

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        predict = predict_topk_by_bytes if isinstance(self.weights_, ByteWeights) else predict_topk_linear
        return predict(X, self.weights_, self.bias_, k, n_jobs=self.n_jobs)

    def _label_weights(self) -> sparse.csr_array:
        weights = from_bytes(self.weights_) if isinstance(self.weights_, ByteWeights) else self.weights_
        return sparse.csr_array(weights.T.tocsr())

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        if np.isneginf(self.bias_[label]):
            return not_ranked(label, "no training row has the label")
        if isinstance(self.weights_, ByteWeights):
            return margin_explanation(label, x, bytes_of_label(self.weights_, x.indices, label), self.bias_[label])
        return linear_explanation(label, x, self.weights_, self.bias_[label])
