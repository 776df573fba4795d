"""What does the whole way from raw texts to a report cost, and where does the time go?

On the English TIBKAT records (41,333 for training, 9,672 for judging, title and abstract, GND subjects): one command
each for training, evaluation and the report, every one in a process of its own. The peak memory of each must stay under
4 GB. The corpus lies in ``../shared/data``; without it there is nothing to measure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, save_results

QUESTION = "What does the way from JSON Lines to an evaluated model and a report cost?"
_DATA = ROOT.parent / "shared" / "data"
_PEAK_LIMIT_MB = 4000


def main(arguments: list[str]) -> None:
    train, judged, names = (
        _DATA / name for name in ("tibkat-en-train.jsonl.xz", "tibkat-en-dev.jsonl.xz", "tibkat-label-names.json.xz")
    )
    if not train.exists():
        print(f"{train} is not at hand; nothing was measured")
        return
    with tempfile.TemporaryDirectory() as folder:
        model, page = Path(folder) / "model", Path(folder) / "report.html"
        steps = {
            "train": ["train", train, "-o", model, "--label-names", names, *arguments],
            "evaluate": ["evaluate", model, judged],
            "report": ["report", model, judged, "-o", page],
        }
        figures: dict[str, Any] = {}
        for verb, command in steps.items():
            figures[verb] = _run([*map(str, command), "--json"])
            cost = figures[verb]
            print(f"{verb:9} {cost['cpu']:7.1f} CPU-s {cost['wall']:7.1f} s {cost['peak_mb']:7.0f} MB", flush=True)
    print("training:", ", ".join(f"{part} {s:.1f} s" for part, s in figures["train"]["result"]["seconds"].items()))
    for metric, found in figures["evaluate"]["result"]["metrics"].items():
        print(f"{metric:15} {found['value']:6.2f}  [{found['low']:.2f}, {found['high']:.2f}]")
    save_results("text_to_report", figures)
    highest = max(cost["peak_mb"] for cost in figures.values())
    if highest > _PEAK_LIMIT_MB:
        sys.exit(f"a step took {highest:,.0f} MB, more than {_PEAK_LIMIT_MB:,}")


def _run(arguments: list[str]) -> dict[str, Any]:
    start = time.perf_counter()
    command = [sys.executable, "-m", "tailwise.cli", *arguments]
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"{' '.join(command)} failed")
        out.seek(0)
        result = json.load(out)
    return {
        "wall": time.perf_counter() - start,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
        "result": result,
    }
