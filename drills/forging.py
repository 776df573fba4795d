"""Model folders with right digests and wrong contents, as somebody might write them by hand."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tailwise.persistence.manifest import MANIFEST, manifest_digest


def forge_manifest(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Put ``change`` of every JSON object in the model's description in its place, and sign the manifest."""
    manifest = json.loads((path / MANIFEST).read_text())
    manifest["model"] = _changed(manifest["model"], change)
    _sign(path, manifest)


def forge_array(path: Path, part: str, change: Callable[[np.ndarray], np.ndarray]) -> str:
    """Put ``change`` of the first array whose value's name ends in ``part`` in its place; returns its file's name."""
    return change_array(path, next(name for name in arrays_of(path) if name[:-21].endswith(part)), change)


def arrays_of(path: Path) -> list[str]:
    """The names of the files of arrays, in order."""
    return sorted(file.name for file in path.glob("*.npy"))


def change_array(path: Path, name: str, change: Callable[[np.ndarray], np.ndarray]) -> str:
    """Put ``change`` of the array in the file ``name`` in its place; returns the new name."""
    file = io.BytesIO()
    np.lib.format.write_array(file, change(np.load(path / name)), allow_pickle=False)
    return forge_file(path, name, file.getvalue())


def forge_file(path: Path, name: str, content: bytes) -> str:
    """Put ``content`` in the place of a listed file, under the name that its digest asks for."""
    digest = hashlib.sha256(content).hexdigest()
    stem, suffix = name.rsplit("-", 1)[0], Path(name).suffix
    new = f"{stem}-{digest[:16]}{suffix}"
    text = (path / MANIFEST).read_text().replace(name, new)
    manifest = json.loads(text)
    manifest["files"][new] = {"bytes": len(content), "sha256": digest}
    (path / name).unlink()
    (path / new).write_bytes(content)
    _sign(path, manifest)
    return new


def values_of(path: Path) -> list[tuple[Any, ...]]:
    """Where the values of a model's description are: the keys that lead to each, in order."""
    found: list[tuple[Any, ...]] = []

    def walk(value: Any, keys: tuple[Any, ...]) -> None:
        found.append(keys)
        for key in value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0):
            walk(value[key], (*keys, key))

    walk(json.loads((path / MANIFEST).read_text())["model"], ())
    return found


def forge_value(path: Path, keys: tuple[Any, ...], value: Any) -> None:
    """Put ``value`` where ``keys`` lead, or nothing at all where it is ``...``; then sign the manifest."""
    manifest = json.loads((path / MANIFEST).read_text())
    inside = manifest
    for key in ("model", *keys)[:-1]:
        inside = inside[key]
    if value is ...:
        del inside[("model", *keys)[-1]]
    else:
        inside[("model", *keys)[-1]] = value
    _sign(path, manifest)


def _changed(value: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    if isinstance(value, list):
        return [_changed(item, change) for item in value]
    if isinstance(value, dict):
        return change({key: _changed(item, change) for key, item in value.items()})
    return value


def _sign(path: Path, manifest: dict[str, Any]) -> None:
    manifest["sha256"] = manifest_digest(manifest)
    (path / MANIFEST).write_text(json.dumps(manifest))
