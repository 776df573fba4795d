"""The pages: files of this package, as they are."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from tailwise.serving.problems import Problem

PAGES = Path(__file__).parent / "pages"
_PATHS = {
    "/": "suggest.html",
    "/models/{project_id}": "model.html",
    "/review/{audit}": "review.html",
    "/docs": "docs.html",
}


def routes() -> list[BaseRoute]:
    """The routes of all pages and of what they load."""
    pages: list[BaseRoute] = [Route(path, _page(name), methods=["GET"]) for path, name in _PATHS.items()]
    return [*pages, Mount("/static", StaticFiles(directory=PAGES / "static", check_dir=False), name="static")]


def _page(name: str):  # type: ignore[no-untyped-def]
    async def page(request: Request) -> Response:
        request.scope["operation"] = "page"
        path = PAGES / name
        if not path.exists():
            raise Problem(404, f"this installation has no page {name}")
        return FileResponse(path, media_type="text/html", headers={"Cache-Control": "no-cache"})

    return page
