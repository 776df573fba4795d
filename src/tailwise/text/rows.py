"""How texts become rows: the contract that every maker of rows keeps, and what its parameters may be."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

from tailwise import persistence
from tailwise.errors import InvalidInput, NotFitted
from tailwise.parameters import Constraint, check_parameters
from tailwise.validation import check_number


class TextRows(persistence.Saveable, TransformerMixin, BaseEstimator):
    """How texts become rows: learnt from training texts, kept beside the model that reads the rows."""

    @property
    @abstractmethod
    def n_columns_(self) -> int:
        """How many columns the rows have."""

    @abstractmethod
    def fit(self, texts: Sequence[str], y: Any = None) -> Self:
        """Learn from training texts."""

    @abstractmethod
    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows of texts, float32."""

    def update(self, texts: Sequence[str], n_known: int) -> Self:
        """Learn from more texts than the first ``n_known``: new columns at the end, old ones as they are; or none."""
        del texts, n_known
        return self

    @abstractmethod
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """A name for each column."""

    def _check_state(self) -> None:
        check_parameters(self)

    def save(self, path: str | Path) -> None:
        """Write what was learnt as a folder that :func:`tailwise.load` opens; atomic, no pickle."""
        self._check_is_fitted()
        persistence.save(self, path)

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            name = type(self).__name__
            raise NotFitted(f"this {name} is not fitted yet; call {name}.fit(texts) first")

    def __sklearn_is_fitted__(self) -> bool:
        return any(name.endswith("_") for name in vars(self))


class CountOrShare(Constraint):
    """A number of texts as an integer, or a share of them as a float."""

    def check(self, name: str, value: Any) -> Any:
        """The value, at least 0; as a float at most 1."""
        return check_number(name, value, low=0, high=1.0 if isinstance(value, float) else np.inf)

    def __str__(self) -> str:
        return "a number of texts as an integer, or a share of them in [0, 1] as a float"


class Lengths(Constraint):
    """A pair (shortest, longest) of lengths of pieces of words."""

    def check(self, name: str, value: Any) -> Any:
        """The value, a pair in order."""
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise InvalidInput(f"{name}={value!r} must be a pair (shortest, longest) or None")
        check_number(f"{name}[0]", value[0], integer=True, low=1)
        check_number(f"{name}[1]", value[1], integer=True, low=value[0], high=20)
        return value

    def __str__(self) -> str:
        return "a pair (shortest, longest)"


class Words(Constraint):
    """A list of words."""

    def check(self, name: str, value: Any) -> Any:
        """The value, anything that lists words."""
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InvalidInput(f"{name}={value!r} must be a list of words")
        return value

    def __str__(self) -> str:
        return "a list of words"
