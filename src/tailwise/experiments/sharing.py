"""Fitting once what several wrappers of an experiment would each fit for themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tailwise.base import TopK, XMCModel
from tailwise.tail.wrapper import Wrapper


def share_fits(base: XMCModel) -> XMCModel:
    """``base`` as a model whose clones, fitted on the same rows, are fitted once and predict the same rows once.

    It keeps every model and prediction that it made: for as long as an experiment compares wrappers.

    >>> from tailwise import Centroid
    >>> shared = share_fits(Centroid())
    >>> one, two = (clone(shared).fit([[1.0]], [[1]]) for _ in range(2))
    >>> one.base_ is two.base_
    True
    """
    fitted: dict[tuple, XMCModel] = {}
    predicted: dict[tuple, TopK] = {}

    class Shared(Wrapper):
        scores_are_probabilities = property(lambda self: self.base.scores_are_probabilities)  # type: ignore[assignment]

        def __init__(self, base: XMCModel) -> None:
            self.base = base

        def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
            self.key = (repr(self.base), *_digest(X, Y), 0 if weight is None else hash(weight.tobytes()))
            if self.key not in fitted:
                fitted[self.key] = clone(self.base).fit(X, Y, weight)
            self.base_ = fitted[self.key]

        def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
            key = (*self.key, *_digest(X), k)
            if key not in predicted:
                predicted[key] = self.base_.predict_topk(X, k)
            return predicted[key]

    return Shared(base)


def _digest(*matrices: sparse.csr_array) -> tuple[Any, ...]:
    return tuple(hash(part.tobytes()) for m in matrices for part in (m.indptr, m.indices, m.data))
