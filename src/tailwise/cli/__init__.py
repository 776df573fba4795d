"""The command ``tailwise``: one file a verb, results on standard output, messages on standard error.

Importing this package loads neither numpy nor typer; a verb imports what it needs when it runs.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from enum import IntEnum

from tailwise.cli.ending import ending_promptly, open_closed_streams, say_ended, take_every_character

_OBJECTS_UNTIL_COLLECTED = 100_000


class ExitCode(IntEnum):
    """What the exit status of ``tailwise`` means."""

    OK = 0
    BUG = 1
    USAGE = 2
    BAD_INPUT = 3
    BAD_MODEL = 4
    DOWNLOAD = 5
    MISSING_EXTRA = 6
    OUTPUT = 7
    INTERRUPTED = 130
    TERMINATED = 143


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit status and prints every expected error as one clean message."""
    open_closed_streams()
    take_every_character()
    if argv is not None:
        return _main(argv)
    # What is imported is no garbage, and looking for it takes a sixth of the start.
    gc.set_threshold(_OBJECTS_UNTIL_COLLECTED)
    # The process is this command: it may be ended for good.
    with ending_promptly():
        return _main(sys.argv[1:])


def _main(argv: Sequence[str]) -> int:
    try:
        from tailwise.cli.app import command
        from tailwise.cli.telling import telling

        with telling():
            status = command().main(args=list(argv), prog_name="tailwise", standalone_mode=True)
        return status if isinstance(status, int) else ExitCode.OK
    except SystemExit as done:
        # Whoever read the results has seen enough: tailwise labels MODEL | head
        if isinstance(done.__context__, BrokenPipeError):
            return ExitCode.OK
        status = done.code if isinstance(done.code, int) else ExitCode.OK if done.code is None else ExitCode.BUG
        return say_ended() if status == ExitCode.INTERRUPTED else status
    except KeyboardInterrupt:
        return say_ended()
    except Exception as error:
        # Imported only now: errors.py brings scikit-learn, which --help must not wait for.
        from tailwise.errors import TailwiseError

        if not isinstance(error, TailwiseError | OSError | MemoryError):
            raise
        return _report(error)


def _report(error: Exception) -> int:
    """Print what went wrong; returns the exit status for its cause."""
    from tailwise import errors
    from tailwise.atomic import OutputError
    from tailwise.display import visible

    lines = _text_of(error).split("\n")
    print("tailwise: error: " + "\n".join(map(visible, lines)), file=sys.stderr)
    codes = {
        errors.DownloadError: ExitCode.DOWNLOAD,
        OutputError: ExitCode.OUTPUT,
        errors.ModelFileError: ExitCode.BAD_MODEL,
        errors.MissingExtra: ExitCode.MISSING_EXTRA,
        errors.TailwiseError: ExitCode.BAD_INPUT,
        FileNotFoundError: ExitCode.BAD_INPUT,
        MemoryError: ExitCode.BAD_INPUT,
        OSError: ExitCode.OUTPUT,
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), ExitCode.BUG)


def _text_of(error: Exception) -> str:
    from tailwise.errors import TailwiseError

    if isinstance(error, TailwiseError) and error.args:
        return str(error.args[0] if len(error.args) == 1 else error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return (
            "not enough memory; try --model parabel, fewer features (--set-features max_features=100000) or fewer rows"
        )
    return str(error)
