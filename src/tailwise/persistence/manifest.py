"""``manifest.json``: what a model folder holds, and whether it is one."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tailwise.errors import ModelFileError

FORMAT = "tailwise-model"
FORMAT_VERSION = 2
MANIFEST = "manifest.json"
WAY_OUT = "restore it or save the model again"
OUR_FILE = re.compile(r"[A-Za-z0-9_.\-]+-([0-9a-f]{16})\.(?:npy|safetensors)")
"""How a folder's files are called: after the value, and after the first digits of their content's sha256."""


class Opened(NamedTuple):
    """A checked manifest, and which of several that may have stood there it is."""

    manifest: dict[str, Any]
    stamp: tuple[int, ...]


def read_manifest(path: str | Path) -> dict[str, Any]:
    """The checked manifest of a saved model, without opening its arrays."""
    return open_manifest(Path(path)).manifest


def open_manifest(folder: Path) -> Opened:
    """The manifest of the model in ``folder``, refused unless it is whole and of this format version."""
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise ModelFileError(f"{folder} {what}; pass a folder that holds a saved model")
    found, stamp = _parse(folder)
    path = folder / MANIFEST
    if found.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not the manifest of a tailwise model")
    _check_version(folder, found)
    if found.get("sha256") != manifest_digest(found):
        raise ModelFileError(f"{path} was changed after it was written; {WAY_OUT}")
    if "model" not in found or not _lists_files(found.get("files")):
        raise ModelFileError(f"{path} does not describe a model and its files; {WAY_OUT}")
    return Opened(found, stamp)


def is_replaceable(path: str | Path) -> bool:
    """Whether a model may be saved to ``path``: nothing is there, an empty folder, or a model of any version."""
    path = Path(path)
    if not path.exists():
        return True
    if not path.is_dir():
        return False
    return not any(path.iterdir()) or listed_files(path) is not None


def listed_files(folder: Path) -> set[str] | None:
    """The files that the model in ``folder`` says are its own, of any version; None where there is no model."""
    try:
        found, _ = _parse(folder)
    except ModelFileError:
        return None
    if found.get("format") != FORMAT:
        return None
    files = found.get("files")
    return {name for name in files if OUR_FILE.fullmatch(name)} if isinstance(files, dict) else set()


def manifest_digest(manifest: dict[str, Any]) -> str:
    """The sha256 of a manifest without its own."""
    body = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """The sha256 of a file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def open_regular(path: Path) -> BinaryIO:
    """Open a file of a model folder: a file there and nothing else, so that nothing hangs and nothing leads out."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ModelFileError(f"{path} is a symbolic link; put the file itself there: cp -L") from error
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise ModelFileError(f"{path} is not a regular file; {WAY_OUT}")


def _parse(folder: Path) -> tuple[dict[str, Any], tuple[int, ...]]:
    path = folder / MANIFEST
    try:
        with open_regular(path) as file:
            facts = os.fstat(file.fileno())
            found = json.loads(file.read().decode("utf-8"))
    except FileNotFoundError:
        raise ModelFileError(f"{folder} has no {MANIFEST}; it is not a tailwise model") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ModelFileError(
            f"{path} is damaged ({error!r}); restore it, or remove the folder and save the model again"
        ) from error
    return found if isinstance(found, dict) else {}, (facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns)


def _check_version(folder: Path, manifest: dict[str, Any]) -> None:
    version, writer = manifest.get("format_version"), manifest.get("tailwise_version")
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise ModelFileError(
            f"{folder} has format version {version!r} (written by tailwise {writer}), "
            f"but this tailwise reads version {FORMAT_VERSION}; upgrade tailwise"
        )
    if version < FORMAT_VERSION:
        raise ModelFileError(
            f"{folder} was written by tailwise {writer} (format {version}), which this version does not open; "
            "train it again from its data, or open it with: pip install 'tailwise<0.2'"
        )


def _lists_files(files: Any) -> bool:
    return isinstance(files, dict) and all(
        OUR_FILE.fullmatch(name)
        and isinstance(facts, dict)
        and type(facts.get("bytes")) is int
        and isinstance(facts.get("sha256"), str)
        for name, facts in files.items()
    )
