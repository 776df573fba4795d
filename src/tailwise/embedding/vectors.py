"""What every embedding model is once it is fitted: rows to vectors by arrays, and labels found by inner product."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.embedding.index import LabelIndex
from tailwise.embedding.tower import Tower
from tailwise.persistence.checks import check_indices, check_kind, check_that


class VectorModel(XMCModel):
    """Rows and labels as vectors in one space; a label's score is their inner product. A subclass writes ``_fit``."""

    n_jobs: int | None

    tower_: Tower
    index_: LabelIndex

    def encode(self, X: Any) -> np.ndarray:
        """The rows' vectors, (n, d) float32: what ``index_`` is searched with."""
        self._check_is_fitted()
        return self.tower_.encode(self._seen(X), n_jobs=self.n_jobs)

    @property
    def label_vectors_(self) -> np.ndarray:
        """The label vectors, (n_labels, d) float32; zeros for labels that no training row has."""
        vectors = np.zeros((self.n_labels_, self.index_.vectors_.shape[1]), np.float32)
        vectors[self.index_.labels_] = self.index_.vectors_
        return vectors

    def _check_state(self) -> None:
        super()._check_state()
        width = check_kind("tower_", self.tower_, Tower).check(self._n_seen)
        check_kind("index_", self.index_, LabelIndex)._check_is_fitted()
        vectors = self.index_.vectors_
        check_that(vectors.shape[1] == width, f"index_ has vectors of {vectors.shape[1]} values, tower_ of {width}")
        check_indices("labels_ of index_", self.index_.labels_, self.n_labels_)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        return self.index_.search(self.tower_.encode(X, n_jobs=self.n_jobs), k)
