"""One worker: opens the models and answers on a socket that all workers share."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys

import uvicorn

from tailwise.errors import TailwiseError
from tailwise.parallel import set_jobs, set_progress
from tailwise.serving.app import create_app
from tailwise.serving.logs import set_up_logs
from tailwise.serving.protocol import PatientProtocol
from tailwise.serving.service import Service
from tailwise.serving.settings import Settings

BACKLOG = 2048
READY = b"ready\n"
_SWITCH_SECONDS = 0.0005
CANNOT_START = 3
"""The exit status of a worker that cannot open its models."""
_log = logging.getLogger("tailwise.serving")


class Server(uvicorn.Server):
    """uvicorn's server, which accepts one connection at a time, so that workers share them evenly."""

    def __init__(self, config: uvicorn.Config, mouth: int) -> None:
        super().__init__(config)
        self._mouth = mouth

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; asyncio takes as many connections at once as its backlog, and the kernel's is set again after."""
        await super().startup(sockets=sockets)
        for one in sockets or ():
            one.listen(BACKLOG)
        os.write(self._mouth, READY)


async def serve(settings: Settings, listening: socket.socket, mouth: int) -> None:
    """Answer until told to end, or until whoever started the worker is gone; ``mouth`` is told when it is ready."""
    service = Service(settings)
    service.shelf.open()
    config = uvicorn.Config(
        create_app(service),
        http=PatientProtocol,
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=1,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=20,
    )
    server = Server(config, mouth)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, lambda: loop.create_task(service.refresh()))
    orphan = loop.create_task(_end_with_parent(server))
    await server.serve([listening])
    orphan.cancel()


async def _end_with_parent(server: uvicorn.Server) -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(1.0)
    server.should_exit = True


def main(settings: Settings, listening: socket.socket, mouth: int) -> int:
    """Open the models and answer; returns the exit status of the process."""
    set_up_logs()
    set_progress(False)
    set_jobs(settings.jobs)
    # The loop must not wait 5 ms for a thread that ranks to let go of the interpreter.
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        asyncio.run(serve(settings, listening, mouth))
    except (TailwiseError, OSError) as error:
        _log.error("the worker cannot start", extra={"reason": str(error)})
        return CANNOT_START
    return 0
