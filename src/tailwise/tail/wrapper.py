"""What the wrappers share: fitting the wrapped model, passing on what it can do, scores as probabilities."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self, TypeVar

import numpy as np
from scipy import sparse
from scipy.special import logit
from sklearn.base import clone

from tailwise.assigning import Rule
from tailwise.base import MODEL, TopK, XMCModel
from tailwise.changes import Change
from tailwise.explanation import Explanation
from tailwise.rows import RowView

Model = TypeVar("Model", bound=XMCModel)

_LEAST = 1e-6
"""Probabilities closer to 0 or 1 have the log-odds of this."""


class Wrapper(XMCModel):
    """A model around ``base``, which is cloned and fitted by ``fit`` and kept as ``base_``."""

    _parameters = {"base": MODEL}

    base: Any
    n_jobs: int | None
    base_: XMCModel

    @property
    def reads(self) -> str:  # type: ignore[override]
        """What the wrapped model reads."""
        return self.base.reads

    def _fresh_base(self) -> XMCModel:
        return fresh(self.base, self.n_jobs)

    def _check_state(self) -> None:
        super()._check_state()
        self._check_base()

    def _check_base(self) -> None:
        """Refuse a wrapped model that does not belong here."""
        self._check_part("base_", self.base_, XMCModel)

    def _check_updates(self) -> None:
        super()._check_updates()
        self.base_._check_updates()

    def _update_base(self, change: Change) -> int:
        """The wrapped model learns the change."""
        self.base_ = self.base_.updated(change)
        return self.base_.n_learnt_again

    def _label_weights(self) -> sparse.csr_array:
        return self.base_.label_weights()

    def _pair_inputs(self) -> tuple[str, ...]:
        return self.base_.pair_inputs()

    def _describe_pairs(self, X: sparse.csr_array, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return self.base_.describe_pairs(X, rows, labels)


class OtherRows(Wrapper):
    """A wrapper that only changes how ``base`` sees rows, as ``_see_rows`` says; all else is the wrapped model's."""

    @abstractmethod
    def _see_rows(self, X: sparse.csr_array) -> RowView:
        """How the wrapped model will see rows, from the training rows."""

    @property
    def scores_are_probabilities(self) -> bool:  # type: ignore[override]
        """As the wrapped model."""
        return bool(self.base.scores_are_probabilities)

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        self.base_ = self._fresh_base().fit(X, Y, weight)

    def _fit_part(
        self, whole: Self, rows: np.ndarray, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None
    ) -> None:
        self.base_ = whole.base_.fit_part(X, Y, rows, weight)

    def _learn_rule(self, X: sparse.csr_array, Y: sparse.csr_array, *_: Any) -> Rule:
        return self.base_.rule_

    def _update(self, change: Change) -> int:
        return self._update_base(change)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        return self.base_.predict_topk(X, k)

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        return self.base_.explain(x, label)


def fresh(model: Model, n_jobs: int | None) -> Model:
    """An unfitted clone of ``model`` that works on ``n_jobs`` threads; None leaves every model its own number."""
    made = clone(model)
    if n_jobs is None:
        return made
    names = [name for name in made.get_params() if name == "n_jobs" or name.endswith("__n_jobs")]
    return made.set_params(**dict.fromkeys(names, n_jobs))


def as_probabilities(scores: np.ndarray, model: XMCModel) -> np.ndarray:
    """Scores on the scale [0, 1]: as they are where the model gives probabilities, else ``exp(-max(0, 1 - s)²)``.

    The second form is the likelihood that belongs to the squared hinge: a margin of 1 or more counts as certain.
    Absent labels (-inf) become 0.
    """
    if model.scores_are_probabilities:
        return np.where(np.isneginf(scores), 0.0, scores).astype(np.float32)
    return np.exp(-(np.maximum(0.0, 1.0 - scores.astype(np.float64)) ** 2)).astype(np.float32)


def log_odds(scores: np.ndarray, model: XMCModel) -> np.ndarray:
    """Scores without bounds, float64: the log-odds where ``model`` gives probabilities, else as they are."""
    scores = scores.astype(np.float64)
    return logit(np.clip(scores, _LEAST, 1 - _LEAST)) if model.scores_are_probabilities else scores


def explain_probability(model: XMCModel, x: sparse.csr_array, label: int) -> Explanation:
    """Why ``model`` gives ``label`` the probability of :func:`as_probabilities`."""
    why = model.explain(x, label)
    if model.scores_are_probabilities or np.isneginf(why.score):
        return why
    probability = float(as_probabilities(np.array(why.score), model))
    return why.then("probability exp(-max(0, 1 - s)²) of the margin s", probability)
