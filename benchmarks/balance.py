"""How busy would several workers be, and where does what cannot be shared end it?

``python -m benchmarks balance [eurlex-4k] [rows labels]``

Each model is trained once within a run, on one thread, and the CPU time of every piece is kept. Workers are then
simulated: each takes the next piece of the site when it is free, and a site begins when the one before it is done. What
lies between sites, the program's own part, is done while all wait. Busy is what workers compute in the time of the run.
"""

from __future__ import annotations

import heapq
import tempfile
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.harness import save_results

QUESTION = "How busy would several workers be, and where does what cannot be shared end it?"
WORKERS = (1, 2, 4, 8, 16, 32, 64)


class Timing:
    """Computes pieces one after the other and keeps what each took."""

    elsewhere = False

    def __init__(self) -> None:
        self.sites: list[list[float]] = []

    def compute(self, job: Any, site: Any, missing: list[int], **how: Any) -> None:
        """See :class:`tailwise.distributed.engines.Engine`."""
        taken = []
        for piece in missing:
            begun = time.thread_time()
            job.write(site, piece)
            taken.append(time.thread_time() - begun)
        self.sites.append(taken)

    def end(self, job: Any) -> None:
        """See :class:`tailwise.distributed.engines.Engine`."""


def main(arguments: list[str]) -> None:
    import tailwise as tw

    numbers = [int(text.replace("_", "")) for text in arguments if text.replace("_", "").isdigit()]
    if numbers:
        rows, labels = numbers
        data = tw.make_longtail(rows, max(5000, rows // 5), labels, test_fraction=0, random_state=0)
    else:
        data = tw.load_dataset("eurlex-4k")
    models: dict[str, Callable[[], Any]] = {
        "DiSMEC": lambda: tw.DiSMEC(random_state=0, n_jobs=1),
        "Bonsai, 3 trees": lambda: tw.Bonsai(random_state=0, n_jobs=1),
        "Bonsai, 1 tree": lambda: tw.Bonsai(1, random_state=0, n_jobs=1),
    }
    table = Table("model", "CPU-s", "between", *(f"{n} workers" for n in WORKERS), title=data.name)
    found = {}
    for name, make in models.items():
        if "tree" not in name and data.n_labels > 20_000:
            continue
        make().fit(data.X_train[:300], data.Y_train[:300])
        timing = Timing()
        with tempfile.TemporaryDirectory() as folder, tw.workdir(folder, timing):
            begun = time.thread_time()
            make().fit(data.X_train, data.Y_train)
            total = time.thread_time() - begun
        shared = sum(map(sum, timing.sites))
        between = total - shared
        spans = {n: between + sum(span(site, n) for site in timing.sites) for n in WORKERS}
        busy = {n: total / (n * spans[n]) for n in WORKERS}
        found[name] = {"CPU-s": total, "between": between, "sites": timing.sites, "span": spans, "busy": busy}
        table.add_row(
            name,
            f"{total:.1f}",
            f"{between:.2f}",
            *(f"{100 * busy[n]:.0f} % busy, {total / spans[n]:.1f}×" for n in WORKERS),
        )
    Console(width=160).print(table)
    save_results("balance", found)


def span(pieces: list[float], workers: int) -> float:
    """How long ``workers`` take for ``pieces``, each taking the next one in order when it is free.

    >>> span([3.0, 1.0, 1.0, 1.0], 2)
    3.0
    """
    free = [0.0] * workers
    for taken in pieces:
        heapq.heappush(free, heapq.heappop(free) + taken)
    return max(free)
