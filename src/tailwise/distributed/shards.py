"""A piece's results as one file: written whole, opened as mapped arrays, refused unless its digest is right.

The file is a line that says what it is, the length of a JSON header, the header (values as
:mod:`tailwise.persistence.encoding` has them, and where each array lies), the arrays, and the sha256 of all that. It is
not fsynced: what a power cut tears has another digest and is computed again.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from tailwise.atomic import writing
from tailwise.errors import ModelFileError
from tailwise.persistence.checks import Violation
from tailwise.persistence.decoding import Reader, told
from tailwise.persistence.encoding import Writer
from tailwise.persistence.manifest import open_regular

_MAGIC = b"tailwise-shard 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size
_ALIGNED = 64


class _Laid(Writer):
    """Encodes values and lays arrays end to end."""

    def __init__(self) -> None:
        super().__init__(Path())
        self.arrays: list[np.ndarray] = []
        self.table: dict[str, Any] = {}
        self._end = 0

    def _write_array(self, name: str, array: np.ndarray) -> str:
        if array.dtype.hasobject:
            return super()._write_array(name, array)  # which refuses it
        plain = np.ascontiguousarray(array).reshape(array.shape)
        start = -(-self._end // _ALIGNED) * _ALIGNED
        key = str(len(self.arrays))
        self.table[key] = {"dtype": plain.dtype.str, "shape": list(plain.shape), "start": start}
        self.arrays.append(plain)
        self._end = start + plain.nbytes
        return key


class _Lying:
    """The arrays of a mapped shard by key."""

    def __init__(self, path: Path, table: dict[str, Any], body: np.ndarray) -> None:
        self.folder, self._table, self._body = path, table, body

    def path(self, name: Any) -> Path:
        """The shard."""
        return self.folder

    def array(self, name: Any) -> np.ndarray:
        """One of its arrays, read-only."""
        facts = self._table[name]
        dtype, shape = np.dtype(facts["dtype"]), tuple(facts["shape"])
        if dtype.hasobject or min(shape, default=0) < 0:
            raise Violation(f"an array of {dtype} and shape {shape}")
        start, size = facts["start"], math.prod(shape) * dtype.itemsize
        if not 0 <= start <= start + size <= self._body.size:
            raise Violation("an array beyond the end of the file")
        return self._body[start : start + size].view(dtype).reshape(shape)


def write_shard(path: Path, value: Any, facts: dict[str, Any]) -> str:
    """Write ``value``, which :func:`read_shard` gives back together with ``facts``; returns the file's digest."""
    laid = _Laid()
    header = {**facts, "value": laid.encode("result", value), "arrays": laid.table}
    text = json.dumps(header).encode()
    # Kernels take arrays that lie on multiples of their items' size.
    text += b" " * (-(len(_MAGIC) + 8 + len(text)) % _ALIGNED)
    digest = hashlib.sha256()
    with writing(path, durable=False) as file:

        def put(data: Any) -> None:
            digest.update(data)
            file.write(data)

        put(_MAGIC + len(text).to_bytes(8, "little") + text)
        at = 0
        for array, own in zip(laid.arrays, laid.table.values(), strict=True):
            put(bytes(own["start"] - at))
            put(array.reshape(-1).view(np.uint8).data if array.size else b"")
            at = own["start"] + array.nbytes
        file.write(digest.digest())
    return digest.hexdigest()


def shard_digest(path: Path) -> str | None:
    """The digest that the file at ``path`` says it has; None where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(-_DIGEST_BYTES, 2)
            return file.read().hex()
    except OSError:
        return None


def is_sound(path: Path) -> bool:
    """Whether the shard has the digest that it says it has."""
    try:
        with open_regular(path) as file:
            whole = np.memmap(file, np.uint8, "r").view(np.ndarray)
    except (OSError, ValueError):
        return False
    return _has_its_digest(whole)


def _has_its_digest(whole: np.ndarray) -> bool:
    return hashlib.sha256(whole[:-_DIGEST_BYTES].data).digest() == whole[-_DIGEST_BYTES:].tobytes()


def read_shard(path: Path, facts: dict[str, Any], *, sound: bool = False) -> Any:
    """The value of a shard that was written with the same ``facts``; arrays are mapped, read-only.

    ``sound`` says that :func:`is_sound` was asked already.
    """
    try:
        with open_regular(path) as file:
            whole = np.memmap(file, np.uint8, "r").view(np.ndarray)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} cannot be read ({error})") from error
    with told(f"{path} is no piece of this run"):
        if not (sound or _has_its_digest(whole)):
            raise Violation("its sha256 differs")
        body = whole[:-_DIGEST_BYTES]
        start = len(_MAGIC) + 8
        if body[: len(_MAGIC)].tobytes() != _MAGIC:
            raise Violation("it is of another kind")
        length = int.from_bytes(body[len(_MAGIC) : start].tobytes(), "little")
        header = json.loads(body[start : start + length].tobytes())
        differ = [name for name in facts if header.get(name) != facts[name]]
        if differ:
            raise Violation(f"its {differ[0]} is {header.get(differ[0])!r}, not {facts[differ[0]]!r}")
        return Reader(_Lying(path, header["arrays"], body[start + length :])).decode(header["value"])  # type: ignore[arg-type]
