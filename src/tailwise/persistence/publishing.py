"""Putting new files into a folder that others may be reading, in one step as they see it.

The folder has a description that lists its files, and every file has the first digits of its sha256 in its name: files
of different content never share one. So old files and new ones lie side by side until the description is swapped.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tailwise.atomic import fsync_folder
from tailwise.errors import ModelFileError
from tailwise.persistence.manifest import file_digest


def publish(
    scratch: Path, path: Path, files: Mapping[str, str], *, description: str, ours: re.Pattern[str], listed: set[str]
) -> None:
    """Put ``description`` and ``files`` (name to sha256), which are in ``scratch``, under ``path``: all or none.

    Of what lies there, the files that the replaced description ``listed`` go, and those that a killed writer left:
    ``ours`` tells them by their names, and their digest, its first group, by their contents. The caller holds the lock.
    """
    if not (path / description).exists():
        if path.exists():
            scratch.chmod(stat.S_IMODE(path.stat().st_mode))
        scratch.rename(path)
    else:
        for name, sha256 in files.items():
            # A whole file of the same name is the same file: others may have it mapped.
            if not _is_whole(path / name, sha256):
                (scratch / name).replace(path / name)
        fsync_folder(path)
        (scratch / description).replace(path / description)
        fsync_folder(path)
        _remove_old(path, listed - files.keys(), files, ours)
    fsync_folder(path.parent)


def _is_whole(path: Path, sha256: str) -> bool:
    try:
        return file_digest(path) == sha256
    except (OSError, ModelFileError):
        return False


def _remove_old(path: Path, listed: set[str], kept: Mapping[str, str], ours: re.Pattern[str]) -> None:
    for file in path.iterdir():
        named = ours.fullmatch(file.name)
        if not named or file.name in kept:
            continue
        with suppress(OSError, ModelFileError):
            # A file that no description lists is ours only if it is what its name says.
            if file.name in listed or file_digest(file).startswith(named[1]):
                file.unlink()
