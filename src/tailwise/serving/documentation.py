"""The OpenAPI document, made of the table of operations, and the page that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from tailwise import __version__
from tailwise.serving import schemas as s
from tailwise.serving.operations import OPEN, WRITE, Call, Operation
from tailwise.serving.problems import MEDIA_TYPE


async def openapi(call: Call) -> Any:
    """This document."""
    from tailwise.serving.app import OPERATIONS as ALL

    return document(ALL)


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """OpenAPI 3.1 of these operations."""
    paths: dict[str, Any] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tailwise",
            "version": __version__,
            "summary": "Labels for texts, the rare ones included. What Annif's clients ask for, and more.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {"Problem": s.PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    if operation.answer is None:
        responses["204"] = {"description": "Done, or taken on"}
    else:
        responses["200"] = {
            "description": "The answer",
            "content": {operation.media_type: {"schema": operation.answer}},
        }
    for status in sorted(_problems(operation)):
        responses[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": [*_path_parameters(operation), *_query_parameters(operation)],
        "responses": responses,
    }
    if operation.access != OPEN:
        found["security"] = [{"token": []}] if operation.access == WRITE else [{}, {"token": []}]
    if operation.body:
        content = {kind: {"schema": schema} for kind, schema in operation.body.items()}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _problems(operation: Operation) -> set[int]:
    found = set(operation.problems)
    if operation.body:
        found |= {400, 408, 413, 415}
    if operation.query["properties"]:
        found.add(400)
    if operation.access != OPEN:
        found.add(401)
    return found


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": s.STRING} for name in names]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    required = operation.query.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": schema}
        for name, schema in operation.query["properties"].items()
    ]


OPERATIONS = [
    Operation("GET", "/openapi.json", openapi, "This document, OpenAPI 3.1", "Running", {"type": "object"}, access=OPEN)
]
