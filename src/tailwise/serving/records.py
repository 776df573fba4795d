"""Training records that are like a text: which labels others gave where the words were the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput
from tailwise.rows import unit_rows
from tailwise.serving import schemas as s
from tailwise.serving.batching import Text, rows_of
from tailwise.serving.bodies import JSON
from tailwise.serving.operations import Call, Operation
from tailwise.serving.problems import Problem
from tailwise.serving.served import Served
from tailwise.serving.suggesting import names_language, text_of

_WORDS = 12
"""How many words tell what a record is about."""
_NAMES = "names"


def telling_words(served: Served, row: int) -> str:
    """What a training record is about: its words of the highest weight; its number where no records are kept.

    A model keeps its records as numbers, not as texts.
    """
    kept = served.tagger.training_
    if kept is None or row >= kept.X.shape[0]:
        return f"training record {row}"
    x = sparse.csr_array(kept.X[[row]])
    worded = _is_word(served, x.indices)
    columns, weights = x.indices[worded], x.data[worded]
    best = columns[np.argsort(-weights, kind="stable")].tolist()
    assert served.tagger.features_ is not None
    called = served.tagger.features_.column_names(best[: 4 * _WORDS])
    plain = [name.partition(": ")[2] or name for name in called]
    return " ".join(list(dict.fromkeys(plain))[:_WORDS]) or f"training record {row}"


def _is_word(served: Served, columns: np.ndarray) -> np.ndarray:
    """Which columns are of words, not of names of labels."""
    assert served.tagger.features_ is not None
    found = np.ones(columns.size, bool)
    for group, (first, last) in served.tagger.features_.groups_.items():
        if group.startswith(_NAMES):
            found &= (columns < first) | (columns >= last)
    return found


def similar_records(served: Served, text: Text, limit: int, language: str | None) -> dict[str, Any]:
    """The training records nearest to a text by the cosine of their words: O(non-zeros of the training rows)."""
    kept = served.tagger.training_
    if kept is None:
        raise Problem(
            409, f"{served.id} keeps no training records; train it with --keep-training-data", title="No records"
        )
    names = served.names(language)
    try:
        x = sparse.csr_array(served.tagger.rows(rows_of([text])))
    except InvalidInput as error:
        raise Problem(400, str(error)) from error
    x = _words_alone(served, x)
    cosines = _training_lengths(served, kept.X @ x.toarray().ravel())
    best = np.argsort(-cosines, kind="stable")[:limit]
    results = []
    for row in best[cosines[best] > 0].tolist():
        labels = kept.Y.indices[kept.Y.indptr[row] : kept.Y.indptr[row + 1]].tolist()
        results.append(
            {
                "row": row,
                "text": telling_words(served, row),
                "score": float(min(1.0, cosines[row])),
                "labels": [{"uri": served.tagger.label_ids_[label], "label": names[label]} for label in labels],
            }
        )
    return {"results": results}


def _words_alone(served: Served, x: sparse.csr_array) -> sparse.csr_array:
    worded = _is_word(served, x.indices)
    indptr = np.append(0, np.cumsum(worded))[x.indptr]
    return unit_rows(sparse.csr_array((x.data[worded], x.indices[worded], indptr), shape=x.shape))


def _training_lengths(served: Served, products: np.ndarray) -> np.ndarray:
    """Products as cosines: each divided by the length of the record's words, which is found out once."""
    if served.lengths is None:
        kept = served.tagger.training_
        assert kept is not None
        squares = np.where(_is_word(served, kept.X.indices), kept.X.data.astype(np.float64) ** 2, 0.0)
        sums = np.add.reduceat(np.append(squares, 0.0), kept.X.indptr[:-1])
        served.lengths = np.sqrt(np.where(np.diff(kept.X.indptr) > 0, sums, 0.0))
    return np.divide(products, served.lengths, out=np.zeros(products.size), where=served.lengths > 0)


async def similar(call: Call) -> Any:
    """The training records that are like a text."""
    served = call.service.shelf.find(call.path["project_id"])
    text = text_of(served, call.body)
    language = await names_language(call, served, text, call.body.get("language"))
    limit = int(call.body.get("limit", 5))
    return await call.service.batcher.run(similar_records, served, text, min(limit, 100), language)


_RECORD = s.record(
    {
        "row": s.INTEGER,
        "text": {"type": "string", "description": "the words that weigh most in the record"},
        "score": s.NUMBER,
        "labels": s.array(s.record({"uri": s.URI, "label": s.STRING})),
    }
)

OPERATIONS = [
    Operation(
        "POST",
        "/v1/projects/{project_id}/similar",
        similar,
        "Training records that are like a text",
        "Suggestions",
        s.record({"results": s.array(_RECORD)}),
        body={
            JSON: s.record(
                {},
                {
                    "text": s.TEXT,
                    "fields": s.FIELDS,
                    "language": s.nullable(s.LANGUAGE),
                    "limit": {**s.LIMIT, "default": 5},
                },
            )
        },
        problems=(404, 409),
    )
]
