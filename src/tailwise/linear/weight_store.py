"""Weights of many labels, gathered block by block and turned by feature; large ones in the memory they take alone."""

from __future__ import annotations

from threading import Lock

import numpy as np
from scipy import sparse

from tailwise.kernels.solvers.problems import Weights
from tailwise.kernels.sparse.columns import copy_by_feature, turn_by_feature

_SMALL = 2**24
"""So many entries, 128 MB, may be there twice for a moment."""
_SPARE = 2**20
"""Entries at most that are made room for before they come: every growth may copy all."""


class WeightStore:
    """Takes blocks of solved labels in any order; gives (n_features, n_labels) CSR weights and biases.

    The result does not depend on the order. Threads may add at the same time.
    """

    def __init__(self, n_features: int, n_labels: int) -> None:
        self._n_features = n_features
        self._bias = np.full(n_labels, -np.inf, np.float32)
        self._features, self._values = np.empty(0, np.int32), np.empty(0, np.float32)
        self._used = 0
        self._labels: list[np.ndarray] = []
        self._starts: list[np.ndarray] = []
        self._lock = Lock()

    def add(self, labels: np.ndarray, weights: Weights) -> None:
        """Keep the weights of ``labels``, in their order."""
        with self._lock:
            used, stop = self._used, self._used + weights.features.size
            self._used = stop
            self._labels.append(labels)
            self._starts.append(used + weights.indptr[:-1])
            # Grown where they lie: lists of blocks would be there beside the arrays made of them.
            for kept, new in ((self._features, weights.features), (self._values, weights.values)):
                if stop > kept.size:
                    kept.resize(stop + min(stop // 2, _SPARE), refcheck=False)
                kept[used:stop] = new
            self._bias[labels] = weights.bias

    def finish(self) -> tuple[sparse.csr_array, np.ndarray]:
        """Weights and biases; labels that were never added have the bias -inf. The store is empty afterwards."""
        labels = np.concatenate([np.empty(0, np.int32), *self._labels]).astype(np.int32)
        starts = np.concatenate([np.empty(0, np.int64), *self._starts]).astype(np.int64)
        used, features, values = self._used, self._features, self._values
        self._features, self._values, self._used = np.empty(0, np.int32), np.empty(0, np.float32), 0
        small = used <= _SMALL
        if not small:
            for part in (features, values):
                part.resize(used, refcheck=False)
        features, values = features[:used], values[:used]
        if small:
            order = np.argsort(labels)
            stops = np.append(starts[1:], features.size)
            parts = (starts[order], stops[order], labels[order], features, values)
            indptr, features, values = copy_by_feature(*parts, self._n_features)
        else:
            indptr = turn_by_feature(starts, labels, features, values, self._n_features)
        if features.size < 2**31:
            indptr = indptr.astype(np.int32)
        weights = sparse.csr_array((values, features, indptr), shape=(self._n_features, self._bias.size))
        weights.has_sorted_indices = small
        weights.sort_indices()
        return weights, self._bias
