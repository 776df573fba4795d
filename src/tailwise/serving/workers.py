"""The process that holds the socket and keeps workers alive: it starts, watches, restarts and ends them.

Workers are forked from it: it has imported what they need, and nothing else: no model, no thread that works.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

from tailwise.atomic import OutputError
from tailwise.cpus import available_cores
from tailwise.errors import TailwiseError
from tailwise.serving.door import Connections, Crowd
from tailwise.serving.settings import Settings

_log = logging.getLogger("tailwise.serving")
_BACKLOG = 2048
_GRACE_SECONDS = 25.0
_PAUSE_SECONDS = 1.0
"""Before a worker that died soon after its start is started again."""
_TICK_SECONDS = 0.05
_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Where workers keep what they count; prometheus_client looks at it when it is imported."""


class CannotListen(OutputError):
    """The address cannot be listened on."""


class CannotServe(TailwiseError):
    """No worker could start."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        # asyncio sends at once (TCP_NODELAY) only where the protocol is named: else answers wait 40 ms for the client.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotListen(
            f"cannot listen on {host}:{port} ({reason}); where another program has the port, choose one with --port, "
            "or --port 0 for any that is free"
        ) from error
    return listening


class Worker:
    """A process that answers."""

    def __init__(self, settings: Settings, listening: socket.socket, connections: Connections) -> None:
        self.connections = connections
        self._ears, mouth = os.pipe()
        self.started, self.ready = time.monotonic(), False
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os._exit(_work(settings, listening, connections, mouth))
        os.close(mouth)

    def look(self) -> bool:
        """Whether it became ready since the last look."""
        if self.ready or not select.select([self._ears], [], [], 0)[0]:
            return False
        self.ready = bool(os.read(self._ears, 64))
        return self.ready

    def ended(self) -> int | None:
        """Its exit status where it has ended, below zero for the signal that ended it."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        os.close(self._ears)
        return os.waitstatus_to_exitcode(status)


def _work(settings: Settings, listening: socket.socket, connections: Connections, mouth: int) -> int:
    """What a worker does, in the process that was forked."""
    from tailwise.serving.worker import main

    try:
        # Ctrl-C in the terminal is for the process that holds the workers.
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        return main(settings, listening, connections, mouth)
    except BaseException:
        traceback.print_exc()
        return 1


def run(settings: Settings, listening: socket.socket, on_ready: Callable[[], Any]) -> None:
    """Keep as many workers as the settings say until SIGTERM or Ctrl-C; ``on_ready`` is told when the first answers.

    A worker that dies is started again. SIGHUP has all of them look for changed models.
    """
    asked: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, lambda got, _: asked.append(got)) for number in numbers}
    with tempfile.TemporaryDirectory(prefix="tailwise-serve-") as folder:
        os.environ[_FOLDER_VARIABLE] = folder
        # Kernels of one worker have one core.
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        import tailwise.serving.worker  # noqa: F401  what workers need, imported once for all of them

        # Looking for garbage among it would have each worker write to pages that all of them share.
        gc.freeze()
        workers: list[Worker] = []
        try:
            n_workers = settings.workers or available_cores()
            crowd = Crowd(n_workers)
            workers.extend(Worker(settings, listening, Connections(crowd, place)) for place in range(n_workers))
            _keep(workers, settings, listening, asked, on_ready)
        finally:
            _end(workers)
            os.environ.pop(_FOLDER_VARIABLE, None)
            for number, handler in before.items():
                signal.signal(number, handler)


def _keep(
    workers: list[Worker], settings: Settings, listening: socket.socket, asked: list[int], on_ready: Callable[[], Any]
) -> None:
    from prometheus_client.multiprocess import mark_process_dead

    from tailwise.serving.worker import CANNOT_START

    answered = False
    while True:
        while asked:
            number = asked.pop(0)
            if number != signal.SIGHUP:
                return
            for worker in workers:
                if worker.ready:
                    os.kill(worker.pid, signal.SIGHUP)
        for place, worker in enumerate(workers):
            if worker.look() and not answered:
                answered = True
                on_ready()
            status = worker.ended()
            if status is None:
                continue
            workers[place : place + 1] = []
            if not answered and status == CANNOT_START:
                raise CannotServe("the models cannot be served; the reason is in the line above")
            mark_process_dead(worker.pid, os.environ[_FOLDER_VARIABLE])
            _log.error("a worker died (pid %d, status %d); it is started again", worker.pid, status)
            if time.monotonic() - worker.started < _PAUSE_SECONDS:
                time.sleep(_PAUSE_SECONDS)
            worker.connections.leave()
            workers.insert(place, Worker(settings, listening, worker.connections))
        time.sleep(_TICK_SECONDS)


def _end(workers: list[Worker]) -> None:
    """Have every worker finish what it is answering."""
    for worker in workers:
        os.kill(worker.pid, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    left = list(workers)
    while left and time.monotonic() < deadline:
        left = [worker for worker in left if worker.ended() is None]
        time.sleep(_TICK_SECONDS / 5)
    for worker in left:
        os.kill(worker.pid, signal.SIGKILL)
        os.waitpid(worker.pid, 0)
