"""Losses against drawn labels: where the negatives come from, and the loss of equations (7) and (8) on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol

import numpy as np
import torch
from scipy import sparse

from tailwise.embedding.plan import AnyPlan, Examples, Plan, as_index
from tailwise.embedding.sampling import SAMPLERS, Draw, Weighting
from tailwise.losses.margins import contrastive, sampled_decoupled, sampled_softmax

_ROWS_A_DRAW = 32


class Compared(NamedTuple):
    """A part's examples beside their negatives: scores (n,) and (n, m), what a weighting sees, draws that do not count.

    ``excluded`` is (n, m) bool.
    """

    positive: Any
    negatives: Any
    draw: Draw
    excluded: np.ndarray


class Negatives(Protocol[AnyPlan]):
    """A source of negatives, as :class:`SampledObjective` uses it."""

    def plan(self, Y: sparse.csr_array, rng: np.random.Generator) -> AnyPlan:
        """Draw for a batch with labels ``Y``, or note what is needed to draw later."""

    def compare(self, plan: AnyPlan, rows: slice, vectors: Any, labels: Any) -> Compared:
        """The examples of a part of the rows beside their negatives."""


@dataclass(frozen=True, kw_only=True)
class SampledObjective(Generic[AnyPlan]):
    """A loss over drawn labels (equations 7 and 8): the softmax, or the cosine contrastive loss."""

    negatives: Negatives[AnyPlan]
    weighting: Weighting
    contrastive: bool = False

    def plan(self, Y: sparse.csr_array, rng: np.random.Generator) -> AnyPlan:
        """Draw the negatives."""
        return self.negatives.plan(Y, rng)

    def row_loss(self, plan: AnyPlan, rows: slice, vectors: Any, labels: Any, log_scale: Any) -> Any:
        """See :class:`~tailwise.embedding.plan.Objective`. A draw that does not count has weight zero."""
        positive, negatives, draw, excluded = self.negatives.compare(plan, rows, vectors, labels)
        weights = torch.as_tensor(self.weighting(draw), dtype=positive.dtype, device=positive.device)
        weights = weights.expand(negatives.shape).masked_fill(torch.from_numpy(excluded).to(positive.device), 0)
        if self.contrastive:
            total = sampled_decoupled(contrastive, positive, negatives, weights)
        else:
            total = sampled_softmax(positive, negatives, weights)
        return plan.share(rows, total)


@dataclass(frozen=True, kw_only=True)
class SharedPlan(Plan):
    """Negatives (n_sets, m) that every 32 rows share, as positions among ``labels``; ``source``, the rows they have."""

    labels: np.ndarray
    negatives: np.ndarray
    source: np.ndarray | None


@dataclass(frozen=True, kw_only=True)
class SharedNegatives:
    """Negatives drawn from all labels alike, or from the labels of the batch, a set for every 32 rows.

    Sets keep the products dense and are still many. A draw of the example's own label, and within the batch a draw from
    the example's own row, does not count. ``q`` (n_labels,) is the distribution that the draws have.
    """

    prior: np.ndarray
    q: np.ndarray
    n_negatives: int
    within_batch: bool

    def plan(self, Y: sparse.csr_array, rng: np.random.Generator) -> SharedPlan:
        """Draw the sets; the labels that take part are the batch's and theirs."""
        examples = Examples.of(Y)
        size = (-(-Y.shape[0] // _ROWS_A_DRAW), self.n_negatives)
        source = None
        if self.within_batch:
            drawn = rng.integers(examples.labels.size, size=size)
            negatives, source = examples.labels[drawn], examples.rows[drawn]
        else:
            negatives = rng.integers(self.prior.size, size=size)
        labels = np.union1d(examples.labels, negatives)
        return SharedPlan(
            n_rows=Y.shape[0],
            examples=examples._replace(labels=np.searchsorted(labels, examples.labels)),
            labels=labels,
            negatives=np.searchsorted(labels, negatives),
            source=source,
        )

    def compare(self, plan: SharedPlan, rows: slice, vectors: Any, labels: Any) -> Compared:
        """See :class:`Negatives`."""
        part = plan.examples.part(rows)
        here, mine = as_index(part.here, vectors), as_index(part.labels, vectors)
        sets = slice(rows.start // _ROWS_A_DRAW, -(-rows.stop // _ROWS_A_DRAW))
        negatives = _against_their_sets(vectors, labels, as_index(plan.negatives[sets], vectors))[here]
        its_set = part.rows // _ROWS_A_DRAW
        y, other = plan.labels[part.labels][:, None], plan.labels[plan.negatives][its_set]
        excluded = y == other
        if plan.source is not None:
            excluded |= part.rows[:, None] == plan.source[its_set]
        q_positive, q_negative = (vectors.new_tensor(self.q[index]) for index in (y, other))
        draw = _describe(self.prior, self.n_negatives, y, other, q_positive, q_negative)
        return Compared((vectors[here] * labels[mine]).sum(1), negatives, draw, excluded)


@dataclass(frozen=True, kw_only=True)
class SeededPlan(Plan):
    """A plan whose negatives are drawn when scores are at hand, from ``seed``."""

    seed: int


@dataclass(frozen=True, kw_only=True)
class ModelNegatives:
    """Negatives drawn for each row from the softmax of its current scores, at the cost of scoring every label.

    A draw of the example's own label does not count.
    """

    prior: np.ndarray
    n_negatives: int

    def plan(self, Y: sparse.csr_array, rng: np.random.Generator) -> SeededPlan:
        """Every label takes part."""
        return SeededPlan(n_rows=Y.shape[0], examples=Examples.of(Y), labels=None, seed=int(rng.integers(2**62)))

    def compare(self, plan: SeededPlan, rows: slice, vectors: Any, labels: Any) -> Compared:
        """See :class:`Negatives`."""
        _, here, y = plan.examples.part(rows)
        at, own = as_index(here, vectors), as_index(y, vectors)
        scores = vectors @ labels.T
        q = torch.softmax(scores.detach(), 1)
        generator = torch.Generator(vectors.device).manual_seed(plan.seed + rows.start)
        drawn = torch.multinomial(q, self.n_negatives, replacement=True, generator=generator)
        other = drawn.cpu().numpy()[here]
        draw = _describe(self.prior, self.n_negatives, y[:, None], other, q[at, own][:, None], q.gather(1, drawn)[at])
        return Compared(scores[at, own], scores.gather(1, drawn)[at], draw, y[:, None] == other)


def get_negatives(sampler: str, prior: np.ndarray, n_negatives: int) -> Negatives[Any]:
    """The source of negatives that goes by a name of :data:`~tailwise.embedding.sampling.SAMPLERS`."""
    distribution = SAMPLERS[sampler].distribution
    if distribution is None:
        return ModelNegatives(prior=prior, n_negatives=n_negatives)
    return SharedNegatives(
        prior=prior, q=distribution(prior), n_negatives=n_negatives, within_batch=sampler == "within_batch"
    )


def _describe(
    prior: np.ndarray, n_negatives: int, y: np.ndarray, other: np.ndarray, q_positive: Any, q_negative: Any
) -> Draw:
    prior_positive, prior_negative = (q_negative.new_tensor(prior[index]) for index in (y, other))
    return Draw(n_negatives, y, other, q_positive, q_negative, prior_positive, prior_negative)


def _against_their_sets(vectors: torch.Tensor, labels: torch.Tensor, sets: torch.Tensor) -> torch.Tensor:
    """Scores (rows, m) of each row against the set of labels that its 32 rows share; ``sets`` is (n_sets, m)."""
    n, d = vectors.shape
    padded = torch.nn.functional.pad(vectors, (0, 0, 0, sets.shape[0] * _ROWS_A_DRAW - n))
    scores = torch.bmm(padded.view(sets.shape[0], _ROWS_A_DRAW, d), labels[sets].transpose(1, 2))
    return scores.reshape(-1, sets.shape[1])[:n]
