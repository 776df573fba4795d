"""How busy would several workers be, and where does what cannot be shared end it?

``python -m benchmarks balance [rows labels] [--trees N …]``

On EURLex-4K, or on long-tailed rows drawn as those of ``tree_scaling``. Each model is trained once within a run, on one
thread, and the CPU time of every piece is kept. Workers are then simulated: each takes the next piece of the site when
it is free, and a site begins when the one before it is done. What lies between sites, the program's own part, is done
while all wait. Busy is what workers compute in the time of the run. Then each site: its pieces, what they take and how
much of that the largest one is; and where it ends: with any number of workers a run takes what lies between sites and
the largest piece of each.
"""

from __future__ import annotations

import argparse
import heapq
import tempfile
import time
from typing import Any

from rich.console import Console
from rich.table import Table
from sklearn.base import clone

from benchmarks.harness import save_results
from benchmarks.tree_scaling import DRAWN

QUESTION = "How busy would several workers be, and where does what cannot be shared end it?"
WORKERS = (2, 4, 8, 16, 32)
_MOST_LINEAR = 20_000
"""Labels for which one-vs-rest is measured too: with more it takes long."""


class Timing:
    """Computes pieces one after the other and keeps what each took."""

    elsewhere = False

    def __init__(self) -> None:
        self.sites: list[tuple[str, list[float]]] = []

    def compute(self, job: Any, site: Any, missing: list[int], **how: Any) -> None:
        """See :class:`tailwise.distributed.engines.Engine`."""
        taken = []
        for piece in missing:
            begun = time.thread_time()
            job.write(site, piece)
            taken.append(time.thread_time() - begun)
        self.sites.append((site.function.__name__, taken))

    def end(self, job: Any) -> None:
        """See :class:`tailwise.distributed.engines.Engine`."""


def main(arguments: list[str]) -> None:
    import tailwise as tw

    parser = argparse.ArgumentParser(prog="balance")
    parser.add_argument("shape", nargs="*", type=int, metavar="rows labels")
    parser.add_argument("--trees", nargs="*", type=int, default=[3, 1])
    options = parser.parse_args(arguments)
    if options.shape:
        rows, labels = options.shape
        data = tw.make_longtail(rows, max(1_000, rows // 5), labels, **DRAWN, test_fraction=0, random_state=0)
    else:
        data = tw.load_dataset("eurlex-4k")
    models: dict[str, Any] = {} if data.n_labels > _MOST_LINEAR else {"DiSMEC": tw.DiSMEC(random_state=0, n_jobs=1)}
    for n_trees in options.trees:
        models[f"Bonsai, {n_trees} tree{'s' * (n_trees > 1)}"] = tw.Bonsai(n_trees, random_state=0, n_jobs=1)
    console = Console(width=160)
    table = Table("model", "CPU-s", "between", *(f"{n} workers" for n in WORKERS), "at most", title=data.name)
    found = {}
    for name, model in models.items():
        clone(model).fit(data.X_train[:300], data.Y_train[:300])
        timing = Timing()
        with tempfile.TemporaryDirectory() as folder, tw.workdir(folder, timing):
            begun = time.thread_time()
            model.fit(data.X_train, data.Y_train)
            total = time.thread_time() - begun
        between = total - sum(sum(taken) for _, taken in timing.sites)
        spans = {n: between + sum(span(taken, n) for _, taken in timing.sites) for n in WORKERS}
        busy = {n: total / (n * spans[n]) for n in WORKERS}
        least = between + sum(max(taken) for _, taken in timing.sites)
        found[name] = {"CPU-s": total, "between": between, "sites": timing.sites, "span": spans, "busy": busy}
        console.print(f"{name}: " + "; ".join(_told(*site) for site in timing.sites))
        table.add_row(
            name,
            f"{total:.1f}",
            f"{between:.2f}",
            *(f"{100 * busy[n]:.0f} % busy, {total / spans[n]:.1f}×" for n in WORKERS),
            f"{total / least:.0f}×",
        )
    console.print(table)
    save_results("balance", found)


def _told(name: str, taken: list[float]) -> str:
    return f"{name} {len(taken)} pieces, {sum(taken):.2f} CPU-s, largest {100 * max(taken) / sum(taken):.1f} %"


def span(pieces: list[float], workers: int) -> float:
    """How long ``workers`` take for ``pieces``, each taking the next one in order when it is free.

    >>> span([3.0, 1.0, 1.0, 1.0], 2)
    3.0
    """
    free = [0.0] * workers
    for taken in pieces:
        heapq.heappush(free, heapq.heappop(free) + taken)
    return max(free)
