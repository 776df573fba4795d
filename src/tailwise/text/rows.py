"""How texts become rows: the contract that every maker of rows keeps, and what its parameters may be."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

from tailwise import persistence
from tailwise.errors import InvalidInput, NotFitted
from tailwise.parameters import Constraint, check_parameters
from tailwise.persistence.checks import check_kind, check_that
from tailwise.validation import check_number

Groups = dict[str, tuple[int, int]]
"""Named ranges of columns, first and past the last, one after the other."""


class KnownLabels(NamedTuple):
    """What is known of the labels when rows are learnt: what a maker of rows may look for in texts."""

    ids: list[str]
    names: list[str]
    Y: sparse.csr_array
    """Which training text has which label."""
    vocabulary: Any = None
    """More names of the labels and how they hang together, where that was given to ``Tagger.fit``."""


class TextRows(persistence.Saveable, TransformerMixin, BaseEstimator):
    """How texts become rows: learnt from training texts, kept beside the model that reads the rows.

    The columns come in groups with names, ``groups_``; a model reads some of them as :class:`~tailwise.Columns` says.
    """

    makes: ClassVar[str] = "terms"
    """What the rows are, as ``XMCModel.reads`` has it."""
    finds_labels: bool = False
    """Whether rows tell of labels that no training row has: then all of a vocabulary are of use."""

    @property
    def n_columns_(self) -> int:
        """How many columns the rows have."""
        return max(last for _, last in self.groups_.values())

    groups_: Groups

    @abstractmethod
    def fit(self, texts: Sequence[str], y: Any = None, *, labels: KnownLabels | None = None) -> Self:
        """Learn from training texts, and from what is known of their ``labels`` where rows are about them."""

    def fit_transform(  # type: ignore[override]
        self, texts: Sequence[str], y: Any = None, *, labels: KnownLabels | None = None
    ) -> sparse.csr_array:
        """``fit``, and the rows of the training texts.

        Whatever learns from the labels of a text gives its row here as if the text were new.
        """
        return self.fit(texts, y, labels=labels).transform(texts)

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


def groups_of(sizes: Iterable[tuple[str, int]]) -> Groups:
    """Groups of so many columns each, one after the other; a name that came before gets a number.

    >>> groups_of([("words", 3), ("pieces", 2), ("words", 1)])
    {'words': (0, 3), 'pieces': (3, 5), 'words 2': (5, 6)}
    """
    groups: Groups = {}
    first = 0
    for name, size in sizes:
        free = (name, *(f"{name} {n}" for n in range(2, len(groups) + 2)))
        groups[next(one for one in free if one not in groups)] = (first, first + size)
        first += size
    return groups


def without_more(name: str) -> str:
    """The group to which columns came that an update brought, by what those are called.

    >>> without_more("words +2"), without_more("words 2")
    ('words', 'words 2')
    """
    return re.sub(r" \+\d+$", "", name)


def more_of(name: str, groups: Groups) -> str:
    """What the columns are called that come to the group ``name`` by an update.

    >>> more_of("words", {"words": (0, 3), "pieces": (3, 5), "words +1": (5, 6)})
    'words +2'
    """
    return f"{name} +{1 + len(more_ranges(groups).get(name, ()))}"


def more_ranges(groups: Groups) -> dict[str, list[tuple[int, int]]]:
    """The columns that came to groups by updates, by the name of the group.

    >>> more_ranges({"words": (0, 3), "pieces": (3, 5), "words +1": (5, 6), "words +2": (6, 9)})
    {'words': [(5, 6), (6, 9)]}
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for name, pair in groups.items():
        if without_more(name) != name:
            found.setdefault(without_more(name), []).append(pair)
    return found


def placed(X: sparse.csr_array, columns: np.ndarray) -> sparse.csr_array:
    """X with column j at ``columns[j]``; as it is where all are there already."""
    if np.array_equal(columns, np.arange(X.shape[1])):
        return X
    moved = sparse.csr_array((X.data, columns[X.indices].astype(X.indices.dtype), X.indptr), shape=X.shape)
    moved.sort_indices()
    return moved


def check_groups(groups: Any, n_columns: int) -> None:
    """Refuse what are no groups of ``n_columns`` columns, one after the other."""
    first = 0
    for name, (start, stop) in check_kind("groups_", groups, dict).items():
        check_number(f"groups_[{name!r}]", stop, integer=True, low=start, high=n_columns)
        check_that(start == first, f"groups_[{name!r}] begins at {start}, not at {first}")
        first = stop
    check_that(first == n_columns, f"groups_ have {first:,} columns, not {n_columns:,}")


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


class Language(Constraint):
    """A language's tag."""

    def check(self, name: str, value: Any) -> Any:
        """The value, such as ``"de"`` or ``"de-AT"``."""
        if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", value):
            raise InvalidInput(f"{name}={value!r} is no tag of a language; pass one such as 'de' or 'en'")
        return value

    def __str__(self) -> str:
        return "the tag of a language, such as 'de'"
