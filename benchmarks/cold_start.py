"""How long does a first use take, with nothing compiled, and how long the next one?

Each verb in a process of its own, on 600 made-up records with titles and abstracts: once with an empty folder for
compiled code, then ``--rounds`` times with what the first run left there. Beside them, in every round, a process that
only imports scikit-learn, the largest thing that a verb loads::

    python -m benchmarks cold_start                      # all verbs
    python -m benchmarks cold_start --only suggest       # those with this text in their names
    python -m benchmarks cold_start --kernels            # and which functions were compiled in which time

CPU-seconds are what stays the same on a busy machine. The last column tells how many functions a verb still compiles
after ``tailwise warm``. A function's time in ``--kernels`` is its own: without those that it had compiled.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import save_results
from tailwise.serving.demo import concepts, records

QUESTION = "How long does a first use take, with nothing compiled, and how long the next one?"
_RECORDS = 600
_HELD_OUT = 120
MODELS = ("dismec", "bonsai", "parabel")
_IMPORT = "import scikit-learn"
_TEXT = "Studies in the history of metals, mills and the early modern trade in wool"
# Runs a verb and writes, at its end, the seconds that each function took to be compiled.
_LISTENING = """
import json, logging, sys, time
spent, open_since = {}, []
class Listener(logging.Handler):
    def emit(self, record):
        begins = getattr(record, "compiling", None)
        if begins:
            open_since.append([time.perf_counter(), 0.0])
        elif begins is False and open_since:
            since, inner = open_since.pop()
            whole = time.perf_counter() - since
            name = record.args[0]
            signatures, seconds = spent.get(name, (0, 0.0))
            spent[name] = signatures + 1, seconds + whole - inner
            if open_since:
                open_since[-1][1] += whole
logging.getLogger("tailwise").addHandler(Listener())
from tailwise.cli import main
file = sys.argv.pop(1)
try:
    status = main(sys.argv[1:])
finally:
    open(file, "w").write(json.dumps(spent))
sys.exit(status)
"""


class Cost(NamedTuple):
    """What one process took, and what it compiled: signatures and seconds by function."""

    cpu: float
    wall: float
    compiled: dict[str, tuple[int, float]]


def main(arguments: list[str]) -> None:
    """Measure, print the table, and write it."""
    only = _option(arguments, "--only", "")
    rounds = int(_option(arguments, "--rounds", "3"))
    with tempfile.TemporaryDirectory(prefix="tailwise-cold-") as name:
        folder = Path(name)
        _write_records(folder)
        verbs = {verb: line for verb, line in _verbs(folder).items() if only in verb}
        for model in MODELS:
            _run(_tailwise(folder, _verbs(folder)[f"train {model}"]), folder, _variables())
        figures = {verb: _measure(verb, line, folder, rounds) for verb, line in verbs.items()}
        left = _left_to_compile(verbs, folder)
    _print(figures, left)
    if "--kernels" in arguments:
        _print_kernels({verb: costs["cold"][0] for verb, costs in figures.items()})
    plain = {
        verb: {when: [cost._asdict() for cost in found] for when, found in costs.items()}
        for verb, costs in figures.items()
    }
    save_results("cold_start", plain)


def _verbs(folder: Path) -> dict[str, list[str]]:
    """The command lines by name, in an order in which each finds what it needs."""
    train, test = str(folder / "train.jsonl"), str(folder / "test.jsonl")
    models = {name: str(folder / name) for name in MODELS}
    made = {f"train {name}": ["train", train, "-o", path, "-m", name, "--overwrite"] for name, path in models.items()}
    asked = {f"suggest {name}": ["suggest", models[name], _TEXT] for name in ("dismec", "parabel")}
    judged = {"compare": ["compare", models["dismec"], models["parabel"], test]}
    return made | asked | judged | {"info": ["info"], "info dismec": ["info", models["dismec"]]}


def _measure(verb: str, line: list[str], folder: Path, rounds: int) -> dict[str, list[Cost]]:
    """The costs of a verb with an empty cache and after that, and of importing scikit-learn in the same rounds."""
    environment = _emptied(folder)
    costs: dict[str, list[Cost]] = {"cold": [], "warm": [], _IMPORT: []}
    for when in ["cold", *["warm"] * rounds]:
        cost = _run(_tailwise(folder, line), folder, environment)
        costs[when].append(cost)
        costs[_IMPORT].append(_run([sys.executable, "-c", "import sklearn"], folder, environment))
        print(f"  {verb} {when}: {cost.cpu:.2f} CPU-s, {cost.wall:.2f} s", file=sys.stderr, flush=True)
    return costs


def _left_to_compile(verbs: dict[str, list[str]], folder: Path) -> dict[str, int]:
    """How many functions each verb compiles after ``tailwise warm`` has."""
    environment = _emptied(folder)
    cost = _run(_tailwise(folder, ["warm", *MODELS]), folder, environment)
    print(f"tailwise warm {' '.join(MODELS)}: {cost.cpu:.1f} CPU-s, {cost.wall:.1f} s, {_count(cost)} functions")
    return {verb: _count(_run(_tailwise(folder, line), folder, environment)) for verb, line in verbs.items()}


def _emptied(folder: Path) -> dict[str, str]:
    """Variables that name an empty folder for compiled code."""
    compiled = folder / "compiled"
    shutil.rmtree(compiled, ignore_errors=True)
    return _variables() | {"NUMBA_CACHE_DIR": str(compiled)}


def _variables() -> dict[str, str]:
    """Those of this process, where Python may keep what it makes of sources, as it does wherever it is installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _tailwise(folder: Path, line: list[str]) -> list[str]:
    return [sys.executable, "-c", _LISTENING, str(folder / "spent.json"), *line]


def _run(command: list[str], folder: Path, environment: Mapping[str, str]) -> Cost:
    found = folder / "spent.json"
    found.unlink(missing_ok=True)
    start = time.perf_counter()
    with (folder / "messages").open("w+") as messages:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            messages.seek(0)
            sys.exit(f"{' '.join(command[4:])} failed: {messages.read()[-2000:]}")
    wall = time.perf_counter() - start
    compiled = json.loads(found.read_text()) if found.exists() else {}
    return Cost(usage.ru_utime + usage.ru_stime, wall, compiled)


def _count(cost: Cost) -> int:
    return sum(signatures for signatures, _ in cost.compiled.values())


def _write_records(folder: Path) -> None:
    texts, labels = records(concepts(), _RECORDS + _HELD_OUT)
    rows = [
        json.dumps({"title": title, "abstract": abstract, "labels": own})
        for title, abstract, own in zip(texts.fields["title"], texts.fields["abstract"], labels, strict=True)
    ]
    (folder / "train.jsonl").write_text("\n".join(rows[:_RECORDS]) + "\n", encoding="utf-8")
    (folder / "test.jsonl").write_text("\n".join(rows[_RECORDS:]) + "\n", encoding="utf-8")


def _print(figures: dict[str, dict[str, list[Cost]]], left: dict[str, int]) -> None:
    """One line a verb: CPU-seconds and wall seconds, cold and warm, and the import of scikit-learn beside."""
    print(f"\n{'':16}{'cold':>7}{'':9}{'warm':>7}{'':9}{'import':>7}{'warm /':>8}{'compiled':>10}{'after':>6}")
    print(
        f"{'verb':16}{'CPU-s':>7}{'s':>7}{'':2}{'CPU-s':>7}{'s':>7}{'':2}{'sklearn':>7}{'import':>8}{'functions':>10}"
        f"{'warm':>6}"
    )
    for verb, costs in figures.items():
        cold, warm, imported = costs["cold"][0], _median(costs["warm"]), _median(costs[_IMPORT])
        print(
            f"{verb:16}{cold.cpu:7.2f}{cold.wall:7.2f}{'':2}{warm.cpu:7.2f}{warm.wall:7.2f}{'':2}"
            f"{imported.cpu:7.2f}{warm.cpu / imported.cpu:8.2f}{_count(cold):10}{left[verb]:6}"
        )


def _median(costs: list[Cost]) -> Cost:
    return Cost(statistics.median(c.cpu for c in costs), statistics.median(c.wall for c in costs), {})


def _print_kernels(cold: dict[str, Cost]) -> None:
    for verb, cost in cold.items():
        whole = sum(seconds for _, seconds in cost.compiled.values())
        print(f"\n{verb}: {len(cost.compiled)} functions in {whole:.1f} s")
        for name, (signatures, seconds) in sorted(cost.compiled.items(), key=lambda item: -item[1][1]):
            print(f"  {seconds:6.2f} s  {name}" + (f" × {signatures} signatures" if signatures > 1 else ""))


def _option(arguments: list[str], name: str, otherwise: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments[:-1] else otherwise
