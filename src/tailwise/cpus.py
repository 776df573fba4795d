"""How many cores this process may use: its affinity and the CPU quota of the container that it runs in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from math import ceil
from pathlib import Path, PurePosixPath

GROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
_V1_FOLDERS = ("cpu", "cpu,cpuacct")


def available_cores() -> int:
    """The cores of this process's affinity, or fewer where a container's quota gives the time of fewer; at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _own_quota()
    return cores if quota is None else max(1, min(cores, ceil(quota)))


@cache
def _own_quota() -> float | None:
    return cpu_quota()


def cpu_quota(groups: Path = GROUPS, own: Path = OWN) -> float | None:
    """The cores' worth of time that control groups allow, version 1 or 2; None where they set no limit.

    A group is bound by every group above it too. Within a container the path that the kernel tells may not be there,
    and the folders at the top are those of the container.
    """
    quotas = []
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if not controllers:
                quotas += [
                    _read_v2(folder) for top in (groups, groups / "unified") for folder in folders_above(top, path)
                ]
            elif "cpu" in controllers.split(","):
                quotas += [_read_v1(folder) for name in _V1_FOLDERS for folder in folders_above(groups / name, path)]
    return min((quota for quota in quotas if quota is not None), default=None)


def folders_above(top: Path, path: str) -> Iterator[Path]:
    """The folder of the control group ``path`` and those above it, ``top`` the last."""
    parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..")]
    for end in range(len(parts), -1, -1):
        yield top.joinpath(*parts[:end])


def _read_v2(folder: Path) -> float | None:
    with suppress(OSError, ValueError):
        quota, period = (folder / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    return None


def _read_v1(folder: Path) -> float | None:
    with suppress(OSError, ValueError):
        quota, period = (int((folder / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
        return quota / period if quota > 0 and period > 0 else None
    return None
