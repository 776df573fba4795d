"""Rows of several kinds side by side: words, pieces, vectors, names found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tailwise.data.texts import Texts, check_texts, in_fields
from tailwise.errors import InvalidInput
from tailwise.parameters import Component, Constraint, OrNone, check_parameters
from tailwise.persistence.checks import check_kind, check_that
from tailwise.rows import with_values
from tailwise.text.rows import Groups, KnownLabels, Spans, TextRows, groups_of
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

    @property
    def finds_labels(self) -> bool:  # type: ignore[override]
        """Whether a part does."""
        return any(part.finds_labels for part in self.parts)

    def __init__(self, parts: list[TextRows], *, weights: list[float] | None = None) -> None:
        self.parts = parts
        self.weights = weights

    @property
    def groups_(self) -> Groups:  # type: ignore[override]
        """Those of the parts."""
        return groups_of((name, last - first) for part in self.parts_ for name, (first, last) in part.groups_.items())

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
        self.parts_ = parts
        return self._beside(rows)

    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows (n_texts, n_columns), float32: those of each part, side by side."""
        self._check_is_fitted()
        texts = self._told_apart(check_texts(texts))
        return self._beside([part.transform(texts) for part in self.parts_])

    def _told_apart(self, texts: Sequence[str]) -> Sequence[str]:
        """Plain strings in the fields of all parts: one that reads titles alone takes no whole text for a title."""
        fields = self.field_names
        return texts if isinstance(texts, Texts) or len(fields) < 2 else Texts(in_fields(texts, fields))

    def column_names(self, columns: Sequence[int]) -> list[str]:
        """The names that the parts give some columns."""
        named: dict[int, str] = {}
        for part, first, own in self._shared_out(columns):
            named |= zip([first + column for column in own], part.column_names(own), strict=True)
        return [named[column] for column in columns]

    def spans(self, text: Sequence[str], columns: Sequence[int]) -> Spans:
        """Where the parts find what their columns come from."""
        return {
            first + column: places
            for part, first, own in self._shared_out(columns)
            for column, places in part.spans(self._told_apart(text), own).items()
        }

    def _shared_out(self, columns: Sequence[int]) -> Iterator[tuple[TextRows, int, list[int]]]:
        """The parts that some of ``columns`` are of: each with its first column, and its own as it counts them."""
        first = 0
        for part in self.parts_:
            own = [column - first for column in columns if first <= column < first + part.n_columns_]
            if own:
                yield part, first, own
            first += part.n_columns_

    @property
    def field_names(self) -> list[str]:
        """Those of the parts, each once."""
        return list(dict.fromkeys(name for part in self.parts_ for name in part.field_names))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names that the parts give their columns."""
        del input_features
        self._check_is_fitted()
        return np.concatenate([part.get_feature_names_out() for part in self.parts_])

    def _beside(self, rows: list[sparse.csr_array]) -> sparse.csr_array:
        weights = self.weights or [1.0] * len(rows)
        scaled = [with_values(X, X.data * np.float32(weight)) for X, weight in zip(rows, weights, strict=True)]
        return sparse.csr_array(sparse.hstack(scaled, format="csr", dtype=np.float32))

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
