"""What a client did wrong, or what the service cannot do now: ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import JSONResponse

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """An answer that is an error; ``detail`` says what is wrong and how to right it.

    >>> Problem(404, "there is no project 'x'").title
    'Not Found'
    """

    def __init__(
        self, status: int, detail: str, *, title: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers
        self.title = title or HTTPStatus(status).phrase

    def response(self) -> JSONResponse:
        """The problem as a response."""
        content = {"type": "about:blank", "title": self.title, "status": self.status, "detail": self.detail}
        return JSONResponse(content, self.status, headers=self.headers, media_type=MEDIA_TYPE)


def overloaded(detail: str, seconds: int = 1) -> Problem:
    """503, with the time after which it is worth another try."""
    return Problem(503, detail, headers={"Retry-After": str(seconds)})
