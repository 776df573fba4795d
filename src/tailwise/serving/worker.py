"""One worker: opens the models and answers on a socket that it was given; ``python -m tailwise.serving.worker``.

Standard input holds the settings as JSON, and says by its end that whoever started the worker is gone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn

from tailwise.errors import TailwiseError
from tailwise.parallel import set_jobs, set_progress
from tailwise.serving.app import create_app
from tailwise.serving.logs import set_up_logs
from tailwise.serving.protocol import PatientProtocol
from tailwise.serving.service import Service
from tailwise.serving.settings import ModelSource, Settings

BACKLOG = 2048
READY = b"ready\n"
_log = logging.getLogger("tailwise.serving")


def encode(settings: Settings) -> str:
    """Settings as JSON, for a worker."""
    return json.dumps(
        {**vars(settings), "models": {name: vars(one) for name, one in settings.models.items()}}, default=str
    )


def decode(text: str) -> Settings:
    """What :func:`encode` made."""
    found: dict[str, Any] = json.loads(text)
    models = {}
    for name, one in found.pop("models").items():
        paths = {key: Path(one.pop(key)) for key in ("path", "evaluation") if one[key] is not None}
        models[name] = ModelSource(**{**one, **paths})
    folders = tuple(map(Path, found.pop("folders")))
    audits = {name: Path(path) for name, path in found.pop("audits").items()}
    return Settings(models=models, folders=folders, audits=audits, origins=tuple(found.pop("origins")), **found)


class Server(uvicorn.Server):
    """uvicorn's server, which accepts one connection at a time, so that workers share them evenly."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; asyncio takes as many connections at once as its backlog, and the kernel's is set again after."""
        await super().startup(sockets=sockets)
        for one in sockets or ():
            one.listen(BACKLOG)
        os.write(1, READY)

    def install_signal_handlers(self) -> None:
        """Those of :func:`main` stand."""


async def serve(settings: Settings, listening: socket.socket) -> None:
    """Answer until told to end."""
    service = Service(settings)
    service.shelf.open()
    app = create_app(service, more=_review(settings))
    config = uvicorn.Config(
        app, http=PatientProtocol, loop="asyncio", ws="none", log_config=None, access_log=False, backlog=1,
        lifespan="on", server_header=False, timeout_keep_alive=30, timeout_graceful_shutdown=20,
    )  # fmt: skip
    server = Server(config)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, lambda: loop.create_task(service.refresh()))
    loop.add_reader(sys.stdin.fileno(), _end_with_parent, server, loop)
    await server.serve([listening])


def _end_with_parent(server: uvicorn.Server, loop: asyncio.AbstractEventLoop) -> None:
    if not os.read(sys.stdin.fileno(), 1):
        loop.remove_reader(sys.stdin.fileno())
        server.should_exit = True


def _review(settings: Settings) -> list[Any]:
    """The routes of the audits that are served."""
    if not settings.audits:
        return []
    from importlib import import_module

    from tailwise.audit import Audit

    review = import_module("tailwise.serving.review")

    return review.routes({name: Audit.open(path) for name, path in settings.audits.items()})


def main() -> int:
    """Read the settings, open the models, answer; exit status 3 where a model cannot be opened."""
    settings = decode(sys.stdin.readline())
    set_up_logs()
    set_progress(False)
    set_jobs(1)
    listening = socket.socket(fileno=int(sys.argv[1]))
    try:
        asyncio.run(serve(settings, listening))
    except (TailwiseError, OSError) as error:
        _log.error("the worker cannot start", extra={"reason": str(error)})
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
