"""What Annif's clients ask for: the operations of Annif 1.4's REST API, shape by shape."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import JSONResponse

from tailwise import __version__
from tailwise.errors import InvalidInput
from tailwise.serving import schemas as s
from tailwise.serving.batching import Text
from tailwise.serving.beyond import SUGGEST_BODY, suggest_json
from tailwise.serving.bodies import JSON, MULTIPART, URLENCODED, media_type
from tailwise.serving.learning import check_learns, enqueue, records_of
from tailwise.serving.operations import WRITE, Call, Operation
from tailwise.serving.problems import Problem
from tailwise.serving.served import Served
from tailwise.serving.suggesting import VERSION_HEADER, Wish, choose, rank, with_metadata
from tailwise.text.language import language_scores

MOST_DOCUMENTS = 32
_METADATA = "metadata_"


async def show_info(call: Call) -> Any:
    """What answers, and its version."""
    return {"title": "tailwise REST API", "version": __version__}


async def list_projects(call: Call) -> Any:
    """Every project."""
    return {"projects": [project(served) for served in call.service.shelf.all()]}


async def show_project(call: Call) -> Any:
    """One project."""
    return project(call.service.shelf.find(call.path["project_id"]))


async def list_vocabs(call: Call) -> Any:
    """The vocabulary of each project."""
    return {"vocabs": [vocab(served) for served in call.service.shelf.all()]}


def project(served: Served) -> dict[str, Any]:
    """A project as Annif describes it."""
    return {
        "project_id": served.id,
        "name": served.name,
        "language": served.language,
        "backend": {"backend_id": "tailwise"},
        "vocab": vocab(served),
        "vocab_language": next(iter(served.languages), served.language),
        "is_trained": True,
        "modification_time": served.modified.isoformat(timespec="seconds").replace("+00:00", "Z"),
    }


def vocab(served: Served) -> dict[str, Any]:
    """A project's vocabulary as Annif describes it; without one, its labels."""
    size = served.n_labels if served.vocabulary is None else len(served.vocabulary)
    return {"vocab_id": served.id, "languages": served.languages or [served.language], "size": size, "loaded": True}


async def suggest(call: Call) -> Any:
    """Suggestions for one text: of a form as Annif has it, or of JSON with more wishes."""
    served = call.service.shelf.find(call.path["project_id"])
    if media_type(call.request) == JSON:
        return await suggest_json(call, served)
    metadata = {key[len(_METADATA) :]: value for key, value in call.body.items() if key.startswith(_METADATA)}
    document = {"text": call.body["text"], "metadata": metadata}
    return _answer(served, (await _suggest(call, served, [document], call.body))[0])


async def suggest_batch(call: Call) -> Any:
    """Suggestions for up to 32 texts."""
    served = call.service.shelf.find(call.path["project_id"])
    documents = call.body["documents"]
    results = await _suggest(call, served, documents, call.query)
    return _answer(
        served,
        [
            {**found, "document_id": document.get("document_id")}
            for found, document in zip(results, documents, strict=True)
        ],
    )


def _answer(served: Served, found: Any) -> JSONResponse:
    return JSONResponse(found, headers={VERSION_HEADER: served.version[:12]})


async def _suggest(
    call: Call, served: Served, documents: list[dict[str, Any]], asked: dict[str, Any]
) -> list[dict[str, Any]]:
    names = served.names(asked.get("language"))
    wish = Wish(int(asked.get("limit", 10)), asked.get("threshold", 0.0))
    texts: list[Text] = [with_metadata(served, one["text"], one.get("metadata") or {}) for one in documents]
    chosen = [choose(served, ranking, wish) for ranking in await rank(call, served, texts, wish)]
    return [
        {"results": [served.result(label, score, names) for label, score in zip(one.labels, one.scores, strict=True)]}
        for one in chosen
    ]


async def learn(call: Call) -> Any:
    """New records, learnt in the background."""
    served = call.service.shelf.find(call.path["project_id"])
    if not call.service.settings.allow_learn:
        raise Problem(
            403, f"{served.id} does not learn here; start the service with --allow-learn", title="Learning not allowed"
        )
    check_learns(served)
    records = records_of(served, call.body)
    if records:
        await asyncio.to_thread(enqueue, served.source.path, records)
        call.service.learning.start(served.source.path)


async def detect_language(call: Call) -> Any:
    """How probable each of some languages is."""
    try:
        scores = await call.service.batcher.run(language_scores, call.body["text"], call.body["languages"])
    except InvalidInput:
        raise Problem(400, "unsupported candidate languages", title="Bad Request") from None
    return {"results": [{"language": language, "score": score} for language, score in scores.items()]}


VOCAB = s.record({"vocab_id": s.STRING}, {"languages": s.array(s.STRING), "size": s.INTEGER, "loaded": s.BOOLEAN})
PROJECT = s.record(
    {
        "project_id": s.STRING,
        "name": s.STRING,
        "language": s.STRING,
        "backend": s.record({"backend_id": s.STRING}),
    },
    {
        "vocab": VOCAB,
        "vocab_language": s.STRING,
        "is_trained": s.BOOLEAN,
        "modification_time": {"type": "string", "format": "date-time"},
    },
)
FORM = s.record(
    {"text": s.TEXT},
    {"limit": s.LIMIT, "threshold": s.THRESHOLD, "language": s.LANGUAGE},
    additionalProperties={"type": "string", "description": "metadata, by names that begin with metadata_"},
)
DOCUMENT = s.record(
    {"text": s.STRING},
    {"document_id": s.STRING, "metadata": {"type": "object", "additionalProperties": s.STRING}},
)
INDEXED = s.record(
    {},
    {
        "text": s.STRING,
        "metadata": {"type": "object", "additionalProperties": s.STRING},
        "subjects": s.array(s.record({"uri": s.STRING}, {"label": s.STRING})),
    },
)
_PROJECTS, _ONE = "/v1/projects", "/v1/projects/{project_id}"

OPERATIONS = [
    Operation(
        "GET", "/v1/", show_info, "What answers here", "Projects", s.record({"title": s.STRING, "version": s.STRING})
    ),
    Operation("GET", _PROJECTS, list_projects, "All projects", "Projects", s.record({"projects": s.array(PROJECT)})),
    Operation("GET", _ONE, show_project, "One project", "Projects", PROJECT, problems=(404,)),
    Operation("GET", "/v1/vocabs", list_vocabs, "All vocabularies", "Projects", s.record({"vocabs": s.array(VOCAB)})),
    Operation(
        "POST",
        f"{_ONE}/suggest",
        suggest,
        "Suggest labels for a text",
        "Suggestions",
        s.RESULTS,
        body={URLENCODED: FORM, MULTIPART: FORM, JSON: SUGGEST_BODY},
        problems=(404, 409, 503),
    ),
    Operation(
        "POST",
        f"{_ONE}/suggest-batch",
        suggest_batch,
        "Suggest labels for up to 32 texts",
        "Suggestions",
        s.array(s.record({"results": s.array(s.SUGGESTION)}, {"document_id": s.nullable(s.STRING)})),
        body={JSON: s.record({"documents": s.array(DOCUMENT, maxItems=MOST_DOCUMENTS)})},
        query=s.record({}, {"limit": s.LIMIT, "threshold": s.THRESHOLD, "language": s.LANGUAGE}),
        problems=(404, 503),
    ),
    Operation(
        "POST",
        f"{_ONE}/learn",
        learn,
        "Learn from records with their labels, in the background",
        "Learning",
        None,
        body={JSON: s.array(INDEXED)},
        access=WRITE,
        problems=(403, 404, 409, 503),
    ),
    Operation(
        "POST",
        "/v1/detect-language",
        detect_language,
        "Which of some languages a text is in",
        "Languages",
        s.record({"results": s.array(s.record({"language": s.nullable(s.STRING), "score": s.NUMBER}))}),
        body={
            JSON: s.record(
                {
                    "text": s.STRING,
                    "languages": s.array({"type": "string", "minLength": 2, "maxLength": 3}, minItems=1, maxItems=5),
                }
            )
        },
    ),
]
