"""One worker: opens the models and answers on a socket that all workers share."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from typing import cast

import uvicorn
import uvloop

from tailwise.errors import TailwiseError
from tailwise.parallel import set_jobs, set_progress
from tailwise.serving.app import create_app
from tailwise.serving.door import Connections, Door
from tailwise.serving.logs import set_up_logs
from tailwise.serving.protocol import PatientProtocol
from tailwise.serving.service import Service
from tailwise.serving.settings import Settings

READY = b"ready\n"
_SWITCH_SECONDS = 0.0005
CANNOT_START = 3
"""The exit status of a worker that cannot open its models."""
_log = logging.getLogger("tailwise.serving")


class Server(uvicorn.Server):
    """uvicorn's server, which takes connections through a door that workers share evenly."""

    def __init__(self, config: uvicorn.Config, listening: socket.socket, connections: Connections, mouth: int) -> None:
        super().__init__(config)
        self.server_state.connections = connections
        self._listening, self._connections, self._mouth = listening, connections, mouth

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets=[])

        def protocol() -> asyncio.Protocol:
            return PatientProtocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

        self.servers.append(cast(asyncio.Server, Door(self._listening, protocol, self._connections)))
        os.write(self._mouth, READY)


async def serve(settings: Settings, listening: socket.socket, connections: Connections, mouth: int) -> None:
    """Answer until told to end, or until whoever started the worker is gone; ``mouth`` is told when it is ready."""
    service = Service(settings)
    service.shelf.open()
    config = uvicorn.Config(
        create_app(service),
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=20,
    )
    server = Server(config, listening, connections, mouth)
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


def main(settings: Settings, listening: socket.socket, connections: Connections, mouth: int) -> int:
    """Open the models and answer; returns the exit status of the process."""
    set_up_logs()
    set_progress(False)
    set_jobs(settings.jobs)
    # The loop must not wait 5 ms for a thread that ranks to let go of the interpreter.
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        uvloop.run(serve(settings, listening, connections, mouth))
    except (TailwiseError, OSError) as error:
        _log.error("the worker cannot start", extra={"reason": str(error)})
        return CANNOT_START
    return 0
