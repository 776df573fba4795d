"""How a model becomes a folder and comes back: JSON and ``.npy`` files, never pickle.

A folder holds ``manifest.json`` and one file for each array, named after its content's digest. The manifest
lists class, parameters, fitted state, and the sha256 of every file. A new model is written to a temporary
sibling that is renamed when it is whole; an existing one is replaced by swapping its manifest, which is one
atomic rename because files of different content never share a name. A crash leaves the old model or the new one.

Any class that derives from :class:`Saveable` can be kept: its ``get_params`` and every attribute that ends in
``_``. Values may be None, bool, numbers, strings, lists, tuples, dicts with string keys, numpy arrays, scipy CSR
matrices, NamedTuples of tailwise, dicts of torch tensors (kept as safetensors), and other Saveable objects.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput, ModelFileError, import_extra

FORMAT = "tailwise-model"
FORMAT_VERSION = 1
_MANIFEST = "manifest.json"
_FILE_NAME = re.compile(r"[A-Za-z0-9_.\-]+")
_INLINE_STRINGS = 256


class Saveable:
    """Marks a class whose parameters and fitted attributes can be written to a folder and read back."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; scikit-learn's BaseEstimator provides it."""
        return super().get_params(deep=deep)  # type: ignore[misc]

    def _state(self) -> dict[str, Any]:
        """What is kept besides the parameters: by default every attribute that ends in ``_``."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and not name.startswith("_")}

    def _restore(self, state: dict[str, Any]) -> None:
        """Put back what :meth:`_state` returned."""
        vars(self).update(state)


def save(model: Saveable, path: str | Path) -> None:
    """Write ``model`` to the folder ``path``, whole or not at all.

    An existing model there is replaced; any other existing file or non-empty folder is refused.
    """
    path = Path(path)
    if path.exists() and not _is_replaceable(path):
        raise ModelFileError(f"{path} exists and is not a tailwise model; choose another path or remove it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    except OSError as error:
        raise ModelFileError(f"cannot write a model to {path}: {error.strerror or error}") from error
    try:
        _write(model, scratch)
        if (path / _MANIFEST).exists():
            _replace_contents(path, scratch)
        else:
            if path.exists():
                path.rmdir()
            scratch.chmod(0o755)
            scratch.rename(path)
        _fsync_folder(path.parent)
    except OSError as error:
        raise ModelFileError(
            f"writing the model to {path} failed ({error.strerror or error}); nothing was changed there"
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def load(path: str | Path, *, verify: bool = True) -> Any:
    """Open a saved model; its arrays are mapped into memory, read-only and shared between processes.

    ``verify=True`` reads every file once and compares its sha256. ``verify=False`` checks names, sizes and
    headers only, and opens a model of any size in milliseconds.
    """
    path = Path(path)
    manifest = _read_manifest(path)
    _check_files(path, manifest["files"], verify)
    try:
        return _Reader(path, set(manifest["files"])).decode(manifest["model"])
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, OSError, AttributeError, ImportError) as error:
        raise ModelFileError(
            f"{path} cannot be opened: its manifest does not describe a model ({error!r}); save the model again"
        ) from error


def read_manifest(path: str | Path) -> dict[str, Any]:
    """The checked manifest of a saved model, without opening its arrays."""
    return _read_manifest(Path(path))


def _is_replaceable(path: Path) -> bool:
    return path.is_dir() and ((path / _MANIFEST).exists() or not any(path.iterdir()))


def _write(model: Saveable, folder: Path) -> None:
    from tailwise import __version__

    writer = _Writer(folder)
    encoded = writer.encode(type(model).__name__, model)
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tailwise_version": __version__,
        "model": encoded,
        "files": dict(sorted(writer.files.items())),
    }
    manifest["sha256"] = _manifest_digest(manifest)
    with (folder / _MANIFEST).open("w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1, allow_nan=True)
        file.flush()
        os.fsync(file.fileno())
    _fsync_folder(folder)


def _replace_contents(path: Path, scratch: Path) -> None:
    keep = {_MANIFEST}
    for file in sorted(scratch.iterdir()):
        if file.name != _MANIFEST:
            keep.add(file.name)
            # Linking over an equal file would free the one that this process may have mapped: leave it.
            if not (path / file.name).exists():
                file.rename(path / file.name)
    _fsync_folder(path)
    (scratch / _MANIFEST).replace(path / _MANIFEST)
    _fsync_folder(path)
    for file in path.iterdir():
        if file.name not in keep and file.is_file():
            file.unlink()


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _manifest_digest(manifest: dict[str, Any]) -> str:
    body = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        what = "is a file, not a folder" if path.exists() else "does not exist"
        raise ModelFileError(f"{path} {what}; pass the folder that model.save(path) wrote")
    try:
        manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFileError(f"{path} has no {_MANIFEST}; it is not a tailwise model") from None
    except (ValueError, OSError) as error:
        raise ModelFileError(f"{path / _MANIFEST} is damaged ({error}); restore it or save the model again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{path / _MANIFEST} is not the manifest of a tailwise model")
    version = manifest.get("format_version")
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version!r} (written by tailwise {manifest.get('tailwise_version')}), "
            f"but this tailwise reads up to {FORMAT_VERSION}; upgrade tailwise"
        )
    if manifest.get("sha256") != _manifest_digest(manifest):
        raise ModelFileError(f"{path / _MANIFEST} was changed after it was written; restore it or save the model again")
    return manifest


def _check_files(folder: Path, files: dict[str, Any], verify: bool) -> None:
    for name, facts in files.items():
        path = folder / name
        if not _FILE_NAME.fullmatch(name) or not path.is_file():
            raise ModelFileError(f"{folder} lacks the file {name}; restore it or save the model again")
        if path.stat().st_size != facts["bytes"]:
            raise ModelFileError(
                f"{path} has {path.stat().st_size:,} bytes instead of {facts['bytes']:,}: it is truncated or changed; "
                "restore it or save the model again"
            )
        if verify and _file_digest(path) != facts["sha256"]:
            raise ModelFileError(f"{path} is corrupted (its sha256 differs); restore it or save the model again")


class _Writer:
    """Turns a value into JSON, putting arrays into files of ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, dict[str, Any]] = {}

    def encode(self, name: str, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return {"$": "scalar", "dtype": value.dtype.str, "value": value.item()}
        if isinstance(value, np.ndarray):
            return {"$": "array", "file": self._write_array(name, value)}
        if sparse.issparse(value):
            return self._encode_csr(name, value)
        if isinstance(value, Saveable):
            return {
                "$": "object",
                "class": _class_name(type(value)),
                "params": {k: self.encode(f"{name}.{k}", v) for k, v in value.get_params(deep=False).items()},
                "state": {k: self.encode(f"{name}.{k}", v) for k, v in value._state().items()},
            }
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = {k: self.encode(f"{name}.{k}", v) for k, v in zip(value._fields, value, strict=True)}
            return {"$": "namedtuple", "class": _class_name(type(value)), "fields": fields}
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
            encoded = [item.encode() for item in value]
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
        return {"$": "dict", "items": {k: self.encode(f"{name}.{k}", v) for k, v in value.items()}}

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
                np.lib.format.write_array(file, plain, allow_pickle=False)

        return self._add_file(name, ".npy", write)

    def _add_file(self, name: str, suffix: str, write: Any) -> str:
        scratch = self.folder / "writing"
        write(scratch)
        with scratch.open("rb") as file:
            os.fsync(file.fileno())
        digest = _file_digest(scratch)
        stem = re.sub(r"[^A-Za-z0-9_.\-]", "_", name)[-100:]
        final = f"{stem}-{digest[:16]}{suffix}"
        self.files[final] = {"bytes": scratch.stat().st_size, "sha256": digest}
        scratch.rename(self.folder / final)
        return final


class _Reader:
    """The inverse of :class:`_Writer`."""

    def __init__(self, folder: Path, files: set[str]) -> None:
        self.folder = folder
        self.files = files

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value["$"]
        if kind not in self._DECODERS:
            raise ModelFileError(f"{self.folder} holds a value of unknown kind {kind!r}; upgrade tailwise")
        return self._DECODERS[kind](self, value)

    def _object(self, value: dict[str, Any]) -> Any:
        cls = _resolve_class(value["class"])
        if not issubclass(cls, Saveable):
            raise ModelFileError(f"{value['class']} is not a class that tailwise saves")
        made = cls(**{name: self.decode(item) for name, item in value["params"].items()})
        made._restore({name: self.decode(item) for name, item in value["state"].items()})
        return made

    def _namedtuple(self, value: dict[str, Any]) -> Any:
        cls = _resolve_class(value["class"])
        if not (issubclass(cls, tuple) and hasattr(cls, "_fields")):
            raise ModelFileError(f"{value['class']} is not a NamedTuple of tailwise")
        return cls(**{name: self.decode(item) for name, item in value["fields"].items()})

    def _array(self, name: str) -> np.ndarray:
        path = self._path(name)
        try:
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError:
            # An array without entries cannot be mapped.
            mapped = np.load(path, allow_pickle=False)
        return np.asarray(mapped)

    def _csr(self, value: dict[str, Any]) -> sparse.csr_array:
        parts = tuple(self._array(value[part]) for part in ("data", "indices", "indptr"))
        # Not through the constructor: it would read whole index arrays to check them.
        csr = sparse.csr_array(tuple(value["shape"]), dtype=parts[0].dtype)
        csr.data, csr.indices, csr.indptr = parts
        return csr

    def _strings(self, value: dict[str, Any]) -> Any:
        text, offsets = (self._array(name) for name in value["files"])
        whole, cuts = text.tobytes(), offsets.tolist()
        strings = [whole[a:b].decode() for a, b in pairwise(cuts)]
        return tuple(strings) if value["type"] == "tuple" else strings

    def _tensors(self, value: dict[str, Any]) -> Any:
        return import_extra("safetensors.torch", "neural", "loading torch weights").load_file(self._path(value["file"]))

    def _path(self, name: str) -> Path:
        if name not in self.files:
            raise ModelFileError(f"{self.folder} refers to the file {name!r}, which its manifest does not list")
        return self.folder / name

    _DECODERS = {
        "scalar": lambda self, v: np.dtype(v["dtype"]).type(v["value"]),
        "array": lambda self, v: self._array(v["file"]),
        "csr": _csr,
        "object": _object,
        "namedtuple": _namedtuple,
        "strings": _strings,
        "tensors": _tensors,
        "tuple": lambda self, v: tuple(self.decode(item) for item in v["items"]),
        "dict": lambda self, v: {name: self.decode(item) for name, item in v["items"].items()},
    }


def _class_name(cls: type) -> str:
    if not cls.__module__.startswith("tailwise."):
        raise InvalidInput(f"{cls.__module__}.{cls.__qualname__} cannot be saved: only classes of tailwise can")
    return f"{cls.__module__}:{cls.__qualname__}"


def _resolve_class(name: str) -> type:
    module, _, qualname = name.partition(":")
    if not re.fullmatch(r"tailwise(\.\w+)+", module) or not qualname.isidentifier():
        raise ModelFileError(f"the model names the class {name!r}, which is not one of tailwise")
    try:
        cls = getattr(import_module(module), qualname)
    except (ModuleNotFoundError, AttributeError) as error:
        raise ModelFileError(f"the model names the class {name!r}, which this tailwise does not have") from error
    if not isinstance(cls, type):
        raise ModelFileError(f"{name!r} is not a class")
    return cls
