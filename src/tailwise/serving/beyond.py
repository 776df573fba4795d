"""What is asked for beyond Annif: suggestions as a page needs them, the card, and labels by the beginning of a name."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from tailwise.serving import schemas as s
from tailwise.serving.operations import Call
from tailwise.serving.served import Served
from tailwise.serving.suggesting import VERSION_HEADER, Wish, choose, names_language, rank, text_of

SUGGEST_BODY = s.record(
    {},
    {
        "text": s.TEXT,
        "fields": s.FIELDS,
        "limit": s.LIMIT,
        "threshold": s.THRESHOLD,
        "language": s.nullable(s.LANGUAGE),
        "languages": {"type": ["array", "null"], "items": s.STRING, "maxItems": 50},
        "tail": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "exclude": s.array(s.URI, maxItems=1000),
        "assign": {"type": ["string", "null"], "examples": ["f1", "precision>=0.8"]},
    },
)


async def suggest_json(call: Call, served: Served) -> Any:
    """Suggestions with counts, rarity, links, names in several languages, and which are assigned."""
    body = call.body
    text = text_of(served, body)
    wish = Wish(
        int(body.get("limit", 10)),
        body.get("threshold", 0.0),
        body.get("tail"),
        frozenset(body.get("exclude", ())),
        body.get("assign"),
    )
    language = await names_language(call, served, text, body.get("language"))
    names = served.names(language)
    others = {one: served.names(one) for one in body.get("languages") or ()}
    chosen = choose(served, (await rank(call, served, [text], wish))[0], wish)
    results = []
    for place, (label, score) in enumerate(zip(chosen.labels, chosen.scores, strict=True)):
        found = served.result(label, score, names) | described(served, label)
        if others:
            found["labels"] = {one: named[label] for one, named in others.items()}
        if chosen.assigned is not None:
            found["assigned"] = chosen.assigned[place]
        results.append(found)
    return JSONResponse({"language": language, "results": results}, headers={VERSION_HEADER: served.version[:12]})


def described(served: Served, label: int) -> dict[str, Any]:
    """What a page shows of a label beside its names."""
    uri = served.tagger.label_ids_[label]
    return {
        "count": served.counts[label],
        "rarity": served.rarity(label),
        "link": uri if uri.startswith(("http://", "https://")) else None,
    }
