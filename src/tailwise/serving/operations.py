"""What can be asked: one table of operations, from which come routes, checks of requests and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jsonschema_rs import Draft202012Validator
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tailwise.serving.bodies import as_schema, read_body
from tailwise.serving.problems import Problem

if TYPE_CHECKING:
    from tailwise.serving.service import Service

Schema = dict[str, Any]
READ, WRITE, OPEN = "read", "write", "open"
"""Who may ask: with the token where reads need one; always with the token where there is one; everybody."""


@dataclass
class Call:
    """One request, checked."""

    service: Service
    request: Request
    path: dict[str, str]
    query: dict[str, Any]
    body: Any


@dataclass(frozen=True)
class Operation:
    """What is asked how, and what is answered."""

    method: str
    path: str
    handler: Callable[[Call], Awaitable[Any]]
    summary: str
    tag: str
    answer: Schema | None
    """The schema of the answer; None where it is empty, 204."""
    body: dict[str, Schema] = field(default_factory=dict)
    """A schema for each media type that the request may have."""
    query: Schema = field(default_factory=lambda: {"type": "object", "properties": {}})
    access: str = READ
    problems: tuple[int, ...] = ()
    media_type: str = "application/json"
    description: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called in the OpenAPI document and in the metrics."""
        return self.handler.__name__

    def route(self, service: Service) -> Route:
        """The route that answers it."""
        validators = {kind: Draft202012Validator(schema) for kind, schema in self.body.items()}
        query_validator = Draft202012Validator(self.query)

        async def endpoint(request: Request) -> Response:
            request.scope["operation"] = self.name
            service.check_access(request, self.access)
            query = as_schema(dict(request.query_params), self.query)
            if query or "required" in self.query:
                check(query_validator, query, "the query")
            body = None
            if self.body:
                settings = service.settings
                body = await read_body(request, self.body, settings.max_body, settings.request_seconds)
                validator = next(iter(validators.values())) if len(validators) == 1 else None
                check(validator or _chosen(validators, request), body, "the body")
            found = await self.handler(Call(service, request, request.path_params, query, body))
            if isinstance(found, Response):
                return found
            return Response(status_code=204) if found is None else JSONResponse(found)

        return Route(self.path, endpoint, methods=[self.method], name=self.name)


def _chosen(validators: dict[str, Draft202012Validator], request: Request) -> Draft202012Validator:
    from tailwise.serving.bodies import media_type

    return validators.get(media_type(request)) or next(iter(validators.values()))


def check(validator: Draft202012Validator, value: Any, where: str) -> None:
    """Refuse a value that its schema does not allow, saying which part is wrong."""
    if validator.is_valid(value):
        return
    error = next(iter(validator.iter_errors(value)))
    place = ".".join(map(str, error.instance_path))
    raise Problem(400, f"{where}{f', {place}' if place else ''}: {_shortened(error.message)}", title="Bad Request")


def _shortened(message: str) -> str:
    return message if len(message) <= 300 else f"{message[:140]} … {message[-140:]}"
