"""Labels by name: lists of labels and tables as binary matrices whose columns have names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput
from tailwise.validation import feature_names


def named_labels(Y: Any) -> tuple[Any, np.ndarray | None]:
    """Y as a matrix with the names of its columns: of a table its own, of lists of labels their sorted names.

    Any other Y stays as it is and has no names.

    >>> Y, names = named_labels([["tax", "law"], ["fish"], []])
    >>> names.tolist(), Y.toarray().astype(int).tolist()
    (['fish', 'law', 'tax'], [[0, 1, 1], [1, 0, 0], [0, 0, 0]])
    """
    names = feature_names(Y)
    if names is not None:
        return Y, names
    lists = label_lists(Y)
    if lists is None:
        return Y, None
    ids = sorted(set().union(*lists))
    return encode_labels(lists, ids), np.asarray(ids, dtype=np.str_)


def indicator(labels: Iterable[Iterable[str]]) -> tuple[sparse.csr_array, list[str]]:
    """Label lists as a binary matrix with the sorted ids of its columns.

    >>> Y, ids = indicator([["b", "a"], []])
    >>> ids, Y.toarray().tolist()
    (['a', 'b'], [[1.0, 1.0], [0.0, 0.0]])
    """
    rows = []
    for row, found in enumerate(labels):
        if isinstance(found, str):
            raise InvalidInput(f"labels has the string {found!r} at row {row:,}; pass a list of labels for each text")
        rows.append(sorted({str(label) for label in found}))
    ids = sorted(set().union(*rows)) if rows else []
    if not ids:
        raise InvalidInput("no row has a label; a model needs rows with labels to learn from")
    return encode_labels(rows, ids), ids


def known_labels(Y: Any, names: np.ndarray | None) -> tuple[Any, np.ndarray]:
    """Lists of labels as a matrix with the columns ``names``, and how many labels of each row are none of them.

    Any other Y stays as it is.

    >>> Y, unknown = known_labels([["law", "sea"], ["fish"]], np.array(["fish", "law"]))
    >>> Y.toarray().astype(int).tolist(), unknown.tolist()
    ([[0, 1], [1, 0]], [1, 0])
    """
    lists = None if names is None else label_lists(Y)
    if names is None or lists is None:
        return Y, np.zeros(1, np.int64)
    known = set(names.tolist())
    kept = [[label for label in row if label in known] for row in lists]
    unknown = np.array([len(row) - len(own) for row, own in zip(lists, kept, strict=True)])
    return encode_labels(kept, names.tolist()), unknown


def more_labels(Y: Any, names: np.ndarray | None) -> tuple[Any, np.ndarray | None]:
    """Y with the columns ``names``, then those of its own that are not among them; and the names of all.

    Without ``names``, or where Y has none, Y stays as it is.

    >>> Y, names = more_labels([["sea", "law"], ["fish"]], np.array(["fish", "law"]))
    >>> names.tolist(), Y.toarray().astype(int).tolist()
    (['fish', 'law', 'sea'], [[0, 1, 1], [1, 0, 0]])
    """
    if names is None:
        return Y, None
    Y, own = named_labels(Y)
    if own is None:
        return Y, names
    known = {name: place for place, name in enumerate(names.tolist())}
    new = [name for name in own.tolist() if name not in known]
    place = known | {name: len(known) + n for n, name in enumerate(new)}
    columns = sparse.coo_array(Y if sparse.issparse(Y) else np.asarray(Y, np.float32))
    moved = np.array([place[name] for name in own.tolist()], np.int64)[columns.coords[1]]
    shape = (columns.shape[0], len(place))
    wide = sparse.csr_array((columns.data, (columns.coords[0], moved)), shape=shape)
    return wide, np.concatenate([names, np.asarray(new, dtype=np.str_)]) if new else names


def label_lists(Y: Any) -> list[list[str]] | None:
    """Y as one sorted list of distinct labels a row where it is lists of strings; None where it is something else."""
    if isinstance(Y, str) or sparse.issparse(Y) or not isinstance(Y, Iterable) or getattr(Y, "ndim", 1) != 1:
        return None
    rows = list(Y)
    if any(isinstance(row, str) for row in rows):
        bad = next(row for row in rows if isinstance(row, str))
        raise InvalidInput(
            f"Y has the string {bad[:40]!r} where a row's labels were expected; pass a list for each row: "
            f"[{bad[:40]!r}], or a binary matrix"
        )
    if not all(isinstance(row, list | tuple | set | frozenset) for row in rows):
        return None
    if not any(isinstance(label, str) for row in rows for label in row):
        return None
    return [sorted({str(label) for label in row}) for row in rows]


def encode_labels(labels: Sequence[Sequence[str]], ids: Sequence[str]) -> sparse.csr_array:
    """Lists of labels as a binary (rows, len(ids)) matrix.

    >>> encode_labels([["b"], ["a", "b"]], ["a", "b"]).toarray()
    array([[0., 1.],
           [1., 1.]], dtype=float32)
    """
    column = {label: place for place, label in enumerate(ids)}
    cuts = np.cumsum([0, *(len(row) for row in labels)])
    columns = np.fromiter((column[label] for row in labels for label in row), np.int32, int(cuts[-1]))
    matrix = sparse.csr_array(
        (np.ones(columns.size, np.float32), columns, cuts.astype(np.int32)), shape=(len(labels), len(ids))
    )
    matrix.sort_indices()
    return matrix
