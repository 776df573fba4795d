"""From what a user passes as ``propensity`` to an array of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from tailwise.errors import InvalidInput
from tailwise.parameters import Constraint, check_parameters
from tailwise.propensity.models import JainPropensity, Propensity, as_numbers, check_propensity
from tailwise.validation import check_labels


class PropensityLike(Constraint):
    """What a model takes as ``propensity``: None, a :class:`Propensity`, or an array, whose length Y will judge."""

    def check(self, name: str, value: Any) -> Any:
        """The value, nothing that could not become propensities."""
        if isinstance(value, Propensity):
            check_parameters(value)
        elif value is not None:
            _refuse_classes(value)
            as_numbers(value)
        return value

    def __str__(self) -> str:
        return "a Propensity, an array of n_labels numbers in (0, 1], or None for JainPropensity()"


def resolve_propensity(propensity: Any, Y: Any) -> np.ndarray:
    """The propensities that a model trains with: (n_labels,) float64 in (0, 1].

    None means ``JainPropensity()``; a :class:`Propensity` is cloned and fitted on the training labels ``Y``, so that
    the caller's object stays unchanged; an array of n_labels values is checked.

    >>> resolve_propensity([0.5, 1.0], [[1, 0]])
    array([0.5, 1. ])
    """
    Y = check_labels(Y)
    if propensity is None:
        propensity = JainPropensity()
    if isinstance(propensity, Propensity):
        return clone(propensity).fit(Y).propensity_
    _refuse_classes(propensity)
    return check_propensity(propensity, Y.shape[1])


def known_propensity(propensity: Any, n_labels: int) -> np.ndarray:
    """The propensities to evaluate with: a *fitted* :class:`Propensity` or an array, never fitted on test labels.

    >>> known_propensity(JainPropensity(), 3)
    Traceback (most recent call last):
    ...
    tailwise.errors.NotFitted: this JainPropensity is not fitted yet; ...
    """
    if isinstance(propensity, Propensity):
        propensity._check_is_fitted()
        propensity = propensity.propensity_
    _refuse_classes(propensity)
    return check_propensity(propensity, n_labels)


def _refuse_classes(propensity: Any) -> None:
    if isinstance(propensity, type | str | dict):
        raise InvalidInput(
            f"propensity={propensity!r}; pass None, an array of shape (n_labels,) or an object: JainPropensity()"
        )
