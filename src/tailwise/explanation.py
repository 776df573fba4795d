"""Why a label got its score: one type for every model, the score as a sum of named parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.display import html_text, visible

_LINES_SHOWN = 20


class Part(NamedTuple):
    """One of the values that sum to a score.

    ``feature`` is the column of X that it comes from, -1 where it comes from none. ``of`` tells how the value came
    about, where it is itself a function of an explained one. ``row`` is the training row that it comes from, or -1.
    """

    name: str
    value: float
    feature: int = -1
    of: Explanation | None = None
    row: int = -1


class Explanation(NamedTuple):
    """Why ``label`` got ``score``: the values of ``parts`` sum to it (-inf: the model does not rank the label).

    >>> why = Explanation.sum_of(3, [Part("bias", -1.0), Part("feature 7", 1.5, 7)])
    >>> why.score, why.then("as a probability", 0.6).score
    (0.5, 0.6)
    """

    label: int
    score: float
    parts: tuple[Part, ...]

    @classmethod
    def sum_of(cls, label: int, parts: list[Part]) -> Explanation:
        """The explanation whose score is the sum of these parts."""
        return cls(label, float(sum(part.value for part in parts)), tuple(parts))

    def then(self, name: str, score: float) -> Explanation:
        """What another score says that was made of this one alone, by a step called ``name``."""
        return Explanation(self.label, score, (Part(name, score, of=self),))

    def features(self) -> list[Part]:
        """The parts that come from features, from as deep as they lie along the first branch that has any."""
        own = [part for part in self.parts if part.feature >= 0]
        if own:
            return own
        below = (part.of.features() for part in self.parts if part.of is not None)
        return next((found for found in below if found), [])

    def at_columns(self, columns: np.ndarray) -> Explanation:
        """The same about rows of which the explained one is a choice of ``columns``.

        >>> Explanation.sum_of(3, [Part("feature 0", 1.5, 0)]).at_columns(np.array([7])).parts[0]
        Part(name='feature 7', value=1.5, feature=7, of=None, row=-1)
        """
        return self._replace(parts=tuple(_at_columns(part, columns) for part in self.parts))

    def columns(self) -> set[int]:
        """The columns of X that parts come from, however deep these lie."""
        own = {part.feature for part in self.parts if part.feature >= 0}
        return own.union(*(part.of.columns() for part in self.parts if part.of is not None))

    def with_names(self, names: Mapping[int, str]) -> Explanation:
        """The same with other names for parts that come from columns in ``names``.

        >>> Explanation.sum_of(3, [Part("feature 7", 1.5, 7)]).with_names({7: "sea"}).parts[0].name
        'sea'
        """
        parts = (
            part._replace(
                name=names.get(part.feature, part.name), of=None if part.of is None else part.of.with_names(names)
            )
            for part in self.parts
        )
        return self._replace(parts=tuple(parts))

    def __str__(self) -> str:
        lines = list(self.lines())
        more = [f"… and {len(lines) - _LINES_SHOWN:,} more parts"] if len(lines) > _LINES_SHOWN else []
        head = f"label {self.label}: the score {self.score:.4g} is the sum of"
        return "\n".join([head, *map(visible, lines[:_LINES_SHOWN]), *more])

    def _repr_html_(self) -> str:
        return f"<pre>{html_text(str(self))}</pre>"

    def lines(self, *, features: bool = True, indent: str = "") -> Iterator[str]:
        """The tree of parts as lines of text, the largest parts first; without those of features if not wanted."""
        for part in sorted(self.parts, key=lambda part: -abs(part.value)):
            if features or part.feature < 0:
                yield f"{indent}{part.value:+.4f}  {part.name}"
            if part.of is not None:
                yield from part.of.lines(features=features, indent=indent + "    ")


def _at_columns(part: Part, columns: np.ndarray) -> Part:
    of = None if part.of is None else part.of.at_columns(columns)
    if part.feature < 0:
        return part._replace(of=of)
    feature = int(columns[part.feature])
    name = f"feature {feature}" if part.name == f"feature {part.feature}" else part.name
    return part._replace(name=name, feature=feature, of=of)


def linear_explanation(label: int, x: sparse.csr_array, weights: sparse.csr_array, bias: float) -> Explanation:
    """``score = bias + Σ_f x_f w_fl`` of the one row ``x``, with ``weights`` (n_features, n_labels) CSR."""
    return margin_explanation(label, x, weights[x.indices][:, [label]].toarray().ravel(), bias)


def margin_explanation(label: int, x: sparse.csr_array, weights: np.ndarray, bias: float) -> Explanation:
    """``score = bias + Σ_f x_f w_f``, where ``weights`` stand beside the entries of the one row ``x``."""
    values = x.data.astype(np.float64) * weights
    parts = [
        Part(f"feature {feature}", float(value), int(feature))
        for feature, value in zip(x.indices, values, strict=True)
        if value != 0
    ]
    return Explanation.sum_of(label, [Part("bias", float(bias)), *parts])


def not_ranked(label: int, why: str) -> Explanation:
    """The explanation of a label that the model does not rank for this row."""
    return Explanation(label, -np.inf, (Part(why, -np.inf),))
