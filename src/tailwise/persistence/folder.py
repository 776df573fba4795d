"""Saving a model to a folder and opening it again, whatever else happens to the folder meanwhile."""

from __future__ import annotations

import json
import os
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
    is_replaceable,
    listed_files,
    manifest_digest,
    open_manifest,
)
from tailwise.persistence.publishing import publish
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
                publish(
                    scratch, target, files, description=MANIFEST, ours=OUR_FILE, listed=listed_files(target) or set()
                )
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
    reads each array once, block by block and without a copy: about 10 ms for 100 MB, plus what the disk takes
    (``python -m benchmarks checking``). ``verify=True`` compares the sha256 of every file too, which takes some ten
    times as long; ``verify=False`` takes wrong numbers that do no harm.

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


def _write(model: Saveable, folder: Path) -> dict[str, str]:
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
    return {name: facts["sha256"] for name, facts in writer.files.items()}
