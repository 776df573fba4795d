"""What a batch minimises: the plan of which labels take part, and the loss of a part of its rows or labels.

A plan is drawn once a batch, in numpy, from the epoch's random numbers; losses are then computed part by part.
Label indices of a plan are positions among the plan's ``labels``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from scipy import sparse

from tailwise.embedding.sampling import Draw, Weighting
from tailwise.losses.base import softplus
from tailwise.losses.margins import (
    Margin,
    contrastive,
    log_sum_exp,
    margin_softmax,
    sampled_decoupled,
    sampled_softmax,
)
from tailwise.losses.regularizers import LABEL_REGULARIZERS, adjacency, gravity

_MASKED = -1e4
_ROWS_A_DRAW = 32


class Examples(NamedTuple):
    """One entry for each label of each row of a batch, ordered by row; ``offsets`` has one entry a row, and an end."""

    rows: np.ndarray
    labels: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, Y: sparse.csr_array) -> Examples:
        """The examples of a batch's labels."""
        return cls(np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)), Y.indices, Y.indptr)

    def part(self, rows: slice) -> tuple[np.ndarray, np.ndarray, slice]:
        """Row (within the part) and label of each example of a part of the rows, and where they lie."""
        where = slice(self.offsets[rows.start], self.offsets[rows.stop])
        return self.rows[where] - rows.start, self.labels[where], where


@dataclass
class Plan:
    """A batch: its examples, the labels that take part (None: all), and what an objective notes for itself."""

    n_rows: int
    examples: Examples
    labels: np.ndarray | None
    notes: dict[str, Any] = field(default_factory=dict)
    n_label_parts: int = 0


class Objective(Protocol):
    """What a trainer asks of an objective."""

    def plan(self, Y: sparse.csr_array, rng: np.random.Generator) -> Plan:
        """Choose the labels and negatives of a batch with labels ``Y`` (every row has one)."""

    def row_loss(self, plan: Plan, rows: slice, vectors: Any, labels: Any, log_scale: Any) -> Any:
        """What a part of the rows adds to the batch's loss, given their ``vectors`` and those of the plan's labels."""

    def label_loss(self, plan: Plan, part: int, labels: Any) -> Any:
        """The loss of one of the plan's ``n_label_parts`` parts of the labels."""


@dataclass
class GlasObjective:
    """Margin, mined or softmax loss plus a regulariser of the label vectors (Algorithm 2 of the GLaS paper)."""

    Y_transposed: sparse.csr_array
    loss: str
    margin: float
    n_mined: int
    regularizer: str | None
    reg_weight: float
    log_tilt: np.ndarray
    every_label: bool
    label_part: int = 512

    def plan(self, Y: sparse.csr_array, rng: np.random.Generator) -> Plan:
        """All labels, or those of the batch; and one label drawn from each row, for regularising and for the margin."""
        picked = Y.indices[Y.indptr[:-1] + (rng.random(Y.shape[0]) * np.diff(Y.indptr)).astype(np.int64)]
        if self.every_label:
            labels, examples = None, Examples.of(Y)
        else:
            labels, where = np.unique(Y.indices, return_inverse=True)
            examples = Examples.of(Y)._replace(labels=where)
            picked = np.searchsorted(labels, picked)
        distinct, counts = np.unique(picked, return_counts=True)
        plan = Plan(Y.shape[0], examples, labels, {"picked": picked, "distinct": distinct, "counts": counts})
        if self.regularizer in LABEL_REGULARIZERS:
            if self.regularizer != "spreadout":
                plan.notes["U"] = adjacency(self.Y_transposed, distinct if labels is None else labels[distinct])
            plan.n_label_parts = -(-distinct.size // self.label_part)
        return plan

    def row_loss(self, plan: Plan, rows: slice, vectors: Any, labels: Any, log_scale: Any) -> Any:
        """See :class:`Objective`. Negatives are the labels that a row does not have."""
        here, mine = (_index(part, vectors) for part in plan.examples.part(rows)[:2])
        cosine = vectors @ labels.T
        scores = cosine
        if self.loss == "softmax":
            tilt = self.log_tilt if plan.labels is None else self.log_tilt[plan.labels]
            scores = cosine * log_scale.exp() + cosine.new_tensor(tilt)
        positive = scores[here, mine]
        negatives = scores.index_put((here, mine), scores.new_tensor(_MASKED))
        n_examples = plan.examples.labels.size
        if self.loss == "softmax":
            total = softplus(log_sum_exp(negatives)[here] - positive).sum() / n_examples
        elif self.loss == "negative_mining":
            hardest = torch.topk(negatives, min(self.n_mined, negatives.shape[1]), dim=1).values
            total = torch.relu(hardest[here] - positive[:, None] + self.margin).mean(1).sum() / n_examples
        else:
            picked = _index(plan.notes["picked"][rows], vectors)
            chosen = scores.gather(1, picked[:, None])
            total = torch.relu(negatives - chosen + self.margin).sum() / plan.n_rows
        if self.regularizer == "gravity":
            counts = cosine.new_tensor(np.bincount(plan.notes["picked"], minlength=cosine.shape[1]))
            total = total + self.reg_weight * gravity(cosine, counts) * (rows.stop - rows.start) / plan.n_rows
        return total

    def label_loss(self, plan: Plan, part: int, labels: Any) -> Any:
        """See :class:`Objective`: λ times the regulariser of equation (3), (2) or (4), restricted to a part's rows."""
        distinct = _index(plan.notes["distinct"], labels)
        counts = labels.new_tensor(plan.notes["counts"])
        against = slice(part * self.label_part, min((part + 1) * self.label_part, distinct.numel()))
        U = plan.notes["U"][against].toarray() if "U" in plan.notes else None
        U = None if U is None else torch.from_numpy(U).to(labels.device)
        return self.reg_weight * LABEL_REGULARIZERS[str(self.regularizer)](labels[distinct], U, counts, against)


@dataclass
class FullObjective:
    """A loss over every label: the softmax with a margin (equation 6), or the cosine contrastive loss (equation 5)."""

    margin: Margin | None

    def plan(self, Y: sparse.csr_array, rng: np.random.Generator) -> Plan:
        """Every label takes part."""
        return Plan(Y.shape[0], Examples.of(Y), None)

    def row_loss(self, plan: Plan, rows: slice, vectors: Any, labels: Any, log_scale: Any) -> Any:
        """See :class:`Objective`."""
        here, mine = (_index(part, vectors) for part in plan.examples.part(rows)[:2])
        scores = vectors @ labels.T
        n_examples = plan.examples.labels.size
        if self.margin is None:
            positive = scores[here, mine]
            others = contrastive.negative(scores).sum(1)[here] - contrastive.negative(positive)
            return (contrastive.positive(positive) + others).sum() / n_examples
        log_a, log_b = (scores.new_tensor(part) for part in self.margin.parts or ())
        return margin_softmax(scores, here, mine, log_a, log_b).sum() / n_examples

    def label_loss(self, plan: Plan, part: int, labels: Any) -> Any:
        """Nothing: labels are not regularised."""
        raise NotImplementedError


@dataclass
class SampledObjective:
    """A loss over ``n_negatives`` drawn labels (equations 7 and 8).

    ``uniform`` and ``within_batch`` draw a set of negatives for every 32 rows, which keeps the products dense and the
    sets many; ``model`` draws one for each row from the softmax of its current scores, at the cost of scoring every
    label. A draw of the example's own label, and within the batch a draw from the example's own row, has weight zero.
    """

    prior: np.ndarray
    q: np.ndarray | None
    sampler: str
    weighting: Weighting
    loss: str
    n_negatives: int

    def plan(self, Y: sparse.csr_array, rng: np.random.Generator) -> Plan:
        """Draw the negatives; the labels that take part are the batch's and theirs."""
        examples = Examples.of(Y)
        if self.sampler == "model":
            return Plan(Y.shape[0], examples, None, {"seed": int(rng.integers(2**62))})
        size = (-(-Y.shape[0] // _ROWS_A_DRAW), self.n_negatives)
        if self.sampler == "uniform":
            negatives, source = rng.integers(self.prior.size, size=size), None
        else:
            drawn = rng.integers(examples.labels.size, size=size)
            negatives, source = examples.labels[drawn], examples.rows[drawn]
        labels = np.union1d(examples.labels, negatives)
        local = examples._replace(labels=np.searchsorted(labels, examples.labels))
        notes = {"negatives": np.searchsorted(labels, negatives), "source": source}
        return Plan(Y.shape[0], local, labels, notes)

    def row_loss(self, plan: Plan, rows: slice, vectors: Any, labels: Any, log_scale: Any) -> Any:
        """See :class:`Objective`."""
        positive, negatives, draw, excluded = (
            self._from_model(plan, rows, vectors, labels)
            if self.sampler == "model"
            else self._from_sets(plan, rows, vectors, labels)
        )
        weights = torch.as_tensor(self.weighting(draw), dtype=positive.dtype, device=positive.device)
        weights = weights.expand(negatives.shape).masked_fill(torch.from_numpy(excluded).to(positive.device), 0)
        if self.loss == "contrastive":
            total = sampled_decoupled(contrastive, positive, negatives, weights)
        else:
            total = sampled_softmax(positive, negatives, weights)
        return total.sum() / plan.examples.labels.size

    def _from_model(self, plan: Plan, rows: slice, vectors: Any, labels: Any) -> tuple[Any, Any, Draw, np.ndarray]:
        """Scores of the examples' labels and negatives, what a weighting sees of them, and which draws do not count."""
        here, y, _ = plan.examples.part(rows)
        at, own = _index(here, vectors), _index(y, vectors)
        scores = vectors @ labels.T
        q = torch.softmax(scores.detach(), 1)
        generator = torch.Generator(vectors.device).manual_seed(plan.notes["seed"] + rows.start)
        drawn = torch.multinomial(q, self.n_negatives, replacement=True, generator=generator)
        other = drawn.cpu().numpy()[here]
        draw = self._draw(y[:, None], other, q[at, own][:, None], q.gather(1, drawn)[at])
        return scores[at, own], scores.gather(1, drawn)[at], draw, y[:, None] == other

    def _from_sets(self, plan: Plan, rows: slice, vectors: Any, labels: Any) -> tuple[Any, Any, Draw, np.ndarray]:
        """As :meth:`_from_model`, from the plan's sets of negatives."""
        here, mine, where = plan.examples.part(rows)
        at, own = _index(here, vectors), _index(mine, vectors)
        sets = slice(rows.start // _ROWS_A_DRAW, -(-rows.stop // _ROWS_A_DRAW))
        negatives = _against_their_sets(vectors, labels, _index(plan.notes["negatives"][sets], vectors))[at]
        own_row = plan.examples.rows[where]
        known, q = np.asarray(plan.labels), np.asarray(self.q)
        y, other = known[mine][:, None], known[plan.notes["negatives"]][own_row // _ROWS_A_DRAW]
        excluded = y == other
        if plan.notes["source"] is not None:
            excluded |= own_row[:, None] == plan.notes["source"][own_row // _ROWS_A_DRAW]
        draw = self._draw(y, other, vectors.new_tensor(q[y]), vectors.new_tensor(q[other]))
        return (vectors[at] * labels[own]).sum(1), negatives, draw, excluded

    def _draw(self, y: np.ndarray, other: np.ndarray, q_positive: Any, q_negative: Any) -> Draw:
        prior_positive, prior_negative = (q_negative.new_tensor(self.prior[index]) for index in (y, other))
        return Draw(self.n_negatives, y, other, q_positive, q_negative, prior_positive, prior_negative)

    def label_loss(self, plan: Plan, part: int, labels: Any) -> Any:
        """Nothing: labels are not regularised."""
        raise NotImplementedError


def _against_their_sets(vectors: torch.Tensor, labels: torch.Tensor, sets: torch.Tensor) -> torch.Tensor:
    """Scores (rows, m) of each row against the set of labels that its 32 rows share; ``sets`` is (n_sets, m)."""
    n, d = vectors.shape
    padded = torch.nn.functional.pad(vectors, (0, 0, 0, sets.shape[0] * _ROWS_A_DRAW - n))
    scores = torch.bmm(padded.view(sets.shape[0], _ROWS_A_DRAW, d), labels[sets].transpose(1, 2))
    return scores.reshape(-1, sets.shape[1])[:n]


def _index(positions: np.ndarray, like: torch.Tensor) -> torch.Tensor:
    """Positions as torch wants them, where ``like`` lies."""
    return torch.from_numpy(positions.astype(np.int64, copy=False)).to(like.device)
