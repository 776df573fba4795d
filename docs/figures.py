"""Turn the table of ``tailwise reproduce`` into the snippets that the method pages show.

tailwise reproduce -o results/reproduce && python docs/figures.py results/reproduce/table.csv
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from tailwise.display import Table
from tailwise.experiments.reproduce import PRECISION as METRICS

TARGET = Path(__file__).parent / "figures" / "eurlex-4k.md"


def snippet(row: dict[str, str]) -> str:
    """One method's section: ours beside the published figures."""
    name = row["method"].lower().replace("+", "-")
    asked = f'"{row["method"].lower()}"' if " " in row["method"] else row["method"].lower()
    ours = [f"{float(row[m]):.1f}" for m in METRICS]
    lines = [["ours", *ours, f"{float(row['train_cpu_seconds']):.1f} s", f"{float(row['peak_mb']):,.0f} MB"]]
    if any(row[f"published {m}"] for m in METRICS):
        lines.append(["published", *(row[f"published {m}"] for m in METRICS), "", ""])
    table = Table("", ["", *(m.upper() for m in METRICS), "training CPU", "memory"], lines)
    return "\n".join(
        [
            f"<!-- start {name} -->",
            f"{row['method']} on EURLex-4K (`tailwise reproduce --methods {asked}`):",
            "",
            table.markdown(),
            f"<!-- end {name} -->",
            "",
        ]
    )


def main() -> None:
    """Write the snippets of the table that the command line names."""
    with Path(sys.argv[1]).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(snippet(row) for row in rows), encoding="utf-8")
    print(f"wrote {len(rows)} snippets to {TARGET.name}")


if __name__ == "__main__":
    main()
