"""What does it cost to open a model that nobody vouches for?

``python -m benchmarks opening [megabytes …]``

Models of neighbours of these sizes are saved and opened, each in a process of its own: without the checks of what
arrays hold, with them (``verify=False``), and with the digests of all files too, the default. The files are in the page
cache. CPU-seconds, and the memory that opening took beside the mapped files.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

from benchmarks.harness import save_results

QUESTION = "What does it cost to open a model that nobody vouches for?"
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
    table = Table(*rows[0], title=QUESTION)
    for row in rows:
        table.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
    Console(width=100).print(table)
    save_results("opening", {"rows": rows})


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
