"""Who takes a new connection: of all workers that listen on one socket, the one that has fewest."""

from __future__ import annotations

import asyncio
import logging
import mmap
import socket
from collections.abc import Callable
from typing import Any

_log = logging.getLogger("tailwise.serving")
_POLITE_SECONDS = 0.002
"""So long a worker leaves a connection to those that have fewer."""
_BREATH_SECONDS = 1.0
"""Before another connection is taken when there are no more files to be had."""
_ABSENT = -1


class Crowd:
    """How many connections each worker has, in memory that all share: made before workers are forked.

    >>> crowd = Crowd(2)
    >>> crowd.tell(0, 5)
    >>> crowd.fewest()
    5
    >>> crowd.tell(1, 3)
    >>> crowd.fewest()
    3
    >>> crowd.leave(1)
    >>> crowd.fewest()
    5
    """

    def __init__(self, n_workers: int) -> None:
        self._counts = memoryview(mmap.mmap(-1, 4 * n_workers)).cast("i")
        for place in range(n_workers):
            self.leave(place)

    def tell(self, place: int, count: int) -> None:
        """The worker has so many."""
        self._counts[place] = count

    def leave(self, place: int) -> None:
        """The worker does not listen, or not yet."""
        self._counts[place] = _ABSENT

    def fewest(self) -> int:
        """How many the worker has that has fewest; 0 where none listens."""
        return min((count for count in self._counts if count != _ABSENT), default=0)


class Connections(set[Any]):
    """A worker's connections, whose number the others see."""

    def __init__(self, crowd: Crowd, place: int) -> None:
        super().__init__()
        self._crowd, self._place = crowd, place

    def add(self, connection: Any) -> None:
        """One more."""
        super().add(connection)
        self.tell()

    def discard(self, connection: Any) -> None:
        """One less."""
        super().discard(connection)
        self.tell()

    def tell(self, coming: int = 0) -> None:
        """Say how many there are, with those that are coming."""
        self._crowd.tell(self._place, len(self) + coming)

    def too_many(self) -> bool:
        """Whether another worker has fewer."""
        return len(self) > self._crowd.fewest()

    def leave(self) -> None:
        """Say that no more are taken."""
        self._crowd.leave(self._place)


class Door:
    """Takes connections on a listening socket, one at a time; has of an asyncio server what uvicorn asks of it.

    Each worker wakes for every connection. One that has more than another waits a moment before it takes it: with two
    workers and eight clients each has four, and a worker that hangs holds nobody up.
    """

    def __init__(self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol], mine: Connections) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening, self._protocol, self._mine = listening, protocol, mine
        self._coming: set[asyncio.Task[Any]] = set()
        self._later: asyncio.TimerHandle | None = None
        listening.setblocking(False)
        self._mine.tell()
        self._open()

    def close(self) -> None:
        """Take no more."""
        if self._later is not None:
            self._later.cancel()
        self._loop.remove_reader(self._listening)
        self._mine.leave()

    async def wait_closed(self) -> None:
        """All that were taken are made."""
        await asyncio.gather(*self._coming)

    def _open(self) -> None:
        self._later = None
        self._loop.add_reader(self._listening, self._knock)

    def _pause(self, seconds: float, then: Callable[[], None]) -> None:
        self._loop.remove_reader(self._listening)
        self._later = self._loop.call_later(seconds, then)

    def _knock(self) -> None:
        if self._mine.too_many():
            self._pause(_POLITE_SECONDS, self._take_after_all)
        else:
            self._take()

    def _take_after_all(self) -> None:
        self._open()
        self._take()

    def _take(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            _log.error("a connection cannot be taken: %s", error)
            self._pause(_BREATH_SECONDS, self._open)
            return
        connection.setblocking(False)
        coming = self._loop.create_task(self._loop.connect_accepted_socket(self._protocol, connection))
        self._coming.add(coming)
        self._mine.tell(len(self._coming))
        coming.add_done_callback(self._came)

    def _came(self, coming: asyncio.Task[Any]) -> None:
        self._coming.discard(coming)
        if not coming.cancelled() and coming.exception() is not None:
            _log.error("a connection was lost as it came: %s", coming.exception())
        self._mine.tell(len(self._coming))
