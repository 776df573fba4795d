"""Rows of several kinds side by side: words, pieces, vectors, names found."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tailwise.data.texts import check_texts
from tailwise.errors import InvalidInput
from tailwise.parameters import Component, Constraint, OrNone, check_parameters
from tailwise.persistence.checks import check_exact, check_kind, check_that
from tailwise.rows import with_values
from tailwise.text.rows import Groups, KnownLabels, TextRows, groups_of, more_of, placed, without_more
from tailwise.validation import check_number

TEXT_ROWS = Component(TextRows, "TextFeatures, TextParts, Sequences", "TextFeatures()")
"""The constraint of a parameter that makes rows of texts."""


class Parts(Constraint):
    """A list of at least one maker of rows."""

    def check(self, name: str, value: Any) -> Any:
        """The value, a list whose entries make rows of texts."""
        if not isinstance(value, list | tuple) or not value:
            raise InvalidInput(f"{name}={value!r} is empty or no list; pass a list such as [TextFeatures()]")
        for place, part in enumerate(value):
            TEXT_ROWS.check(f"{name}[{place}]", part)
        return value

    def __str__(self) -> str:
        return "a list of makers of rows"


class PartWeights(Constraint):
    """A positive number for each part."""

    def check(self, name: str, value: Any) -> Any:
        """The value, a list of positive numbers."""
        if not isinstance(value, list | tuple):
            raise InvalidInput(f"{name}={value!r} must be a list of numbers, one for each part")
        for place, weight in enumerate(value):
            check_number(f"{name}[{place}]", weight, low=0, open_low=True)
        return value

    def __str__(self) -> str:
        return "a list of positive numbers"


class TextParts(TextRows):
    """The columns of several makers of rows side by side, each scaled on its own; a model reads what it chooses.

    The groups are those of the parts, in their order; one whose name came before gets a number: ``"words 2"``. A plain
    model reads all columns; :class:`~tailwise.Columns` lets one read some.

    Parameters
    ----------
    parts : list of TextRows
        What makes the columns; they are cloned.
    weights : list of float or None
        What the rows of each part are multiplied by; None leaves them as they are.

    Examples
    --------
    >>> from tailwise import Texts, TextFeatures
    >>> texts = Texts({"title": ["Sea law", "Fish"], "abstract": ["Of ships", "Law and fish"]})
    >>> parts = TextParts([TextFeatures(min_df=1), TextFeatures(min_df=1, fields={"title": 1})]).fit(texts)
    >>> parts.groups_
    {'words': (0, 6), 'title words': (6, 9)}
    """

    _parameters = {"parts": Parts(), "weights": OrNone(PartWeights())}

    parts_: list[TextRows]
    sizes_: np.ndarray | None = None
    """(1 + n_updates, n_parts) int64: how many columns each part had at first and after each update that brought some;
    None where none did."""

    @property
    def finds_labels(self) -> bool:  # type: ignore[override]
        """Whether a part does."""
        return any(part.finds_labels for part in self.parts)

    def __init__(self, parts: list[TextRows], *, weights: list[float] | None = None) -> None:
        self.parts = parts
        self.weights = weights

    @property
    def groups_(self) -> Groups:  # type: ignore[override]
        """Those of the parts; what came by updates stands behind them, as ``"words +1"``."""
        first = groups_of(
            (name, _cut(pair, 0, size))
            for part, size in self._first()
            for name, pair in part.groups_.items()
            if without_more(name) == name
        )
        return first | self._later(list(first))

    def _first(self) -> list[tuple[TextRows, int]]:
        """The parts, and how many columns each had at first."""
        sizes = [part.n_columns_ for part in self.parts_] if self.sizes_ is None else self.sizes_[0].tolist()
        return list(zip(self.parts_, sizes, strict=True))

    def _later(self, names: list[str]) -> Groups:
        """The groups of columns that came by updates; ``names`` are those of the first ones, part by part."""
        groups: Groups = {}
        if self.sizes_ is None:
            return groups
        end = int(self.sizes_[0].sum())
        for before, after in pairwise(self.sizes_.tolist()):
            called = iter(names)
            for part, low, high in zip(self.parts_, before, after, strict=True):
                base = {name: next(called) for name in part.groups_ if without_more(name) == name}
                for name, pair in part.groups_.items():
                    size = _cut(pair, low, high)
                    if size:
                        more = more_of(base[without_more(name)], groups)
                        groups[more] = (end, end + size)
                        end += size
        return groups

    def fit(self, texts: Sequence[str], y: Any = None, *, labels: KnownLabels | None = None) -> Self:
        """Learn every part from ``texts``."""
        self.fit_transform(texts, y, labels=labels)
        return self

    def fit_transform(  # type: ignore[override]
        self, texts: Sequence[str], y: Any = None, *, labels: KnownLabels | None = None
    ) -> sparse.csr_array:
        """Learn every part, and what each gives for the training texts."""
        check_parameters(self)
        self._check_weights()
        texts = check_texts(texts)
        parts = [clone(part) for part in self.parts]
        rows = [part.fit_transform(texts, y, labels=labels) for part in parts]
        self.parts_, self.sizes_ = parts, None
        return self._beside(rows)

    def update(self, texts: Sequence[str], n_known: int) -> Self:
        """Let every part take in more texts; the columns that this brings stand behind all that there were."""
        self._check_is_fitted()
        before = np.array([part.n_columns_ for part in self.parts_], np.int64)
        self.parts_ = [copy(part).update(texts, n_known) for part in self.parts_]
        after = np.array([part.n_columns_ for part in self.parts_], np.int64)
        if (after > before).any():
            self.sizes_ = np.vstack([before[None] if self.sizes_ is None else self.sizes_, after])
        return self

    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows (n_texts, n_columns), float32: those of each part, side by side."""
        self._check_is_fitted()
        texts = check_texts(texts)
        return self._beside([part.transform(texts) for part in self.parts_])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names that the parts give their columns."""
        del input_features
        self._check_is_fitted()
        names = np.empty(self.n_columns_, object)
        names[self._places()] = np.concatenate([part.get_feature_names_out() for part in self.parts_])
        return names

    def _places(self) -> np.ndarray:
        """Where the columns of the parts, side by side, stand."""
        if self.sizes_ is None:
            return np.arange(sum(part.n_columns_ for part in self.parts_))
        starts = np.concatenate([[0], np.cumsum(self.sizes_[-1])[:-1]])
        steps = np.vstack([np.zeros_like(self.sizes_[:1]), self.sizes_])
        order = [
            start + np.arange(low, high)
            for before, after in pairwise(steps)
            for start, low, high in zip(starts, before, after, strict=True)
        ]
        return np.argsort(np.concatenate(order))

    def _beside(self, rows: list[sparse.csr_array]) -> sparse.csr_array:
        if self.weights is not None:
            pairs = zip(rows, self.weights, strict=True)
            rows = [with_values(X, X.data * np.float32(weight)) for X, weight in pairs]
        X = sparse.csr_array(sparse.hstack(rows, format="csr", dtype=np.float32))
        return X if self.sizes_ is None else placed(X, self._places())

    def _check_weights(self) -> None:
        if self.weights is not None and len(self.weights) != len(self.parts):
            raise InvalidInput(f"weights has {len(self.weights)} entries, but there are {len(self.parts)} parts")

    def _check_state(self) -> None:
        super()._check_state()
        self._check_weights()
        parts = check_kind("parts_", self.parts_, list)
        check_that(len(parts) == len(self.parts), f"parts_ has {len(parts)} entries, not {len(self.parts)}")
        for place, part in enumerate(parts):
            check_kind(f"parts_[{place}]", part, TextRows)._check_is_fitted()
        if self.sizes_ is not None:
            sizes = check_exact("sizes_", self.sizes_, np.int64, (None, len(parts)))
            check_that(len(sizes) > 1 and (np.diff(sizes, axis=0) >= 0).all(), "sizes_ do not grow")
            check_that((sizes[0] >= 0).all(), "sizes_ are below 0")
            now = [part.n_columns_ for part in parts]
            check_that(sizes[-1].tolist() == now, f"sizes_ end with {sizes[-1].tolist()}, not {now}")


def _cut(pair: tuple[int, int], low: int, high: int) -> int:
    """How many columns of a range lie between two others."""
    return max(0, min(pair[1], high) - max(pair[0], low))
