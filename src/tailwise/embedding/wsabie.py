"""WSABIE: row and label vectors learnt by ranking, with compiled stochastic steps; no torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tailwise.embedding.constraints import INDEX
from tailwise.embedding.index import ExactIndex
from tailwise.embedding.tower import Tower
from tailwise.embedding.vectors import VectorModel
from tailwise.kernels.networks.warp import Vectors, WarpOptions, train_warp
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.parallel import progress, row_blocks
from tailwise.parameters import Integer, Number
from tailwise.persistence.checks import check_kind, check_that
from tailwise.ranges import Range, Ranges
from tailwise.rows import UNIT_LENGTH, RowView
from tailwise.validation import as_rng

_ROWS_A_CALL = 1024
"""Ctrl-C is heard between calls."""
_SAMPLE_QUERIES = 256


class WSABIE(VectorModel):
    """Rows and labels as short vectors, trained so that a row's labels come first (Weston, Bengio and Usunier 2011).

    ``f_l(x) = (xW)·h_l``. For a label y of a row, labels are drawn until one violates the margin, ``1 + f_k > f_y``;
    after n draws the rank of y is about ``r = (n_labels - 1) / n``, and the step on ``[1 + f_k - f_y]+`` weighs
    ``Σ_{j<=r} 1/j``: that makes it precision at the top that is learnt. Vectors are kept within ``max_norm``.
    Steps are Adagrad's, one rate a vector.

    Each step sees the one before it, so training runs on one thread and the bits depend on ``random_state`` alone;
    prediction uses all. A row costs its non-zeros × ``dim``, a drawn label ``dim``.

    Parameters
    ----------
    dim : int
        Length of the vectors.
    max_norm : float
        The largest norm of a feature's or a label's vector.
    n_tries : int
        Labels drawn at most to find one that violates.
    epochs : int
        Passes over the rows.
    learning_rate : float
        Of Adagrad; falls to zero over the epochs.
    index : LabelIndex or None
        How labels are searched; None is exact. ``FaissIndex()`` for label sets too large to scan.
    random_state : int, Generator or None
        Seeds the first vectors, the order of rows and the draws.
    n_jobs : int or None
        Threads for prediction; None uses every core.

    Attributes
    ----------
    tower_ : Tower
        The row side, as arrays.
    index_ : LabelIndex
        The label vectors.
    losses_ : list of float
        Mean weighted loss in each epoch.

    Examples
    --------
    >>> model = WSABIE(dim=8, random_state=0).fit([[1.0, 0], [0, 1.0]], [[1, 0], [0, 1]])
    >>> model.predict_topk([[0.9, 0.1]], k=1).labels
    array([[0]], dtype=int32)
    """

    _parameters = {
        "dim": Integer(low=1),
        "max_norm": Number(low=0, open_low=True),
        "n_tries": Integer(low=1),
        "epochs": Integer(low=1),
        "learning_rate": Number(low=0, open_low=True),
        "index": INDEX,
    }

    losses_: list[float]

    def __init__(
        self,
        dim: int = 128,
        *,
        max_norm: float = 10.0,
        n_tries: int = 1000,
        epochs: int = 10,
        learning_rate: float = 0.1,
        index: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.dim = dim
        self.max_norm = max_norm
        self.n_tries = n_tries
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.index = index
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {"learning_rate": Range.around(self.learning_rate, 4)}

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return UNIT_LENGTH

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        rng = as_rng(self.random_state)
        known = np.flatnonzero(self.label_counts_ > 0)
        rows, labels = csr_parts(X), csr_parts(sparse.csr_array(Y[:, known]))
        counted = (np.ones(X.shape[0]) if weight is None else weight).astype(np.float32)
        vectors = self._first_vectors(rng, X.shape[1], known.size)
        rank_weights = np.cumsum(np.append(0, 1 / np.arange(1, max(known.size, 1)))).astype(np.float32)
        state = rng.integers(2**63, size=1, dtype=np.uint64)
        blocks = row_blocks(X.shape[0], _ROWS_A_CALL)
        self.losses_ = []
        with progress("Training WSABIE", self.epochs * len(blocks)) as advance:
            for epoch in range(self.epochs):
                order, losses = rng.permutation(X.shape[0]), []
                for number, (start, stop) in enumerate(blocks):
                    done = (epoch + number / len(blocks)) / self.epochs
                    options = WarpOptions(self.learning_rate * (1 - done), self.max_norm, self.n_tries)
                    now = order[start:stop]
                    losses.append(train_warp(rows, labels, counted, now, state, rank_weights, vectors, options))
                    advance(note=f"loss {losses[-1]:.4g}")
                self.losses_.append(float(np.mean(losses)))
        self.tower_ = Tower(vectors.features, [np.zeros(self.dim, np.float32)], [], [False], False)
        if self.index is None:
            self.index_ = ExactIndex(n_jobs=self.n_jobs).build(vectors.labels, known)
        else:
            some = X[:: max(1, -(-X.shape[0] // _SAMPLE_QUERIES))]
            self.index_ = clone(self.index).build(vectors.labels, known, self.tower_.encode(some, n_jobs=self.n_jobs))

    def _first_vectors(self, rng: np.random.Generator, n_features: int, n_labels: int) -> Vectors:
        def gaussian(n: int) -> np.ndarray:
            return rng.standard_normal((n, self.dim), np.float32) * np.float32(self.dim**-0.5)

        return Vectors(
            gaussian(n_features), gaussian(n_labels), np.zeros(n_features, np.float32), np.zeros(n_labels, np.float32)
        )

    def _check_state(self) -> None:
        super()._check_state()
        losses = check_kind("losses_", self.losses_, list)
        check_that(len(losses) == self.epochs, f"losses_ has {len(losses)} epochs, not {self.epochs}")
