"""Writing a result file whole or not at all, with one clear message when it cannot be written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tailwise.data.files import writing
from tailwise.errors import TailwiseError


class OutputError(TailwiseError, OSError):
    """A result could not be written; what was there before is unchanged."""


def write_whole(path: str | Path, text: str | Iterable[str]) -> None:
    """Write ``text``, or its pieces one after the other, to ``path`` through a temporary sibling and one rename.

    A crash, Ctrl-C or a full disk leaves the old file or none, never half of the new one. Pipes and devices such
    as ``/dev/stdout`` are written directly.
    """
    path = Path(path)
    pieces = [text] if isinstance(text, str) else text
    with told_when_unwritable(path):
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8") as device:
                device.writelines(pieces)
        else:
            with writing(path) as file:
                for piece in pieces:
                    file.write(piece.encode())


@contextmanager
def told_when_unwritable(path: str | Path) -> Iterator[None]:
    """Turn a failure to write ``path`` (a full disk, no permission) into one clear message."""
    try:
        yield
    except OSError as error:
        if isinstance(error, TailwiseError):
            raise
        raise OutputError(f"cannot write {path}: {error.strerror or error}; nothing was changed there") from error
