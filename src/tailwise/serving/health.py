"""Whether the service lives, whether it can answer, and what it counts."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from tailwise.serving import schemas as s
from tailwise.serving.metrics import MEDIA_TYPE
from tailwise.serving.operations import OPEN, Call, Operation
from tailwise.serving.problems import overloaded


async def healthz(call: Call) -> Any:
    """The worker answers."""
    return {"status": "ok"}


async def readyz(call: Call) -> Any:
    """Models are open, and there is room for another text."""
    service = call.service
    if not service.shelf.all():
        raise overloaded("no model is open", 5)
    if service.batcher.waiting >= service.settings.max_waiting:
        raise overloaded("the queue is full")
    return {"status": "ready", "projects": [served.id for served in service.shelf.all()]}


async def metrics(call: Call) -> Any:
    """Counts and times of all workers."""
    return Response(call.service.metrics.text(), headers={"Content-Type": MEDIA_TYPE})


_STATUS = s.record({"status": s.STRING}, {"projects": s.array(s.STRING)})

OPERATIONS = [
    Operation("GET", "/healthz", healthz, "Whether it lives", "Running", _STATUS, access=OPEN),
    Operation("GET", "/readyz", readyz, "Whether it can answer", "Running", _STATUS, access=OPEN, problems=(503,)),
    Operation("GET", "/metrics", metrics, "Counts and times", "Running", s.STRING, media_type="text/plain"),
]
