"""``with tailwise.workdir(folder):``: work that goes on where it was when it is begun again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from tailwise.atomic import locked, write_whole
from tailwise.distributed.engines import Engine, open_engine
from tailwise.distributed.jobs import Inputs, Job
from tailwise.distributed.programs import Driver
from tailwise.distributed.progress import Progress
from tailwise.errors import InvalidInput
from tailwise.parallel import progress
from tailwise.runs import current_run, within_run

_MARK = "run.json"
_FORMAT = {"format": "tailwise-run", "format_version": 2}


class WorkDir:
    """A folder of jobs, numbered in the order in which they come."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._folder, self._engine = folder, engine
        self._jobs = 0

    @contextmanager
    def job(self, model: Any, call: str, arguments: dict[str, Any]) -> Iterator[None]:
        """See :class:`tailwise.runs.Run`."""
        folder = self._folder / f"job-{self._jobs:03}"
        self._jobs += 1
        inputs = Inputs(clone(model) if call == "fit" else model, call, arguments)
        job = Job.begin(folder, inputs, elsewhere=self._engine.elsewhere)
        try:
            with (
                progress(job.what, 100.0, timed=False) as advance,
                within_run(Driver(job, self._engine, Progress(advance))),
            ):
                yield
        finally:
            self._engine.end(job)

    def map(self, function: Any, blocks: Any, weight: Any, **how: Any) -> Iterator[Any]:
        """What belongs to no job is done at once."""
        return map(function, blocks)

    def keep(self, function: Any) -> Any:
        """What belongs to no job is done at once."""
        return function()

    def room(self, size: int, dtype: Any) -> np.ndarray:
        """What belongs to no job is in memory."""
        return np.empty(size, dtype)

    def share(self, part: float) -> Any:
        """What belongs to no job is not watched."""
        return nullcontext()

    def entropy(self) -> int | None:
        """Nothing is repeated that belongs to no job."""
        return None


@contextmanager
def workdir(folder: str | Path, engine: Any = None) -> Iterator[None]:
    """Within it ``fit`` and ``predict_topk`` keep each piece of their work in ``folder``, and never do one twice.

    Killed at any moment and begun again with the same data and parameters, they go on where they were, and the result
    has the same bits as without. ``engine`` says who works: ``"threads"`` (the default), ``"processes"``,
    ``"dask://HOST:PORT"``, a ``distributed.Client``, or anything with ``submit``; processes on other machines see
    ``folder`` under the same path. The folder is not removed: what is in it is not needed once the model is saved.

    >>> import tempfile, tailwise
    >>> X, Y = [[1.0, 0], [0.9, 0.2], [0, 1.0], [0.1, 0.9]] * 5, [[1, 0], [1, 0], [0, 1], [0, 1]] * 5
    >>> with tempfile.TemporaryDirectory() as folder, tailwise.workdir(folder):
    ...     model = tailwise.DiSMEC().fit(X, Y)
    >>> model.predict_topk([[0.0, 2.0]], k=1).labels
    array([[1]], dtype=int32)
    """
    if current_run() is not None:
        raise InvalidInput(f"folder={str(folder)!r}: this thread is within a run already; end that one first")
    folder = Path(folder).resolve()
    _claim(folder)
    with locked(folder / _MARK), open_engine(engine) as opened, within_run(WorkDir(folder, opened)):
        yield


def _claim(folder: Path) -> None:
    """Refuse a folder that holds something else."""
    mark = folder / _MARK
    if not folder.exists() or not any(folder.iterdir()):
        write_whole(mark, json.dumps(_FORMAT))
        return
    try:
        found = json.loads(mark.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if found != _FORMAT:
        raise InvalidInput(f"{folder} exists and holds no run of tailwise; choose another folder")
