"""Losses against every label of a batch or of the data set: GLaS, and the softmax with margins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from scipy import sparse

from tailwise.embedding.plan import Examples, Plan, as_index
from tailwise.losses.base import softplus
from tailwise.losses.margins import Margin, contrastive, log_sum_exp, margin_softmax
from tailwise.losses.regularizers import LABEL_REGULARIZERS, adjacency, gravity

_MASKED = -1e4
_LABELS_A_PART = 512


@dataclass(frozen=True, kw_only=True)
class GlasPlan(Plan):
    """``picked`` is one label drawn from each row, as a position among the plan's labels."""

    picked: np.ndarray


class CosineLoss(Protocol):
    """The loss of rows against labels on the unit sphere; negatives are the labels that a row does not have."""

    def __call__(self, plan: GlasPlan, rows: slice, cosine: Any, log_scale: Any) -> Any:
        """What a part of the rows adds, given their cosines (rows, labels of the plan)."""


@dataclass(frozen=True, kw_only=True)
class TiltedSoftmax:
    """``ln(1 + Σ_{y'} e^(t_y' - t_y + h_y' - h_y))`` for every label y of a row; ``log_tilt`` (n_labels,) is t."""

    log_tilt: np.ndarray

    def __call__(self, plan: GlasPlan, rows: slice, cosine: Any, log_scale: Any) -> Any:
        """See :class:`CosineLoss`."""
        tilt = self.log_tilt if plan.labels is None else self.log_tilt[plan.labels]
        scores = cosine * log_scale.exp() + cosine.new_tensor(tilt)
        positive, negatives, here = _divide(plan, rows, scores)
        return plan.share(rows, softplus(log_sum_exp(negatives)[here] - positive))


@dataclass(frozen=True, kw_only=True)
class MinedMargin:
    """The mean of ``[h_y' - h_y + c]+`` over the ``n_mined`` best-scoring negatives, for every label y of a row."""

    margin: float
    n_mined: int

    def __call__(self, plan: GlasPlan, rows: slice, cosine: Any, log_scale: Any) -> Any:
        """See :class:`CosineLoss`."""
        positive, negatives, here = _divide(plan, rows, cosine)
        hardest = torch.topk(negatives, min(self.n_mined, negatives.shape[1]), dim=1).values
        misses = torch.relu(hardest[here] - positive[:, None] + self.margin)
        return plan.share(rows, misses.mean(1))


@dataclass(frozen=True, kw_only=True)
class SummedMargin:
    """``Σ_{y'} [h_y' - h_y + c]+`` for one label y drawn from each row (equation 1 of the GLaS paper)."""

    margin: float

    def __call__(self, plan: GlasPlan, rows: slice, cosine: Any, log_scale: Any) -> Any:
        """See :class:`CosineLoss`."""
        _, negatives, _ = _divide(plan, rows, cosine)
        chosen = cosine.gather(1, as_index(plan.picked[rows], cosine)[:, None])
        misses = torch.relu(negatives - chosen + self.margin)
        weights = plan.examples.weights[plan.examples.offsets[rows.start : rows.stop]]
        return (misses * misses.new_tensor(weights)[:, None]).sum() / plan.n_rows


def _divide(plan: Plan, rows: slice, scores: Any) -> tuple[Any, Any, Any]:
    """Scores of the examples, scores of each row with its own labels masked, and the row of each example."""
    part = plan.examples.part(rows)
    here, mine = as_index(part.here, scores), as_index(part.labels, scores)
    return scores[here, mine], scores.index_put((here, mine), scores.new_tensor(_MASKED)), here


@dataclass(frozen=True, kw_only=True)
class RegularizedLabels:
    """λ times the regulariser of equation (3), (2) or (4) of drawn labels, of which ``against`` are this part's.

    ``distinct`` (n,) are positions among a plan's labels, ``counts`` how often each was drawn; ``U`` (n, n) is CSR.
    """

    name: str
    weight: float
    distinct: np.ndarray
    counts: np.ndarray
    U: sparse.csr_array | None
    against: slice

    def loss(self, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`~tailwise.embedding.plan.LabelPart`."""
        U = None if self.U is None else torch.from_numpy(self.U[self.against].toarray()).to(labels.device)
        vectors, counts = labels[as_index(self.distinct, labels)], labels.new_tensor(self.counts)
        return self.weight * LABEL_REGULARIZERS[self.name](vectors, U, counts, self.against)


@dataclass(frozen=True, kw_only=True)
class LabelRegularizer:
    """A regulariser of label vectors by name, its weight λ, and the training labels, transposed, for U."""

    name: str
    weight: float
    Y_transposed: sparse.csr_array
    labels_a_part: int = _LABELS_A_PART

    def parts(self, picked: np.ndarray, labels: np.ndarray | None) -> list[RegularizedLabels]:
        """The regulariser of the labels ``picked``, positions among ``labels`` (None: all), in parts."""
        distinct, counts = np.unique(picked, return_counts=True)
        U = None
        if self.name != "spreadout":
            U = adjacency(self.Y_transposed, distinct if labels is None else labels[distinct])
        return [
            RegularizedLabels(
                name=self.name,
                weight=self.weight,
                distinct=distinct,
                counts=counts,
                U=U,
                against=slice(start, min(start + self.labels_a_part, distinct.size)),
            )
            for start in range(0, distinct.size, self.labels_a_part)
        ]


@dataclass(frozen=True, kw_only=True)
class GlasObjective:
    """A loss on cosines plus regularisers (Algorithm 2 of the GLaS paper).

    ``every_label`` scores a batch against all labels, else against its own; ``gravity_weight`` is λ of the gravity
    term, None without it.
    """

    loss: CosineLoss
    every_label: bool
    regularizer: LabelRegularizer | None = None
    gravity_weight: float | None = None

    def plan(self, Y: sparse.csr_array, rng: np.random.Generator) -> GlasPlan:
        """All labels, or those of the batch; and one label drawn from each row, for regularising and for the margin."""
        picked = Y.indices[Y.indptr[:-1] + (rng.random(Y.shape[0]) * np.diff(Y.indptr)).astype(np.int64)]
        labels, examples = None, Examples.of(Y)
        if not self.every_label:
            labels, where = np.unique(Y.indices, return_inverse=True)
            examples = examples._replace(labels=where)
            picked = np.searchsorted(labels, picked)
        return GlasPlan(
            n_rows=Y.shape[0],
            examples=examples,
            labels=labels,
            label_parts=self.regularizer.parts(picked, labels) if self.regularizer else (),
            picked=picked,
        )

    def row_loss(self, plan: GlasPlan, rows: slice, vectors: Any, labels: Any, log_scale: Any) -> Any:
        """See :class:`~tailwise.embedding.plan.Objective`."""
        cosine = vectors @ labels.T
        total = self.loss(plan, rows, cosine, log_scale)
        if self.gravity_weight is not None:
            counts = cosine.new_tensor(np.bincount(plan.picked, minlength=cosine.shape[1]))
            total = total + self.gravity_weight * gravity(cosine, counts) * (rows.stop - rows.start) / plan.n_rows
        return total


@dataclass(frozen=True)
class FullObjective:
    """A loss over every label: the softmax with a margin (equation 6), or the cosine contrastive loss (equation 5)."""

    margin: Margin | None

    def plan(self, Y: sparse.csr_array, rng: np.random.Generator) -> Plan:
        """Every label takes part."""
        return Plan(n_rows=Y.shape[0], examples=Examples.of(Y), labels=None)

    def row_loss(self, plan: Plan, rows: slice, vectors: Any, labels: Any, log_scale: Any) -> Any:
        """See :class:`~tailwise.embedding.plan.Objective`."""
        part = plan.examples.part(rows)
        here, mine = as_index(part.here, vectors), as_index(part.labels, vectors)
        scores = vectors @ labels.T
        if self.margin is None:
            positive = scores[here, mine]
            others = contrastive.negative(scores).sum(1)[here] - contrastive.negative(positive)
            return plan.share(rows, contrastive.positive(positive) + others)
        log_a, log_b = (scores.new_tensor(part) for part in self.margin.parts or ())
        return plan.share(rows, margin_softmax(scores, here, mine, log_a, log_b))
