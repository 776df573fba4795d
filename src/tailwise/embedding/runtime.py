"""torch as this room uses it: found or asked for, on which device, on how many threads, in how many processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tailwise.errors import InvalidInput, import_extra
from tailwise.parallel import SharedSetting


def require_torch(purpose: str) -> Any:
    """The torch module, or an error that says which extra brings it."""
    return import_extra("torch", "neural", purpose)


def resolve_device(device: str) -> Any:
    """``"auto"`` is the GPU of this process where there is one, else the CPU; anything else is torch's name for it."""
    torch = require_torch("training")
    if device == "auto":
        if not torch.cuda.is_available():
            return torch.device("cpu")
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    try:
        found = torch.device(device)
        torch.empty(1, device=found)
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(f'device={device!r} cannot be used ({reason}); pass "auto", "cpu" or "cuda"') from error
    return found


def _limit_torch() -> Callable[[], Any]:
    torch = require_torch("training")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    return partial(torch.set_num_threads, before)


_ONE_TORCH_THREAD = SharedSetting(_limit_torch)


@contextmanager
def one_thread_an_operation() -> Iterator[None]:
    """Run each torch operation on the thread that calls it.

    torch splits an operation over a global number of threads, which changes the order of sums. Here parts of a batch
    run on threads instead, each operation on one: the same bits whatever the number of threads.
    """
    with _ONE_TORCH_THREAD:
        # Besides the global number each thread has one of its own, which it takes from the global one only at first.
        require_torch("training").set_num_threads(1)
        yield


_SEEDING = threading.Lock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch's global generator, from which layers draw their first weights, start at ``seed`` within the block."""
    torch = require_torch("training")
    # It is one for all threads: nobody else may draw in between.
    with _SEEDING, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


class Processes:
    """The processes that train together, as ``torchrun`` started them; one where it did not.

    Every process holds the data and draws the same batches, computes its share of each batch's parts, and adds up
    gradients with the others; so all hold the same weights at every step.
    """

    def __init__(self, device: Any) -> None:
        self.torch = require_torch("training")
        self.device = device
        self.started_here = False
        distributed = self.torch.distributed
        if distributed.is_available() and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            if not distributed.is_initialized():
                distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
                self.started_here = True
            self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        else:
            self.rank, self.size = 0, 1

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *reason: Any) -> None:
        if self.started_here:
            self.torch.distributed.destroy_process_group()

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes files and shows progress."""
        return self.rank == 0

    def share(self, parts: list[Any]) -> list[Any]:
        """The parts of a batch that are this process's to compute."""
        return parts[self.rank :: self.size]

    def add(self, tensors: list[Any]) -> None:
        """Replace each tensor by its sum over the processes."""
        if self.size > 1:
            for tensor in tensors:
                self.torch.distributed.all_reduce(tensor)

    def agree(self, number: int) -> int:
        """The leading process's number, in every process."""
        if self.size == 1:
            return number
        shared = self.torch.tensor([number], dtype=self.torch.int64, device=self.device)
        self.torch.distributed.broadcast(shared, 0)
        return int(shared.item())

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.size > 1:
            self.torch.distributed.barrier()
