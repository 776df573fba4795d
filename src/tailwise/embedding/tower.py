"""The form of a network, and the row side of a trained one as plain arrays: it encodes rows without torch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.kernels.networks.embedding import dense_layer, encode_rows, unit_length
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.parallel import map_blocks, row_blocks
from tailwise.persistence.checks import check_exact, check_finite, check_kind, check_that

_ROWS_A_BLOCK = 256


class Shape(NamedTuple):
    """Sizes and form of a network."""

    n_features: int
    n_labels: int
    widths: tuple[int, ...]
    activation: str
    normalize: bool
    weight_norm: bool = False
    """Whether the neurons of a layer share one length (see :mod:`~tailwise.embedding.weight_norm`)."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers' weights among the parameters."""
        return ("features", *(f"weight.{i}" for i in range(1, len(self.widths))))

    @property
    def relu_at(self) -> tuple[bool, ...]:
        """Which layers end in a ReLU: all but the last one, and the last one if it is the only one."""
        last = len(self.widths) - 1
        return tuple(self.activation == "relu" and (i < last or last == 0) for i in range(last + 1))


class Tower(NamedTuple):
    """Sparse rows to vectors: ``x W_0 + b_0``, then dense layers, ReLU where ``relu`` says, unit length at the end.

    ``features`` is (n_features, width) float32, ``biases`` one array a layer, ``weights`` one a dense layer.
    """

    features: np.ndarray
    biases: list[np.ndarray]
    weights: list[np.ndarray]
    relu: list[bool]
    normalize: bool

    def check(self, n_features: int) -> int:
        """Refuse layers that do not fit each other or hold NaN; returns the length of the vectors."""
        n_layers = len(check_kind("biases", self.biases, list))
        check_that(n_layers, "biases is empty")
        for name, part, n in (("weights", self.weights, n_layers - 1), ("relu", self.relu, n_layers)):
            check_that(len(check_kind(name, part, list)) == n, f"{name} has {len(part)} layers, not {n}")
        width = n_features
        for layer, (weights, bias) in enumerate(zip([self.features, *self.weights], self.biases, strict=True)):
            name = f"weights of layer {layer}"
            check_finite(name, check_exact(name, weights, np.float32, (width, None)))
            width = weights.shape[1]
            check_finite(f"bias of layer {layer}", check_exact(f"bias of layer {layer}", bias, np.float32, (width,)))
        for flag in [*self.relu, self.normalize]:
            check_kind("relu or normalize", flag, bool)
        return width

    def encode(self, X: sparse.csr_array, n_jobs: int | None = None) -> np.ndarray:
        """The vectors of X's rows, (n, d) float32; a row's bits do not depend on the other rows.

        Time: non-zeros × width, plus one product a dense layer.
        """
        out = np.empty((X.shape[0], self.biases[-1].size), np.float32)
        rows = csr_parts(X)

        def encode_block(block: tuple[int, int]) -> None:
            hidden = np.empty((block[1] - block[0], self.features.shape[1]), np.float32)
            encode_rows(rows, block, self.features, self.biases[0], hidden)
            for i, relu in enumerate(self.relu):
                if i:
                    wider = np.empty((hidden.shape[0], self.biases[i].size), np.float32)
                    dense_layer(hidden, self.weights[i - 1], self.biases[i], wider)
                    hidden = wider
                if relu:
                    np.maximum(hidden, 0, out=hidden)
            if self.normalize:
                unit_length(hidden)
            out[block[0] : block[1]] = hidden

        map_blocks(encode_block, row_blocks(X.shape[0], _ROWS_A_BLOCK), n_jobs=n_jobs)
        return out
