"""``python -m benchmarks`` lists the questions; ``python -m benchmarks NAME …`` answers them; ``all`` answers all.

``python -m benchmarks NAME --help`` tells what it does and takes.
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
        for name in names:
            harness.run(name, [])
    elif wanted[0] in names and {"-h", "--help"} & set(sys.argv[2:]):
        print(names[wanted[0]].__doc__)
    elif wanted[0] in names:
        harness.run(wanted[0], sys.argv[2:])
    else:
        sys.exit(f"no benchmark {wanted[0]!r}; there are: {', '.join(names)}")


if __name__ == "__main__":
    main()
