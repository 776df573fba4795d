"""What do the readers make of files that a fuzzer grows, branch by branch of their code?

As ``readers``, with the same twins, but atheris chooses the changes: it keeps what reaches code that nothing reached
before. Needs atheris, and says so where it is missing.
"""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tailwise.kernels
from drills.harness import Outcome, wanted

COUNT = 20_000
MODEST = 500
_REPORT_EVERY = 1_000


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    """Each reader with ``count`` files, in a process that may die."""
    if find_spec("atheris") is None:
        print("  not run: atheris is missing")
        return
    from drills.formats import readers

    for number, reader in enumerate(readers()):
        if not wanted(reader.name):
            continue
        outcome = Outcome(reader.name)
        command = [sys.executable, "-m", "drills.fuzz", str(number), str(count), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=_environment())
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        for kind, why, times in json.loads(lines[-1])["ends"] if lines else []:
            for _ in range(times):
                outcome.count(kind, why)
        if outcome.tried < count:
            outcome.count("broken", f"the fuzzer died ({done.returncode}): {done.stderr[-300:]}")
        yield outcome


def _environment() -> dict[str, str]:
    """This process's, with the places it imports from: the fuzzer runs where its remains are removed."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}


def _fuzz(number: int, count: int, folder: Path) -> None:
    import atheris

    # Compiled code cannot be watched, and must not be: the readers around it are.
    for module in pkgutil.walk_packages(tailwise.kernels.__path__, "tailwise.kernels."):
        import_module(module.name)
    with atheris.instrument_imports(include=["tailwise"]):
        from drills import formats, readers
    reader = formats.readers()[number]
    ends: dict[tuple[str, str], int] = {}
    path = folder / f"fuzzed{reader.suffix}"
    (folder / f"seeds{number}").mkdir(exist_ok=True)
    (folder / f"seeds{number}" / "seed").write_bytes(reader.seed)
    words = folder / "words"
    words.write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in word[:60]) + '"\n' for word in readers.NASTY))
    tried = 0

    def try_one(data: bytes) -> None:
        nonlocal tried
        if tried == count:
            return
        tried += 1
        path.write_bytes(reader.packed(data))
        kind, why = readers.judge(reader, path)
        ends[kind, why if kind == "broken" else ""] = ends.get((kind, why if kind == "broken" else ""), 0) + 1
        if tried % _REPORT_EVERY == 0 or tried == count:
            _report(ends)

    options = [f"-runs={count + 10}", "-max_len=4096", f"-dict={words}", "-verbosity=0", "-seed=1", "-timeout=60"]
    atheris.Setup([sys.argv[0], *options, str(folder / f"seeds{number}")], try_one)
    atheris.Fuzz()


def _report(ends: dict[tuple[str, str], int]) -> Any:
    print(json.dumps({"ends": [[kind, why, times] for (kind, why), times in ends.items()]}), flush=True)


if __name__ == "__main__":
    _fuzz(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
