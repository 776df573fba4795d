"""How busy would several workers be, and where does what cannot be shared end it?

``python -m benchmarks balance [rows labels] [--trees N …]``

On EURLex-4K and on 200,000 long-tailed rows with as many labels, drawn as those of ``tree_scaling``, or on others of a
shape that is told. Each model is trained once within a run, on one thread, and the CPU time of every piece is kept.
Workers, threads of one process, are then simulated: each takes the next piece of the site when it is free, the main
thread reads each piece that is finished, and a site begins when the one before it is done. What lies between sites, the
program's own part, is done while all wait. Busy is the share of the time of the run that workers compute. Beside it
each site of a hundredth of the work: its pieces, what they take and how much of that the largest one is; and where it
ends: with any number of workers a run takes what lies between sites and the largest piece of each.
"""

from __future__ import annotations

import argparse
import heapq
import sys
import tempfile
import time
from contextlib import ExitStack
from typing import Any, NamedTuple
from unittest.mock import patch

from rich.console import Console
from rich.table import Table
from sklearn.base import clone

from benchmarks.harness import save_results
from benchmarks.tree_scaling import DRAWN

QUESTION = "How busy would several workers be, and where does what cannot be shared end it?"
WORKERS = (2, 4, 8, 16, 32)
_THREADS = 8
"""What blocks are cut for; here one thread computes them all."""
_SHAPE = 200_000, 200_000
_MOST_TOLD = 6
_MOST_LINEAR = 20_000
"""Labels for which one-vs-rest is measured too: with more it takes long."""


class Site(NamedTuple):
    """A site, and the CPU-seconds of its pieces."""

    name: str
    taken: list[float]
    looked_at: list[float]
    """by the main thread, after they were finished"""

    def __str__(self) -> str:
        total = sum(self.taken)
        share = 100 * max(self.taken) / total if total else 0
        return f"{self.name} {len(self.taken)} pieces, {total:.2f} CPU-s, largest {share:.1f} %"


class Timing:
    """Computes pieces one after the other and keeps what each took."""

    elsewhere = False

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self._shared = 0.0
        self._alone = True

    def compute(self, job: Any, site: Any, missing: list[int], *, done: Any, **how: Any) -> None:
        """See :class:`tailwise.distributed.engines.Engine`."""
        taken, looked_at = [], []
        self._alone = len(missing) == 1
        for piece in missing:
            begun, self._shared = time.thread_time(), 0.0
            job.write(site, piece)
            written = time.thread_time()
            done(piece)
            taken.append(written - begun - self._shared)
            looked_at.append(time.thread_time() - written)
        self._alone = True
        self.sites.append(Site(site.function.__name__, taken, looked_at))

    def map_blocks(self, function: Any, blocks: list[Any], **how: Any) -> list[Any]:
        """See :func:`tailwise.parallel.map_blocks`: what threads share without keeping it.

        Within a piece that is alone at its site too; within others it is a part of theirs.
        """
        if not self._alone:
            return [function(block) for block in blocks]
        taken, results = [], []
        for block in blocks:
            begun = time.thread_time()
            results.append(function(block))
            taken.append(time.thread_time() - begun)
        self._shared += sum(taken)
        if blocks:
            self.sites.append(Site(function.__name__, taken, [0.0] * len(taken)))
        return results

    def end(self, job: Any) -> None:
        """See :class:`tailwise.distributed.engines.Engine`."""


def main(arguments: list[str]) -> None:
    import tailwise as tw

    parser = argparse.ArgumentParser(prog="balance")
    parser.add_argument("shape", nargs="*", type=int, metavar="rows labels")
    parser.add_argument("--trees", nargs="*", type=int, default=[3, 1])
    options = parser.parse_args(arguments)
    console = Console(width=160)
    table = Table("data", "model", "CPU-s", "between", *(f"{n} workers" for n in WORKERS), "at most")
    found = {}
    for data in [_drawn(*options.shape)] if options.shape else [tw.load_dataset("eurlex-4k"), _drawn(*_SHAPE)]:
        for name, model in _models(data.n_labels, options.trees).items():
            own = found[f"{data.name}, {name}"] = _measured(model, data)
            busy = (f"{100 * own['busy'][n]:.0f} % busy, {own['CPU-s'] / own['span'][n]:.1f}×" for n in WORKERS)
            ends = [("between", own["between"]), *((site.name, max(site.taken)) for site in own["sites"])]
            at_most = f"{own['CPU-s'] / sum(seconds for _, seconds in ends):.0f}×"
            table.add_row(data.name, name, f"{own['CPU-s']:.1f}", f"{own['between']:.2f}", *busy, at_most)
            largest = sorted(ends, key=lambda end: -end[1])[:_MOST_TOLD]
            told = [str(site) for site in own["sites"] if sum(site.taken) > own["CPU-s"] / 100]
            console.print(f"{data.name}, {name}: " + "; ".join(told))
            console.print("  what ends it, s: " + ", ".join(f"{end} {seconds:.3f}" for end, seconds in largest))
    console.print(table)
    save_results("balance", found)


def _drawn(rows: int, labels: int) -> Any:
    import tailwise as tw

    return tw.make_longtail(rows, max(1_000, rows // 5), labels, **DRAWN, test_fraction=0, random_state=0)


def _models(n_labels: int, trees: list[int]) -> dict[str, Any]:
    import tailwise as tw

    models: dict[str, Any] = {} if n_labels > _MOST_LINEAR else {"DiSMEC": tw.DiSMEC(random_state=0, n_jobs=_THREADS)}
    for n in trees:
        models[f"Bonsai, {n} tree{'s' * (n > 1)}"] = tw.Bonsai(n, random_state=0, n_jobs=_THREADS)
    return models


def _measured(model: Any, data: Any) -> dict[str, Any]:
    """A model trained within a run, and how long so many workers would take."""
    import tailwise as tw

    clone(model).fit(data.X_train[:300], data.Y_train[:300])
    timing = Timing()
    with tempfile.TemporaryDirectory() as folder, tw.workdir(folder, timing), ExitStack() as patched:
        for module in _sharing():
            patched.enter_context(patch.object(module, "map_blocks", timing.map_blocks))
        begun = time.thread_time()
        model.fit(data.X_train, data.Y_train)
        total = time.thread_time() - begun
    sites = timing.sites
    shared = sum(sum(site.taken) for site in sites)
    between = total - shared - sum(sum(site.looked_at) for site in sites)
    spans = {n: between + sum(span(site.taken, n, site.looked_at) for site in sites) for n in WORKERS}
    busy = {n: shared / (n * spans[n]) for n in WORKERS}
    return {"CPU-s": total, "between": between, "sites": sites, "span": spans, "busy": busy}


def _sharing() -> list[Any]:
    """The modules that have threads share work within the program."""
    from tailwise import parallel
    from tailwise.distributed import engines

    loaded = [module for name, module in sys.modules.items() if name.startswith("tailwise.")]
    own = [module for module in loaded if vars(module).get("map_blocks") is parallel.map_blocks]
    return [module for module in own if module not in (parallel, engines)]


def span(pieces: list[float], workers: int, looked_at: list[float] | None = None) -> float:
    """How long ``workers`` take for ``pieces``, each taking the next one in order when it is free.

    The main thread looks at each that is finished, one at a time.

    >>> span([3.0, 1.0, 1.0, 1.0], 2)
    3.0
    >>> span([3.0, 1.0, 1.0, 1.0], 2, [0.25, 0.25, 0.25, 0.25])
    3.5
    """
    free = [0.0] * workers
    finished = []
    for number, taken in enumerate(pieces):
        end = heapq.heappop(free) + taken
        heapq.heappush(free, end)
        finished.append((end, looked_at[number] if looked_at else 0.0))
    last = 0.0
    for end, look in sorted(finished):
        last = max(last, end) + look
    return last
