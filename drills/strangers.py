"""Does the command run as any uid, without a home, on a file system that nothing can be written to?

Each try starts a verb as a random user in a copy of the mounts in which everything is read-only; every second one has a
temporary folder, the others have no place at all. The answer must be that of the owner of the files; writing is refused
with status 7. Needs root, ``unshare`` and ``setpriv``, and says so where one is missing.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from drills.harness import Outcome
from drills.verbs import write_table

COUNT = 40
MODEST = 4
OUTPUT_STATUS = 7
_TEXT = "tax law of the sea"
# Files of a developer's machine may be closed to others: reading is allowed, writing is not.
_MAY_READ = "+dac_read_search"
_INSIDE = """
set -e
mount --bind / "$1"
mount -o remount,bind,ro "$1"
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
if [ "$3" = yes ]; then mount -t tmpfs -o mode=1777 tmpfs "$1/var/tmp"; fi
root=$1 uid=$2
shift 3
exec chroot "$root" setpriv --reuid "$uid" --regid "$uid" --clear-groups --inh-caps MAY --ambient-caps MAY \\
    env -i PATH="$PATH" PYTHONPATH="$PYTHONPATH" "$@"
""".replace("MAY", _MAY_READ)


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    """``count`` runs of each verb, each as another user."""
    outcomes = {verb: Outcome(verb) for verb in ("suggest", "evaluate", "train")}
    missing = [need for need in ("unshare", "setpriv", "chroot") if shutil.which(need) is None]
    if missing or os.geteuid():
        print(f"  not run: {' and '.join(missing) or 'root'} needed")
        return
    folder.chmod(0o755)
    root = folder / "root"
    root.mkdir()
    write_table(folder / "table.csv", random.Random(0))
    table, model = str(folder / "table.csv"), str(folder / "model")
    subprocess.run(_command("train", table, "-o", model, "--model", "dismec", "-q"), check=True, capture_output=True)
    verbs = {
        "suggest": ("suggest", model, "--json", "-q", _TEXT),
        "evaluate": ("evaluate", model, table, "--json", "-q"),
        "train": ("train", table, "-o", str(folder / "other"), "--model", "dismec", "-q"),
    }
    own = {verb: subprocess.run(_command(*verbs[verb]), capture_output=True).stdout for verb in ("suggest", "evaluate")}
    chance = random.Random(0)
    for number in range(count):
        uid, place = chance.randrange(1000, 2**31), "yes" if number % 2 else "no"
        for verb, arguments in verbs.items():
            shell = ["unshare", "--mount", "sh", "-c", _INSIDE, "sh", str(root), str(uid), place]
            done = subprocess.run([*shell, *_command(*arguments)], capture_output=True)
            outcomes[verb].count(*_judged(done, own.get(verb)))
    yield from outcomes.values()


def _judged(done: subprocess.CompletedProcess[bytes], own: bytes | None) -> tuple[str, str]:
    said = done.stderr.decode(errors="replace")
    if done.returncode < 0 or "Traceback" in said:
        return "broken", said[-300:]
    if own is None:
        return ("refused", "") if done.returncode == OUTPUT_STATUS else ("broken", f"{done.returncode}: {said[-300:]}")
    return ("intact", "") if done.stdout == own else ("broken", f"{done.returncode}: {said[-300:]}")


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tailwise.cli", *arguments]
