"""Packages whose names are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, home_of: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a ``package`` from the module in it that each of its names lives in."""

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        owner = import_module(package)
        value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        setattr(owner, name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(import_module(package)), *home_of})

    return get, names
