"""Saving a model to a folder and opening it again, whatever else happens to the folder meanwhile."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from tailwise.atomic import OutputError, fsync_file, fsync_folder, locked, temporary_folder
from tailwise.errors import ModelFileError
from tailwise.persistence.checks import check_kind
from tailwise.persistence.decoding import MappedFiles, Reader, told
from tailwise.persistence.encoding import Writer
from tailwise.persistence.manifest import (
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    OUR_FILE,
    file_digest,
    is_replaceable,
    listed_files,
    manifest_digest,
    open_manifest,
)
from tailwise.persistence.saveable import Saveable

_TRIES = 100


class UnwritableModel(ModelFileError, OutputError):
    """A model could not be written; what was there before is unchanged."""


def save(model: Saveable, path: str | Path) -> None:
    """Write ``model`` to the folder ``path``, whole or not at all.

    An existing model there is replaced, and what else lies in its folder stays; any other existing file or non-empty
    folder is refused. Of several that save to one path at the same time, each waits for its turn: the last one stays.
    """
    target = Path(os.path.realpath(path))
    try:
        _check_replaceable(target)
        with temporary_folder(target) as scratch:
            files = _write(model, scratch)
            with locked(target):
                _check_replaceable(target)
                _publish(scratch, target, files)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise UnwritableModel(
            f"writing the model to {path} failed ({error.strerror or error}); nothing was changed there"
        ) from error
    except MemoryError as error:
        raise UnwritableModel(
            f"writing the model to {path} failed (there is not enough memory); nothing was changed there"
        ) from error


def load(path: str | Path, *, verify: bool = True) -> Any:
    """Open a saved model; its arrays are mapped into memory, read-only and shared between processes.

    Every class checks what comes back before a kernel sees it: shapes, indices within range, finite numbers. That
    reads each array once: about 12 ms for 100 MB, and 0.1 s and more for a model of more than 1 GB, plus what the disk
    takes. ``verify=True`` compares the sha256 of every file too; ``verify=False`` takes wrong numbers that do no harm.

    While another process saves a model there, the old one or the new one is opened.
    """
    path = Path(path)
    opened = open_manifest(path)
    for _ in range(_TRIES):
        try:
            with told(f"{path} cannot be opened: its manifest does not describe a model"):
                files = MappedFiles(path, opened.manifest["files"], verify)
                return check_kind("its model", Reader(files).decode(opened.manifest["model"]), Saveable)
        except ModelFileError:
            newer = open_manifest(path)
            if newer.stamp == opened.stamp:
                raise
            opened = newer
        except MemoryError as error:
            raise ModelFileError(
                f"{path} does not fit into memory; free some, or raise the limit of this process (ulimit -v)"
            ) from error
    raise ModelFileError(f"{path} was replaced {_TRIES} times while it was being opened; open it when nobody saves")


def _check_replaceable(path: Path) -> None:
    if not is_replaceable(path):
        raise ModelFileError(f"{path} exists and is not a tailwise model; choose another path or remove it")


def _write(model: Saveable, folder: Path) -> dict[str, Any]:
    from tailwise import __version__

    writer = Writer(folder)
    encoded = writer.encode(type(model).__name__, model)
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tailwise_version": __version__,
        "model": encoded,
        "files": dict(sorted(writer.files.items())),
    }
    manifest["sha256"] = manifest_digest(manifest)
    with (folder / MANIFEST).open("w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1, allow_nan=True)
    fsync_file(folder / MANIFEST)
    fsync_folder(folder)
    return writer.files


def _publish(scratch: Path, path: Path, files: dict[str, Any]) -> None:
    """Put the model in ``scratch`` under ``path``, in one step as others see it."""
    if not (path / MANIFEST).exists():
        if path.exists():
            scratch.chmod(stat.S_IMODE(path.stat().st_mode))
        scratch.rename(path)
    else:
        listed = listed_files(path) or set()
        for name, facts in files.items():
            # A whole file of the same name is the same file: others may have it mapped.
            if not _is_whole(path / name, facts["sha256"]):
                (scratch / name).replace(path / name)
        fsync_folder(path)
        (scratch / MANIFEST).replace(path / MANIFEST)
        fsync_folder(path)
        _remove_old(path, listed - files.keys(), files)
    fsync_folder(path.parent)


def _is_whole(path: Path, sha256: str) -> bool:
    try:
        return file_digest(path) == sha256
    except (OSError, ModelFileError):
        return False


def _remove_old(path: Path, listed: set[str], kept: Any) -> None:
    """Remove the files that the replaced manifest listed, and those that a killed saver left before or after."""
    for file in path.iterdir():
        ours = OUR_FILE.fullmatch(file.name)
        if not ours or file.name in kept:
            continue
        with suppress(OSError, ModelFileError):
            # A file that no manifest lists is ours only if it is what its name says.
            if file.name in listed or file_digest(file).startswith(ours[1]):
                file.unlink()
