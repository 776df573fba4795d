"""The process that holds the socket and keeps workers alive: it starts, watches, restarts and ends them."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from prometheus_client.multiprocess import mark_process_dead

from tailwise.atomic import OutputError
from tailwise.cpus import available_cores
from tailwise.errors import TailwiseError
from tailwise.serving.metrics import FOLDER_VARIABLE
from tailwise.serving.settings import Settings
from tailwise.serving.worker import BACKLOG, READY, encode

_log = logging.getLogger("tailwise.serving")
_GRACE_SECONDS = 25.0
_PAUSE_SECONDS = 1.0
"""Before a worker that died soon after its start is started again."""


class CannotListen(OutputError):
    """The address cannot be listened on."""


class CannotServe(TailwiseError):
    """No worker could start."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
        raise CannotListen(
            f"cannot listen on {host}:{port} ({reason}); another program may have the port: choose one with --port, or "
            "--port 0 for any that is free"
        ) from error
    listening.listen(BACKLOG)
    listening.set_inheritable(True)
    return listening


class Worker:
    """A process that answers."""

    def __init__(self, settings: Settings, listening: socket.socket) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tailwise.serving.worker", str(listening.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[listening.fileno()],
            # Ctrl-C in the terminal is for the one that holds them.
            start_new_session=True,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(encode(settings).encode() + b"\n")
        self.process.stdin.flush()
        self.started, self.ready = time.monotonic(), False

    def look(self) -> bool:
        """Whether it became ready since the last look."""
        assert self.process.stdout is not None
        if self.ready or not select.select([self.process.stdout], [], [], 0)[0]:
            return False
        self.ready = os.read(self.process.stdout.fileno(), 64).startswith(READY)
        return self.ready


def run(settings: Settings, listening: socket.socket, on_ready: Callable[[], Any]) -> None:
    """Keep as many workers as the settings say until SIGTERM or Ctrl-C; ``on_ready`` is told when the first answers.

    A worker that dies is started again. SIGHUP has all of them look for changed models.
    """
    n_workers = settings.workers or available_cores()
    asked: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, lambda got, _: asked.append(got)) for number in numbers}
    with tempfile.TemporaryDirectory(prefix="tailwise-serve-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        # Kernels of one worker have one core.
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        workers = [Worker(settings, listening) for _ in range(n_workers)]
        try:
            _keep(workers, settings, listening, asked, on_ready)
        finally:
            _end(workers)
            os.environ.pop(FOLDER_VARIABLE, None)
            for number, handler in before.items():
                signal.signal(number, handler)


def _keep(
    workers: list[Worker], settings: Settings, listening: socket.socket, asked: list[int], on_ready: Callable[[], Any]
) -> None:
    answered = False
    while True:
        while asked:
            number = asked.pop(0)
            if number != signal.SIGHUP:
                return
            for worker in workers:
                if worker.ready:
                    worker.process.send_signal(signal.SIGHUP)
        for place, worker in enumerate(workers):
            if worker.look() and not answered:
                answered = True
                on_ready()
            status = worker.process.poll()
            if status is None:
                continue
            if not answered and status == 3:
                raise CannotServe("the models cannot be served; the reason is in the line above")
            mark_process_dead(worker.process.pid, os.environ[FOLDER_VARIABLE])
            _log.error("a worker died; it is started again", extra={"pid": worker.process.pid, "status": status})
            if time.monotonic() - worker.started < _PAUSE_SECONDS:
                time.sleep(_PAUSE_SECONDS)
            workers[place] = Worker(settings, listening)
        time.sleep(0.05)


def _end(workers: list[Worker]) -> None:
    """Have every worker finish what it is answering."""
    for worker in workers:
        worker.process.terminate()
    deadline = time.monotonic() + _GRACE_SECONDS
    for worker in workers:
        try:
            worker.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
