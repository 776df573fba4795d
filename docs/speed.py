"""Turn results of the benchmarks into README's tables of speed: no figure of theirs is typed by hand.

python -m benchmarks one_vs_rest && python -m benchmarks label_trees && python docs/speed.py

A table stands between ``<!-- speed: NAME -->`` and ``<!-- end -->``; one whose benchmark has no results stays as it is.
"""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

from tailwise.display import Table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"
_HEADER = (
    "training CPU-s",
    "beside the first",
    "s per 1,000 rows",
    "ms, one row",
    "memory, MB",
    "model, MB",
    "P@1 / P@3 / P@5",
    "PSP@1 / PSP@3 / PSP@5",
)
_PARTS = ("one_vs_rest", "label_trees", "instance_forests")
_COMPARED = "train CPU-s"


def table(results: dict[str, Any]) -> str:
    """Medians over the rounds, and of training the lowest and the highest; ratios are those within a round."""
    runs = results["runs"]
    first = next(iter(runs.values()))
    lines = []
    for name, own in runs.items():
        trained = [row[_COMPARED] for row in own if _COMPARED in row]
        pairs = [row[_COMPARED] / ours[_COMPARED] for ours, row in zip(first, own, strict=False) if _COMPARED in row]
        lines.append(
            [
                f"**{name}**" if name.startswith("tailwise") else name,
                _spread(trained, 1),
                _spread(pairs, 2),
                _median(own, ("predict 1,000 s", "batch s/1,000", "s per 1,000 rows"), 2),
                _median(own, ("one row ms",), 2),
                _median(own, ("train peak MB",), 0),
                _median(own, ("model MB",), 0),
                *(" / ".join(_median(own, (f"{metric}@{k}",), 1) for k in (1, 3, 5)) for metric in ("P", "PSP")),
            ]
        )
    rounds = max(len(own) for own in runs.values())
    machine = results["machine"]
    told = f"{rounds} round{'s' * (rounds > 1)}, {results['threads']} threads, {machine['cpu']}, {machine['date']}"
    return Table("", [told, *_HEADER], lines).markdown()


def _median(rows: list[dict[str, Any]], names: tuple[str, ...], digits: int) -> str:
    values = [row[name] for row in rows for name in names if name in row]
    return f"{statistics.median(values):.{digits}f}" if values else "–"


def _spread(values: list[float], digits: int) -> str:
    if not values:
        return "–"
    low, middle, high = (f"{f(values):.{digits}f}" for f in (min, statistics.median, max))
    return middle if low == high else f"{middle} ({low}–{high})"


def fill(page: str, tables: dict[str, str]) -> str:
    """The page with each table in its place.

    >>> fill("a <!-- speed: x --> old <!-- end --> b", {"x": "new"})
    'a <!-- speed: x -->\\nnew\\n<!-- end --> b'
    """
    for name, made in tables.items():
        place = re.compile(rf"(<!-- speed: {name} -->).*?(<!-- end -->)", re.DOTALL)
        page = place.sub(lambda found, made=made: f"{found[1]}\n{made}\n{found[2]}", page)
    return page


def main() -> None:
    """Write the tables of which there are results."""
    files = {name: RESULTS / f"{name}.json" for name in _PARTS}
    tables = {name: table(json.loads(file.read_text())) for name, file in files.items() if file.exists()}
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")
    print(f"{PAGE.name}: wrote {', '.join(tables) or 'nothing: there are no results'}")


if __name__ == "__main__":
    main()
