"""Where results and messages go: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from tailwise.display import Table, plain, visible

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no messages; errors still show.")]

Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="At most this many threads; every core by default.")
]

_quiet = False


def set_up(quiet: bool, jobs: int | None = None) -> None:
    """Silence messages and progress bars for this process, and bound its threads."""
    global _quiet
    _quiet = quiet
    from tailwise.parallel import set_jobs, set_progress

    set_jobs(jobs)
    if quiet:
        set_progress(False)


def is_quiet() -> bool:
    """Whether messages are silenced."""
    return _quiet


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


def ask(question: str) -> bool:
    """Whether the person at the terminal says yes; nobody there says no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{visible(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def emit_json(value: Any) -> None:
    """A result as JSON; NaN and infinities become null, numpy values plain ones."""
    emit(json.dumps(plain(value), ensure_ascii=False, indent=1))


def emit_facts(facts: dict[str, Any]) -> None:
    """A result that is a list of named values: one a line."""
    for name, value in facts.items():
        emit(f"{name}: {value:,}" if type(value) is int else visible(f"{name}: {value}"))


def emit_table(table: Table) -> None:
    """A result as a table: drawn in a terminal that is wide enough for it, aligned text everywhere else."""
    text = str(table)
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console()
        if max(map(len, text.splitlines())) + 2 * len(table.header) <= console.width:
            console.print(table.rich())
            return
    emit(text)
