"""Texts as people hand them over: lists, tables, and records whose fields are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from scipy import sparse

from tailwise.data.vectors import check_vectors
from tailwise.errors import InvalidInput, argument

ONLY_FIELD = "text"
"""What the field of texts is called of which nobody said that they have several."""


class Texts(Sequence[str]):
    """Texts of several fields: a sequence of strings, each its fields joined by line breaks, empty ones left out.

    Takes the place of a list of texts everywhere. What knows of fields finds them in ``fields``.

    Parameters
    ----------
    fields : dict from str to list of str
        The texts of each field, in the order in which they are joined.
    vectors : (n_texts, dim) array or None
        A dense vector of each text, which :class:`~tailwise.text.GivenVectors` makes columns of.

    Examples
    --------
    >>> texts = Texts({"title": ["Law of the sea", "Fish"], "abstract": ["On ships.", ""]})
    >>> texts[0], texts[1]
    ('Law of the sea\\nOn ships.', 'Fish')
    >>> texts[1:].fields
    {'title': ['Fish'], 'abstract': ['']}
    """

    def __init__(self, fields: Mapping[str, Sequence[str]], vectors: np.ndarray | None = None) -> None:
        if not fields:
            raise InvalidInput("fields={} has no field; pass at least one: {'title': […]}")
        self.fields = {str(name): _strings(texts, name) for name, texts in fields.items()}
        sizes = {name: len(texts) for name, texts in self.fields.items()}
        if len(set(sizes.values())) > 1:
            raise InvalidInput(f"fields have different lengths: {sizes}; pass a text, or '', for each row")
        self.vectors = None if vectors is None else check_vectors(np.asanyarray(vectors), len(self))

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> Texts: ...
    def __getitem__(self, row: int | slice) -> str | Texts:
        if isinstance(row, slice):
            return self._made(lambda texts: texts[row], row)
        return "\n".join(filter(None, (texts[row] for texts in self.fields.values())))

    def __iter__(self) -> Iterator[str]:
        if len(self.fields) == 1:
            return iter(next(iter(self.fields.values())))
        return ("\n".join(filter(None, row)) for row in zip(*self.fields.values(), strict=True))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Texts):
            return self.fields == other.fields
        return list(self) == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Texts({len(self):,} texts with {', '.join(self.fields)})"

    def take(self, rows: np.ndarray) -> Texts:
        """Some of the texts, by number."""
        chosen = rows.tolist()
        return self._made(lambda texts: [texts[row] for row in chosen], rows)

    def _made(self, choose: Callable[[list[str]], list[str]], rows: slice | np.ndarray) -> Texts:
        made = Texts.__new__(Texts)
        made.vectors = None if self.vectors is None else self.vectors[rows]
        made.fields = {name: choose(texts) for name, texts in self.fields.items()}
        return made


def in_fields(texts: Sequence[str], names: Sequence[str]) -> dict[str, list[str]]:
    """The texts of each of these fields, which are those that a model was trained with.

    A field that texts do not have is empty, and texts that have several others alone are refused. A plain string has
    none to tell: its first line is the first field and all others are the second, so that joined texts fall apart as
    they were joined.

    >>> in_fields(["Law of the sea\\nOn ships.\\nAnd ports.", "Fish"], ["title", "abstract"])
    {'title': ['Law of the sea', 'Fish'], 'abstract': ['On ships.\\nAnd ports.', '']}
    """
    if isinstance(texts, Texts) and set(texts.fields) & set(names):
        return {name: texts.fields.get(name) or [""] * len(texts) for name in names}
    if isinstance(texts, Texts) and len(texts.fields) > 1:
        raise InvalidInput(
            f"texts have the fields {', '.join(texts.fields)}, but these are wanted: {', '.join(names)}; "
            f"read the same ones: {argument('text_columns', list(names))}"
        )
    if len(names) == 1:
        return {names[0]: list(texts)}
    cut = [text.split("\n", 1) for text in texts]
    found = {name: [""] * len(cut) for name in names}
    found[names[0]] = [lines[0] for lines in cut]
    found[names[1]] = [lines[1] if len(lines) > 1 else "" for lines in cut]
    return found


def take_texts(texts: Sequence[str], rows: np.ndarray) -> Sequence[str]:
    """Some of the texts, by number, with their fields where they have any."""
    return texts.take(rows) if isinstance(texts, Texts) else [texts[row] for row in rows.tolist()]


def is_numeric(rows: Any) -> bool:
    """Whether these are rows of X, not texts: a sparse matrix, or a 2-D array."""
    return sparse.issparse(rows) or (isinstance(rows, np.ndarray) and rows.ndim == 2)


def check_texts(texts: Any) -> Sequence[str]:
    """``texts`` as a list of str, or as they are where they know their fields; a table's columns become fields.

    A single string is refused, because its letters would become rows. A missing cell of a table is empty.
    """
    if isinstance(texts, Texts):
        return texts
    if isinstance(texts, str):
        raise InvalidInput("texts is a single string; pass a list of texts: [text]")
    if hasattr(texts, "columns"):
        return Texts({str(name): [_cell(value, name) for value in texts[name]] for name in texts.columns})
    texts = list(texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInput(f"texts has {text!r} at row {row:,}; every text must be a string, a missing one ''")
    return texts


def _strings(texts: Sequence[str], field: str) -> list[str]:
    try:
        return list(check_texts(texts))
    except InvalidInput as error:
        raise InvalidInput(f"fields[{field!r}]: {error}") from error


def _cell(value: Any, column: Any) -> str:
    if isinstance(value, str):
        return value
    # None, and the NaN that stands for a missing cell.
    if value is None or value != value:
        return ""
    raise InvalidInput(f"texts has {value!r} in column {column!r}; choose the columns that are texts: table[['title']]")
