"""Some columns for any model: words for one member of a stack, vectors for another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import XMCModel
from tailwise.errors import InvalidInput
from tailwise.explanation import Explanation
from tailwise.parameters import Constraint, OrNone
from tailwise.rows import AS_THEY_ARE, RowView
from tailwise.tail.wrapper import OtherRows
from tailwise.validation import check_number

Ranges = Sequence[tuple[int, int]]


class GroupNames(Constraint):
    """The name of a group of columns, or a list of names."""

    def check(self, name: str, value: Any) -> Any:
        """The value, a string or several."""
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not names or not all(isinstance(one, str) for one in names):
            raise InvalidInput(f"{name}={value!r} must be the name of a group of columns, or a list of names")
        return value

    def __str__(self) -> str:
        return "the name of a group of columns, or a list of names"


class ColumnRanges(Constraint):
    """Pairs (first, past the last) of columns."""

    def check(self, name: str, value: Any) -> Any:
        """The value, at least one pair, none of them empty."""
        if not isinstance(value, list | tuple) or not value:
            raise InvalidInput(f"{name}={value!r} must be a list of ranges such as [(0, 100)]")
        for place, pair in enumerate(value):
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise InvalidInput(f"{name}[{place}]={pair!r} must be a pair (first, past the last)")
            check_number(f"{name}[{place}][0]", pair[0], integer=True, low=0)
            check_number(f"{name}[{place}][1]", pair[1], integer=True, low=pair[0] + 1)
        return value

    def __str__(self) -> str:
        return "a list of pairs (first, past the last)"


class Columns(OtherRows):
    """Fit ``base`` on some of the columns of X.

    What makes rows of texts names groups of columns (``tagger.features_.groups_``): ``"words"``, ``"pieces"``,
    ``"title words"``, ``"vectors"``. :class:`~tailwise.Tagger` tells each ``Columns`` within its model, wherever it
    stands, which columns its groups are. The wrapped model's scores are passed on unchanged, and explanations speak of
    the columns of X.

    Parameters
    ----------
    base : XMCModel
        The model; it is cloned.
    group : str, list of str or None
        The groups that it reads; None is all.
    columns : list of (int, int) or None
        The ranges of columns, first and past the last; None leaves them to ``group`` and the Tagger.
    n_jobs : int or None
        Threads of the wrapped model; None leaves it its own.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> model = Columns(Centroid(), columns=[(1, 3)]).fit([[9.0, 1, 0], [9, 0, 1]], [[1, 0], [0, 1]])
    >>> model.predict_topk([[9.0, 0.1, 2]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {"group": OrNone(GroupNames()), "columns": OrNone(ColumnRanges())}

    def __init__(
        self,
        base: XMCModel,
        *,
        group: str | list[str] | None = None,
        columns: list[tuple[int, int]] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.base = base
        self.group = group
        self.columns = columns
        self.n_jobs = n_jobs

    @property
    def reads(self) -> str:  # type: ignore[override]
        """What the wrapped model reads; where it reads some columns of many, those are of rows of terms."""
        return self.base.reads if self.group is None and self.columns is None else XMCModel.reads

    @property
    def title(self) -> str:
        """The wrapped model's, and what it reads."""
        groups = [self.group] if isinstance(self.group, str) else self.group or []
        return " on ".join([self.base.title, *([" and ".join(groups)] if groups else [])])

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        if self.columns is None:
            if self.group is None:
                return AS_THEY_ARE
            raise InvalidInput(
                f"group={self.group!r} says nothing about these rows, whose columns have no names; train by a Tagger, "
                "or pass columns=[(first, past the last)]"
            )
        last = max(last for _, last in self.columns)
        if last > X.shape[1]:
            raise InvalidInput(f"columns={self.columns!r} end at {last:,}, but X has {X.shape[1]:,} features")
        return RowView(columns=_flat(self.columns))

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        why = self.base_.explain(x, label)
        return why if self.rows_.columns is None else why.at_columns(self.rows_.columns)

    def _label_weights(self) -> sparse.csr_array:
        weights = self.base_.label_weights()
        if self.rows_.columns is None:
            return weights
        parts = (weights.data, self.rows_.columns[weights.indices].astype(np.int32), weights.indptr)
        return sparse.csr_array(parts, shape=(weights.shape[0], self.n_features_in_))


def resolve_groups(model: XMCModel, groups: Mapping[str, tuple[int, int]]) -> None:
    """Tell every unfitted :class:`Columns` within ``model`` which columns its groups are; others stay as they are.

    >>> from tailwise import Centroid, Ensemble
    >>> both = Ensemble([Columns(Centroid(), group="vectors"), Centroid()])
    >>> resolve_groups(both, {"words": (0, 90), "vectors": (90, 100)})
    >>> both.members[0].columns
    [(90, 100)]
    """
    if isinstance(model, Columns):
        if model.group is not None:
            model.columns = _ranges(model.group, groups)
        if model.columns is not None:
            groups = _within(groups, model.columns)
    for value in model.get_params(deep=False).values():
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, XMCModel):
                resolve_groups(part, groups)


def with_more_columns(model: XMCModel, more: Mapping[str, Ranges]) -> XMCModel:
    """A copy of ``model`` in which every :class:`Columns` also reads the ranges that came to its groups, at the end.

    Arrays are shared; ``model`` stays as it is. The copy has yet to learn from rows with these columns.

    >>> from tailwise import Centroid
    >>> with_more_columns(Columns(Centroid(), group="words", columns=[(0, 2)]), {"words": [(5, 6)]}).columns
    [(0, 2), (5, 6)]
    """
    new = copy(model)
    if isinstance(model, Columns) and model.group is not None:
        names = [model.group] if isinstance(model.group, str) else model.group
        added = [pair for name in names for pair in more.get(name, ())]
        if added and model.columns is not None:
            new.columns = [*model.columns, *added]
            if "rows_" in vars(model):
                new.rows_ = model.rows_._replace(columns=_flat(new.columns))
        return new
    for name, value in vars(model).items():
        if isinstance(value, XMCModel):
            setattr(new, name, with_more_columns(value, more))
        elif isinstance(value, list | tuple) and any(isinstance(part, XMCModel) for part in value):
            parts = [with_more_columns(part, more) if isinstance(part, XMCModel) else part for part in value]
            setattr(new, name, parts)
    return new


def _ranges(group: str | Sequence[str], groups: Mapping[str, tuple[int, int]]) -> list[tuple[int, int]]:
    names = [group] if isinstance(group, str) else list(group)
    for name in names:
        if name not in groups:
            raise InvalidInput(f"group={group!r}: there is no group {name!r} of columns; there are {', '.join(groups)}")
    found = [groups[name] for name in names if groups[name][0] < groups[name][1]]
    if not found:
        raise InvalidInput(f"group={group!r} has no column in these texts; choose another group")
    return found


def _within(groups: Mapping[str, tuple[int, int]], ranges: Ranges) -> dict[str, tuple[int, int]]:
    """Where groups are among the columns of ``ranges``; those that are not all there are left out."""
    columns = _flat(ranges)
    found = {name: np.searchsorted(columns, pair) for name, pair in groups.items()}
    sizes = {name: last - first for name, (first, last) in groups.items()}
    return {name: (int(a), int(b)) for name, (a, b) in found.items() if b - a == sizes[name]}


def _flat(ranges: Ranges) -> np.ndarray:
    """Every column of the ranges once, ascending."""
    return np.unique(np.concatenate([np.arange(first, last, dtype=np.int64) for first, last in ranges]))
