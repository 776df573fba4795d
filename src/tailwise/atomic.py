"""Writing files and folders whole or not at all: a temporary sibling, fsync, one rename.

A crash, Ctrl-C or a full disk leaves the old content or the new one. A temporary is held by a lock on itself, which
its writer's death releases: the next write to the same path removes the temporaries that nobody holds. Permissions are
those that the umask gives.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import lzma
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tailwise.errors import TailwiseError

_TEMPORARY = "tailwise-tmp"
_LOCK = "tailwise-lock"
_UNSUPPORTED = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)


class OutputError(TailwiseError, OSError):
    """A result could not be written; what was there before is unchanged."""


@contextmanager
def writing(path: str | Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A binary file that appears under ``path`` only when it is whole; packed if ``path`` ends in .gz or .xz.

    Unless it is ``durable`` a power cut, though no crash, may leave it torn.
    """
    path = Path(path)
    with _held(path, _make_file) as (scratch, handle):
        with open(handle, "wb", closefd=False) as raw:
            if path.suffix.lower() == ".gz":
                # A fixed time stamp and no file name: the same data give the same bytes.
                with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            elif path.suffix.lower() == ".xz":
                with lzma.open(raw, "wb") as packed:
                    yield packed
            else:
                yield raw
        if durable:
            os.fsync(handle)
        scratch.replace(path)
        if durable:
            fsync_folder(path.parent)


@contextmanager
def temporary_folder(path: str | Path) -> Iterator[Path]:
    """A new folder beside ``path``, to be filled and renamed to it; what is left of it at the end is removed."""
    with _held(Path(path), _make_folder) as (scratch, _):
        yield scratch


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Keep every other thread and process that asks for the same ``path`` waiting; death releases it.

    The lock is a file beside ``path``, removed by whoever held it. Where the file system has no locks it does nothing.
    """
    path = Path(path)
    name = path.parent / f".{path.name}.{_LOCK}"
    handle = _lock_file(name)
    _ours.add(name)
    try:
        yield
    finally:
        # Removed while it is held: a process that waits for it sees that its file is gone, and makes another one.
        name.unlink(missing_ok=True)
        _ours.discard(name)
        _unlock(handle)


def write_whole(path: str | Path, text: str | Iterable[str]) -> None:
    """Write ``text``, or its pieces one after the other, to ``path`` as :func:`writing` does.

    Pipes and devices such as ``/dev/stdout`` are written directly.
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


def fsync_file(path: Path) -> None:
    """Have the file's content on the disk, not only on its way there."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def fsync_folder(folder: Path) -> None:
    """Have the names in ``folder`` on the disk, where the file system knows how and the folder may be read."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(handle)


def temporaries_of(path: str | Path) -> list[Path]:
    """The temporaries beside ``path`` that were made for it, whether somebody still writes them or not."""
    path = Path(path)
    ours = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.{_TEMPORARY}")
    return sorted(entry for entry in path.parent.iterdir() if ours.fullmatch(entry.name))


def remove_held() -> None:
    """Remove every temporary and lock file of this process, which is about to end without coming back to them."""
    for path in list(_ours):
        _remove(path)


_ours: set[Path] = set()


@contextmanager
def _held(path: Path, make: Callable[[Path], int]) -> Iterator[tuple[Path, int]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(PermissionError):
        for left in temporaries_of(path):
            _remove_dead(left)
    scratch, handle = _make_held(path, make)
    _ours.add(scratch)
    try:
        yield scratch, handle
    finally:
        _remove(scratch)
        _ours.discard(scratch)
        os.close(handle)


def _make_held(path: Path, make: Callable[[Path], int]) -> tuple[Path, int]:
    while True:
        scratch = path.parent / f".{path.name}.{secrets.token_hex(4)}.{_TEMPORARY}"
        try:
            handle = make(scratch)
        except FileExistsError:
            continue
        # Another process may have taken it for a dead one before it was locked: then make another one.
        if _lock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB) is not False and _is_at(scratch, handle):
            return scratch, handle
        os.close(handle)


def _make_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)


def _make_folder(path: Path) -> int:
    path.mkdir()
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise FileExistsError(path) from error


def _remove_dead(path: Path) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        if _lock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB):
            _remove(path)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _lock_file(name: Path) -> int:
    while True:
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if _lock(handle, fcntl.LOCK_EX) is None or _is_at(name, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int, how: int) -> bool | None:
    """Whether the lock was taken; None where the file system has no locks."""
    try:
        fcntl.flock(handle, how)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return None
    return True


def _unlock(handle: int) -> None:
    # By its own call: closing would not release it while a forked child has the file open.
    _lock(handle, fcntl.LOCK_UN)
    os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
