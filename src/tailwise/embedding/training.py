"""The training loop: batches in parts on threads and processes, gradients added in a fixed order, one Adam."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch.nn.functional import normalize

from tailwise.embedding.network import Shape, SparseRows, layer_weights, upper_layers
from tailwise.embedding.optimizer import RowAdam
from tailwise.embedding.plan import LabelPart, Objective, Plan
from tailwise.embedding.runtime import Processes
from tailwise.embedding.weight_norm import through_normalization
from tailwise.parallel import map_blocks, row_blocks

_ROWS_A_PART = 256
_SMALLEST_BATCH = 64
_FEATURES_A_PART = 1024
_NEARLY_ALL = 0.5


class Settings(NamedTuple):
    """How to train."""

    batch_size: int
    epochs: int
    learning_rate: float
    keep_probability: float
    seed: int
    n_jobs: int | None
    min_batches: int = 16


class Part(NamedTuple):
    """A part of a batch, differentiated: its loss, the gradients of what parts share, and of its own first layer."""

    loss: float
    shared: list[torch.Tensor | None]
    first_layer: torch.Tensor | None


class Trainer:
    """Trains ``parameters`` in place on rows ``X`` and labels ``Y``, an epoch a call.

    A batch is cut into parts of 256 rows (and parts of its labels, for regularisers). Each part is a pure function from
    weights to a loss and gradients, on one thread; sums run over the parts in order. So the weights have the same bits
    for every number of threads. Epoch ``e`` draws its random numbers from ``(seed, e)``: a resumed run continues as if
    it had never stopped.

    The product with the feature table and its transpose are taken outside autograd: gradients of the first layer's
    output meet in one sparse product a batch, which touches only the batch's features.
    """

    def __init__(
        self,
        shape: Shape,
        parameters: dict[str, torch.Tensor],
        objective: Objective[Any],
        settings: Settings,
        processes: Processes,
    ) -> None:
        self.shape = shape
        self.parameters = parameters
        self.objective = objective
        self.settings = settings
        self.processes = processes
        self.optimizer = RowAdam(parameters)

    def n_steps(self, n_rows: int) -> int:
        """Batches an epoch: of ``batch_size`` rows, or of fewer rows so that there are ``min_batches``."""
        size = min(self.settings.batch_size, max(_SMALLEST_BATCH, -(-n_rows // self.settings.min_batches)))
        return -(-n_rows // size)

    def run_epoch(
        self, epoch: int, X: sparse.csr_array, Y: sparse.csr_array, done: Callable[[float], None] = lambda loss: None
    ) -> float:
        """One pass over the rows in random order; the mean loss. ``done(loss)`` is called after each batch."""
        rng = np.random.default_rng([self.settings.seed, epoch])
        order = rng.permutation(X.shape[0])
        steps = self.n_steps(X.shape[0])
        losses = []
        for step, rows in enumerate(np.array_split(order, steps)):
            progress = (epoch * steps + step) / (self.settings.epochs * steps)
            rate = self.settings.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))
            losses.append(self.step(self._drop_features(X[rows], rng), self.objective.plan(Y[rows], rng), rate))
            done(losses[-1])
        return float(np.mean(losses))

    def _drop_features(self, X: sparse.csr_array, rng: np.random.Generator) -> sparse.csr_array:
        keep = self.settings.keep_probability
        if keep == 1:
            return X
        kept = rng.random(X.nnz, dtype=np.float32) < keep
        indptr = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
        return sparse.csr_array((X.data[kept] / np.float32(keep), X.indices[kept], indptr), shape=X.shape)

    def step(self, X: sparse.csr_array, plan: Plan, learning_rate: float) -> float:
        """Move the weights once, for the rows ``X`` of a batch and its plan; the loss before."""
        device, jobs = self.processes.device, self.settings.n_jobs
        made = layer_weights(self.shape, self.parameters)
        # A normalised column depends on every row of the table.
        features, X = (None, X) if made else _used_columns(X)
        table = made["features"] if made else self._gather("features", features)
        labels = self._gather("labels", plan.labels)
        unit = normalize(labels, dim=1) if self.shape.normalize else labels
        leaves = {
            name: value.detach().requires_grad_()
            for name, value in {**self.parameters, **made}.items()
            if name not in _TABLES
        }
        leaves["labels"] = unit.detach().requires_grad_()

        def differentiate(part: slice | LabelPart) -> Part:
            if not isinstance(part, slice):
                loss = part.loss(leaves["labels"])
                return Part(float(loss.detach()), _gradients(loss, [*leaves.values()]), None)
            first = SparseRows.of(X, part, device).times(table).requires_grad_()
            vectors = upper_layers(self.shape, leaves, first)
            loss = self.objective.row_loss(plan, part, vectors, leaves["labels"], leaves["log_scale"])
            *shared, own = _gradients(loss, [*leaves.values(), first])
            return Part(float(loss.detach()), shared, own)

        row_parts = [slice(*block) for block in row_blocks(X.shape[0], _ROWS_A_PART)]
        mine = self.processes.share([*row_parts, *plan.label_parts])
        results = map_blocks(differentiate, mine, n_jobs=jobs)

        gradients = {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
        first_layer = torch.zeros(X.shape[0], table.shape[1], device=device)
        loss = torch.zeros(1, dtype=torch.float64, device=device)
        for part, result in zip(mine, results, strict=True):
            loss += result.loss
            for name, gradient in zip(leaves, result.shared, strict=True):
                if gradient is not None:
                    gradients[name] += gradient
            if result.first_layer is not None:
                first_layer[part] = result.first_layer
        gradients["features"] = self._through_rows(X, first_layer)
        self.processes.add([*gradients.values(), loss])
        for i, name in enumerate(made):
            directions, length = self.parameters[name], f"log_length.{i}"
            gradients[name], gradients[length] = through_normalization(
                gradients[name], directions, self.parameters[length]
            )
        if self.shape.normalize:
            along = (gradients["labels"] * unit).sum(1, keepdim=True)
            length = torch.linalg.vector_norm(labels, dim=1, keepdim=True).clamp_min(1e-12)
            gradients["labels"] = (gradients["labels"] - along * unit) / length
        rows = {"features": features, "labels": plan.labels}
        at = {name: None if index is None else torch.from_numpy(index).to(device) for name, index in rows.items()}
        self.optimizer.step(gradients, at, learning_rate)
        return float(loss.item())

    def _gather(self, name: str, rows: np.ndarray | None) -> torch.Tensor:
        table = self.parameters[name]
        return table if rows is None else table[torch.from_numpy(rows).to(table.device)]

    def _through_rows(self, X: sparse.csr_array, first_layer: torch.Tensor) -> torch.Tensor:
        """``Xᵀ G``: the gradient of the feature table, block by block of features."""
        transposed = sparse.csr_array(X.T.tocsr())
        out = torch.empty(X.shape[1], first_layer.shape[1], device=first_layer.device)

        def multiply(block: tuple[int, int]) -> None:
            out[block[0] : block[1]] = SparseRows.of(transposed, slice(*block), out.device).times(first_layer)

        map_blocks(multiply, row_blocks(X.shape[1], _FEATURES_A_PART), n_jobs=self.settings.n_jobs)
        return out


_TABLES = ("features", "labels")
"""The parameters that a batch touches by row: only the rows it needs are gathered, differentiated and updated."""


def _gradients(loss: torch.Tensor, of: list[torch.Tensor]) -> list[torch.Tensor | None]:
    return list(torch.autograd.grad(loss, of, allow_unused=True))


def _used_columns(X: sparse.csr_array) -> tuple[np.ndarray | None, sparse.csr_array]:
    """The columns that occur, and X over them alone; (None, X) where most occur and gathering would not pay."""
    used = np.zeros(X.shape[1], bool)
    used[X.indices] = True
    columns = np.flatnonzero(used)
    if columns.size > _NEARLY_ALL * X.shape[1]:
        return None, X
    if columns.size == 0:
        columns = np.zeros(1, np.int64)
    position = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return columns, sparse.csr_array((X.data, position[X.indices], X.indptr), shape=(X.shape[0], columns.size))
