"""How much memory this process may take, and whether rows that lie on disk fit into it."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tailwise.cpus import GROUPS, OWN, folders_above

_MEMINFO = Path("/proc/meminfo")
_SHARE = 0.5
"""Of the free memory: what rows on disk may take before they are read in passes."""
_TAKEN = 0.6
"""Of the free memory: what is taken beside them then. The rest is for the pages that are read just now."""
LARGE = 1 << 26
"""Bytes of values below which blocks are those of rows in memory."""


def memory_apart(X: Any, n_jobs: int) -> int | None:
    """How many bytes each of ``n_jobs`` threads may take beside rows X that stay on disk.

    None where X (CSR) is in memory already, or fits: mapped rows that take less than half of the free memory.
    """
    free = free_memory() if is_mapped(X.data) or is_mapped(X.indices) else None
    if free is None:
        return None
    fits = X.data.nbytes + X.indices.nbytes <= _SHARE * free
    return None if fits else int(_TAKEN * free) // n_jobs


def is_mapped(array: np.ndarray) -> bool:
    """Whether the array lies in a file.

    >>> is_mapped(np.zeros(3)[1:])
    False
    """
    base: Any = array
    while isinstance(base, np.ndarray | memoryview):
        if isinstance(base, np.memmap):
            return True
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return isinstance(base, mmap.mmap)


def free_memory(groups: Path = GROUPS, own: Path = OWN, meminfo: Path = _MEMINFO) -> int | None:
    """Bytes that this process may still take: of the machine, and of its control groups, version 1 or 2.

    Pages of files do not count, because the kernel gives them up. None where nothing tells.
    """
    found = []
    with suppress(OSError, ValueError, StopIteration):
        line = next(line for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable:"))
        found.append(1024 * int(line.split()[1]))
    found += _free_in_groups(groups, own)
    return min(found, default=None)


def _free_in_groups(groups: Path, own: Path) -> Iterator[int]:
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                tops, limit, taken = [groups, groups / "unified"], "memory.max", "anon"
            elif "memory" in controllers.split(","):
                tops, limit, taken = [groups / "memory"], "memory.limit_in_bytes", "total_rss"
            else:
                continue
            for folder in (folder for top in tops for folder in folders_above(top, path)):
                with suppress(OSError, ValueError, KeyError):
                    most = int((folder / limit).read_text())
                    told = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                    yield max(0, most - int(told[taken]))
