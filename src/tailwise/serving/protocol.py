"""HTTP on a connection, as uvicorn speaks it, for clients that may be slow on purpose."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = float(os.environ.get("TAILWISE_SERVE_HEAD_SECONDS", "10"))
"""In which a request's head must have arrived once it has begun."""
MOST_HEADER_BYTES = 65_536


class PatientProtocol(HttpToolsProtocol):
    """Closes a connection whose request's head takes too long or is too large.

    uvicorn waits for ever for the end of a head that began: a client that sends a byte a minute would hold a connection
    as long as it likes. Bodies have a bound of their own, in :func:`tailwise.serving.bodies.read_bytes`.
    """

    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """The first head is due."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """More of a head or of a body."""
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._await_head()
        if self._deadline is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        # Still no end of the head: what came so far is all head.
        if self._deadline is not None and self._head_bytes > MOST_HEADER_BYTES and self.transport is not None:
            self.send_400_response("The request's head is too large.")

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._forget_deadline()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is due any more."""
        self._forget_deadline()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()
