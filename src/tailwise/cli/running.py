"""``--workdir`` and ``--engine``: work that goes on where it was, and who does it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

WorkDir = Annotated[
    Path | None,
    typer.Option(
        "--workdir",
        metavar="FOLDER",
        help="Keep each piece of the work there: when it was killed, the same command goes on where it was.",
    ),
]
Engine = Annotated[
    str,
    typer.Option("--engine", metavar="ENGINE", help="Who works: threads, processes or dask://HOST:PORT, by --workdir."),
]
THREADS = "threads"


def run_in(workdir: Path | None, engine: str) -> AbstractContextManager[Any]:
    """What the work is done within."""
    from tailwise.errors import InvalidInput

    if workdir is not None:
        from tailwise.distributed import workdir as running

        return running(workdir, engine)
    if engine != THREADS:
        raise InvalidInput(f"--engine {engine} needs a folder that its processes share; name it with --workdir FOLDER")
    return nullcontext()
