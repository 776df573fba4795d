"""Choosing a model by the size of the data: what a :class:`~tailwise.Tagger` trains unless it is told."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.base import BaseEstimator

from tailwise import persistence
from tailwise.base import MODEL, XMCModel
from tailwise.models import make_model, model_class
from tailwise.parameters import Constraint, Number, OrNone, check_parameters

_SECONDS_PER_LABEL_AND_VALUE = 1.3e-9
"""CPU-seconds of one-vs-rest training for each label and stored feature value, as measured on EURLex-4K."""


_TREE_SHARE = 0.5
"""What a tree costs beside one classifier a label, where both were measured."""


class Choice(NamedTuple):
    """What was chosen, why in a sentence, and how many CPU-minutes it takes."""

    model: XMCModel
    reason: str
    minutes: float


class BySize(persistence.Saveable, BaseEstimator):
    """One classifier a label while that takes minutes, a tree over labels beyond.

    Parameters
    ----------
    one_vs_rest, tree : XMCModel or None
        The two to choose from; None is ``DiSMEC()`` and ``Parabel()``.
    max_minutes : float
        How many CPU-minutes one classifier a label may take.

    Examples
    --------
    >>> BySize().for_size(15_539, 3_993, 3_700_000).model
    DiSMEC()
    >>> BySize().for_size(1_800_000, 325_000, 80_000_000).model
    Parabel()
    """

    _parameters = {"one_vs_rest": OrNone(MODEL), "tree": OrNone(MODEL), "max_minutes": Number(low=0)}

    def __init__(
        self, *, one_vs_rest: XMCModel | None = None, tree: XMCModel | None = None, max_minutes: float = 20
    ) -> None:
        self.one_vs_rest = one_vs_rest
        self.tree = tree
        self.max_minutes = max_minutes

    def choose(self, X: Any, Y: Any) -> Choice:
        """The model for these rows, unfitted."""
        return self.for_size(X.shape[0], Y.shape[1], X.nnz)

    def for_size(self, n_rows: int, n_labels: int, n_values: int) -> Choice:
        """The model for data of this size; ``n_values`` are the stored values of X."""
        check_parameters(self)
        minutes = n_labels * n_values * _SECONDS_PER_LABEL_AND_VALUE / 60
        size = f"{n_rows:,} rows, {n_labels:,} labels, {n_values:,} feature values"
        if minutes <= self.max_minutes:
            estimate = f"about {minutes:.0f} CPU-minutes" if minutes >= 1 else "under a CPU-minute"
            model = make_model("dismec") if self.one_vs_rest is None else self.one_vs_rest
            return Choice(model, f"{size}: one classifier a label is the most accurate and takes {estimate}", minutes)
        model = make_model("parabel") if self.tree is None else self.tree
        reason = f"{size}: one classifier a label would take {_told(minutes)}; a tree over labels is much faster"
        return Choice(model, reason, minutes * _TREE_SHARE)


def _told(minutes: float) -> str:
    return f"{minutes / 60:.0f} CPU-hours" if minutes >= 120 else f"{minutes:.0f} CPU-minutes"


class ModelOrName(Constraint):
    """A model, the name of one, ``"auto"``, or a choice by size."""

    def check(self, name: str, value: Any) -> Any:
        """The value; a name must be known, and the parameters of a model right."""
        if isinstance(value, str):
            if value != "auto":
                model_class(value)
        elif isinstance(value, BySize):
            check_parameters(value)
        else:
            MODEL.check(name, value)
        return value

    def __str__(self) -> str:
        return f"{MODEL}, the name of one, or 'auto'"


MODEL_OR_NAME = ModelOrName()
