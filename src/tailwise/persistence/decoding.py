"""The inverse of :mod:`tailwise.persistence.encoding`: values from a manifest and its files, trusting neither."""

from __future__ import annotations

import errno
import hashlib
import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.errors import MissingExtra, ModelFileError, TailwiseError, import_extra
from tailwise.persistence.checks import Violation, array_header, check_csr, check_offsets, check_shape
from tailwise.persistence.manifest import WAY_OUT, open_regular
from tailwise.persistence.saveable import Saveable, is_abstract, resolve_class

_HEADER_BYTES = 1 << 16


class MappedFiles:
    """The files that a manifest lists, mapped read-only.

    All of them are mapped first and looked at afterwards: from then on it does not matter that somebody saves another
    model there and removes them. ``verify`` compares the sha256 of each.
    """

    def __init__(self, folder: Path, listed: dict[str, Any], verify: bool) -> None:
        self.folder = folder
        self._mapped = {name: self._map(name, facts["bytes"]) for name, facts in listed.items()}
        for name, mapped in self._mapped.items():
            if verify and hashlib.sha256(mapped.data).hexdigest() != listed[name]["sha256"]:
                raise ModelFileError(f"{folder / name} is corrupted (its sha256 differs); {WAY_OUT}")

    def path(self, name: Any) -> Path:
        """Where a listed file is."""
        if name not in self._mapped:
            raise ModelFileError(f"{self.folder} refers to the file {name!r}, which its manifest does not list")
        return self.folder / name

    def array(self, name: Any) -> np.ndarray:
        """The array in a listed ``.npy`` file, read-only."""
        path = self.path(name)
        with told(f"{path} is not an array that tailwise wrote"):
            mapped = self._mapped[name]
            head = io.BytesIO(mapped[:_HEADER_BYTES].tobytes())
            shape, fortran, dtype = array_header(head)
            content = mapped[head.tell() :]
            if dtype.hasobject or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != content.size:
                raise Violation(f"{content.size:,} bytes are no {dtype} of shape {shape}")
            return content.view(dtype).reshape(shape, order="F" if fortran else "C")

    def _map(self, name: str, size: int) -> np.ndarray:
        path = self.folder / name
        try:
            with open_regular(path) as file:
                found = file.seek(0, io.SEEK_END)
                if found != size:
                    raise ModelFileError(
                        f"{path} has {found:,} bytes instead of {size:,}: it is truncated or changed; {WAY_OUT}"
                    )
                return np.memmap(file, np.uint8, "r").view(np.ndarray) if size else np.empty(0, np.uint8)
        except FileNotFoundError:
            raise ModelFileError(f"{self.folder} lacks the file {name}; {WAY_OUT}") from None
        except OSError as error:
            if error.errno == errno.ENOMEM:
                raise MemoryError from error
            raise ModelFileError(f"{path} cannot be read ({error.strerror or error})") from error


class Reader:
    """Makes the values that a manifest describes, with the arrays of ``files``."""

    def __init__(self, files: MappedFiles) -> None:
        self.files = files

    def decode(self, value: Any) -> Any:
        """The value that this JSON stands for."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value["$"]
        if kind not in self._DECODERS:
            raise ModelFileError(f"{self.files.folder} holds a value of unknown kind {kind!r}; upgrade tailwise")
        return self._DECODERS[kind](self, value)

    def _object(self, value: dict[str, Any]) -> Any:
        cls = resolve_class(value["class"])
        if not issubclass(cls, Saveable):
            raise ModelFileError(f"{value['class']} is not a class that tailwise saves")
        if is_abstract(cls):
            raise ModelFileError(f"{value['class']} is abstract, so no model can be one")
        params = {name: self.decode(item) for name, item in value["params"].items()}
        state = {name: self.decode(item) for name, item in value["state"].items()}
        made = cls(**params)
        with told(f"{self.files.folder} holds a {cls.__name__} that no fit could have left"):
            made._restore(state)
            if state:
                made._check_state()
        return made

    def _namedtuple(self, value: dict[str, Any]) -> Any:
        cls = resolve_class(value["class"])
        if not (issubclass(cls, tuple) and hasattr(cls, "_fields")):
            raise ModelFileError(f"{value['class']} is not a NamedTuple of tailwise")
        return cls(**{name: self.decode(item) for name, item in value["fields"].items()})

    def _scalar(self, value: dict[str, Any]) -> Any:
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in "biuf":
            raise Violation(f"a number of dtype {dtype}")
        return dtype.type(value["value"])

    def _csr(self, value: dict[str, Any]) -> sparse.csr_array:
        data, indices, indptr = (self.files.array(value[part]) for part in ("data", "indices", "indptr"))
        with told(f"{self.files.path(value['indices'])} and the files beside it are no CSR matrix"):
            shape = check_csr("the matrix", data, indices, indptr, value["shape"])
        # Not through the constructor, which might copy the index arrays to another dtype.
        csr = sparse.csr_array(shape, dtype=data.dtype)
        csr.data, csr.indices, csr.indptr = data, indices, indptr
        return csr

    def _strings(self, value: dict[str, Any]) -> Any:
        text, offsets = (self.files.array(name) for name in value["files"])
        with told(f"{self.files.path(value['files'][1])} and its text are no strings"):
            check_shape("text", text, (None,), "u")
            check_offsets("offsets", offsets, max(0, offsets.size - 1), text.nbytes)
            strings = _cut(text.tobytes(), offsets)
        return tuple(strings) if value["type"] == "tuple" else strings

    def _tensors(self, value: dict[str, Any]) -> Any:
        load_file = import_extra("safetensors.torch", "neural", "loading torch weights").load_file
        path = self.files.path(value["file"])
        with told(f"{path} holds no tensors"):
            return load_file(path)

    _DECODERS = {
        "text": lambda self, v: bytes.fromhex(v["hex"]).decode("utf-8", "surrogatepass"),
        "scalar": _scalar,
        "array": lambda self, v: self.files.array(v["file"]),
        "csr": _csr,
        "object": _object,
        "namedtuple": _namedtuple,
        "strings": _strings,
        "tensors": _tensors,
        "tuple": lambda self, v: tuple(self.decode(item) for item in v["items"]),
        "dict": lambda self, v: {name: self.decode(item) for name, item in v["items"].items()},
        "pairs": lambda self, v: dict(self.decode(v["items"])),
    }


def _cut(whole: bytes, offsets: np.ndarray) -> list[str]:
    """The strings between ``offsets`` of UTF-8: decoded at once and then cut, ten times as fast as one by one."""
    continuing = np.flatnonzero((np.frombuffer(whole, np.uint8) & 0xC0) == 0x80)
    if np.isin(offsets, continuing).any():
        raise Violation("a string begins within a character")
    # As many characters come before an offset as bytes, but for those that go on with a character.
    places = offsets - np.searchsorted(continuing, offsets)
    text = whole.decode("utf-8", "surrogatepass")
    return [text[a:b] for a, b in pairwise(places.tolist())]


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn any exception about a damaged folder into one clear message: ``what`` is wrong, why, and the way out."""
    try:
        yield
    except (ModelFileError, MissingExtra, MemoryError):
        raise
    except Exception as error:
        why = str(error) if isinstance(error, Violation | TailwiseError) else repr(error)
        raise ModelFileError(f"{what} ({why}); {WAY_OUT}") from error
