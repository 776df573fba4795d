"""What passes between an objective and the trainer: the plan of a batch, its examples, and the parts it is cut into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from scipy import sparse


class Examples(NamedTuple):
    """One entry for each label of each row of a batch, ordered by row; ``offsets`` has one entry a row, and an end.

    ``weights`` says how often each counts.
    """

    rows: np.ndarray
    labels: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, Y: sparse.csr_array) -> Examples:
        """The examples of a batch's labels; an entry of Y is how often its row counts."""
        return cls(np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)), Y.indices, Y.indptr, Y.data)

    def part(self, rows: slice) -> ExamplesPart:
        """The examples of a part of the rows."""
        where = slice(self.offsets[rows.start], self.offsets[rows.stop])
        return ExamplesPart(self.rows[where], self.rows[where] - rows.start, self.labels[where])


class ExamplesPart(NamedTuple):
    """Examples of a part of the rows: their rows within the batch and ``here``, within the part; and their labels."""

    rows: np.ndarray
    here: np.ndarray
    labels: np.ndarray


class LabelPart(Protocol):
    """A share of the batch's loss that depends on the label vectors alone."""

    def loss(self, labels: torch.Tensor) -> torch.Tensor:
        """The share, given the vectors of the plan's labels."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A batch: its examples, and which labels take part.

    It is drawn once a batch, in numpy, from the epoch's random numbers; losses are then computed part by part. An
    objective that needs to remember more extends it.

    Parameters
    ----------
    n_rows : int
    examples : Examples
        Their labels are positions among ``labels``.
    labels : (n,) array of int, ascending, or None
        The labels that take part; None means all.
    label_parts : sequence of LabelPart
        What the loss adds for label vectors alone, in parts that are computed apart.
    """

    n_rows: int
    examples: Examples
    labels: np.ndarray | None
    label_parts: Sequence[LabelPart] = ()

    def share(self, rows: slice, losses: torch.Tensor) -> torch.Tensor:
        """What a part of the rows adds to the batch's mean, given the losses of its examples."""
        where = slice(self.examples.offsets[rows.start], self.examples.offsets[rows.stop])
        return (losses * losses.new_tensor(self.examples.weights[where])).sum() / self.examples.labels.size


AnyPlan = TypeVar("AnyPlan", bound=Plan)


class Objective(Protocol[AnyPlan]):
    """What a batch minimises; a trainer asks nothing else of it."""

    def plan(self, Y: sparse.csr_array, rng: np.random.Generator) -> AnyPlan:
        """Choose the labels and negatives of a batch with labels ``Y`` (every row has one)."""

    def row_loss(self, plan: AnyPlan, rows: slice, vectors: Any, labels: Any, log_scale: Any) -> Any:
        """What a part of the rows adds to the batch's loss, given their ``vectors`` and those of the plan's labels."""


def as_index(positions: np.ndarray, like: torch.Tensor) -> torch.Tensor:
    """Positions as torch wants them, where ``like`` lies."""
    return torch.from_numpy(positions.astype(np.int64, copy=False)).to(like.device)
