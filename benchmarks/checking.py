"""What do the checks of models and of matrices cost?

``python -m benchmarks checking [megabytes …]``

Models of neighbours of these sizes are saved and opened, each in a process of its own: without the checks of what
arrays hold, with them (``verify=False``), and with the digests of all files too, the default. The files are in the page
cache. CPU-seconds, and the memory that opening took beside the mapped files. Then the pass that looks at every index
and value of a matrix before a model takes it, by numbers of rows of 100 values.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

from benchmarks.harness import save_results

QUESTION = "What do the checks of models and of matrices cost?"
SIZES = (100, 1000)
_VALUES_A_ROW = 50
_REPEATS = 3
_OPEN = """
import sys, time
import tailwise
from tailwise.persistence import Saveable, checks, decoding
def anonymous():
    return sum(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")) / 1024
getattr(tailwise, "NearestRows")
if sys.argv[2] == "no checks":
    tailwise.NearestRows._check_state = lambda self: None
    decoding.check_csr = lambda name, data, indices, indptr, shape: tuple(shape)
before, begun = anonymous(), time.process_time()
model = tailwise.load(sys.argv[1], verify=sys.argv[2] == "checks and digests")
print(time.process_time() - begun, anonymous() - before)
"""


def main(arguments: list[str]) -> None:
    rows = []
    for megabytes in [int(text) for text in arguments] or SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = _saved(Path(folder) / "model", megabytes)
            size = sum(file.stat().st_size for file in path.iterdir()) / 1e6
            for how in ("no checks", "checks", "checks and digests"):
                runs = [
                    subprocess.run([sys.executable, "-c", _OPEN, str(path), how], capture_output=True, check=True)
                    for _ in range(_REPEATS)
                ]
                taken, memory = zip(*(map(float, run.stdout.split()) for run in runs), strict=True)
                rows.append({"MB": round(size), "opened with": how, "CPU-s": min(taken), "memory MB": max(memory)})
    matrices = [_check_matrix(n) for n in (1, 1000, 100_000)]
    _show("Opening a model", rows)
    _show("Checking a matrix", matrices)
    save_results("checking", {"opening": rows, "matrices": matrices})


def _check_matrix(n: int) -> dict[str, object]:
    from tailwise.validation import check_features

    rng = np.random.default_rng(0)
    X = sparse.csr_array(
        (
            rng.random(100 * n, dtype=np.float32),
            np.tile(np.arange(0, 1000, 10, dtype=np.int32), n),
            100 * np.arange(n + 1, dtype=np.int32),
        ),
        shape=(n, 1000),
    )
    times = max(3, 20_000 // n)
    check_features(X)
    taken = []
    for _ in range(_REPEATS):
        begun = time.process_time()
        for _ in range(times):
            check_features(X)
        taken.append((time.process_time() - begun) / times)
    return {"rows": n, "microseconds": 1e6 * min(taken)}


def _show(title: str, rows: list[dict[str, object]]) -> None:
    table = Table(*rows[0], title=title)
    for row in rows:
        table.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
    Console(width=100).print(table)


def _saved(path: Path, megabytes: int) -> Path:
    import tailwise

    rng = np.random.default_rng(0)
    n = int(megabytes * 1e6 / (8 * _VALUES_A_ROW))
    indices = np.sort(rng.integers(0, 1000, size=(n, _VALUES_A_ROW)) + 1000 * np.arange(_VALUES_A_ROW), axis=1)
    X = sparse.csr_array(
        (
            rng.random(n * _VALUES_A_ROW, dtype=np.float32),
            indices.ravel().astype(np.int32),
            _VALUES_A_ROW * np.arange(n + 1),
        ),
        shape=(n, 1000 * _VALUES_A_ROW),
    )
    Y = sparse.csr_array((np.ones(n, np.float32), rng.integers(0, 1000, n), np.arange(n + 1)), shape=(n, 1000))
    tailwise.NearestRows(n_jobs=1).fit(X, Y).save(path)
    return path
