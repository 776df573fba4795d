"""Where results and messages go: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from tailwise.display import visible

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no messages; errors still show.")]

_quiet = False


def set_quiet(quiet: bool) -> None:
    """Silence messages and progress bars for this process."""
    global _quiet
    _quiet = quiet
    if quiet:
        from tailwise.parallel import set_progress

        set_progress(False)


def say(message: str) -> None:
    """A message for the person who waits: to standard error."""
    if not _quiet:
        print(visible(message), file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """Something the user should know but that does not stop the work."""
    say(f"note: {message}")


def emit(text: str) -> None:
    """A result: to standard output."""
    print(text, flush=True)


def emit_json(value: Any) -> None:
    """A result as JSON; NaN and infinities become null, numpy values plain ones."""
    emit(json.dumps(plain(value), ensure_ascii=False, indent=1))


def plain(value: Any) -> Any:
    """``value`` made of what JSON knows.

    >>> plain({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return repr(value)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1) -> str:
    """Aligned plain text; the first ``left`` columns to the left, the others to the right.

    >>> print(table(["label", "n"], [["law", 12], ["tax", 3]]))
    label   n
    law    12
    tax     3
    """
    cells = [[visible(str(cell)) for cell in row] for row in [list(columns), *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    lines = []
    for row in cells:
        aligned = [
            cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines)
