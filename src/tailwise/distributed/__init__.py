"""The same block functions as resumable pieces: on threads, on processes, on a cluster."""

from tailwise.distributed.engines import Dask, Processes, RayExecutor, Submitting, Threads
from tailwise.distributed.jobs import RunError
from tailwise.distributed.workdir import workdir

__all__ = ["Dask", "Processes", "RayExecutor", "RunError", "Submitting", "Threads", "workdir"]
