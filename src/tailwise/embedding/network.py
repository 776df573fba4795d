"""The two towers: sparse rows to vectors through an embedding-bag and dense layers, labels to vectors by a table."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch.nn.functional import embedding_bag, normalize

from tailwise.embedding.tower import Shape, Tower
from tailwise.embedding.weight_norm import mean_log_length, normalized
from tailwise.parallel import row_blocks

_SHORTEST = 1e-2
_ROWS_AT_ONCE = 1 << 15


def initial_parameters(shape: Shape, scale: float, seed: int, device: Any) -> dict[str, torch.Tensor]:
    """Random directions, zero biases. The same numbers on every device: they are drawn on the CPU."""
    generator = torch.Generator().manual_seed(seed)

    def gaussian(rows: int, columns: int, deviation: float) -> torch.Tensor:
        return (torch.randn(rows, columns, generator=generator) * deviation).to(device)

    widths = shape.widths
    parameters = {
        "features": gaussian(shape.n_features, widths[0], widths[0] ** -0.5),
        "bias.0": torch.zeros(widths[0], device=device),
        "labels": gaussian(shape.n_labels, widths[-1], widths[-1] ** -0.5),
        "log_scale": torch.full((1,), float(np.log(scale)), device=device),
    }
    for i, (before, after) in enumerate(pairwise(widths), start=1):
        parameters[f"weight.{i}"] = gaussian(before, after, (2 / (before + after)) ** 0.5)
        parameters[f"bias.{i}"] = torch.zeros(after, device=device)
    if shape.weight_norm:
        for i, name in enumerate(shape.layers):
            parameters[f"log_length.{i}"] = mean_log_length(parameters[name])
    return parameters


def layer_weights(shape: Shape, parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights that weight normalisation makes of the layers' directions and lengths; nothing without it."""
    if not shape.weight_norm:
        return {}
    return {name: normalized(parameters[name], parameters[f"log_length.{i}"]) for i, name in enumerate(shape.layers)}


def start_labels_at_their_rows(
    parameters: dict[str, torch.Tensor], tower: Tower, X: sparse.csr_array, Y: sparse.csr_array, n_jobs: int | None
) -> None:
    """Set each label's vector to the mean of its rows' first vectors, less the mean of all rows.

    An entry of Y is how often its row counts for the label.

    The untrained network then ranks by nearest centroid; labels with a handful of rows, which few steps ever touch,
    keep most of that start.
    """
    sums = np.zeros((Y.shape[1], tower.biases[-1].size), np.float32)
    mean = np.zeros(sums.shape[1], np.float64)
    for start, stop in row_blocks(X.shape[0], _ROWS_AT_ONCE):
        encoded = tower.encode(X[start:stop], n_jobs=n_jobs)
        mean += encoded.sum(axis=0, dtype=np.float64) / X.shape[0]
        sums += sparse.csr_array(Y[start:stop].T.tocsr()) @ encoded
    counts = np.bincount(Y.indices, Y.data, minlength=Y.shape[1])
    means = sums - (counts[:, None] * mean).astype(np.float32)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    directions = torch.from_numpy(means / np.maximum(lengths, 1e-12)).to(parameters["labels"].device)
    known = torch.from_numpy(lengths[:, 0] > 1e-6).to(directions.device)
    parameters["labels"][known] = directions[known]


class SparseRows(NamedTuple):
    """A CSR matrix as the tensors that an embedding-bag takes."""

    indices: torch.Tensor
    offsets: torch.Tensor
    values: torch.Tensor

    @classmethod
    def of(cls, X: sparse.csr_array, rows: slice, device: Any) -> SparseRows:
        """The given rows of ``X`` on ``device``."""
        start, stop = X.indptr[rows.start], X.indptr[rows.stop]
        offsets = (X.indptr[rows.start : rows.stop + 1] - start).astype(np.int32)
        parts = (X.indices[start:stop].astype(np.int32, copy=False), offsets, X.data[start:stop])
        return cls(*(torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in parts))

    def times(self, table: torch.Tensor) -> torch.Tensor:
        """The sparse rows times ``table``, without gradients: the forward pass, and transposed the backward pass."""
        return embedding_bag(
            self.indices, table, self.offsets, mode="sum", per_sample_weights=self.values, include_last_offset=True
        )


def upper_layers(shape: Shape, parameters: dict[str, torch.Tensor], first: torch.Tensor) -> torch.Tensor:
    """The rows' vectors, (n, d), from ``first = X W_0``, with gradients."""
    hidden = first + parameters["bias.0"]
    for i, relu in enumerate(shape.relu_at):
        if i:
            hidden = hidden @ parameters[f"weight.{i}"] + parameters[f"bias.{i}"]
        if relu:
            hidden = torch.relu(hidden)
    # A row that lost all its features has no direction; the floor keeps its gradient from exploding.
    return normalize(hidden, dim=1, eps=_SHORTEST) if shape.normalize else hidden


def to_tower(shape: Shape, parameters: dict[str, torch.Tensor]) -> Tower:
    """The row side as plain arrays, which predict without torch."""
    weights = {**parameters, **layer_weights(shape, parameters)}
    arrays = {name: value.detach().cpu().numpy() for name, value in weights.items()}
    layers = range(len(shape.widths))
    return Tower(
        arrays["features"],
        [arrays[f"bias.{i}"] for i in layers],
        [arrays[f"weight.{i}"] for i in layers[1:]],
        list(shape.relu_at),
        shape.normalize,
    )


def label_vectors(shape: Shape, parameters: dict[str, torch.Tensor]) -> np.ndarray:
    """The label side as (n_labels, d) float32; on the unit sphere times the scale, if the network is normalised."""
    labels = parameters["labels"].detach()
    if shape.normalize:
        labels = normalize(labels, dim=1) * parameters["log_scale"].exp()
    return labels.cpu().numpy()
