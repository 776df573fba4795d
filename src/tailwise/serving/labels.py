"""Labels by what people type of their names: the beginning of it before a word in it before any part of it."""

from __future__ import annotations

import unicodedata
from typing import Any, NamedTuple

import numpy as np

from tailwise.serving import schemas as s
from tailwise.serving.operations import Call, Operation
from tailwise.serving.served import UNSEEN, Served
from tailwise.vocabulary import Vocabulary

_MOST = 200


def folded(text: str) -> str:
    """The text without case and diacritics.

    >>> folded("Öl Straße")
    'ol strasse'
    """
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in apart if not unicodedata.combining(character))


class Names(NamedTuple):
    """All names that can be typed, folded, and whose they are: columns of the model, or below zero what it lacks."""

    text: list[str]
    owner: list[int]


def names_to_type(served: Served) -> Names:
    """The labels' names and synonyms in every language, made once; concepts that the model lacks count too."""
    vocabulary = served.vocabulary
    text = [folded(name) for name in served.tagger.label_names_]
    owner = list(range(len(text)))
    if vocabulary is not None:
        place = served.place
        columns = [place.get(uri, -1 - number) for number, uri in enumerate(vocabulary.ids)]
        concepts = vocabulary.terms.concept.tolist()
        text += map(folded, vocabulary.terms.text)
        owner += [columns[concept] for concept in concepts]
    return Names(text, owner)


def find_labels(served: Served, query: str, language: str | None, limit: int) -> list[dict[str, Any]]:
    """The labels with a name that has ``query`` in it, best first: frequent ones before rare ones of the same kind."""
    names = served.typed(names_to_type)
    called = served.names(language)
    wanted = folded(query.strip())
    ranks: dict[int, int] = {}
    for text, owner in zip(names.text, names.owner, strict=True):
        at = text.find(wanted)
        if at < 0:
            continue
        rank = 0 if text == wanted else 1 if at == 0 else 2 if not text[at - 1].isalnum() else 3
        if rank < ranks.get(owner, 4):
            ranks[owner] = rank
    counts = served.counts
    order = sorted(ranks, key=lambda owner: (ranks[owner], -(counts[owner] if owner >= 0 else -1), owner))
    return [_shown(served, owner, called, language) for owner in order[:limit]]


def _shown(served: Served, owner: int, called: list[str], language: str | None) -> dict[str, Any]:
    if owner >= 0:
        uri, name, notation = served.tagger.label_ids_[owner], called[owner], served.notations[owner]
        return {
            "uri": uri,
            "label": name,
            "notation": notation,
            "count": served.counts[owner],
            "rarity": served.rarity(owner),
        }
    vocabulary, concept = served.vocabulary, -1 - owner
    assert isinstance(vocabulary, Vocabulary)
    name = vocabulary.preferred_names(language if language in served.languages else None)[concept]
    notation = vocabulary.notations[concept] or None
    return {"uri": vocabulary.ids[concept], "label": name, "notation": notation, "count": 0, "rarity": UNSEEN}


async def labels(call: Call) -> Any:
    """Labels by a part of their names."""
    served = call.service.shelf.find(call.path["project_id"])
    query, limit = call.query.get("q", ""), min(int(call.query.get("limit", 20)), _MOST)
    language = call.query.get("language") or None
    return {"results": await call.service.batcher.run(find_labels, served, query, language, limit)}


def rarity_counts(served: Served) -> dict[str, int]:
    """How many labels are how rare."""
    unseen = int((np.asarray(served.counts) == 0).sum())
    found = dict.fromkeys(("head", "torso", "tail"), 0)
    for label in np.flatnonzero(np.asarray(served.counts)).tolist():
        found[served.rarity(label)] += 1
    return {**found, UNSEEN: unseen}


_LABEL = s.record({"uri": s.URI, "label": s.STRING, "notation": s.NOTATION, "count": s.INTEGER, "rarity": s.RARITY})

OPERATIONS = [
    Operation(
        "GET",
        "/v1/projects/{project_id}/labels",
        labels,
        "Labels by a part of their names",
        "Labels",
        s.record({"results": s.array(_LABEL)}),
        query=s.record({}, {"q": s.STRING, "language": s.LANGUAGE, "limit": {**s.LIMIT, "default": 20}}),
        problems=(404,),
    )
]
