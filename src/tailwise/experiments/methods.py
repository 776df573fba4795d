"""The methods that the papers report, each with the model of ours that stands beside it.

A method whose classes this version does not have is left out of every table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tailwise
from tailwise.errors import InvalidInput


class Method(NamedTuple):
    """One row of the table: how to build the model, and under which name it was published."""

    name: str
    needs: tuple[str, ...]
    """Public names that :attr:`make` uses."""
    make: Callable[[], Any]
    """Builds the unfitted model."""
    published: str | None = None
    demo: bool = False

    @property
    def is_there(self) -> bool:
        """Whether this version has every class that the method needs."""
        return all(name in tailwise._HOME_OF for name in self.needs)


def _build(class_name: str, **parameters: Any) -> Any:
    """A model with the parameters given, its own defaults and a fixed seed."""
    cls = getattr(tailwise, class_name)
    seed = {"random_state": 0} if "random_state" in inspect.signature(cls).parameters else {}
    return cls(**parameters, **seed)


def _plain(class_name: str, published: str | None = None, *, demo: bool = False) -> Method:
    return Method(published or class_name, (class_name,), lambda: _build(class_name), published, demo)


def _around(wrapper: str, base: str, published: str) -> Method:
    return Method(published, (wrapper, base), lambda: _build(wrapper, base=_build(base)), published)


METHODS = (
    _plain("Popularity", demo=True),
    _plain("Centroid", demo=True),
    _plain("NearestRows"),
    _plain("DiSMEC", "DiSMEC", demo=True),
    _plain("PWDiSMEC", "PW-DiSMEC", demo=True),
    _plain("ProXML", "ProXML"),
    _plain("PPDSparse", "PPD-Sparse"),
    _plain("Parabel", "Parabel", demo=True),
    _plain("Bonsai", "Bonsai"),
    _plain("FastXML", "FastXML"),
    _plain("PfastXML", "PfastXML"),
    _plain("PfastreXML", "PfastreXML", demo=True),
    _plain("GLaS", "GLaS"),
    _around("RankNet", "FastXML", "RankNet+FastXML"),
    _around("RankNet", "Parabel", "RankNet+Parabel"),
    _around("RankNet", "Bonsai", "RankNet+Bonsai"),
    _around("TailAugmented", "Bonsai", "Taug+Bonsai"),
)
"""In the order of the table."""


def select(names: Sequence[str] | None = None, *, demo: bool = False) -> list[Method]:
    """The methods of this version: all, those named, or the demo's.

    >>> [method.name for method in select(["centroid"])]
    ['Centroid']
    """
    there = [method for method in METHODS if method.is_there]
    if not names:
        return [method for method in there if method.demo or not demo]

    def plain(text: str) -> str:
        return text.lower().replace("-", "").replace("_", "")

    by_name = {plain(method.name): method for method in there}
    unknown = [name for name in names if plain(name) not in by_name]
    if unknown:
        raise InvalidInput(
            f"--methods {unknown[0]!r} is not known; choose from {', '.join(method.name for method in there)}"
        )
    return [by_name[plain(name)] for name in names]
