"""The pages: files of this package, as they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

PAGES = Path(__file__).parent / "pages"
_FRESH = {"Cache-Control": "no-cache"}
"""Kept, but asked for again: the modules of a page are of one version."""
_PATHS = {
    "/": "suggest.html",
    "/models/{project_id}": "model.html",
    "/review/{audit}": "review.html",
    "/docs": "docs.html",
}


def routes() -> list[BaseRoute]:
    """The routes of all pages and of what they load."""
    pages: list[BaseRoute] = [Route(path, _page(name), methods=["GET"]) for path, name in _PATHS.items()]
    return [
        *pages,
        Route("/static/base.css", _base_style, methods=["GET"]),
        Mount("/static", _Files(directory=PAGES / "static"), name="static"),
    ]


def _page(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        request.scope["operation"] = "page"
        return FileResponse(PAGES / name, media_type="text/html", headers=_FRESH)

    return page


async def _base_style(request: Request) -> Response:
    """The style sheet of reports: what both show looks the same."""
    return FileResponse(Path(str(files("tailwise.pages") / "style.css")), headers=_FRESH)


class _Files(StaticFiles):
    def file_response(self, *arguments: Any, **options: Any) -> Response:
        found = super().file_response(*arguments, **options)
        found.headers.update(_FRESH)
        return found
