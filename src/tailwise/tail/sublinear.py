"""Damped features for any model: a word that comes a hundred times does not say a hundred times as much."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.tail.wrapper import Wrapper
from tailwise.validation import check_number, unit_rows


class Sublinear(Wrapper):
    """Fit ``base`` on rows whose values are raised to ``power``, ``sign(x) |x|^power``, and scaled to unit length.

    Counts and TF-IDF values of long documents are dominated by a few words; a power below 1 lets the others speak,
    which rare labels need most. 0.5 is the square root of the Hellinger kernel. Texts that went through
    ``TextFeatures(sublinear_tf=True)`` are damped already. The wrapped model's scores are passed on unchanged.

    Parameters
    ----------
    base : XMCModel
        The model; it is cloned.
    power : float
        1 leaves the rows as they are, up to their length; 0 keeps only which features are there.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> model = Sublinear(Centroid()).fit([[100.0, 1], [0, 9.0]], [[1, 0], [0, 1]])
    >>> model.predict_topk([[0.0, 2.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    def __init__(self, base: XMCModel, power: float = 0.5) -> None:
        self.base = base
        self.power = power

    @property
    def scores_are_probabilities(self) -> bool:  # type: ignore[override]
        """As the wrapped model."""
        return bool(self.base.scores_are_probabilities)

    def _damp(self, X: sparse.csr_array) -> sparse.csr_array:
        data = np.sign(X.data) * np.abs(X.data) ** np.float32(self.power)
        return unit_rows(sparse.csr_array((data, X.indices, X.indptr), shape=X.shape))

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        check_number("power", self.power, low=0)
        self._fit_base(self._damp(X), Y)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        return self.base_.predict_topk(self._damp(X), k)
