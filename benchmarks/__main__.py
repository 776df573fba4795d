"""``python -m benchmarks`` lists the questions; ``python -m benchmarks NAME …`` answers one.

``python -m benchmarks NAME --help`` tells what it does and takes. ``python -m benchmarks all`` makes every comparison
with other programs, one after the other, and writes them to one page, ``benchmarks/results/all.md``; ``--repeats 1``
makes each once. ``python docs/speed.py`` then writes README's tables.
"""

from __future__ import annotations

import sys

from benchmarks import harness


def main() -> None:
    """Run what the command line names."""
    names = harness.available()
    wanted = sys.argv[1:2]
    if not wanted:
        for name, module in names.items():
            print(f"{name:24} {getattr(module, 'QUESTION', (module.__doc__ or '').splitlines()[0])}")
    elif wanted == ["all"]:
        harness.run_all(sys.argv[2:])
    elif wanted[0] in names and {"-h", "--help"} & set(sys.argv[2:]):
        print(names[wanted[0]].__doc__)
    elif wanted[0] in names:
        harness.run(wanted[0], sys.argv[2:])
    else:
        sys.exit(f"no benchmark {wanted[0]!r}; there are: {', '.join(names)}")


if __name__ == "__main__":
    main()
