"""What stands around every request: counts, times, a line of log, safe headers."""

from __future__ import annotations

import logging
import time
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tailwise.serving.problems import Problem
from tailwise.serving.service import Service

_log = logging.getLogger("tailwise.serving.access")
_QUIET = ("/healthz", "/readyz", "/metrics")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Around:
    """ASGI middleware; what breaks inside becomes a problem, is logged whole, and tells the client nothing of it."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        metrics = self.service.metrics
        start, status = time.perf_counter(), 500
        metrics.began()

        async def told(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, receive, told)
        except Problem as problem:
            await problem.response()(scope, receive, told)
        except Exception:
            _log.exception("a request failed", extra={"path": scope["path"]})
            if status == 500:
                await Problem(500, "this should not have happened; it was logged").response()(scope, receive, told)
        finally:
            seconds = time.perf_counter() - start
            metrics.answered(scope.get("operation", "other"), status, seconds)
            if not self.service.settings.quiet and scope["path"] not in _QUIET:
                _log.info("request", extra=_facts(scope, status, seconds))


def _facts(scope: Scope, status: int, seconds: float) -> dict[str, Any]:
    client = scope.get("client")
    return {
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "ms": round(1000 * seconds, 2),
        "client": client[0] if client else None,
    }
