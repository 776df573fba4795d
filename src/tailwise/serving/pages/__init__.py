"""The pages of the service: plain HTML, CSS and JavaScript modules, served as they are, nothing from elsewhere."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""What every page is sent with: no inline script or style, nothing from elsewhere, asked for anew when it changed."""

_HERE = Path(__file__).parent


def routes() -> list[BaseRoute]:
    """The page at ``/``, a model's at ``/models/{id}``, an audit's at ``/review/{audit}``, and their files."""
    return [
        _page("/", "suggest.html"),
        _page("/models/{id}", "model.html"),
        _page("/review/{audit}", "review.html"),
        Route("/static/base.css", _base_style, methods=["GET"]),
        Mount("/static", _Files(directory=_HERE / "static")),
    ]


def _page(path: str, name: str) -> Route:
    async def page(request: Request) -> Response:
        return FileResponse(_HERE / name, headers=HEADERS)

    return Route(path, page, methods=["GET"])


async def _base_style(request: Request) -> Response:
    """The style sheet of reports: what both show looks the same."""
    return FileResponse(Path(str(files("tailwise.pages") / "style.css")), headers=HEADERS)


class _Files(StaticFiles):
    def file_response(self, *arguments: object, **options: object) -> Response:
        found = super().file_response(*arguments, **options)  # type: ignore[arg-type]
        found.headers.update(HEADERS)
        return found
