"""The harness: each contender in a process of its own, interleaved, several times, compared with ours by ratio.

A benchmark is a module of this package that defines::

    QUESTION = "How fast is the reader beside scikit-learn's?"          # one line, printed first
    REPEATS = 3                                                         # optional; --repeats N at the command line wins
    # --only dismec,liblinear at the command line runs the contenders with these texts in their names
    # --data NAME at the command line is what contenders(NAME) gets, where a module takes other data than its own
    THREADS = 2                                                         # optional
    def contenders() -> list[Contender]: ...                            # the first one is ours

and one function for each contender, which runs in a fresh process and returns a dict of figures::

    def run_ours() -> dict:
        data = load()                      # not measured
        with measure() as m:               # wall, CPU and peak memory of this part (all threads)
            model = fit(data)
        return {"train": m, "P@1": 83.9, "model MB": 4.2}

A ``Measurement`` in the dict becomes the columns "train CPU-s", "train s" and "train peak MB"; its CPU-seconds are what
ratios are made of. A contender names its function, the interpreter and the modules it needs there. Interpreters are
``"ours"``, ``"peers"`` (``.venv-peers``), ``"pecos"``, ``"cleanlab"``; a contender whose modules do not
import is reported as absent.

Peers do not have tailwise: ``matrices("eurlex-4k")`` gives every contender the same files (rows scaled to unit length),
and ``"top": keep_predictions(labels)`` hands (n, k) predicted labels back, which this process scores for all alike
(P@1/3/5 and PSP@1/3/5).

A module may define ``main(arguments)`` instead, where the question does not fit this form (curves, plots, tables).
Results go to ``benchmarks/results/NAME.json`` with versions, commit and CPU.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TextIO

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PYTHONS = {
    "ours": Path(sys.executable),
    "peers": ROOT / ".venv-peers" / "bin" / "python",
    "pecos": ROOT / ".venv-pecos" / "bin" / "python",
    "cleanlab": ROOT / ".venv-cleanlab" / "bin" / "python",
}
_MARK = "@@figures "


@dataclass
class Contender:
    """One way to do the job: ``function`` of the benchmark's module, run by the interpreter of ``where``."""

    name: str
    function: str
    where: str = "ours"
    needs: tuple[str, ...] = ()
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass
class Measurement:
    """What a measured part took: CPU-seconds of all threads, wall-clock seconds, growth of memory to its peak in MB."""

    cpu: float = 0.0
    wall: float = 0.0
    peak_mb: float = 0.0


@contextmanager
def measure(children: bool = False) -> Iterator[Measurement]:
    """Measure the block: CPU-seconds, wall time, and peak resident memory above what was there at its start.

    ``children=True`` adds the CPU-seconds of processes that the block starts and waits for.
    """
    result = Measurement()
    base, peak, done = _resident_mb(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], _resident_mb())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    cpu, wall = _cpu_seconds(children), time.perf_counter()
    try:
        yield result
    finally:
        result.cpu, result.wall = _cpu_seconds(children) - cpu, time.perf_counter() - wall
        peak[0] = max(peak[0], _resident_mb())
        done.set()
        watcher.join()
        result.peak_mb = max(0.0, peak[0] - base)


class Matrices(NamedTuple):
    """Training and test rows (unit length, float32 CSR) and labels (binary CSR)."""

    X_train: Any
    Y_train: Any
    X_test: Any
    Y_test: Any


def matrices(name: str, draw: Callable[[], Any] | None = None) -> Matrices:
    """The dataset ``name`` as files that every environment can read; written on first use by ours.

    It is what ``draw`` returns, or else that which tailwise knows by its name.
    """
    from scipy import sparse

    folder = RESULTS / "data" / name
    if not (folder / "Y_test.npz").exists():
        from tailwise import load_dataset
        from tailwise.rows import unit_rows
        from tailwise.validation import check_features

        dataset = draw() if draw else load_dataset(name)
        folder.mkdir(parents=True, exist_ok=True)
        for part in Matrices._fields:
            value = getattr(dataset, part)
            sparse.save_npz(folder / f"{part}.npz", unit_rows(check_features(value)) if part[0] == "X" else value)
    return Matrices(*(sparse.csr_matrix(sparse.load_npz(folder / f"{part}.npz")) for part in Matrices._fields))


def keep_predictions(labels: Any, dataset: str = "eurlex-4k") -> dict[str, str]:
    """Hand (n, k) predicted labels of the test rows to the process that scores every contender alike."""
    import numpy as np

    with tempfile.NamedTemporaryFile(suffix=".npy", delete=False) as file:
        np.save(file, np.asarray(labels, np.int32))
    return {"predictions": file.name, "dataset": dataset}


def _score(kept: dict[str, str]) -> dict[str, float]:
    import numpy as np

    from tailwise import JainPropensity, TopK, evaluate

    labels = np.load(kept["predictions"])
    Path(kept["predictions"]).unlink()
    data = matrices(kept["dataset"])
    ranks = np.broadcast_to(-np.arange(labels.shape[1], dtype=np.float32), labels.shape)
    names = [f"{metric}@{k}" for metric in ("p", "psp") for k in (1, 3, 5)]
    top = TopK(labels, np.where(labels >= 0, ranks, -np.inf).astype(np.float32))
    result = evaluate(data.Y_test, top, names, propensity=JainPropensity().fit(data.Y_train))
    return {name.upper(): float(result[name].value) for name in names}


def _cpu_seconds(children: bool) -> float:
    usages = [resource.getrusage(resource.RUSAGE_SELF)]
    if children:
        usages.append(resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def folder_mb(path: Path) -> float:
    """Size of a file, or of everything below a folder, in MB."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(p.stat().st_size for p in files) / 2**20


def run(name: str, arguments: list[str]) -> None:
    """Run the benchmark ``name`` and print its table."""
    module = import_module(f"benchmarks.{name}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    print(f"\n{name}: {getattr(module, 'QUESTION', (module.__doc__ or '').splitlines()[0])}")
    if hasattr(module, "main"):
        module.main(arguments)
        return
    data = _option(arguments, "--data")
    contenders = choose(module.contenders(data) if data else module.contenders(), _option(arguments, "--only"))
    repeats = int(_option(arguments, "--repeats") or getattr(module, "REPEATS", 3))
    threads = getattr(module, "THREADS", 2)
    runs: dict[str, list[dict[str, Any]]] = {c.name: [] for c in contenders}
    absent: dict[str, str] = {}
    for repeat in range(repeats):
        for contender in contenders:
            if contender.name in absent:
                continue
            figures, problem = _run_in_process(name, contender, threads)
            if problem:
                absent[contender.name] = problem
            else:
                runs[contender.name].append(figures)
                print(f"  run {repeat + 1}/{repeats} {contender.name}: {_brief(figures)}", file=sys.stderr)
    present = {key: value for key, value in runs.items() if value}
    print_table(present, absent, threads)
    save_results(f"{name}-{data}" if data else name, {"threads": threads, "runs": present, "absent": absent})


def run_all(arguments: list[str]) -> None:
    """Make every comparison with other programs, and a page of all; one that fails keeps no other from being made."""
    names = [
        name for name, module in available().items() if hasattr(module, "contenders") and not hasattr(module, "main")
    ]
    failed = {}
    for name in names:
        try:
            run(name, arguments)
        except (Exception, SystemExit) as error:
            failed[name] = repr(error)
            print(f"  failed: {name}: {error!r}")
    page = write_page(names)
    print(f"  written: {page.relative_to(ROOT)}")
    if failed:
        raise SystemExit(f"{len(failed)} of {len(names)} comparisons failed: {failed}")


def write_page(names: list[str]) -> Path:
    """The tables of the benchmarks ``names`` that have results, on one page: ``benchmarks/results/all.md``."""
    path = RESULTS / "all.md"
    with path.open("w", encoding="utf-8") as page:
        for name in names:
            kept = RESULTS / f"{name}.json"
            if not kept.exists():
                continue
            results = json.loads(kept.read_text())
            machine = results["machine"]
            print(f"# {name}\n\n{import_module(f'benchmarks.{name}').QUESTION}\n", file=page)
            print(
                f"{machine['cpu']}, {machine['cores']} cores, {machine['date']}, {machine['commit'][:7]}\n", file=page
            )
            print("```", file=page)
            print_table(results["runs"], results["absent"], results["threads"], page)
            print("```\n", file=page)
    return path


def _option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments[:-1] else ""


def choose(contenders: list[Contender], only: str) -> list[Contender]:
    """Those whose names hold one of the comma-separated texts of ``only``, in any case; all of them if it is empty."""
    texts = [text.strip().lower() for text in only.split(",") if text.strip()]
    chosen = [c for c in contenders if not texts or any(text in c.name.lower() for text in texts)]
    if not chosen:
        raise SystemExit(
            f"--only {only}: no contender has such a name; there are: {'; '.join(c.name for c in contenders)}"
        )
    return chosen


def _run_in_process(name: str, contender: Contender, threads: int) -> tuple[dict[str, Any], str]:
    python = PYTHONS[contender.where]
    if not python.exists():
        return {}, "its environment is not installed (make peers)"
    check = subprocess.run(
        [python, "-c", ";".join(f"import {m}" for m in contender.needs) or "pass"], capture_output=True
    )
    if check.returncode:
        return {}, f"does not import: {check.stderr.decode().strip().splitlines()[-1]}"
    code = (
        "import json, sys; from importlib import import_module; from benchmarks import harness;"
        f"f = getattr(import_module('benchmarks.{name}'), {contender.function!r});"
        f"r = f(**json.loads({json.dumps(contender.arguments)!r}));"
        f"print({_MARK!r} + json.dumps(harness.flatten(r)))"
    )
    limits = {f"{kind}_NUM_THREADS": str(threads) for kind in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")}
    done = subprocess.run(
        [python, "-c", code],
        cwd=ROOT,
        env=os.environ | limits,
        capture_output=True,
        text=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not lines:
        return {}, "failed: " + (done.stderr.strip().splitlines() or ["no output"])[-1]
    figures = json.loads(lines[-1].removeprefix(_MARK))
    if "top" in figures:
        figures |= _score(figures.pop("top"))
    return figures, ""


def flatten(figures: dict[str, Any]) -> dict[str, Any]:
    """Turn each Measurement into plain columns."""
    flat: dict[str, Any] = {}
    for key, value in figures.items():
        if isinstance(value, Measurement):
            flat |= {f"{key} CPU-s": value.cpu, f"{key} s": value.wall, f"{key} peak MB": value.peak_mb}
        else:
            flat[key] = value
    return flat


def _brief(figures: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in figures.items())


def print_table(
    runs: dict[str, list[dict[str, Any]]], absent: dict[str, str], threads: int, file: TextIO | None = None
) -> None:
    """Medians of each figure, with the spread of each contender's CPU ratio to the first one's in the same round."""
    from rich.console import Console
    from rich.table import Table

    if not runs:
        print("  no contender ran:", absent, file=file)
        return
    ours = next(iter(runs))
    columns = list(dict.fromkeys(key for figures in runs.values() for row in figures for key in row))
    ratios = [c for c in columns if c.endswith(" CPU-s")] or [c for c in columns if c.endswith(" s")]
    table = Table(
        caption=f"medians, lowest-highest in brackets; {threads} threads; "
        f"× = CPU-seconds over {ours}'s in the same round (lowest-highest)"
    )
    table.add_column("contender")
    for column in columns:
        table.add_column(column, justify="right")
    for name, rows in runs.items():
        cells = []
        for column in columns:
            values = [row[column] for row in rows if column in row]
            cell = _median(values) + _spread(values)
            if column in ratios and name != ours and values:
                pairs = [
                    b[column] / a[column]
                    for a, b in zip(runs[ours], rows, strict=False)
                    if a.get(column) and column in b
                ]
                if pairs:
                    cell += f" (×{statistics.median(pairs):.3g}, {min(pairs):.3g}-{max(pairs):.3g})"
            cells.append(cell)
        table.add_row(name, *cells)
    console = Console(width=None if file is None and sys.stdout.isatty() else 260, file=file)
    console.print(table)
    for name, why in absent.items():
        console.print(f"  absent: {name}: {why}")


def _median(values: list[Any]) -> str:
    if not values:
        return "–"
    if isinstance(values[0], str):
        return values[0]
    return (
        f"{statistics.median(values):,.3g}"
        if abs(statistics.median(values)) < 100
        else f"{statistics.median(values):,.0f}"
    )


def _spread(values: list[Any]) -> str:
    """The lowest and highest of several runs, unless they are within 1 % of each other."""
    if not values or isinstance(values[0], str) or max(values) - min(values) <= 0.01 * abs(max(values)):
        return ""
    return f" [{min(values):,.3g}-{max(values):,.3g}]"


def save_results(name: str, results: dict[str, Any]) -> Path:
    """Write ``results`` with versions, commit and CPU beside them."""
    # Not at the top: peers run this file in environments without tailwise.
    from tailwise.display import plain

    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(plain({"benchmark": name, "machine": describe_machine(), **results}), indent=1))
    print(f"  written: {path.relative_to(ROOT)}")
    return path


def describe_machine() -> dict[str, Any]:
    """CPU, cores, memory, versions and commit: what a figure depends on."""
    cpu = next((line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "")
    memory = next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    packages = ("tailwise", "numpy", "scipy", "scikit-learn", "numba", "torch", "faiss-cpu")
    installed = {d.metadata["Name"]: d.version for d in metadata.distributions()}
    return {
        "cpu": cpu or platform.processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(int(memory) / 2**20, 1),
        "python": platform.python_version(),
        "versions": {p: installed[p] for p in packages if p in installed},
        "peers": _peer_versions(),
        "commit": commit,
        "date": time.strftime("%Y-%m-%d"),
    }


def _peer_versions() -> dict[str, str]:
    if not PYTHONS["peers"].exists():
        return {}
    done = subprocess.run([PYTHONS["peers"], "-m", "pip", "list", "--format=json"], capture_output=True, text=True)
    peers = {"napkinxc", "omikuji", "liblinear-official", "libmultilabel", "libpecos", "scikit-learn"}
    return {p["name"]: p["version"] for p in json.loads(done.stdout or "[]") if p["name"] in peers}


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def available() -> dict[str, ModuleType]:
    """Every benchmark by name."""
    names = sorted(
        p.stem
        for p in Path(__file__).parent.glob("*.py")
        if p.stem not in {"__init__", "__main__", "corpora", "harness", "subsets"}
    )
    return {name: import_module(f"benchmarks.{name}") for name in names}
