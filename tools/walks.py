"""Do the walks of ``docs/walks`` reach their end on a clean machine? ``make walks`` tries.

The wheel is built and installed with the extras that the walks use into an empty environment under
``constraints.txt``; then each walk runs in an empty folder, with an empty home and the environment's commands first on
the path, outside of the source tree. Nothing compiled is there before. The exit status is 1 where a walk failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from release_check import ROOT, Failed, environment, run

WALKS = sorted(path for path in (ROOT / "docs" / "walks").iterdir() if path.suffix in (".py", ".sh"))
EXTRAS = "report,excel,parquet"


def build_wheel(folder: Path) -> Path:
    """The wheel of the source tree, built in an environment of its own."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def walk(script: Path, commands: Path, folder: Path) -> str:
    """What is printed on the walk; refused where it ends early."""
    place, home = folder / "empty", folder / "home"
    place.mkdir(parents=True)
    home.mkdir()
    settings = {"PATH": f"{commands}{os.pathsep}{os.defpath}", "HOME": str(home), "LANG": "C.UTF-8"}
    program = [commands / "python", script] if script.suffix == ".py" else ["sh", script]
    done = subprocess.run(
        [str(part) for part in program],
        cwd=place,
        env=settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or "Traceback" in done.stderr:
        raise Failed(f"{script.name}, status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def main() -> int:
    """Go every walk, or those named, and print a line for each."""
    parser = argparse.ArgumentParser(prog="walks", description=__doc__)
    parser.add_argument("walks", nargs="*", metavar="WALK", help="such as librarian (default: all)")
    parser.add_argument("--show", action="store_true", help="print what each walk prints")
    wanted = parser.parse_args()
    chosen = [script for script in WALKS if not wanted.walks or script.stem in wanted.walks]
    failures = []
    with tempfile.TemporaryDirectory(prefix="walks-") as scratch:
        folder = Path(scratch)
        wheel = build_wheel(folder / "dist")
        commands = environment(sys.executable, folder / "environment", f"{wheel}[{EXTRAS}]")
        # The pages that the reader reads; nothing else of the source tree is at hand.
        docs = shutil.copytree(ROOT / "docs", folder / "docs")
        print(f"{wheel.name}[{EXTRAS}] is installed", flush=True)
        for script in chosen:
            start = time.perf_counter()
            try:
                said = walk(docs / "walks" / script.name, commands, folder / script.stem)
                print(f"{script.stem}: reached its end in {time.perf_counter() - start:.0f} s", flush=True)
                if wanted.show:
                    print(said)
            except Failed as error:
                failures.append(str(error))
                print(f"{script.stem}: failed", flush=True)
    print(*failures, sep="\n\n", file=sys.stderr)
    return int(bool(failures))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"walks: {failure}")
