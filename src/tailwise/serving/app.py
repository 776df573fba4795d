"""The ASGI application: operations, pages and what stands around every request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tailwise.serving import annif_api, audits, card, documentation, explaining, health, labels, records, web
from tailwise.serving.around import Around
from tailwise.serving.operations import Operation
from tailwise.serving.problems import Problem
from tailwise.serving.service import Service
from tailwise.serving.suggesting import VERSION_HEADER

OPERATIONS: list[Operation] = [
    operation
    for part in (annif_api, explaining, records, labels, card, audits, health, documentation)
    for operation in part.OPERATIONS
]
"""All that can be asked."""


def create_app(service: Service) -> Starlette:
    """The application that answers with ``service``, whose models are open."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with service.running():
            yield

    routes = [operation.route(service) for operation in OPERATIONS]
    app = Starlette(
        routes=[*routes, *web.routes()],
        middleware=[
            Middleware(Around, service=service),
            Middleware(
                CORSMiddleware,
                allow_origins=list(service.settings.origins),
                allow_methods=["GET", "POST"],
                allow_headers=["Authorization", "Content-Type"],
                expose_headers=[VERSION_HEADER, "Retry-After"],
            ),
        ],
        exception_handlers={Problem: _problem, HTTPException: _http, ClientDisconnect: _gone},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.service = service
    return app


async def _problem(request: Request, problem: Any) -> Response:
    return problem.response()


async def _http(request: Request, error: Any) -> Response:
    """What Starlette or a part of the service says is wrong, in the form that all problems have."""
    headers = dict(error.headers or {})
    detail = f"there is nothing at {request.url.path}" if error.detail == "Not Found" else error.detail
    return Problem(error.status_code, detail, headers=headers).response()


async def _gone(request: Request, error: Any) -> Response:
    """Nobody waits for the answer."""
    return Response(status_code=400)
