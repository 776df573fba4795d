"""Where compiled kernels are kept: a cache that never stands in the way.

Numba keeps compiled code beside the source, else in the user's cache folder. Where neither can be written to, a folder
for temporary files serves that belongs to this user alone (its files are pickles, which whoever can write them
controls), else nothing is kept; it begins with what ``NUMBA_CACHE_DIR`` has. Code is good as long as no kernel has
another content, whenever its file was written. Damaged files are told by their digest and compiled anew.

The logger ``tailwise.kernels`` hears of every function that is compiled, and of a cache that is not where it should be.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

from numba import config
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.runtime import rtsys

_log = logging.getLogger("tailwise.kernels")
_DIGEST_BYTES = hashlib.sha256().digest_size


@cache
def _state_of_source():
    """A digest of all kernels: each takes in code and constants of others. A copy of the same files is the same."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class _DigestedFile(IndexDataCacheFile):
    """Numba's cache file with a digest at its end, where pickle does not look."""

    def _dump(self, obj):
        data = super()._dump(obj)
        return data + hashlib.sha256(data).digest()

    def _load_data(self, name):
        data = Path(self._data_path(name)).read_bytes()
        if hashlib.sha256(data[:-_DIGEST_BYTES]).digest() != data[-_DIGEST_BYTES:]:
            raise ValueError(f"{name} is damaged")
        return super()._load_data(name)


class _LenientCache(FunctionCache):
    """A cache whose failures cost time and nothing else."""

    def __init__(self, function):
        super().__init__(function)
        self._cache_file = _DigestedFile(self._cache_path, self._impl.filename_base, _state_of_source())

    def load_overload(self, sig, target_context):
        # Compiled code needs numba's memory only; numba's load_overload would import what compiling needs first.
        rtsys.initialize(target_context)
        # Pickle may raise anything when it reads what it did not write.
        try:
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)
        except Exception as error:
            _tell(f"compiled code in {self._cache_path} is damaged ({error!r:.80}); compiling anew", "damaged")
            self._replace()
            found = None
        if found is None:
            _say_compiling(self._py_func, True)
        return found

    def save_overload(self, sig, data):
        _say_compiling(self._py_func, False)
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell(f"compiled code cannot be kept in {self._cache_path} ({error.strerror}); every run compiles", "kept")
            self.disable()

    def _replace(self):
        try:
            self.flush()
        except OSError:
            self.disable()


class _NoCache(NullCache):
    """Keeps nothing."""

    def __init__(self, function):
        self._py_func = function

    def load_overload(self, sig, target_context):
        _say_compiling(self._py_func, True)

    def save_overload(self, sig, data):
        _say_compiling(self._py_func, False)


class KernelCache(NullCache):
    """The cache of one function, which is looked for when it is first needed."""

    def __init__(self, function):
        self._function = function

    @cached_property
    def _found(self):
        return _cache_of(self._function)

    @property
    def cache_path(self):
        """Where it is."""
        return self._found.cache_path

    def load_overload(self, sig, target_context):
        """What was compiled for these types, or None."""
        return self._found.load_overload(sig, target_context)

    def save_overload(self, sig, data):
        """Keep it."""
        self._found.save_overload(sig, data)

    def flush(self):
        """Forget all."""
        self._found.flush()


def cache_folder():
    """Where compiled code is kept, or None where it is kept nowhere; beside the source it is in several folders."""
    path = _cache_of(cache_folder).cache_path
    return Path(config.CACHE_DIR) if config.CACHE_DIR and path else Path(path) if path else None


def _cache_of(function):
    if _numba_has_a_place(function):
        try:
            return _LenientCache(function)
        except RuntimeError:
            pass
    folder = _private_folder()
    if folder is None:
        _tell("no folder can be written to where compiled code could be kept; every run compiles", "nowhere")
        return _NoCache(function)
    _tell(f"compiled code is kept in {folder}; set NUMBA_CACHE_DIR to keep it elsewhere", "elsewhere")
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        return _LenientCache(function)
    except RuntimeError:
        return _NoCache(function)
    finally:
        config.CACHE_DIR = before


def _numba_has_a_place(function):
    """Whether numba may look for a place itself: without a home it would make a folder named ``~`` right here."""
    if config.CACHE_DIR or os.access(Path(function.__code__.co_filename).parent, os.W_OK):
        return True
    try:
        return Path(os.environ.get("XDG_CACHE_HOME", "~")).expanduser().is_absolute()
    except RuntimeError:
        return False


@cache
def _private_folder():
    """A folder for temporary files that nobody but this user can write to; None where there is none."""
    try:
        folder = Path(tempfile.gettempdir()) / f"tailwise-compiled-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o077
    if not ours or not os.access(folder, os.W_OK):
        return None
    _take_over(folder)
    return folder


def _take_over(folder):
    """Begin an empty ``folder`` with what was compiled ahead, in an image for instance, where numba may not write."""
    if not config.CACHE_DIR or any(folder.iterdir()):
        return
    ahead = Path(config.CACHE_DIR)
    # What is copied by halves, by somebody else just now, is told by its digest.
    with suppress(OSError):
        for path in ahead.rglob("*.nb[ic]"):
            own = folder / path.relative_to(ahead)
            own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(path, own)


_told: set[str] = set()


def _tell(message, kind):
    """Warn of it, once for all kernels."""
    if kind not in _told:
        _log.warning(message)
    _told.add(kind)


def _say_compiling(function, begins):
    """Log that a function begins to be compiled, or was; a listener finds in ``record.compiling`` which."""
    _log.info("compiling %s" if begins else "compiled %s", function.__name__, extra={"compiling": begins})
