"""Workers that listen on one socket share connections evenly, and none waits for one that hangs."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from tailwise.serving import door as door_module
from tailwise.serving.door import Connections, Crowd, Door
from tailwise.serving.workers import listen

CLIENTS = 8


class Echo(asyncio.Protocol):
    """Sends back what comes, and is counted as uvicorn counts its protocols."""

    def __init__(self, mine: Connections) -> None:
        self.mine = mine

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.mine.add(self)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.mine.discard(self)


class Listener(threading.Thread):
    """A door in a loop of its own, as a worker has it."""

    def __init__(self, listening: socket.socket, crowd: Crowd, place: int) -> None:
        super().__init__(daemon=True)
        self.mine, self.listening = Connections(crowd, place), listening
        self.open = threading.Event()
        self.start()
        assert self.open.wait(10)

    def run(self) -> None:
        asyncio.run(self.serve())

    async def serve(self) -> None:
        door = self.door = Door(self.listening, lambda: Echo(self.mine), self.mine)
        self.loop, self.done = asyncio.get_running_loop(), asyncio.Event()
        self.open.set()
        await self.done.wait()
        door.close()
        await door.wait_closed()

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.done.set)
        self.join(10)


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with listen("127.0.0.1", 0) as found:
        yield found


@pytest.fixture
def patient(monkeypatch):
    """A machine that is busy with other tests must not pass for a worker that hangs."""
    monkeypatch.setattr(door_module, "_POLITE_SECONDS", 0.1)


def connect(listening: socket.socket, n: int, workers: Sequence[Listener] = ()) -> list[socket.socket]:
    """Clients one after the other, each when no worker leaves one to others any more."""
    found = []
    for _ in range(n):
        while any(worker.door._later is not None for worker in workers):
            time.sleep(0.01)
        one = socket.create_connection(listening.getsockname(), timeout=10)
        one.sendall(b"hello")
        assert one.recv(5) == b"hello"
        found.append(one)
    return found


def counts(workers: list[Listener], wanted: list[int]) -> list[int]:
    """How many connections each has, once they are as wanted or a while has passed."""
    deadline = time.monotonic() + 5
    while (found := sorted(len(worker.mine) for worker in workers)) != wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def test_two_workers_have_half_of_the_connections_each(listening, patient):
    crowd = Crowd(2)
    workers = [Listener(listening, crowd, place) for place in range(2)]
    clients = connect(listening, CLIENTS, workers)
    assert counts(workers, [4, 4]) == [4, 4]
    # Those of one worker leave: the next ones are its.
    peers = {one.transport.get_extra_info("peername") for one in list(workers[0].mine)}
    for one in [one for one in clients if one.getsockname() in peers]:
        one.close()
    assert counts(workers, [0, 4]) == [0, 4]
    clients += connect(listening, 4, workers)
    assert counts(workers, [4, 4]) == [4, 4]
    for worker in workers:
        worker.end()
    assert crowd.fewest() == 0


def test_connections_that_come_at_once_are_shared(listening, patient):
    crowd = Crowd(2)
    workers = [Listener(listening, crowd, place) for place in range(2)]
    clients = [socket.create_connection(listening.getsockname(), timeout=10) for _ in range(20)]
    # Two may look at the counts at the same time, so that one has a few more.
    fewer, more = counts(workers, [10, 10])
    assert fewer + more == 20
    assert fewer >= 7
    for one in clients:
        one.close()
    for worker in workers:
        worker.end()


def test_a_worker_that_hangs_holds_nobody_up(listening):
    crowd = Crowd(2)
    crowd.tell(1, 0)
    worker = Listener(listening, crowd, 0)
    begun = time.monotonic()
    clients = connect(listening, CLIENTS)
    assert len(worker.mine) == CLIENTS == len(clients)
    assert time.monotonic() - begun < 5
    worker.end()
