"""Propensity models: how likely a relevant label is to have been observed, ``p_l = P(y_l = 1 | y*_l = 1)``."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from tailwise import persistence
from tailwise.errors import InvalidInput, NotFitted
from tailwise.parameters import Constraint, Number, check_parameters
from tailwise.persistence.checks import INTEGERS, check_exact, check_range, check_shape
from tailwise.validation import check_choice, check_labels, check_number, label_counts

PRESETS: dict[str, tuple[float, float]] = {"wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6), "other": (0.55, 1.5)}
"""(A, B) by dataset family, as published: Wikipedia tagging, Amazon item-to-item, and everything else."""


class Propensity(persistence.Saveable, BaseEstimator):
    """A propensity for every label, learned from the observed training labels.

    After ``fit(Y)``: ``propensity_`` (n_labels,) float64 in (0, 1], and its inverse ``inverse_``, the weight of an
    observed label in an unbiased loss or metric. A subclass writes ``_fit(Y)``.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {}

    propensity_: np.ndarray
    label_counts_: np.ndarray

    def fit(self, Y: Any) -> Self:
        """Learn from the observed binary labels ``Y`` (n_samples, n_labels)."""
        check_parameters(self)
        Y = check_labels(Y)
        self.label_counts_ = label_counts(Y)
        self.propensity_ = self._fit(Y)
        return self

    @property
    def inverse_(self) -> np.ndarray:
        """``1 / propensity_``: (n_labels,) float64, at least 1."""
        self._check_is_fitted()
        return 1.0 / self.propensity_

    def of_unseen(self, n_samples: int) -> float:
        """The propensity of a label that none of ``n_samples`` rows has: the lowest known, where no curve tells it."""
        self._check_is_fitted()
        return float(self.propensity_.min())

    def _check_state(self) -> None:
        check_parameters(self)
        counts = check_shape("label_counts_", self.label_counts_, (None,), INTEGERS)
        check_range("label_counts_", counts, 0)
        check_kept_propensity(self.propensity_, counts.size)

    def save(self, path: str | Path) -> None:
        """Write the fitted propensities as a folder that :func:`tailwise.load` opens."""
        self._check_is_fitted()
        persistence.save(self, path)

    @abstractmethod
    def _fit(self, Y: sparse.csr_array) -> np.ndarray:
        """The propensities (n_labels,) for checked labels; ``label_counts_`` is set already."""

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            name = type(self).__name__
            raise NotFitted(f"this {name} is not fitted yet; fit it on the training labels: {name}(...).fit(Y)")

    def __sklearn_is_fitted__(self) -> bool:
        return "propensity_" in vars(self)


def jain_inverse(counts: np.ndarray, n_samples: int, a: float, b: float) -> np.ndarray:
    """``1 + C (n_l + B)^(-A)`` with ``C = (ln N - 1)(B + 1)^A``: equation 1 of Jain et al., inverted.

    Fewer than e rows would make C negative and propensities exceed 1; C is then 0 and every propensity 1.
    """
    return curve_inverse(counts, a, b, max(0.0, np.log(n_samples) - 1.0))


def curve_inverse(counts: np.ndarray, a: float, b: float, odds: float) -> np.ndarray:
    """``1 + odds ((n_l + B) / (1 + B))^(-A)``, whose ``odds`` are those of a label with one row to be missing.

    >>> curve_inverse(np.array([1, 3]), 1.0, 1.0, 4.0)
    array([5., 3.])
    """
    c = odds * (b + 1.0) ** a
    return 1.0 + c * (np.asarray(counts, np.float64) + b) ** -a


class JainPropensity(Propensity):
    """The sigmoid of log frequency of Jain, Prabhu and Varma (KDD 2016): ``p_l = 1 / (1 + C (n_l + B)^(-A))``.

    ``C = (ln N - 1)(B + 1)^A`` with N training rows, of which n_l carry label l. Rare labels are the ones that
    annotators overlook. Cost: one pass over the labels.

    Parameters
    ----------
    a : float, default=0.55
        How fast the propensity grows with the frequency, above 0.
    b : float, default=1.5
        Where the growth starts, above 0. The defaults are the published ones for data without further evidence;
        :meth:`preset` has those by dataset family, :func:`propensity_from_hierarchy` and its kin fit them.

    Examples
    --------
    >>> JainPropensity().fit([[1, 0], [1, 0], [1, 1], [1, 0]]).propensity_.round(3)
    array([0.8  , 0.721])
    """

    _parameters = {"a": Number(low=0, open_low=True), "b": Number(low=0, open_low=True)}

    def __init__(self, a: float = 0.55, *, b: float = 1.5) -> None:
        self.a = a
        self.b = b

    @classmethod
    def preset(cls, family: str) -> JainPropensity:
        """The published (A, B) of a dataset family: "wikipedia", "amazon" or "other".

        >>> JainPropensity.preset("wikipedia")
        JainPropensity(a=0.5, b=0.4)
        """
        a, b = PRESETS[check_choice("family", family, tuple(PRESETS))]
        return cls(a, b=b)

    def fit_counts(self, counts: Any, n_samples: int) -> Self:
        """Learn from label frequencies alone: ``counts`` (n_labels,) of ``n_samples`` rows."""
        check_parameters(self)
        check_number("n_samples", n_samples, integer=True, low=1)
        counts = np.asarray(counts)
        if counts.ndim != 1 or counts.size == 0 or not np.issubdtype(counts.dtype, np.integer):
            raise InvalidInput(f"counts has shape {counts.shape} and dtype {counts.dtype}; pass one integer a label")
        if counts.min() < 0 or counts.max() > n_samples:
            raise InvalidInput(
                f"counts lie in [{counts.min()}, {counts.max()}]; a label has 0 to n_samples={n_samples:,} rows"
            )
        self.label_counts_ = counts.astype(np.int64)
        self.propensity_ = self._at(counts, n_samples)
        return self

    def inverse_at(self, counts: np.ndarray, n_samples: int) -> np.ndarray:
        """The curve itself, ``1 / p`` of labels with ``counts`` (n,) of ``n_samples`` rows; nothing need be fitted."""
        return jain_inverse(counts, n_samples, float(self.a), float(self.b))

    def of_unseen(self, n_samples: int) -> float:
        """The curve at a frequency of 0."""
        return float(self._at(np.zeros(1), n_samples)[0])

    def _at(self, counts: np.ndarray, n_samples: int) -> np.ndarray:
        """The propensities of labels with ``counts`` (n,), where ``label_counts_`` is set already."""
        return 1.0 / self.inverse_at(counts, n_samples)

    def _fit(self, Y: sparse.csr_array) -> np.ndarray:
        if Y.shape[0] == 0:
            raise InvalidInput("Y has 0 rows; pass the training labels")
        return self.fit_counts(self.label_counts_, Y.shape[0]).propensity_


class ConstantPropensity(Propensity):
    """The same propensity for every label: labels go missing uniformly at random.

    Parameters
    ----------
    value : float, default=1.0
        The propensity, in (0, 1]; 1 means that nothing is missing, and makes unbiased forms the plain ones.

    Examples
    --------
    >>> ConstantPropensity(0.5).fit([[1, 0]]).inverse_
    array([2., 2.])
    """

    _parameters = {"value": Number(low=0, high=1, open_low=True)}

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def _fit(self, Y: sparse.csr_array) -> np.ndarray:
        return np.full(Y.shape[1], float(self.value))


class GivenPropensity(Propensity):
    """Propensities that are known already, for example from a published file.

    Parameters
    ----------
    propensity : array of shape (n_labels,)
        Values in (0, 1].

    Examples
    --------
    >>> GivenPropensity.from_inverse([1.0, 4.0]).fit([[1, 0]]).propensity_
    array([1.  , 0.25])
    """

    _parameters = {"propensity": Constraint()}

    def __init__(self, propensity: Any) -> None:
        self.propensity = propensity

    @classmethod
    def from_inverse(cls, inverse: Any) -> GivenPropensity:
        """From inverse propensities ``1 / p_l``, the form in which they are published."""
        inverse = np.asarray(inverse, np.float64)
        if not (inverse >= 1).all():
            raise InvalidInput(f"inverse has the smallest value {inverse.min():g}; inverse propensities are >= 1")
        return cls(1.0 / inverse)

    def _fit(self, Y: sparse.csr_array) -> np.ndarray:
        return check_propensity(self.propensity, Y.shape[1])


def as_numbers(values: Any) -> np.ndarray:
    """What a user passes as ``propensity`` as float64, or a clear refusal."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"propensity={values!r} is not an array of numbers; pass a Propensity such as JainPropensity()"
        ) from error


def check_kept_propensity(values: Any, n_labels: int) -> None:
    """Refuse a ``propensity_`` from a file that is not (n_labels,) float64 in (0, 1]."""
    check_propensity(check_exact("propensity_", values, np.float64, (n_labels,)), n_labels)


def check_propensity(values: Any, n_labels: int) -> np.ndarray:
    """``values`` as (n_labels,) float64 in (0, 1], or a clear refusal."""
    propensity = as_numbers(values)
    if propensity.ndim != 1:
        raise InvalidInput(f"propensity has shape {propensity.shape}; pass one value a label, shape ({n_labels},)")
    if propensity.shape[0] != n_labels:
        raise InvalidInput(
            f"propensity has {propensity.shape[0]:,} entries but Y has {n_labels:,} columns; "
            "fit it on the training labels: JainPropensity().fit(Y)"
        )
    if not ((propensity > 0) & (propensity <= 1)).all():
        bad = int(np.flatnonzero(~((propensity > 0) & (propensity <= 1)))[0])
        hint = "; for inverse propensities use GivenPropensity.from_inverse(values)" if propensity[bad] > 1 else ""
        raise InvalidInput(f"propensity of label {bad} is {propensity[bad]:g}, outside (0, 1]{hint}")
    return propensity
