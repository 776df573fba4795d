"""The loss of labels against drawn labels, or against all of them, as the models that minimise it name it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from tailwise.embedding.sampling import SAMPLERS, WEIGHTINGS, Weighting, get_weighting, implicit_margin
from tailwise.errors import InvalidInput
from tailwise.losses.margins import MARGINS, Margin, get_margin, label_prior
from tailwise.parameters import Choice, Constraint, Integer, OrFunction
from tailwise.validation import label_counts


class LabelLoss:
    """What models with the parameters ``sampler``, ``weighting``, ``loss`` and ``n_negatives`` share.

    They differ in the network of the rows; what it minimises is built here, for all of them.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "sampler": Choice(*SAMPLERS, None),
        "weighting": OrFunction(Choice(*WEIGHTINGS)),
        "loss": Choice(*MARGINS, "contrastive"),
        "n_negatives": Integer(low=1),
    }

    sampler: str | None
    weighting: str | Weighting
    loss: str
    n_negatives: int

    @property
    def on_sphere(self) -> bool:
        """Only with the contrastive loss, which is one of cosines."""
        return self.loss == "contrastive"

    def build_objective(self, Y: sparse.csr_array) -> Any:
        """The loss that the parameters name, on drawn labels or on all of them."""
        from tailwise.embedding.negatives import SampledObjective, get_negatives
        from tailwise.embedding.objectives import FullObjective

        prior = label_prior(label_counts(Y))
        if self.sampler is None:
            return FullObjective(self._margin(prior))
        return SampledObjective(
            negatives=get_negatives(self.sampler, prior, self.n_negatives),
            weighting=get_weighting(self.weighting),
            contrastive=self.loss == "contrastive",
        )

    def _check_loss(self) -> None:
        """Refuse a loss over every label beside a sampler."""
        if self.sampler is not None and self.loss not in ("softmax", "contrastive"):
            raise InvalidInput(
                f"loss={self.loss!r} sums over every label, but sampler={self.sampler!r} draws some; pass "
                f"sampler=None, or loss='softmax' with weighting=weights_for({self.loss!r}, {self.sampler!r}, prior)"
            )

    def _describe_margin(self, Y: sparse.csr_array) -> dict[str, Any]:
        """Name, tilt and side of the margin that is minimised; empty where there is none, or it depends on the row."""
        margin = self._margin(label_prior(label_counts(Y)))
        return {} if margin is None else {"name": margin.name, "tilt": margin.tilt, "favours": margin.favours}

    def _margin(self, prior: np.ndarray) -> Margin | None:
        if self.sampler is None:
            return None if self.loss == "contrastive" else get_margin(self.loss, prior)
        if SAMPLERS[self.sampler].distribution is None:
            return None
        return implicit_margin(self.sampler, self.weighting, prior, self.n_negatives)
