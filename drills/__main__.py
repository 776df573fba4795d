"""``python -m drills`` lists the questions; ``python -m drills NAME --count N`` answers one; ``all`` answers all.

Each prints how many were tried and how they ended; the exit status is 1 where anything was broken or left over.
"""

from __future__ import annotations

import argparse
import sys

from drills import harness


def main() -> int:
    """Run what the command line names."""
    drills = harness.available()
    parser = argparse.ArgumentParser(prog="python -m drills", description=__doc__)
    parser.add_argument("name", nargs="?", choices=[*drills, "all"])
    parser.add_argument("--count", type=int, help="how many to try (by default the drill's own COUNT; all: MODEST)")
    parser.add_argument("--minutes", type=int, help="how long, for a drill that counts minutes: serving")
    parser.add_argument("--only", action="append", default=[], help="a class or a format, for a drill that has many")
    wanted = parser.parse_args()
    harness.only.update(wanted.only)
    if wanted.name is None:
        for name, module in drills.items():
            print(f"{name:12} {(module.__doc__ or '').splitlines()[0]}")
        return 0
    failed = False
    for name, module in drills.items():
        if wanted.name in (name, "all"):
            count = wanted.count or wanted.minutes or (module.MODEST if wanted.name == "all" else module.COUNT)
            failed |= not harness.run(name, module, count)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
