"""Texts as people hand them over."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput


def is_numeric(rows: Any) -> bool:
    """Whether these are rows of X, not texts: a sparse matrix, or a 2-D array."""
    return sparse.issparse(rows) or (isinstance(rows, np.ndarray) and rows.ndim == 2)


def check_texts(texts: Any) -> list[str]:
    """``texts`` as a list of str; a table's text columns are joined by a line break, a missing cell is empty.

    A single string is refused, because its letters would become rows.
    """
    if isinstance(texts, str):
        raise InvalidInput("texts is a single string; pass a list of texts: [text]")
    if hasattr(texts, "columns"):
        columns = [[_cell(value, name) for value in texts[name]] for name in texts.columns]
        return ["\n".join(filter(None, row)) for row in zip(*columns, strict=True)]
    texts = list(texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInput(f"texts has {text!r} at row {row:,}; every text must be a string, a missing one ''")
    return texts


def _cell(value: Any, column: Any) -> str:
    if isinstance(value, str):
        return value
    # None, and the NaN that stands for a missing cell.
    if value is None or value != value:
        return ""
    raise InvalidInput(f"texts has {value!r} in column {column!r}; choose the columns that are texts: table[['title']]")
