"""Why a label got its score: the words, names and neighbours that spoke for it, and where they stand in the text."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, NamedTuple

from tailwise.data.texts import Texts
from tailwise.errors import InvalidInput, Unsupported
from tailwise.explanation import Explanation, Part
from tailwise.serving import schemas as s
from tailwise.serving.batching import Text
from tailwise.serving.bodies import JSON
from tailwise.serving.operations import Call, Operation
from tailwise.serving.problems import Problem
from tailwise.serving.records import telling_words
from tailwise.serving.served import Served
from tailwise.serving.suggesting import names_language, text_of

WORD, NAME, NEIGHBOUR, OTHER = "word", "name", "neighbour", "other"
_NAMES = "names"
"""The group of columns that are about names of labels."""


class Leaf(NamedTuple):
    """What a score comes from in the end, and how much of it, on the scale of the outermost sum."""

    part: Part
    value: float


def leaves(why: Explanation, scale: float = 1.0) -> list[Leaf]:
    """The innermost parts of an explanation.

    A part that is a function of an explained score passes its own value on to what that score is made of, in
    proportion: a stack's share for a member is divided among the words that made the member's score. A value that is
    all there is (a probability of log-odds) is passed on as it is.
    """
    found = []
    for part in why.parts:
        if part.of is None or math.isinf(part.of.score):
            found.append(Leaf(part, part.value * scale))
            continue
        inner = leaves(part.of)
        known = [leaf for leaf in inner if leaf.part.feature >= 0 or leaf.part.row >= 0]
        size = sum(abs(leaf.value) for leaf in known)
        if len(why.parts) == 1:
            found += [Leaf(leaf.part, leaf.value * scale) for leaf in inner]
        elif size:
            # What holds for every text, such as a bias, spoke for nothing in this one.
            found += [Leaf(leaf.part, leaf.value * scale * abs(part.value) / size) for leaf in known]
        else:
            found.append(Leaf(part, part.value * scale))
    return found


def explained(served: Served, text: Text, uri: str, limit: int, language: str | None) -> dict[str, Any]:
    """What ``explain`` answers; takes as long as some suggestions."""
    label = served.label(uri)
    names = served.names(language)
    rows = [text] if isinstance(text, str) else Texts({name: [value] for name, value in text.items()})
    try:
        why = served.tagger.explain(rows, label)
    except Unsupported as error:
        raise Problem(409, str(error)) from error
    except InvalidInput as error:
        raise Problem(400, str(error)) from error
    parts = _parts(served, rows, why, names[label]) if math.isfinite(why.score) else _unranked(why)
    score = why.score if math.isfinite(why.score) else None
    return {"uri": uri, "label": names[label], "score": score, "parts": parts[:limit]}


def _unranked(why: Explanation) -> list[dict[str, Any]]:
    return [{"part": OTHER, "text": part.name, "contribution": 0.0, "spans": []} for part in why.parts]


def _parts(served: Served, rows: Any, why: Explanation, name: str) -> list[dict[str, Any]]:
    """Words (the same word of title and text is one), the label's name, neighbours and the rest, largest first."""
    features = served.tagger.features_
    assert features is not None
    found = leaves(why)
    of_names = {group for group in features.groups_ if group.startswith(_NAMES)}
    ranges = [features.groups_[group] for group in of_names]
    sums: dict[tuple[str, str], float] = defaultdict(float)
    columns: dict[tuple[str, str], set[int]] = defaultdict(set)
    neighbours: dict[tuple[str, str], int] = {}
    words = sorted({leaf.part.feature for leaf in found if leaf.part.feature >= 0})
    called = dict(zip(words, features.column_names(words), strict=True))
    for part, value in found:
        if part.row >= 0:
            key = (NEIGHBOUR, str(part.row))
            neighbours[key] = part.row
        elif part.feature < 0:
            key = (OTHER, part.name)
        elif any(first <= part.feature < last for first, last in ranges):
            key = (NAME, name)
        else:
            key = (WORD, _plain(called[part.feature], served.fields))
        sums[key] += value
        if part.feature >= 0:
            columns[key].add(part.feature)
    spans = features.spans(rows, words)
    made = []
    for (kind, text), value in sums.items():
        key = (kind, text)
        places = sorted({place for column in columns[key] for place in spans.get(column, ())})
        shown = telling_words(served, neighbours[key]) if key in neighbours else text
        if value and (kind != NAME or places):
            made.append({"part": kind, "text": shown, "contribution": value, "spans": list(map(list, places))})
    kinds = (WORD, NAME, NEIGHBOUR, OTHER)
    return sorted(made, key=lambda one: (one["part"] == OTHER, -abs(one["contribution"]), kinds.index(one["part"])))


def _plain(column: str, fields: list[str]) -> str:
    """A word without the field that its column is of."""
    field, colon, word = column.partition(": ")
    return word if colon and field in fields else column


async def explain(call: Call) -> Any:
    """Why a label got its score."""
    served = call.service.shelf.find(call.path["project_id"])
    text = text_of(served, call.body)
    language = await names_language(call, served, text, call.body.get("language"))
    limit = int(call.body.get("limit", 10))
    return await call.service.batcher.run(explained, served, text, call.body["uri"], limit, language)


_PART = s.record(
    {
        "part": {"type": "string", "enum": [WORD, NAME, NEIGHBOUR, OTHER]},
        "text": s.STRING,
        "contribution": s.NUMBER,
        "spans": s.array(
            s.array(s.INTEGER, minItems=2, maxItems=2),
            description="first character and past the last, in Unicode code points",
        ),
    }
)

OPERATIONS = [
    Operation(
        "POST",
        "/v1/projects/{project_id}/explain",
        explain,
        "Which words, names and neighbours spoke for a label",
        "Suggestions",
        s.record({"uri": s.URI, "label": s.STRING, "score": s.nullable(s.NUMBER), "parts": s.array(_PART)}),
        body={
            JSON: s.record(
                {"uri": s.URI},
                {"text": s.TEXT, "fields": s.FIELDS, "language": s.nullable(s.LANGUAGE), "limit": s.LIMIT},
            )
        },
        problems=(404, 409),
    )
]
