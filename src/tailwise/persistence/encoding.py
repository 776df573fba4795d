"""Values as JSON, with arrays in files: what ``save`` writes and :mod:`tailwise.persistence.decoding` reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.atomic import fsync_file
from tailwise.errors import InvalidInput, import_extra
from tailwise.persistence.manifest import file_digest
from tailwise.persistence.saveable import Saveable, class_name

_INLINE_STRINGS = 256


def encode_text(text: str) -> bytes:
    """Any str as bytes, lone surrogates too, which plain UTF-8 refuses and JSON joins to pairs."""
    return text.encode("utf-8", "surrogatepass")


class Writer:
    """Turns a value into JSON, putting arrays into files of ``folder``; ``files`` are the facts about each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, dict[str, Any]] = {}

    def encode(self, name: str, value: Any) -> Any:
        """``value`` as JSON; ``name`` is how messages and files call it."""
        if isinstance(value, str):
            return value if _is_plain(value) else {"$": "text", "hex": encode_text(value).hex()}
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            return {"$": "scalar", "dtype": value.dtype.str, "value": value.item()}
        if isinstance(value, np.ndarray):
            return {"$": "array", "file": self._write_array(name, value)}
        if sparse.issparse(value):
            return self._encode_csr(name, value)
        if isinstance(value, Saveable):
            return {
                "$": "object",
                "class": class_name(type(value)),
                "params": {k: self.encode(f"{name}.{k}", v) for k, v in value.get_params(deep=False).items()},
                "state": {k: self.encode(f"{name}.{k}", v) for k, v in value._state().items()},
            }
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = {k: self.encode(f"{name}.{k}", v) for k, v in zip(value._fields, value, strict=True)}
            return {"$": "namedtuple", "class": class_name(type(value)), "fields": fields}
        if isinstance(value, list | tuple):
            return self._encode_sequence(name, value)
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return self._encode_dict(name, value)
        raise InvalidInput(
            f"{name}={value!r} cannot be saved, because a model folder holds data and no code; "
            "replace it by a number, a string, an array or a tailwise object"
        )

    def _encode_sequence(self, name: str, value: Any) -> Any:
        if len(value) > _INLINE_STRINGS and all(isinstance(item, str) for item in value):
            encoded = [encode_text(item) for item in value]
            offsets = np.concatenate([[0], np.cumsum([len(item) for item in encoded])]).astype(np.int64)
            text = np.frombuffer(b"".join(encoded), np.uint8)
            files = [self._write_array(f"{name}.text", text), self._write_array(f"{name}.offsets", offsets)]
            return {"$": "strings", "type": type(value).__name__, "files": files}
        items = [self.encode(f"{name}.{i}", item) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"$": "tuple", "items": items}

    def _encode_dict(self, name: str, value: dict[str, Any]) -> Any:
        if value and all(type(item).__module__.startswith("torch") for item in value.values()):
            to_file = import_extra("safetensors.torch", "neural", "saving torch weights").save_file
            tensors = {key: item.detach().cpu().contiguous() for key, item in value.items()}
            return {
                "$": "tensors",
                "file": self._add_file(name, ".safetensors", lambda path: to_file(tensors, path)),
            }
        if all(map(_is_plain, value)):
            return {"$": "dict", "items": {k: self.encode(f"{name}.{k}", v) for k, v in value.items()}}
        return {"$": "pairs", "items": self.encode(name, [list(pair) for pair in value.items()])}

    def _encode_csr(self, name: str, value: Any) -> Any:
        if value.format != "csr":
            raise InvalidInput(f"{name} is a sparse {value.format} matrix; only CSR can be saved")
        parts = {
            part: self._write_array(f"{name}.{part}", getattr(value, part)) for part in ("data", "indices", "indptr")
        }
        return {"$": "csr", "shape": [int(n) for n in value.shape], **parts}

    def _write_array(self, name: str, array: np.ndarray) -> str:
        if array.dtype.hasobject:
            raise InvalidInput(
                f"{name} is an array of Python objects and cannot be saved; use numbers or a list of str"
            )
        plain = np.ascontiguousarray(array) if array.ndim else np.asarray(array)

        def write(path: Path) -> None:
            with path.open("wb") as file:
                # Not the file itself: numpy would write to its handle, and say of a full disk how many values fitted.
                np.lib.format.write_array(SimpleNamespace(write=file.write), plain, allow_pickle=False)

        return self._add_file(name, ".npy", write)

    def _add_file(self, name: str, suffix: str, write: Callable[[Path], None]) -> str:
        scratch = self.folder / "writing"
        write(scratch)
        fsync_file(scratch)
        digest = file_digest(scratch)
        stem = re.sub(r"[^A-Za-z0-9_.\-]", "_", name)[-100:]
        final = f"{stem}-{digest[:16]}{suffix}"
        self.files[final] = {"bytes": scratch.stat().st_size, "sha256": digest}
        scratch.rename(self.folder / final)
        return final


def _is_plain(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
