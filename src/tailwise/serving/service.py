"""The service as one object: its settings, its models, and what answering takes."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from starlette.requests import Request

from tailwise.serving.batching import Batcher
from tailwise.serving.learning import Learning
from tailwise.serving.metrics import Metrics
from tailwise.serving.operations import OPEN, WRITE
from tailwise.serving.problems import Problem
from tailwise.serving.settings import Settings
from tailwise.serving.shelf import Shelf

if TYPE_CHECKING:
    from tailwise.serving.review import Review

_log = logging.getLogger("tailwise.serving")


class Service:
    """What every request is answered with; made once a worker."""

    def __init__(self, settings: Settings, shelf: Shelf | None = None) -> None:
        self.settings = settings
        self.shelf = Shelf(settings) if shelf is None else shelf
        self.metrics = Metrics()
        self.shelf.on_change = self.metrics.model_changed
        self._refreshing = asyncio.Lock()
        self.learning = Learning()
        self.reviews = _open_reviews(settings)
        self.batcher = Batcher(
            max_waiting=settings.max_waiting,
            max_batch=settings.max_batch,
            window=settings.batch_ms / 1000,
            on_batch=self.metrics.batched,
        )

    def check_access(self, request: Request, access: str) -> None:
        """Refuse who does not have the token where it is asked for; compared in a time that tells nothing of it."""
        token = self.settings.token
        if token is None or access == OPEN or (access != WRITE and not self.settings.private):
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
            raise Problem(
                401,
                "this needs the service's token; send it: Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )

    async def refresh(self) -> None:
        """Take in models that changed; one at a time, in a thread."""
        async with self._refreshing:
            await asyncio.to_thread(self.shelf.refresh)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the service runs, folders are watched."""
        if self.settings.allow_learn:
            for served in self.shelf.all():
                self.learning.start(served.source.path)
        watcher = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher
            self.batcher.close()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.settings.watch_seconds or 1.0)
            if not self.settings.watch_seconds:
                continue
            try:
                await self.refresh()
            except Exception:
                _log.exception("looking for changed models failed; it is tried again")


def _open_reviews(settings: Settings) -> dict[str, Review]:
    """The audits that are reviewed; nothing of them is loaded where there are none."""
    if not settings.audits:
        return {}
    from tailwise.serving.review import open_reviews

    return open_reviews(settings.audits)
