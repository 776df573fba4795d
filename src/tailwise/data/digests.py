"""Knowing rows again without keeping them: eight bytes for each text or row of X that a model was trained on."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

_BYTES = 8


def row_digests(rows: Any) -> np.ndarray:
    """A number for each text or row of X: (n_rows,) uint64, 0 for what is empty.

    Texts that differ in spaces alone have the same one. Two different rows share one by chance about once in 10^19
    pairs. From a digest nobody gets back a text, but whoever has a text can tell whether it was there.

    >>> a, b, c = row_digests(["law of the sea", "law  of the sea\\n", ""]).tolist()
    >>> a == b, c
    (True, 0)
    """
    whole = b"".join(
        blake2b(row, digest_size=_BYTES).digest() if row else bytes(_BYTES) for row in _bytes_of_rows(rows)
    )
    return np.frombuffer(whole, np.dtype("<u8")).astype(np.uint64)


def known_digests(rows: Any) -> np.ndarray:
    """What a model keeps of its training rows: their digests, sorted, each once, none for empty rows."""
    found = np.unique(row_digests(rows))
    return found[found != 0]


def count_known(rows: Any, known: np.ndarray) -> int:
    """How many rows are among those whose digests are ``known``.

    >>> count_known(["sea", "tax"], known_digests(["sea", "law"]))
    1
    """
    return int(np.isin(row_digests(rows), known).sum())


def _bytes_of_rows(rows: Any) -> Iterator[bytes]:
    if not (sparse.issparse(rows) or isinstance(rows, np.ndarray)):
        yield from (" ".join(text.split()).encode("utf-8", "surrogatepass") for text in rows)
        return
    X = sparse.csr_array(rows, dtype=np.float32)
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    indices, values = X.indices.astype("<i8"), X.data.astype("<f4")
    for first, last in pairwise(X.indptr.tolist()):
        yield indices[first:last].tobytes() + values[first:last].tobytes()
